// The person's own scene: its file, and what is chosen as unknown from the file's list.

import { $, h } from "./elements.js";

export const OWN_SCENE = "own_scene";

// Sends a chosen file; `name` is kept for the command line.
export function setUpScene(send, say, start) {
  $("scene-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (!file) return;
    if (file.size > 2 ** 20) { say("The scene is larger than 1 MB; expected one MJCF file."); return; }
    $("scene-name").textContent = file.name;
    start();
    send("scene", await file.text());
  });
}

const checked = (id) => [...$(id).querySelectorAll("input:checked")].map((input) => input.value);

function choices(values, texts) {
  return values.map((value, index) => h("label", {}, h("input", { type: "checkbox", value }), h("span", {}, value), h("span", { class: "muted" }, texts[index])));
}

// Shows the list of a scene, { bodies, properties }, and makes it the kind of motion.
export function showScene(scene) {
  if (![...$("motion").options].some((option) => option.value === OWN_SCENE)) $("motion").append(h("option", { value: OWN_SCENE }, "own scene"));
  $("motion").value = OWN_SCENE;
  const texts = scene.properties.map(({ value, unit }) => `${Number(value.toPrecision(4))} ${unit}`);
  $("scene-unknown").replaceChildren(...choices(scene.properties.map(({ name }) => name), texts));
  $("scene-follow").replaceChildren(...choices(scene.bodies, scene.bodies.map(() => "")));
}

export function toggleScene() { $("scene").hidden = $("motion").value !== OWN_SCENE; }

export function sceneRequest() {
  if ($("motion").value !== OWN_SCENE) return {};
  return { scene: $("scene-name").textContent || "scene.xml", unknown: checked("scene-unknown"), follow: checked("scene-follow") };
}
