// Where a film comes from: dropped, chosen, filmed, or a sample; or a saved analysis.

import { $ } from "./elements.js";
import { post, upload } from "./server.js";

export function setUpStart(open, say) {
  const begin = async (work) => {
    say(null);
    $("upload").hidden = false;
    $("upload-bar").removeAttribute("value");
    try { open((await work((sent) => { $("upload-bar").value = sent; })).id); } catch (error) { say(error.message); }
    $("upload").hidden = true;
  };
  const take = (file) => file && (file.name?.endsWith(".json")
    ? begin(async () => post("/api/saved", await file.text()))
    : begin((progress) => upload("/api/analyses", file, progress)));
  $("file").addEventListener("change", (event) => { take(event.target.files[0]); event.target.value = ""; });
  $("saved").addEventListener("change", (event) => { take(event.target.files[0]); event.target.value = ""; });
  $("sample").addEventListener("click", () => begin(() => post("/api/sample")));
  document.addEventListener("dragover", (event) => { event.preventDefault(); $("start").classList.add("over"); });
  document.addEventListener("dragleave", () => $("start").classList.remove("over"));
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    $("start").classList.remove("over");
    take(event.dataTransfer.files[0]);
  });
  setUpCamera(take, say);
}

// Films where the browser allows it: on this machine itself, not from another one in the network.
function setUpCamera(take, say) {
  const camera = $("camera"), record = $("record");
  camera.hidden = !navigator.mediaDevices?.getUserMedia || !window.MediaRecorder;
  let stream = null, recorder = null, wanted = false;
  const close = () => {
    stream?.getTracks().forEach((track) => track.stop());
    stream = recorder = null;
    record.textContent = "Record";
    $("recorder").hidden = true;
  };
  camera.addEventListener("click", async () => {
    try {
      stream = await navigator.mediaDevices.getUserMedia({ video: { facingMode: "environment", width: 1280, frameRate: 60 } });
      $("viewfinder").srcObject = stream;
      $("recorder").hidden = false;
      await $("viewfinder").play();
    } catch (error) { say(`The camera cannot be used: ${error.message}`); close(); }
  });
  record.addEventListener("click", () => {
    if (recorder) { wanted = true; recorder.stop(); return; }
    const parts = [];
    wanted = false;
    recorder = new MediaRecorder(stream);
    recorder.ondataavailable = (event) => parts.push(event.data);
    recorder.onstop = () => {
      const film = new File(parts, "filmed.webm", { type: "video/webm" });
      close();
      if (wanted) take(film);
    };
    recorder.start();
    record.textContent = "Stop and analyze";
  });
  $("record-cancel").addEventListener("click", () => { wanted = false; if (recorder) recorder.stop(); else close(); });
}
