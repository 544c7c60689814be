// A result: kinds with their odds, parameters with sliders, curves, files, and the motion drawn over the film.

import { $, color, h } from "./elements.js";
import { polyline, ring } from "./film.js";
import { Plots } from "./plots.js";
import { post } from "./server.js";

const FUTURE_SECONDS = 0.5;
export const timings = []; // of the last redraws by a slider, ms

export class Result {
  constructor(film, send) {
    this.film = film;
    this.send = send;
    this.axes = null;
    this.plots = window.physvisionPlots = new Plots($("plots"), (time) => film.show(this.frameAt(time)));
    $("zoom-in").addEventListener("click", () => this.plots.zoom(0.6));
    $("zoom-out").addEventListener("click", () => this.plots.zoom(1 / 0.6));
    $("zoom-reset").addEventListener("click", () => this.plots.reset());
    $("plot-object").addEventListener("change", () => this.plot());
    $("reset").addEventListener("click", () => this.reset());
    $("export").addEventListener("click", () => send("export", { decimal: $("decimal").value, film: $("with-film").checked }));
  }

  clear(id) {
    this.id = id;
    this.result = this.whatIf = null;
    this.files = [];
    $("result").hidden = true;
  }

  show(result, axes) {
    this.result = result;
    this.axes = axes;
    this.whatIf = null;
    this.plots.range = result.span;
    $("result-title").textContent = `Result: ${result.motion.replaceAll("_", " ")}`;
    $("warnings").replaceChildren(...result.warnings.map((warning) => h("li", {}, warning)));
    this.showKinds();
    $("basis").replaceChildren(...result.basis.map(([label, text]) => h("li", {}, `${label}: ${text}`)));
    this.showParameters();
    $("plot-object").replaceChildren(...result.objects.map((object, index) => h("option", { value: String(index) }, `object ${object + 1}`)));
    $("plot-object").parentElement.hidden = result.objects.length < 2;
    $("command").textContent = result.command;
    $("legend").replaceChildren(...[["fitted motion", "--fit"], ["what if", "--what-if"]].map(([text, name]) => {
      const line = h("i");
      line.style.background = name === "--fit" ? "#ffffff" : "#f0d060";
      return h("span", {}, line, text);
    }));
    this.plot();
    this.film.draw();
  }

  showKinds() {
    const { kinds, rejected } = this.result;
    const again = (kind) => h("button", { onclick: () => this.onKind(kind), "aria-label": `Take ${kind.replaceAll("_", " ")}` }, "take it");
    const rows = kinds.map(({ kind, text, note }, index) => h("div", { class: "kind" }, h("b", {}, kind.replaceAll("_", " ")),
      h("span", {}, index ? text : "the best"), index ? again(kind) : h("span"), note ? h("small", {}, `To tell it apart: ${note}`) : null));
    if (rejected.length) rows.push(h("details", {}, h("summary", {}, `${rejected.length} rejected, and why`),
      ...rejected.map(({ kind, reason }) => h("div", { class: "kind" }, h("span", {}, kind.replaceAll("_", " ")), h("span"), again(kind), h("small", {}, reason)))));
    if (kinds.length + rejected.length < 2) {
      rows.push(h("p", { class: "muted" }, "Only this kind was tried."), h("button", { onclick: () => this.onKind("") }, "Compare all kinds"));
    }
    $("kinds").replaceChildren(...rows);
  }

  showParameters() {
    this.rows = new Map();
    const body = h("tbody");
    for (const parameter of this.result.parameters) {
      const { name, label, unit, value } = parameter;
      const head = h("th", { scope: "row" }, label, parameter.meaning ? h("div", { class: "muted" }, parameter.meaning) : null);
      if (value === null || !parameter.range) {
        body.append(h("tr", {}, head, h("td", { colspan: "3", class: "muted" }, `not identifiable: ${parameter.reason}`)));
        continue;
      }
      const shown = h("td", { class: "value" }, `${parameter.text} ${unit}`);
      const [low, high] = parameter.range;
      const slider = h("input", { type: "range", min: String(low), max: String(high), step: String((high - low) / 400), "aria-label": `What if: ${label}` });
      slider.value = value;
      slider.addEventListener("input", () => this.change(name, Number(slider.value)));
      body.append(h("tr", {}, head, shown, h("td", {}, `95 %: ${parameter.low} to ${parameter.high}`,
        parameter.degrees ? h("div", { class: "muted" }, parameter.degrees) : null), h("td", {}, slider)));
      this.rows.set(name, { shown, slider, parameter });
    }
    const head = ["parameter", "value", "interval", "what if"].map((text) => h("th", { scope: "col" }, text));
    $("parameters").replaceChildren(h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ...head)), body)));
    $("reset").disabled = true;
    $("what-if").textContent = "";
  }

  // Asks for the motion with another value; while one is under way, only the last one waits.
  async change(name, value) {
    this.wanted = { name, value, begin: performance.now() };
    if (this.asking) return;
    this.asking = true;
    while (this.wanted) {
      const { name: parameter, value: number, begin } = this.wanted;
      this.wanted = null;
      try {
        this.whatIf = { name: parameter, ...await post(`/api/analyses/${this.id}/simulate`, { values: { [parameter]: number } }) };
        $("what-if").textContent = "";
        this.showValues();
        this.plot();
        this.film.draw();
        timings.push(performance.now() - begin);
      } catch (error) { $("what-if").textContent = error.message; }
    }
    this.asking = false;
    window.physvisionTimings = timings;
  }

  showValues() {
    for (const [name, { shown, slider, parameter }] of this.rows) {
      const value = this.whatIf ? this.whatIf.values[name] : parameter.value;
      const digits = Math.max(3, parameter.text.replace(/[^0-9]/g, "").length);
      shown.textContent = this.whatIf ? `${Number(value.toPrecision(digits))} ${parameter.unit}` : `${parameter.text} ${parameter.unit}`;
      if (!this.whatIf || name !== this.whatIf.name) slider.value = value;
    }
    $("reset").disabled = !this.whatIf;
  }

  reset() {
    this.wanted = this.whatIf = null;
    this.showValues();
    $("what-if").textContent = "";
    this.plot();
    this.film.draw();
  }

  frameAt(time) {
    const { times, first } = this.result;
    let nearest = 0;
    times.forEach((other, index) => { if (Math.abs(other - time) < Math.abs(times[nearest] - time)) nearest = index; });
    return first + nearest;
  }

  showFrame(frame) {
    if (!this.result) return;
    const time = this.result.times[frame - this.result.first];
    if (time !== undefined) this.plots.cursor(time);
  }

  // Draws the fitted motion, its future, and the motion of the sliders.
  draw(context, frame, pixel) {
    const result = this.result;
    if (!result || result.unit !== "px") return;
    const sample = frame - result.first, count = result.times.length;
    const all = [...result.fitted, ...result.future.positions], times = [...result.times, ...result.future.times];
    const here = Math.max(0, Math.min(count - 1, sample));
    const end = here >= count - 1 ? all.length : times.findIndex((time) => time > times[here] + FUTURE_SECONDS);
    result.objects.forEach((object, index) => {
      const path = (rows) => rows.map((row) => [row[2 * index], row[2 * index + 1]]);
      polyline(context, path(result.fitted), "#ffffff", 1.5 * pixel, [7 * pixel, 5 * pixel]);
      polyline(context, path(all.slice(here, end < 0 ? all.length : end)), "#ffffff", 3 * pixel);
      if (all[here]) ring(context, path([all[here]])[0], 4 * pixel, "#ffffff", 2 * pixel);
      if (!this.whatIf) return;
      const changed = path(this.whatIf.positions);
      polyline(context, changed.slice(0, count), "#000000a0", 4 * pixel);
      polyline(context, changed.slice(0, count), "#f0d060", 2 * pixel);
      if (changed[here]) ring(context, changed[here], 9 * pixel, "#f0d060", 3 * pixel);
    });
  }

  plot() {
    const result = this.result;
    if (!result) return;
    const index = Number($("plot-object").value || 0);
    const scale = result.scale && result.unit === "px" ? result.scale : 1;
    const unit = result.scale ? "m" : result.unit;
    // As in motion.csv.
    const { origin, turn } = this.axes ?? { origin: result.origin, turn: 0 };
    const place = (rows) => ["x", "y"].map((axis) => rows.map((row) => {
      if (!row || row[2 * index] === null || row[2 * index] === undefined) return null;
      const dx = (row[2 * index] - origin[0]) / scale, dy = (origin[1] - row[2 * index + 1]) / scale;
      return axis === "x" ? dx * Math.cos(turn) + dy * Math.sin(turn) : dy * Math.cos(turn) - dx * Math.sin(turn);
    }));
    const times = [...result.times, ...result.future.times];
    const observed = place(result.observed), fitted = place([...result.fitted, ...result.future.positions]);
    const whatIf = this.whatIf ? place(this.whatIf.positions) : null;
    this.plots.set(chartsOf({ result, times, observed, fitted, whatIf, unit }), [result.times[0], result.times[result.times.length - 1]]);
  }

  showFiles(id, files) {
    const names = { "report.html": "report", "prediction.mp4": "film", "analysis.json": "this analysis, to be opened again" };
    $("files").replaceChildren(...(files ?? []).map((name) => h("li", {}, h("a", {
      href: `/api/analyses/${id}/files/${encodeURIComponent(name)}`, ...(/\.(html|mp4)$/.test(name) ? { target: "_blank", rel: "noopener" } : { download: name }),
    }, names[name] ? `${name} (${names[name]})` : name))));
  }
}

function slope(times, values) {
  return values.map((value, index) => {
    const before = Math.max(0, index - 1), after = Math.min(values.length - 1, index + 1);
    if (values[before] === null || values[after] === null || value === null) return null;
    return (values[after] - values[before]) / (times[after] - times[before]);
  });
}

const length = ([x, y]) => x.map((value, index) => (value === null || y[index] === null ? null : Math.hypot(value, y[index])));

function chartsOf({ result, times, observed, fitted, whatIf, unit }) {
  const dots = color("--accent"), fit = color("--fit"), changed = color("--what-if");
  const chart = (title, chartUnit, seen, model, other, robust = false) => ({
    title, unit: chartUnit, robust,
    series: [
      ...(seen ? [{ label: "observed", x: result.times, y: seen, color: dots, kind: "dots" }] : []),
      { label: "fitted", x: times, y: model, color: fit, kind: "line" },
      ...(other ? [{ label: "what if", x: times, y: other, color: changed, kind: "dashes" }] : []),
    ],
  });
  const slopes = (pair, at) => pair.map((values) => slope(at, values));
  const speed = { seen: slopes(observed, result.times), fit: slopes(fitted, times), other: whatIf && slopes(whatIf, times) };
  const bend = (pair) => slopes(pair, times).map((values) => values.map((value, index) => (index < 2 || index > values.length - 3 ? null : value)));
  const push = { fit: bend(speed.fit), other: speed.other && bend(speed.other) };
  const charts = ["x", "y"].map((axis, index) => chart(axis, unit, observed[index], fitted[index], whatIf?.[index]));
  charts.push(chart("speed v", `${unit}/s`, length(speed.seen), length(speed.fit), speed.other && length(speed.other), true));
  charts.push(chart("acceleration a", `${unit}/s²`, null, length(push.fit), push.other && length(push.other), true));
  if (result.energy) charts.push(energyChart(result.energy));
  const residuals = observed.map((values, axis) => values.map((value, index) => (value === null || fitted[axis][index] === null ? null : value - fitted[axis][index])));
  charts.push({ title: "residuals, observed less fitted", unit, robust: true, series: residuals.map((y, axis) => ({ label: "xy"[axis], x: result.times, y, color: axis ? changed : dots, kind: "dots" })) });
  return charts;
}

function energyChart({ unit, note, times, kinetic, potential }) {
  const total = kinetic.map((value, index) => value + potential[index]);
  const series = [["kinetic", kinetic, "--accent"], ["potential", potential, "--what-if"], ["total", total, "--fit"]];
  return { title: note ? `energy ${note}` : "energy", unit, series: series.map(([label, y, name]) => ({ label, x: times, y, color: color(name), kind: "line" })) };
}
