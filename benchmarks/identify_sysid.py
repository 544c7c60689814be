"""`identify` beside `mujoco.sysid` on the same tracks: estimates, 95 % intervals, seconds.

MuJoCo draws each track once: pixels, with noise. `mujoco.sysid` is told the mechanism, begins its search with every
unknown a tenth off, and has the camera among its unknowns as `identify` has. `identify` finds its own starts, looks for
drag as well, and tests itself on the last third: the first line of seconds is of all that, the second of its search
alone, begun a tenth off as well. Seconds are the processor's: the least of several runs that take turns, after one that
does not count, so that what else the machine does falls on both.

    pip install 'mujoco[sysid]'
    python benchmarks/identify_sysid.py
"""

# MuJoCo's compiled module does not tell type checkers what it holds.
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
    """What is identified.

    Attributes:
        bodies: as MJCF.
        seen: the sites that are tracked.
        joint: one of the joints.
        parameters: of the mechanism: truth, low, high, and how a specification gets the value.
        start: positions and velocities at the beginning.
        scale: pixels a metre; known or not.
        known_scale: whether it is told.
        ours: from tracks what `identify` finds.
        names: of ours, beside those of the peer.
    """

    bodies: str
    seen: Sequence[str]
    joint: str
    parameters: dict[str, tuple[float, float, float, Modify]]
    start: tuple[list[float], list[float]]
    scale: float
    known_scale: bool
    ours: Callable[[list[Track], str], Identification]
    names: dict[str, str]

    @property
    def xml(self) -> str:
        """The whole model."""
        sensors = "".join(f'<framepos objtype="site" objname="{name}"/>' for name in self.seen)
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


def drawn(system: System, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Times, and pixels with noise, (times, 2 · things)."""
    model = mujoco.MjModel.from_xml_string(system.xml)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = system.start
    places = []
    for _ in range(int(SECONDS * FPS)):
        mujoco.mj_forward(model, data)
        places.append(
            np.concatenate([CORNER + system.scale * data.site(name).xpos[[0, 2]] * [1, -1] for name in system.seen])
        )
        for _ in range(FINE):
            mujoco.mj_step(model, data)
    random = np.random.default_rng(seed)
    return np.arange(len(places)) / FPS, np.array(places) + random.normal(0, NOISE, (len(places), 2 * len(system.seen)))


def tracks_of(system: System, times: np.ndarray, pixels: np.ndarray) -> list[Track]:
    """The same for `identify`."""
    every = np.ones(len(times), bool)
    return [
        Track(times, pixels[:, 2 * k : 2 * k + 2].copy(), np.full(len(times), NOISE), every, name=name)
        for k, name in enumerate(system.seen)
    ]


def peer(system: System, times: np.ndarray, pixels: np.ndarray) -> dict[str, tuple[float, float]]:
    """What `mujoco.sysid` finds of each parameter: the value and half its 95 % interval."""
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

    def rolled(models, datas, control_signal, initial_states, param_dicts, **mappings):
        begun = [sysid.create_initial_state(models[0], each["q"].value, each["v"].value) for each in param_dicts]
        return sysid.sysid_rollout(models, datas, control_signal, begun, **{
            {"rollout_signal_mapping": "rollout_signal_mapping", "rollout_state_mapping": "rollout_state_mapping",
             "ctrl_mapping": "ctrl_mapping"}[name]: value for name, value in mappings.items()
        })  # fmt: skip

    def missed(params, predicted, measured, model, return_pred_all, **_):
        seen = predicted.data[FINE - 1 :: FINE].reshape(-1, len(system.seen), 3)[:, :, [0, 2]] * [1, -1]
        cos, sin = math.cos(params["tilt"].value[0]), math.sin(params["tilt"].value[0])
        scale = system.scale if system.known_scale else params["scale"].value[0]
        shown = params["corner"].value + scale * seen @ np.array([[cos, sin], [-sin, cos]])
        shown = shown.reshape(len(shown), -1)[: len(pixels) - 1]
        return (shown - pixels[1 : len(shown) + 1]) / NOISE, predicted, predicted  # only the first counts

    count = FINE * (len(times) - 1) + 1
    fine = np.arange(count) / FPS / FINE
    sequences = sysid.ModelSequences(
        "system", spec, "measured", sysid.create_initial_state(model, q, v),
        sysid.TimeSeries(fine, np.zeros((count, 1))),
        sysid.TimeSeries(times[1:], np.zeros((len(times) - 1, model.nsensordata))),
    )  # fmt: skip
    residual = sysid.build_residual_fn(models_sequences=[sequences], modify_residual=missed, custom_rollout=rolled)
    found, result = sysid.optimize(unknowns, residual, verbose=False, x_scale="jac")
    left, _, _ = residual(result.x, found)
    half = sysid.calculate_intervals([np.ravel(each) for each in left], result.jac)[1]
    return {name: (float(result.x[k]), float(half[k])) for k, name in enumerate(system.parameters)}


def searched(found: Identification) -> None:
    """The search of `identify`, begun with every unknown a tenth off, and the intervals."""
    problem = found.fit.problem
    values = problem.unknowns.values(found.fit.z[None])
    begun = problem.unknowns.unconstrain({name: 1.1 * value for name, value in values.items()})
    reached = gauss_newton(problem, begun, robust=True).z[0]
    uncertainty(problem, reached, robust=True)


def timed(actions: Sequence[Callable[[], object]], rounds: int) -> tuple[list, list[float]]:
    """What the actions return, and the least processor seconds of each of several runs in turns."""
    found, least = [action() for action in actions], [math.inf for _ in actions]
    for _ in range(rounds):
        for number, action in enumerate(actions):
            began = time.process_time()
            action()
            least[number] = min(least[number], time.process_time() - began)
    return found, least


def main(seed: int = 0, rounds: int = 5) -> None:
    """Print the table.

    Args:
        seed: of the noise.
        rounds: how often each is timed.
    """
    torch.set_num_threads(1)
    print(f"{'':10} {'parameter':10} {'truth':>9} {'identify, 95 %':>24} {'mujoco.sysid, 95 %':>24}  agree")
    for name, system in SYSTEMS.items():
        times, pixels = drawn(system, seed)
        tracks = tracks_of(system, times, pixels)
        both = [partial(system.ours, tracks, system.xml), partial(peer, system, times, pixels)]
        (ours, theirs), (own_seconds, peer_seconds) = timed(both, rounds)
        for parameter, (truth, *_) in system.parameters.items():
            each = ours.parameters[system.names.get(parameter, parameter)]
            low, high = each.interval_95 or (math.nan, math.nan)
            value, half = theirs[parameter]
            agree = low <= value + half and value - half <= high
            print(
                f"{name:10} {parameter:10} {truth:9.5g} {each.value or math.nan:10.5g} ± {(high - low) / 2:<11.2g}"
                f" {value:10.5g} ± {half:<11.2g}  {'yes' if agree else 'no'}"
            )
        _, (alone_seconds,) = timed([partial(searched, ours)], rounds)
        print(f"{name:10} {'seconds':10} {'':9} {own_seconds:10.2f} {'':13} {peer_seconds:10.2f}")
        print(f"{name:10} {'of them, the search':20} {alone_seconds:10.2f}", flush=True)


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
