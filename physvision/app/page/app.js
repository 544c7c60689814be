// The page: it follows the state of one analysis, and sends what the person chooses.

import { $, h, toggle } from "./elements.js";
import { Film, polyline, ring } from "./film.js";
import { Tool } from "./handles.js";
import { KnownValues, decimal } from "./known.js";
import { offerCheckpoints, predictRequest, showPrediction } from "./predict.js";
import { Result } from "./result.js";
import { OWN_SCENE, sceneRequest, setUpScene, showScene, toggleScene } from "./scene.js";
import { setUpStart } from "./start.js";
import { follow, first, post, upload } from "./server.js";

const film = new Film($("canvas"), showFrame);
const known = new KnownValues($("known-rows"));
const result = new Result(film, (job, body) => send(job, body));
let state = {}, id = null, unfollow = () => {}, chosen = new Set(), trim = [0, 0], touched = false, jobBegin = 0;

const ruler = new Tool(film, ["Ruler, first end", "Ruler, second end"], "#ffd84d", drawRuler);
const axes = new Tool(film, ["Origin of the axes", "Direction of x"], "#7dffb0", drawAxes, moveAxes);
const crop = new Tool(film, ["Crop, first corner", "Crop, opposite corner"], "#ff8fd0", drawCrop);
film.drawings.push(drawTracks);
film.onDraw = (scale, left) => [ruler, axes, crop].forEach((tool) => tool.place(scale, left));

function open(analysis) {
  unfollow();
  id = analysis;
  state = {};
  chosen = new Set();
  touched = false;
  location.hash = analysis;
  $("start").hidden = true;
  $("work").hidden = $("new").hidden = false;
  result.clear(id);
  showPrediction(id, null);
  say(null);
  unfollow = follow(id, change, () => say("The application has ended, or no longer has this analysis. Start it again, and open the film anew."));
  $("main").focus({ preventScroll: true });
}

// Takes in the keys of the state that are new.
function change(changes) {
  Object.assign(state, changes);
  if ("name" in changes) $("clip-name").textContent = document.title = state.name;
  if (document.title === state.name) document.title = `${state.name} · physvision`;
  if ("clip" in changes || "size" in changes) showClip();
  if ("tracks" in changes) showTracks();
  if ("choices" in changes && state.choices) showKinds();
  if (changes.scene) { showScene(state.scene); showKnown(); }
  if ("prediction" in changes) showPrediction(id, state.prediction);
  if ("job" in changes) showJob();
  if ("error" in changes) say(state.error);
  if (!state.job && !state.tracks) $("objects").replaceChildren(h("p", { class: "muted" }, "Nothing found yet."));
  if ("result" in changes) {
    $("result").hidden = !state.result;
    if (state.result) result.show(state.result, view());
  }
  if ("files" in changes) result.showFiles(id, state.files);
  film.draw();
}

function say(text) {
  $("message").hidden = !text;
  $("message").textContent = text === "canceled" ? "Canceled. What was found before is kept." : text ?? "";
}

const send = async (job, body) => {
  try { return await post(`/api/analyses/${id}/${job}`, body); } catch (error) { say(error.message); return null; }
};

// ---- film ----

function showClip() {
  const size = state.clip?.width ? state.clip : state.size;
  if (!size) return;
  const times = state.clip?.times ?? state.tracks?.times ?? [0];
  const grown = trim[1] >= film.count - 1 || !touched;
  film.set(id, { width: size.width, height: size.height }, times);
  for (const name of ["position", "trim-low", "trim-high"]) $(name).max = Math.max(0, film.count - 1);
  if (grown) { trim = [touched ? trim[0] : 0, film.count - 1]; showTrim(); }
  $("attach").hidden = Boolean(state.clip);
  const notes = state.clip?.notes ?? [];
  $("film-note").textContent = state.clip && !state.clip.complete ? `Reading the film: ${times.length} frames so far.` : notes.join(" ");
  if (!state.clip || state.clip.complete) showThumbs();
  showFrame(film.frame);
}

function showThumbs() {
  if (!state.clip) return;
  const count = Math.max(4, Math.min(16, Math.round($("strip").clientWidth / 70)));
  const frames = Array.from({ length: count }, (_, index) => Math.round((index + 0.5) / count * (film.count - 1)));
  $("thumbs").replaceChildren(...frames.map((frame) => h("img", { src: `/api/analyses/${id}/frames/${frame}`, alt: "" })));
}

function showFrame(frame) {
  $("position").value = frame;
  $("play").textContent = film.playing ? "||" : "▶";
  $("play").setAttribute("aria-label", film.playing ? "Pause" : "Play");
  $("clock").textContent = `${(film.times[frame] ?? 0).toFixed(3)} s · ${frame + 1}/${film.count}`;
  result.showFrame(frame);
}

function showTrim() {
  $("trim-low").value = trim[0];
  $("trim-high").value = trim[1];
  const width = $("strip").clientWidth - 24, last = Math.max(1, film.count - 1);
  $("outside-low").style.width = `${width * trim[0] / last}px`;
  $("outside-high").style.width = `${width * (last - trim[1]) / last}px`;
}

function moveTrim(which) {
  touched = true;
  trim[which] = Number($(which ? "trim-high" : "trim-low").value);
  if (trim[0] > trim[1]) trim[which] = trim[1 - which];
  showTrim();
  film.pause();
  film.show(trim[which]);
}

// ---- tracks ----

function showTracks() {
  const tracks = state.tracks;
  if (!tracks) return;
  const names = tracks.objects.map((_, index) => index);
  chosen = new Set(names);
  if (!state.clip && state.size) showClip();
  $("objects").replaceChildren(...tracks.objects.map((object, index) => h("div", { class: "object" },
    h("label", {}, h("input", { type: "checkbox", checked: true, onchange: (event) => { event.target.checked ? chosen.add(index) : chosen.delete(index); film.draw(); } }),
      h("span", { class: "swatch", color: object.color }), h("span", {}, object.name)),
    h("span", { class: "muted" }, `${object.positions.filter(([x]) => x !== null).length} frames`))));
  const notes = [...new Set(tracks.objects.flatMap((object) => object.notes))];
  $("objects").append(...notes.map((note) => h("p", { class: "muted" }, note)));
}

// Draws tracks, and those that are still being found.
function drawTracks(context, frame, pixel) {
  for (const { color, points } of state.job?.preview ?? []) {
    polyline(context, points, "#00000080", 3.5 * pixel);
    polyline(context, points, color, 1.5 * pixel);
    ring(context, points[points.length - 1], 6 * pixel, color, 2.5 * pixel);
  }
  const tracks = state.tracks;
  if (!tracks) return;
  const sample = frame - tracks.first;
  tracks.objects.forEach((object, index) => {
    const on = chosen.has(index);
    context.globalAlpha = on ? 1 : 0.3;
    polyline(context, object.positions, "#00000080", 3.5 * pixel);
    polyline(context, object.positions, object.color, 1.5 * pixel);
    const here = object.positions[sample];
    if (here) ring(context, here, Math.max(6 * pixel, object.radius ?? 0), object.color, 2.5 * pixel);
    context.globalAlpha = 1;
  });
  result.draw(context, frame, pixel);
}

// Switches the track near a click on or off; with "click" pressed, a missed object is tracked.
async function clickFilm(event) {
  const [x, y] = film.at(event);
  if ($("click").getAttribute("aria-pressed") === "true") { pickObject([x, y]); return; }
  const sample = film.frame - (state.tracks?.first ?? 0);
  let nearest = null, distance = 24 * film.size.width / film.canvas.clientWidth;
  state.tracks?.objects.forEach((object, index) => {
    const [ox, oy] = object.positions[sample] ?? [null, null];
    const away = ox === null ? Infinity : Math.hypot(ox - x, oy - y) - (object.radius ?? 0);
    if (away < distance) { nearest = index; distance = away; }
  });
  if (nearest !== null) $("objects").querySelectorAll("input")[nearest].click();
}

function pickObject(point) {
  setClick(false);
  film.canvas.classList.remove("picking");
  send("track", { click: point, frame: film.frame, ...trackRequest() });
}

function trackRequest() {
  const request = {};
  if (crop.active && crop.points) {
    const [[x1, y1], [x2, y2]] = crop.points;
    request.crop = [Math.min(x1, x2), Math.min(y1, y2), Math.abs(x2 - x1), Math.abs(y2 - y1)];
  }
  return request;
}

// ---- tools over the film ----

function drawRuler(context, points, pixel) {
  polyline(context, points, "#000000a0", 5 * pixel);
  polyline(context, points, "#ffd84d", 2 * pixel);
}

function drawAxes(context, [origin, tip], pixel) {
  const [dx, dy] = [tip[0] - origin[0], tip[1] - origin[1]];
  context.font = `${14 * pixel}px system-ui`;
  context.fillStyle = "#7dffb0";
  polyline(context, [origin, tip], "#7dffb0", 2 * pixel);
  polyline(context, [origin, [origin[0] + dy, origin[1] - dx]], "#7dffb0", 2 * pixel);
  context.fillText("x", tip[0] + 6 * pixel, tip[1] - 6 * pixel);
  context.fillText("y", origin[0] + dy + 6 * pixel, origin[1] - dx);
  result.axes = { origin, turn: Math.atan2(-dy, dx) };
}

function drawCrop(context, [[x1, y1], [x2, y2]], pixel) {
  context.strokeStyle = "#ff8fd0";
  context.lineWidth = 2 * pixel;
  context.strokeRect(Math.min(x1, x2), Math.min(y1, y2), Math.abs(x2 - x1), Math.abs(y2 - y1));
}

// Moves the whole cross with its origin.
function moveAxes(index) {
  const [origin, tip] = axes.points;
  if (index === 0) {
    const [dx, dy] = axes.arm;
    axes.points[1] = [origin[0] + dx, origin[1] + dy];
    axes.handles[1].position = axes.points[1];
  } else axes.arm = [tip[0] - origin[0], tip[1] - origin[1]];
  if (state.result) { result.axes = { origin, turn: Math.atan2(origin[1] - tip[1], tip[0] - origin[0]) }; result.plot(); }
}

function view() {
  if (!axes.active || !axes.points) return null;
  const [[x1, y1], [x2, y2]] = axes.points;
  return { origin: [x1, y1], turn: Math.atan2(y1 - y2, x2 - x1) };
}

// ---- identification ----

function showKinds() {
  const select = $("motion"), value = select.value;
  select.replaceChildren(h("option", { value: "" }, "find it out"),
    ...Object.keys(state.choices.kinds).map((kind) => h("option", { value: kind }, kind.replaceAll("_", " "))));
  if (state.scene) select.append(h("option", { value: OWN_SCENE }, "own scene"));
  select.value = value;
  known.offer(state.choices.units);
  showKnown();
  offerCheckpoints(state.choices.checkpoints);
}

function showKnown() {
  const kind = $("motion").value, kinds = state.choices?.kinds ?? {};
  toggleScene();
  known.show(kind ? kinds[kind] ?? [] : [...new Set(Object.values(kinds).flat())]);
}

function identifyRequest() {
  const request = { motion: $("motion").value || null, known: known.values() };
  if (chosen.size < (state.tracks?.objects.length ?? 0)) request.objects = [...chosen];
  const length = decimal($("ruler-length")), unit = state.choices.units.length[$("ruler-unit").value];
  if (ruler.active && ruler.points) {
    if (length === null) throw new Error("Give the length of the ruler, or switch it off.");
    request.ruler = { points: ruler.points.flat(), length: length * unit, std: (decimal($("ruler-std")) ?? 0) * unit };
  }
  if (decimal($("fps")) !== null) request.fps = decimal($("fps"));
  if (trim[0] > 0) request.start = film.times[trim[0]];
  if (trim[1] < film.count - 1) request.stop = film.times[trim[1] + 1];
  return Object.assign(request, view() ?? {}, sceneRequest());
}

function identify(motion) {
  say(null);
  if (typeof motion === "string") { $("motion").value = motion; showKnown(); }
  try { send("identify", identifyRequest()); } catch (error) { say(error.message); }
}

function showJob() {
  const job = state.job;
  $("job").hidden = !job;
  for (const name of ["identify", "track", "click", "export", "predict"]) $(name).disabled = Boolean(job) || !state.tracks && !["track", "predict"].includes(name);
  if (!job) { jobBegin = 0; return; }
  jobBegin ||= performance.now();
  const elapsed = (performance.now() - jobBegin) / 1000, fraction = job.fraction;
  const left = fraction > 0.05 && elapsed > 2 ? `, about ${Math.max(1, Math.round(elapsed * (1 - fraction) / fraction))} s left` : "";
  $("stage").textContent = `${job.stage}${left}`;
  if (job.preview?.length && !state.tracks) {
    const points = job.preview.reduce((sum, object) => sum + object.points.length, 0);
    $("objects").replaceChildren(h("p", { class: "muted", id: "preview", "data-points": String(points) }, `${job.preview.length} so far, being followed through the film.`));
  }
  if (fraction > 0) $("progress").value = fraction; else $("progress").removeAttribute("value");
}

// ---- controls ----

const setClick = toggle($("click"), (pressed) => {
  film.canvas.classList.toggle("picking", pressed);
  if (pressed) say("Click the object in the film, or press Enter for the middle of the picture."); else say(null);
});
toggle($("ruler"), (pressed) => {
  const { width, height } = film.size;
  ruler.show(pressed, [[0.3 * width, 0.85 * height], [0.7 * width, 0.85 * height]]);
  if (pressed) $("ruler-length").focus();
});
toggle($("axes"), (pressed) => {
  const { width, height } = film.size;
  axes.arm ??= [0.2 * width, 0];
  axes.show(pressed, [[0.2 * width, 0.8 * height], [0.4 * width, 0.8 * height]]);
  result.axes = view();
  result.plot();
});
toggle($("crop"), (pressed) => {
  const { width, height } = film.size;
  crop.show(pressed, [[0.1 * width, 0.1 * height], [0.9 * width, 0.9 * height]]);
});
$("track").addEventListener("click", () => send("track", trackRequest()));
$("predict").addEventListener("click", () => send("predict", { ...predictRequest(), ...trackRequest() }));
$("identify").addEventListener("click", identify);
$("motion").addEventListener("change", showKnown);
$("cancel").addEventListener("click", () => send("cancel"));
$("first").addEventListener("click", () => film.show(trim[0]));
$("last").addEventListener("click", () => film.show(trim[1]));
$("back").addEventListener("click", () => { film.pause(); film.show(film.frame - 1); });
$("forward").addEventListener("click", () => { film.pause(); film.show(film.frame + 1); });
$("play").addEventListener("click", () => (film.playing ? film.pause() : film.play(trim[0], trim[1])));
$("position").addEventListener("input", (event) => { film.pause(); film.show(Number(event.target.value)); });
$("trim-low").addEventListener("input", () => moveTrim(0));
$("trim-high").addEventListener("input", () => moveTrim(1));
$("canvas").addEventListener("click", clickFilm);
$("canvas").addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
  if (step) { event.preventDefault(); film.pause(); film.show(film.frame + step); }
  if (event.key === " ") { event.preventDefault(); $("play").click(); }
  if (event.key === "Enter" && $("click").getAttribute("aria-pressed") === "true") pickObject([film.size.width / 2, film.size.height / 2]);
});
$("attach-file").addEventListener("change", async (event) => {
  try { await upload(`/api/analyses/${id}/clip`, event.target.files[0], () => {}); } catch (error) { say(error.message); }
});
result.onKind = (kind) => identify(kind);
window.addEventListener("resize", () => { film.draw(); showTrim(); result.plots.draw(); });

function setTheme(light) {
  document.documentElement.classList.toggle("light", light);
  $("theme").textContent = light ? "Dark" : "Light";
  film.draw();
  if (state.result) result.plot();
}
$("theme").addEventListener("click", () => setTheme(!document.documentElement.classList.contains("light")));
setTheme(matchMedia("(prefers-color-scheme: light)").matches);

function startAnew() {
  unfollow();
  location.hash = "new";
  location.reload();
}
$("new").addEventListener("click", startAnew);
setUpStart(open, say);
setUpScene(send, say, () => say(null));
const named = location.hash.slice(1);
if (named && named !== "new") open(named);
else if (!named) first().then((clip) => clip && open(clip)).catch((error) => say(error.message));
window.addEventListener("hashchange", () => {
  const other = location.hash.slice(1);
  if (other && other !== "new" && other !== id) open(other);
});
