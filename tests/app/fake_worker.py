"""A worker that starts at once and only pretends to work: what a request's text names is what it does."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

TRACK = {"name": "object 1", "color": "#ffffff", "radius": 3.0, "positions": [[1, 2], [3, 4]], "notes": []}
canceled = set()
lock = threading.Lock()


def send(**message):
    with lock:
        print(json.dumps(message), flush=True)


def work(job):
    text = job.get("request") or ""
    if job["kind"] == "frames":
        Path(job["folder"]).mkdir(exist_ok=True)
        (Path(job["folder"]) / "000000.jpg").write_bytes(b"picture")
        return {"width": 4, "height": 3, "times": [0.0], "count": 1, "notes": []}
    send(id=job["id"], event="progress", data={"stage": "working", "fraction": 0.1})
    if "die" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    while "wait" in text and job["id"] not in canceled:
        time.sleep(0.01)
    while "hang" in text:
        time.sleep(0.01)
    if job["id"] in canceled:
        raise RuntimeError("canceled")
    if "fault" in text:
        raise RuntimeError("this is wrong")
    if job["kind"] == "export":
        Path(job["files"]).mkdir(exist_ok=True)
        (Path(job["files"]) / "report.html").write_text("<script>alert(1)</script>")
        return {"files": ["report.html"]}
    if job["kind"] == "simulate":
        return {"positions": [], "values": {}}
    return {"tracks": {"first": 0, "times": [0.0, 1.0], "objects": [TRACK]}}


def run(job):
    send(id=job["id"], event="begun")
    try:
        send(id=job["id"], event="done", data=work(job))
    except RuntimeError as error:
        send(id=job["id"], event="failed", message=str(error))


send(event="ready", choices={"kinds": {"pendulum": ["gravity"]}, "units": {"gravity": {"m/s²": 1}}, "checkpoints": {}})
for line in sys.stdin:
    message = json.loads(line)
    if "cancel" in message:
        canceled.add(message["cancel"])
    else:
        threading.Thread(target=run, args=(message,), daemon=True).start()
os._exit(0)
