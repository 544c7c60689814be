// Prediction by a trained model: which one, and what it left.

import { $, h, markdown } from "./elements.js";
import { decimal } from "./known.js";

export function offerCheckpoints(cards) {
  const select = $("checkpoint"), value = select.value;
  select.replaceChildren(...Object.keys(cards).map((name) => h("option", { value: name }, name)));
  if (value) select.value = value;
  const show = () => { $("card").replaceChildren(...markdown(cards[select.value] ?? "")); };
  select.onchange = show;
  show();
}

export function predictRequest() {
  const request = { checkpoint: $("checkpoint").value, force: $("force").checked };
  if (decimal($("horizon")) !== null) request.horizon = decimal($("horizon"));
  if (decimal($("model-fps")) !== null) request.fps = decimal($("model-fps"));
  if ($("model-size").value.trim()) request.size = $("model-size").value.trim();
  return request;
}

export function showPrediction(id, prediction) {
  $("prediction").hidden = !prediction;
  $("prediction-report").removeAttribute("src");
  if (!prediction) return;
  const address = (name) => `/api/analyses/${id}/files/${encodeURIComponent(name)}`;
  $("prediction-files").replaceChildren(...prediction.files.map((name) => h("li", {}, h("a", {
    href: address(name), ...(/\.(html|mp4)$/.test(name) ? { target: "_blank", rel: "noopener" } : { download: name }),
  }, name))));
  $("prediction-command").textContent = prediction.command;
  if (prediction.files.includes("predicted_report.html")) $("prediction-report").src = address("predicted_report.html");
}
