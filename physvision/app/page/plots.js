// Charts of curves over time: zoom on time, a cursor at the film's frame, and limits that outliers do not stretch.

import { color, h } from "./elements.js";

const MARGIN = { left: 58, right: 10, top: 8, bottom: 24 };

export class Plots {
  constructor(container, goTo) {
    this.container = container;
    this.goTo = goTo;
    this.charts = [];
    this.range = null;
  }

  // Shows charts: { title, unit, series: [{ label, x, y, color, kind }], robust }.
  set(charts, full) {
    this.full = full;
    this.range ??= full;
    this.charts = charts.map((chart, index) => {
      const kept = this.charts[index];
      return kept && kept.title === chart.title ? Object.assign(kept, chart) : this.make(chart);
    });
    this.container.replaceChildren(...this.charts.map((chart) => chart.figure));
    this.draw();
  }

  make(chart) {
    const canvas = h("canvas", { role: "img" }), note = h("span");
    chart.canvas = canvas;
    chart.note = note;
    chart.caption = h("b");
    chart.figure = h("figure", {}, h("figcaption", {}, chart.caption, note), canvas);
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(event.deltaY < 0 ? 0.8 : 1.25, this.timeAt(canvas, event));
    }, { passive: false });
    this.listenToFingers(canvas);
    canvas.addEventListener("click", (event) => this.goTo(this.timeAt(canvas, event)));
    return chart;
  }

  // Two fingers zoom about the time between them, one finger moves to the side; up and down scrolls the page.
  listenToFingers(canvas) {
    const fingers = new Map();
    const release = (event) => fingers.delete(event.pointerId);
    canvas.addEventListener("pointerdown", (event) => event.pointerType === "touch" && fingers.set(event.pointerId, event.clientX));
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointermove", (event) => {
      if (!fingers.has(event.pointerId)) return;
      const before = [...fingers.values()];
      fingers.set(event.pointerId, event.clientX);
      const after = [...fingers.values()];
      const middle = (places) => this.timeAt(canvas, { clientX: places.reduce((sum, x) => sum + x, 0) / places.length });
      this.shift(middle(before) - middle(after));
      if (before.length === 2) this.zoom(Math.abs(before[0] - before[1]) / Math.max(20, Math.abs(after[0] - after[1])), middle(after));
    });
  }

  shift(time) {
    const [low, high] = this.range, by = Math.max(this.full[0] - low, Math.min(this.full[1] - high, time));
    this.range = [low + by, high + by];
    this.draw();
  }

  timeAt(canvas, event) {
    const box = canvas.getBoundingClientRect();
    const fraction = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    return this.range[0] + fraction * (this.range[1] - this.range[0]);
  }

  zoom(factor, time) {
    const [low, high] = this.range, center = time ?? this.time ?? (low + high) / 2;
    const next = [center - factor * (center - low), center + factor * (high - center)];
    this.range = [Math.max(this.full[0], next[0]), Math.min(this.full[1], next[1])];
    this.draw();
  }

  reset() {
    this.range = this.full;
    this.draw();
  }

  cursor(time) {
    this.time = time;
    this.draw();
  }

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      for (const chart of this.charts) drawChart(chart, this.range, this.time);
    });
  }
}

function drawChart(chart, [low, high], cursor) {
  const { canvas } = chart, ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  if (!width) return;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  const limits = valueLimits(chart, low, high);
  const x = (time) => MARGIN.left + (time - low) / (high - low) * (width - MARGIN.left - MARGIN.right);
  const y = (value) => height - MARGIN.bottom - (value - limits[0]) / (limits[1] - limits[0]) * (height - MARGIN.top - MARGIN.bottom);
  drawAxes(context, [low, high], limits, x, y, width, height);
  context.save();
  context.beginPath();
  context.rect(MARGIN.left, MARGIN.top - 2, width - MARGIN.left - MARGIN.right, height - MARGIN.top - MARGIN.bottom + 4);
  context.clip();
  let beyond = 0;
  for (const series of chart.series) beyond += drawSeries(context, series, limits, x, y, low, high);
  if (cursor !== undefined) {
    context.strokeStyle = color("--muted");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x(cursor), 0);
    context.lineTo(x(cursor), height);
    context.stroke();
  }
  context.restore();
  chart.caption.textContent = `${chart.title}, ${chart.unit}`;
  const keys = chart.series.filter((series) => series.label).map((series) => series.label).join(" · ");
  chart.note.textContent = beyond ? `${keys} · ${beyond} beyond, at the edge` : keys;
  canvas.setAttribute("aria-label", `${chart.title} in ${chart.unit} over time, from ${label(limits[0])} to ${label(limits[1])}`);
}

function drawSeries(context, series, limits, x, y, low, high) {
  let beyond = 0, pen = false;
  context.strokeStyle = context.fillStyle = series.color;
  context.lineWidth = series.kind === "dots" ? 1 : 2;
  context.setLineDash(series.kind === "dashes" ? [6, 4] : []);
  context.beginPath();
  for (let index = 0; index < series.x.length; index++) {
    const time = series.x[index], value = series.y[index];
    if (value === null || value === undefined || time < low || time > high) { pen = false; continue; }
    if (series.kind === "dots") {
      const outside = value < limits[0] || value > limits[1];
      beyond += outside;
      const py = y(Math.max(limits[0], Math.min(limits[1], value)));
      context.moveTo(x(time) + 2, py);
      if (outside) { context.lineTo(x(time) - 4, py + (value < limits[0] ? -6 : 6)); context.lineTo(x(time) + 4, py + (value < limits[0] ? -6 : 6)); }
      else context.arc(x(time), py, 2, 0, 2 * Math.PI);
    } else if (pen) context.lineTo(x(time), y(value));
    else context.moveTo(x(time), y(value));
    pen = true;
  }
  if (series.kind === "dots") context.fill(); else context.stroke();
  context.setLineDash([]);
  return beyond;
}

// Limits of the values in a range of time: of all of them, or of those that are no outliers.
function valueLimits(chart, low, high) {
  const values = [];
  for (const { x, y } of chart.series) {
    for (let index = 0; index < x.length; index++) if (x[index] >= low && x[index] <= high && Number.isFinite(y[index])) values.push(y[index]);
  }
  if (!values.length) return [-1, 1];
  values.sort((a, b) => a - b);
  let [least, most] = [values[0], values[values.length - 1]];
  if (chart.robust) {
    const middle = values[values.length >> 1];
    const spread = values.map((value) => Math.abs(value - middle)).sort((a, b) => a - b)[values.length >> 1] * 1.4826;
    least = Math.max(least, middle - 6 * spread);
    most = Math.min(most, middle + 6 * spread);
  }
  const margin = 0.05 * (most - least) || Math.abs(most) * 0.1 || 1;
  return [least - margin, most + margin];
}

export function ticks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough;
  const found = [];
  for (let value = Math.ceil(low / step) * step; value <= high + step * 1e-6; value += step) found.push(Math.abs(value) < step / 1e6 ? 0 : value);
  return found;
}

export const label = (value) => (value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) ? value.toExponential(1) : String(Number(value.toPrecision(4))));

function drawAxes(context, times, limits, x, y, width, height) {
  context.fillStyle = color("--muted");
  context.strokeStyle = color("--line");
  context.lineWidth = 1;
  context.textAlign = "center";
  context.textBaseline = "top";
  for (const time of ticks(times[0], times[1], Math.max(3, width / 90))) {
    context.fillText(`${label(time)}`, Math.min(width - 14, x(time)), height - MARGIN.bottom + 6);
    context.beginPath();
    context.moveTo(x(time), MARGIN.top);
    context.lineTo(x(time), height - MARGIN.bottom);
    context.stroke();
  }
  context.fillText("s", width - 5, height - MARGIN.bottom + 6);
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const value of ticks(limits[0], limits[1], 5)) {
    context.fillText(label(value), MARGIN.left - 6, y(value));
    context.beginPath();
    context.moveTo(MARGIN.left, y(value));
    context.lineTo(width - MARGIN.right, y(value));
    context.stroke();
  }
}
