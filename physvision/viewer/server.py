"""Viewer in the browser: panels with buttons and sliders beside a scene, on viser."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np

from physvision.core import InputError
from physvision.envs import require_package
from physvision.rendering import FollowingCamera, Renderer, choose_framing, ground_below
from physvision.viewer.scene_view import SceneView
from physvision.viewer.session import Pull, Session

RATE = 30.0  # pictures of the scene in a second
PLOT_PERIOD_S, PICTURE_PERIOD_S = 0.5, 0.2
PICTURE_SIZE = (240, 320)  # height and width of the camera's picture, pixels
MAX_CONTROLS, MAX_PROPERTY_ROWS = 64, 400  # for which there are sliders


class Viewer:
    """Page on which a session is looked at and steered.

    Attributes:
        session: Simulation that is shown.
        server: Viser's server.
    """

    def __init__(
        self, session: Session, limits: tuple[float, ...] = (), host: str = "127.0.0.1", port: int = 8080
    ) -> None:
        viser = require_package("viser", "viewer")
        self.session, self._lock = session, threading.RLock()
        self._renderer = Renderer(session.engine)
        framing = choose_framing(self._renderer, session.state, PICTURE_SIZE)
        poses, sizes = self._renderer.frames(session.state)
        if not self._renderer.planar:
            self._renderer.ground_height = ground_below(self._renderer, poses, sizes, 0.25)
        self._camera = FollowingCamera(framing)
        self.server: Any = viser.ViserServer(host=host, port=port, label="physvision", verbose=False)
        # The maps of the surroundings would be fetched; the lights are the viewer's own.
        self.server.scene.configure_environment_map(None)
        self.server.scene.configure_default_lights(True)
        self.server.scene.add_light_hemisphere(
            "/sky", sky_color=(225, 235, 250), ground_color=(150, 145, 140), intensity=1.6
        )
        self._view = SceneView(self.server, self._renderer, framing, session.state)
        points = poses[0, framing.movable, :3, 3]
        target = framing.middle(points)
        view = framing.view(target, framing.distance(points, target))
        self.server.initial_camera.position = tuple(view.eye)
        self.server.initial_camera.look_at = tuple(target)
        self._limits = limits
        self._add_panels()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="viewer", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Address of the page."""
        return f"http://{self.server.get_host()}:{self.server.get_port()}"

    def close(self) -> None:
        """Stop the simulation and the server."""
        self._stop.set()
        self._thread.join()
        self.server.stop()

    def _add_panels(self) -> None:
        gui, session = self.server.gui, self.session
        self._status = gui.add_markdown("")
        self._run = gui.add_button("Pause" if session.running else "Run")
        self._run.on_click(lambda _: self._toggle())
        gui.add_button("Step").on_click(lambda _: self._with_lock(session.step))
        gui.add_button("Reset").on_click(lambda _: self._with_lock(self._reset))
        self._speed = gui.add_slider("Speed", 0.05, 2.0, 0.05, 1.0)
        if session.recording is not None:
            self._timeline = gui.add_slider("Frame", 0, session.recording.steps, 1, 0)
            self._timeline.on_update(lambda _: self._with_lock(session.seek, int(self._timeline.value)))
        self._add_controls()
        self._add_properties()
        with gui.add_folder("Pull a body"):
            names = ["none", *session.mechanics.body_names[:MAX_PROPERTY_ROWS]]
            self._pulled = gui.add_dropdown("Body", names, initial_value="none")
            self._pulled.on_update(lambda _: self._with_lock(self._choose_pull))
        self._gizmo: Any = None
        for handle, row in self._view.handles:
            handle.on_click(lambda _, row=row: self._with_lock(self._pull_frame, row))
        with gui.add_folder("Show"):
            self._contacts = gui.add_checkbox("Contacts and forces", False)
            self._frames = gui.add_checkbox("Frames of bodies", False)
            self._picture = gui.add_checkbox("Picture of the camera", False)
            self._image = gui.add_image(np.zeros((*PICTURE_SIZE, 3), np.uint8), visible=False)
        uplot = require_package("viser.uplot", "viewer")
        names = ("time (s)", "kinetic (J)", "potential (J)", "total (J)")
        colors = ("", "#2a7fd4", "#e08a2b", "#444444")
        series = [uplot.Series(label=name, stroke=color) for name, color in zip(names, colors, strict=True)]
        self._plot = gui.add_uplot(self._energy(), tuple(series), title="Energy", aspect=1.5)

    def _add_controls(self) -> None:
        count = min(self.session.engine.nu, MAX_CONTROLS)
        if not count or self.session.recording is not None:
            return
        names = self.session.engine.control_names or [f"control {k}" for k in range(count)]
        with self.server.gui.add_folder("Controls"):
            for k in range(count):
                low, high = self.session.control_bounds(k, self._limits)
                if low < high:
                    start = min(max(0.0, low), high)
                    slider = self.server.gui.add_slider(names[k], low, high, (high - low) / 200, start)
                    self.session.control[k] = start
                    slider.on_update(lambda _, k=k, slider=slider: self._set_control(k, float(slider.value)))

    def _add_properties(self) -> None:
        rows: list[tuple[str, str, int, float]] = [
            (f"{name} {number}" if value.numel() > 1 else name, name, number, float(value.reshape(-1)[number]))
            for name, value in self.session.engine.properties.items()
            for number in range(value.numel())
            if np.isfinite(float(value.reshape(-1)[number]))
        ][:MAX_PROPERTY_ROWS]
        if not rows or self.session.recording is not None:
            return
        self._rows = {label: (name, number, value) for label, name, number, value in rows}
        with self.server.gui.add_folder("Properties", expand_by_default=False):
            self._property = self.server.gui.add_dropdown("Property", list(self._rows), initial_value=rows[0][0])
            self._value = self.server.gui.add_number("Value", rows[0][3])
            self._factor = self.server.gui.add_slider("Factor", 0.1, 3.0, 0.05, 1.0)
            self._message = self.server.gui.add_markdown("")
        self._property.on_update(lambda _: self._choose_property())
        self._value.on_update(lambda _: self._set_property(float(self._value.value)))
        self._factor.on_update(lambda _: self._scale_property())

    def _with_lock(self, function: Any, *arguments: Any) -> None:
        with self._lock:
            function(*arguments)
            self._refresh()

    def _toggle(self) -> None:
        with self._lock:
            self.session.running = not self.session.running
            self._run.label = "Pause" if self.session.running else "Run"

    def _reset(self) -> None:
        self.session.reset()
        self._camera.reset()

    def _set_control(self, number: int, value: float) -> None:
        with self._lock:
            self.session.control[number] = value

    def _choose_property(self) -> None:
        name, number, value = self._rows[self._property.value]
        current = self.session.overrides.get(name)
        self._value.value = value if current is None else float(current.reshape(-1)[number])

    def _scale_property(self) -> None:
        value = self._rows[self._property.value][2] * float(self._factor.value)
        self._value.value = value
        self._set_property(value)

    def _set_property(self, value: float) -> None:
        name, number, _ = self._rows[self._property.value]
        with self._lock:
            try:
                self.session.set_property(name, number, value)
                self._message.content = ""
            except InputError as error:
                self._message.content = str(error)

    def _pull_frame(self, row: int) -> None:
        """Pull the body of a piece that was clicked."""
        mechanics, names = self.session.mechanics, self.session.mechanics.body_names
        shapes, extra_shapes = mechanics.geometry, [placed for placed, _ in mechanics.visuals.shapes]
        # In the order of the renderer's frames: shapes, bodies, the world and the shapes of visuals.
        carriers = [
            *(shape.body for shape in shapes),
            *range(len(names)),
            None,
            *(shape.body for shape in extra_shapes),
        ]
        body = carriers[row]
        if body is not None:
            self._pulled.value = names[body]
            self._choose_pull()

    def _choose_pull(self) -> None:
        if self._gizmo is not None:
            self._gizmo.remove()
            self._gizmo, self.session.pull = None, None
        name = self._pulled.value
        if name == "none" or self.session.recording is not None:
            return
        self.pull(self.session.mechanics.body_names.index(name))

    def pull(self, body: int) -> None:
        """Attach a spring with a handle to the origin of a body."""
        self.session.pull = Pull(body, np.zeros(3), np.zeros(3))
        place = self.session.body_point(self.session.pull)
        self.session.pull = Pull(body, np.zeros(3), place)
        self._gizmo = self.server.scene.add_transform_controls(
            "/pull", scale=0.2, disable_rotations=True, disable_sliders=True, depth_test=False, position=tuple(place)
        )
        self._gizmo.on_update(lambda _: self._move_pull())

    def _move_pull(self) -> None:
        with self._lock:
            if self.session.pull is not None and self._gizmo is not None:
                self.session.pull = Pull(self.session.pull.body, np.zeros(3), np.array(self._gizmo.position, float))

    def _energy(self) -> tuple[np.ndarray, ...]:
        time_s, kinetic, potential = np.array(self.session.history[-600:]).T
        return time_s, kinetic, potential, kinetic + potential

    def _refresh(self) -> None:
        """Bring the scene up to the session."""
        session, properties = self.session, self.session.overrides or None
        self._view.update(session.state, properties)
        note = "the last step failed" if session.failed else ("running" if session.running else "paused")
        self._status.content = f"{session.time:.2f} s, {note}"
        if self._contacts.value:
            contacts = session.mechanics.contact_forces(session.state, session.step_control, properties)
            self._view.show_contacts(*(values.double().cpu().numpy() for values in contacts))
        else:
            self._view.hide_contacts()
        poses = session.mechanics.poses(session.state, properties)[0].double().numpy() if self._frames.value else None
        self._view.show_frames(poses)

    def _loop(self) -> None:
        last, plotted, pictured = time.monotonic(), 0.0, 0.0
        while not self._stop.wait(1.0 / RATE):
            now = time.monotonic()
            with self._lock:
                self.session.advance(min(now - last, 0.1) * float(self._speed.value))
                self._run.label = "Pause" if self.session.running else "Run"
                self._refresh()
                if now - plotted > PLOT_PERIOD_S:
                    self._plot.data, plotted = self._energy(), now
                self._image.visible = bool(self._picture.value)
                if self._picture.value and now - pictured > PICTURE_PERIOD_S:
                    self._image.image, pictured = self._take_picture(now - pictured), now
            last = now

    def _take_picture(self, elapsed: float) -> np.ndarray:
        poses, sizes = self._renderer.frames(self.session.state, self.session.overrides or None)
        view = self._camera.update(poses[0, self._camera.framing.movable, :3, 3], min(elapsed, 1.0))
        return self._renderer.render_frames(poses[0], sizes, view)
