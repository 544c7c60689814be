"""`physvision view SCENE`: look at a mechanism in the browser, pull it and steer it."""

from __future__ import annotations

import time
import webbrowser

from physvision.core import InputError, Trajectory, load_states
from physvision.simulation import tell_fixed_base
from physvision.viewer.opening import open_scene
from physvision.viewer.server import Viewer
from physvision.viewer.session import Session


def view(
    scene: str,
    trajectory: str | None = None,
    dt: float = 0.01,
    base: str = "auto",
    ignore: str | None = None,
    host: str = "127.0.0.1",
    port: int = 8080,
    browser: bool = True,
) -> int:
    """Look at a mechanism in the browser: run, pause, pull bodies, move controls, change properties.

    Args:
        scene: MJCF or URDF file, or the name of a shipped scene, an environment, or an example (cloth, block, stack).
        trajectory: File of states to play with a time line, as `simulate` writes beside its film.
        dt: Time step of files and shipped scenes, s.
        base: Base of a root body without a joint: "fixed" to the world, "free" to move, "ground", free to move on the
            plane z = 0, or "auto", as MuJoCo reads the file, which means fixed for a URDF.
        ignore: Elements of the file to leave out although they cannot be simulated, such as contact,limit.
        host: Address at which the page is served; that of this machine only by default.
        port: Port of the page; the next free one if it is taken.
        browser: If true, the page is opened in the browser.
    """
    ignored = [word.strip() for word in (ignore or "").split(",") if word.strip()]
    engine, start, limits = open_scene(scene, dt, ignored, base)
    tell_fixed_base(scene, base)
    recording = None if trajectory is None else load_states(trajectory)
    if recording is not None and not isinstance(recording, Trajectory):
        raise InputError(f"trajectory: expected the states of a motion, got one state in {trajectory}")
    viewer = Viewer(Session(engine, start, recording), limits, host, port)
    try:
        print(f"{viewer.address} (Ctrl+C ends)", flush=True)
        if browser:
            webbrowser.open(viewer.address)
        while True:
            time.sleep(1.0)
    except KeyboardInterrupt:
        viewer.close()
    return 0
