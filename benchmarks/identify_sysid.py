"""Compare `identify` with `mujoco.sysid` on the same tracks: estimates, 95 % intervals, processor seconds.

MuJoCo simulates each track once, with noise in pixels. `mujoco.sysid` is given the mechanism, starts with an error of
10 % in every unknown, and estimates the camera as `identify` does. `identify` finds its own starts, fits drag as well,
and runs the holdout test: the first line of seconds is for all that, the second for its search alone, also started with
an error of 10 %. Seconds are the minimum of several runs that take turns after a warm-up run, so that other load on the
machine affects both.

    pip install 'mujoco[sysid]'
    python benchmarks/identify_sysid.py
"""

# MuJoCo's compiled module has no types.
# pyright: reportAttributeAccessIssue=false, reportMissingImports=false

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import mujoco
import numpy as np
import torch
from jsonargparse import auto_cli
from mujoco import sysid

from physvision.estimation import gauss_newton
from physvision.estimation.uncertainty import uncertainty
from physvision.identification import CustomScene, Identification, identify
from physvision.perception import Track

FPS, SECONDS, NOISE, FINE = 60, 3.0, 0.3, 4
FORM = """<mujoco><option timestep="{step}" integrator="RK4"><flag contact="disable"/></option>
<worldbody>{bodies}</worldbody>
<actuator><motor joint="{joint}" gear="0"/></actuator><sensor>{sensors}</sensor></mujoco>"""
PENDULUM = """<body name="arm"><joint name="hinge" axis="0 1 0" damping="0.001"/><body name="bob" pos="0 0 -0.4">
<geom type="sphere" size="0.001" mass="1"/><site name="bob"/></body></body>"""
SPRING = """<body name="box">
<joint name="rail" type="slide" axis="0 0 1" stiffness="8" damping="0.02" springref="0.981"/>
<geom type="sphere" size="0.02" mass="0.2"/><site name="box"/></body>"""
CARTPOLE = """<body name="cart"><joint name="rail" type="slide" axis="1 0 0" damping="0.2"/>
<geom type="box" size="0.08 0.04 0.04" mass="0.8"/><site name="cart"/>
<body name="pole"><joint name="hinge" axis="0 1 0" damping="0.003"/>
<geom type="sphere" pos="0 0 -0.4" size="0.03" mass="0.3"/><site name="bob" pos="0 0 -0.4"/></body></body>"""

Modify = Callable[[mujoco.MjSpec, float], None]


@dataclass(frozen=True)
class System:
    """Mechanism to identify, with its true parameters.

    Attributes:
        bodies: Bodies in MJCF.
        sites: Tracked sites.
        joint: Name of a joint.
        parameters: True value, bounds and setter of each parameter of the mechanism.
        start: Initial positions and velocities.
        scale: Scale of the picture, pixels a meter.
        known_scale: If true, the scale is given.
        identify_tracks: Function from tracks and MJCF to the result of `identify`.
        names: Names of the parameters in that result, where they differ.
    """

    bodies: str
    sites: Sequence[str]
    joint: str
    parameters: dict[str, tuple[float, float, float, Modify]]
    start: tuple[list[float], list[float]]
    scale: float
    known_scale: bool
    identify_tracks: Callable[[list[Track], str], Identification]
    names: dict[str, str]

    @property
    def xml(self) -> str:
        """MJCF of the whole model."""
        sensors = "".join(f'<framepos objtype="site" objname="{name}"/>' for name in self.sites)
        return FORM.format(step=1 / FPS / FINE, bodies=self.bodies, joint=self.joint, sensors=sensors)


def _length(spec: mujoco.MjSpec, value: float) -> None:
    spec.body("bob").pos = [0, 0, -value]


def _decay(spec: mujoco.MjSpec, value: float) -> None:
    # Of a bob of one kilogram: the rate at which its velocity fades. The arm's length was set before.
    _damping("hinge")(spec, value * float(spec.body("bob").pos[2]) ** 2)


def _damping(joint: str) -> Modify:
    return lambda spec, value: setattr(spec.joint(joint), "damping", [value, 0, 0])


def _stiffness(spec: mujoco.MjSpec, value: float) -> None:
    spec.joint("rail").stiffness = [value, 0, 0]


def _spring_decay(spec: mujoco.MjSpec, value: float) -> None:
    _damping("rail")(spec, 0.2 * value)


def _cart_mass(spec: mujoco.MjSpec, value: float) -> None:
    spec.body("cart").geoms[0].mass = value


SYSTEMS = {
    "pendulum": System(
        PENDULUM, ["bob"], "hinge",
        {"length": (0.4, 0.1, 1.0, _length), "damping": (0.001 / 0.16, 0.0, 0.5, _decay)},
        ([0.9], [0.0]), 500.0, False,
        lambda tracks, xml: identify(tracks, "pendulum", {"gravity": 9.81}), {},
    ),
    "spring": System(
        SPRING, ["box"], "rail",
        {"stiffness": (8.0, 2.0, 30.0, _stiffness), "damping": (0.1, 0.0, 2.0, _spring_decay)},
        ([0.08], [0.0]), 900.0, True,
        lambda tracks, xml: identify(tracks, "spring", {"mass": 0.2, "scale": 900.0}), {},
    ),
    "cartpole": System(
        CARTPOLE, ["cart", "bob"], "rail",
        {
            "cart": (0.8, 0.1, 5.0, _cart_mass),
            "rail": (0.2, 0.0, 2.0, _damping("rail")),
            "hinge": (0.003, 0.0, 0.1, _damping("hinge")),
        },
        ([0.1, 1.1], [0.2, -1.0]), 400.0, False,
        lambda tracks, xml: identify(tracks, CustomScene(xml, {
            "mass:cart": (0.1, 5.0), "joint_damping:rail": (0.0, 2.0), "joint_damping:hinge": (0.0, 0.1),
        }, follow=["cart", "bob"])),
        {"cart": "mass:cart", "rail": "joint_damping:rail", "hinge": "joint_damping:hinge"},
    ),
}  # fmt: skip
CORNER = np.array([320.0, 120.0])


def simulate_tracks(system: System, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulate tracks: times, and noisy positions in pixels, (times, 2 · objects)."""
    model = mujoco.MjModel.from_xml_string(system.xml)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = system.start
    positions = []
    for _ in range(int(SECONDS * FPS)):
        mujoco.mj_forward(model, data)
        positions.append(
            np.concatenate([CORNER + system.scale * data.site(name).xpos[[0, 2]] * [1, -1] for name in system.sites])
        )
        for _ in range(FINE):
            mujoco.mj_step(model, data)
    random = np.random.default_rng(seed)
    noise = random.normal(0, NOISE, (len(positions), 2 * len(system.sites)))
    return np.arange(len(positions)) / FPS, np.array(positions) + noise


def tracks_of(system: System, times: np.ndarray, pixels: np.ndarray) -> list[Track]:
    """Convert positions to tracks for `identify`."""
    every = np.ones(len(times), bool)
    return [
        Track(times, pixels[:, 2 * k : 2 * k + 2].copy(), np.full(len(times), NOISE), every, name=name)
        for k, name in enumerate(system.sites)
    ]


def peer(system: System, times: np.ndarray, pixels: np.ndarray) -> dict[str, tuple[float, float]]:
    """Estimate each parameter by `mujoco.sysid`: its value and half its 95 % interval."""
    spec = mujoco.MjSpec.from_string(system.xml)
    model = spec.compile()
    unknowns = sysid.ParameterDict()
    for name, (truth, low, high, modify) in system.parameters.items():
        unknowns.add(
            sysid.Parameter(
                name, 1.1 * truth, low, high, modifier=lambda s, p, change=modify: change(s, float(p.value[0]))
            )
        )
    q, v = (np.array(part) for part in system.start)
    unknowns.add(sysid.Parameter("q", 1.1 * q, q - 3, q + 3))
    unknowns.add(sysid.Parameter("v", 1.1 * v, v - 10, v + 10))
    unknowns.add(sysid.Parameter("corner", CORNER + 10, CORNER - 200, CORNER + 200))
    unknowns.add(sysid.Parameter("tilt", 0.0, -0.3, 0.3))
    if not system.known_scale:
        unknowns.add(sysid.Parameter("scale", 1.1 * system.scale, 0.2 * system.scale, 5 * system.scale))

    def rollout(models, datas, control_signal, initial_states, param_dicts, **mappings):
        starts = [sysid.create_initial_state(models[0], item["q"].value, item["v"].value) for item in param_dicts]
        return sysid.sysid_rollout(models, datas, control_signal, starts, **{
            {"rollout_signal_mapping": "rollout_signal_mapping", "rollout_state_mapping": "rollout_state_mapping",
             "ctrl_mapping": "ctrl_mapping"}[name]: value for name, value in mappings.items()
        })  # fmt: skip

    def pixel_residuals(params, predicted, measured, model, return_pred_all, **_):
        sites = predicted.data[FINE - 1 :: FINE].reshape(-1, len(system.sites), 3)[:, :, [0, 2]] * [1, -1]
        cos, sin = math.cos(params["tilt"].value[0]), math.sin(params["tilt"].value[0])
        scale = system.scale if system.known_scale else params["scale"].value[0]
        projected = params["corner"].value + scale * sites @ np.array([[cos, sin], [-sin, cos]])
        projected = projected.reshape(len(projected), -1)[: len(pixels) - 1]
        return (projected - pixels[1 : len(projected) + 1]) / NOISE, predicted, predicted  # only the first counts

    count = FINE * (len(times) - 1) + 1
    fine = np.arange(count) / FPS / FINE
    sequences = sysid.ModelSequences(
        "system", spec, "measured", sysid.create_initial_state(model, q, v),
        sysid.TimeSeries(fine, np.zeros((count, 1))),
        sysid.TimeSeries(times[1:], np.zeros((len(times) - 1, model.nsensordata))),
    )  # fmt: skip
    residual = sysid.build_residual_fn(
        models_sequences=[sequences], modify_residual=pixel_residuals, custom_rollout=rollout
    )
    optimum, result = sysid.optimize(unknowns, residual, verbose=False, x_scale="jac")
    residuals, _, _ = residual(result.x, optimum)
    half_widths = sysid.calculate_intervals([np.ravel(item) for item in residuals], result.jac)[1]
    return {name: (float(result.x[k]), float(half_widths[k])) for k, name in enumerate(system.parameters)}


def search_again(result: Identification) -> None:
    """Repeat the search of `identify` from starts with an error of 10 %, with the intervals."""
    problem = result.fit.problem
    values = problem.unknowns.values(result.fit.z[None])
    starts = problem.unknowns.unconstrain({name: 1.1 * value for name, value in values.items()})
    reached = gauss_newton(problem, starts, robust=True).z[0]
    uncertainty(problem, reached, robust=True)


def timed(actions: Sequence[Callable[[], object]], rounds: int) -> tuple[list, list[float]]:
    """Return the results of the actions, and the minimum processor seconds of several runs in turns."""
    results, min_seconds = [action() for action in actions], [math.inf for _ in actions]
    for _ in range(rounds):
        for number, action in enumerate(actions):
            began = time.process_time()
            action()
            min_seconds[number] = min(min_seconds[number], time.process_time() - began)
    return results, min_seconds


def main(seed: int = 0, rounds: int = 5) -> None:
    """Print estimates, intervals and seconds.

    Args:
        seed: Seed of the noise.
        rounds: Number of timed runs.
    """
    torch.set_num_threads(1)
    print(f"{'':10} {'parameter':10} {'truth':>9} {'identify, 95 %':>24} {'mujoco.sysid, 95 %':>24}  agree")
    for name, system in SYSTEMS.items():
        times, pixels = simulate_tracks(system, seed)
        tracks = tracks_of(system, times, pixels)
        estimators = [partial(system.identify_tracks, tracks, system.xml), partial(peer, system, times, pixels)]
        (own_result, peer_values), (own_seconds, peer_seconds) = timed(estimators, rounds)
        for parameter, (truth, *_) in system.parameters.items():
            item = own_result.parameters[system.names.get(parameter, parameter)]
            low, high = item.interval_95 or (math.nan, math.nan)
            value, half_width = peer_values[parameter]
            agree = low <= value + half_width and value - half_width <= high
            print(
                f"{name:10} {parameter:10} {truth:9.5g} {item.value or math.nan:10.5g} ± {(high - low) / 2:<11.2g}"
                f" {value:10.5g} ± {half_width:<11.2g}  {'yes' if agree else 'no'}"
            )
        _, (alone_seconds,) = timed([partial(search_again, own_result)], rounds)
        print(f"{name:10} {'seconds':10} {'':9} {own_seconds:10.2f} {'':13} {peer_seconds:10.2f}")
        print(f"{name:10} {'search alone':20} {alone_seconds:10.2f}", flush=True)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
