"""The articulated engine with contact: a Laikago whose four toes touch the ground, one thread, float64.

    python benchmarks/contact.py [--rounds 5]

Microseconds a step of 1 ms, 1000 steps of one world, the least of the rounds; the same robot without a ground, and
MuJoCo's `mj_step` of it in the same run, beside it. The legs are bent and held by springs. Last, several robots in one
world and in a batch, the time of each as a share of one's alone: it should be linear in their number.
"""

# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mujoco
import torch
from jsonargparse import auto_cli

from physvision import State
from physvision.core import Placed, Plane, Sphere
from physvision.physics import articulated
from physvision.physics.articulated.loading import translate

sys.path.append(str(Path(__file__).parents[1] / "experiments"))
from claims import Claim, write_claims

LAIKAGO = Path(__file__).parents[1] / "tests" / "data" / "laikago.urdf"
TOE, STIFFNESS, DAMPING = 0.0265, 300.0, 10.0
BENT = {"upper_leg_2_hip": 0.6, "lower_leg_2_upper_leg": -1.2}  # rad, by parts of the joints' names
ROBOTS = 2, 5, 10
BARS = 6.0, 12.0  # microseconds forward and backward


def specification() -> mujoco.MjSpec:
    spec = mujoco.MjSpec.from_file(str(LAIKAGO))
    spec.compiler.fusestatic = False
    spec.worldbody.first_body().add_freejoint()
    return spec


def held(joint: articulated.Joint) -> articulated.Joint:
    """The joint with a spring about the angle at which its leg stands."""
    if joint.kind == "free":
        return joint
    angle = next((angle for part, angle in BENT.items() if part in joint.name), 0.0)
    return replace(joint, stiffness=STIFFNESS, damping=DAMPING, initial_position=(angle,), spring_reference=(angle,))


def standing_bodies(behind: str) -> list[articulated.Body]:
    """The robot's bodies, with spheres for toes and legs that are held; `behind` ends their names."""
    return [
        replace(
            body,
            name=f"{body.name}{behind}",
            parent=None if body.parent is None else f"{body.parent}{behind}",
            shapes=[Placed(Sphere(TOE))] if "toe" in body.name else [],
            joints=[held(joint) for joint in body.joints],
        )
        for body in translate.bodies(specification().compile(), (), False)
    ]


def engine(contact: str | None, robots: int = 1) -> articulated.Articulation:
    bodies = [body for k in range(robots) for body in standing_bodies(f" {k}")]
    return articulated.tree(
        bodies, dt=1e-3, static_shapes=[Placed(Plane())], contact=articulated.ContactSettings(contact, friction=0.8)
    )


def above_ground(mechanism: articulated.Articulation) -> State:
    """At rest, the lowest toe 10 mm above the ground."""
    high = mechanism.initial_state(1, torch.float64)
    toes = [row for row, name in enumerate(mechanism.body_names) if "toe" in name]
    q = high.q.clone()
    q[0, 2] += TOE + 0.01 - float(mechanism.poses(high)[0, toes, 2, 3].min())
    return State(q, high.v)


def mujoco_standing() -> tuple[mujoco.MjModel, mujoco.MjData]:
    """MuJoCo's robot with the same toes, springs and ground, when it has come to rest."""
    spec = specification()
    for geom in spec.geoms:
        geom.contype = geom.conaffinity = 0
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], friction=[0.8, 0, 0])
    for body in spec.bodies:
        if "toe" in body.name:
            body.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[TOE, 0, 0], friction=[0.8, 0, 0], mass=0)
    for joint in spec.joints:
        if joint.type != mujoco.mjtJoint.mjJNT_FREE:
            joint.stiffness, joint.damping = [STIFFNESS, 0, 0], [DAMPING, 0, 0]
            joint.springref = next((angle for part, angle in BENT.items() if part in joint.name), 0.0)
    spec.option.timestep = 1e-3
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[7:], data.qpos[2] = model.qpos_spring[7:], 0.4
    mujoco.mj_step(model, data, 1500)
    return model, data


def shortest_time(work: Callable[[], object], rounds: int) -> float:
    work()
    times = []
    for _ in range(rounds):
        began = time.thread_time()
        work()
        times.append(time.thread_time() - began)
    return min(times)


def ours(contact: str | None, start: State, rounds: int) -> tuple[float, float]:
    mechanism = engine(contact)
    q, v = start.q.clone().requires_grad_(), start.v.clone().requires_grad_()
    with torch.no_grad():
        forward = shortest_time(lambda: mechanism.rollout(State(q, v), 1000), rounds)
    loss = mechanism.rollout(State(q, v), 1000).final.q.sum()
    backward = shortest_time(lambda: torch.autograd.grad(loss, (q, v), retain_graph=True), rounds)
    return forward * 1e3, backward * 1e3


def side_by_side(start: State, robots: int) -> State:
    """One world of so many of the robot, two meters apart."""
    q = start.q.repeat(1, robots).reshape(robots, -1)
    q[:, 0] += 2 * torch.arange(robots, dtype=q.dtype)
    return State(q.reshape(1, -1), start.v.repeat(1, robots))


def together(start: State, rounds: int) -> None:
    """Print what each of several robots takes, forward and backward, of what one takes alone."""
    alone, steps = engine("event"), 200
    cases = {("alone", 1): (alone, start)}
    for robots in ROBOTS:
        cases["in one world", robots] = engine("event", robots), side_by_side(start, robots)
        cases["in a batch", robots] = alone, start.repeat(robots)
    least_of = dict.fromkeys(cases, (float("inf"), float("inf")))
    for _ in range(rounds + 1):
        for case, (mechanism, state) in cases.items():
            q, v = state.q.clone().requires_grad_(), state.v.clone().requires_grad_()
            began = time.process_time()
            loss = mechanism.rollout(State(q, v), steps).final.q.sum()
            middle = time.process_time()
            torch.autograd.grad(loss, (q, v))
            elapsed = middle - began, time.process_time() - middle
            least_of[case] = min(least_of[case][0], elapsed[0]), min(least_of[case][1], elapsed[1])
    single = least_of["alone", 1]
    for (how, robots), (forward, backward) in least_of.items():
        if robots > 1:
            fractions = forward / single[0] / robots, backward / single[1] / robots
            print(f"{robots:>3} {how:<13} forward {fractions[0]:5.2f}   backward {fractions[1]:5.2f}   bar 1.2")


def main(rounds: int = 5) -> None:
    """Print the table of times.

    Args:
        rounds: Number of rounds of timing.
    """
    torch.set_num_threads(1)
    touching = engine("event")
    start = touching.rollout(above_ground(touching), 1000).final
    claims = []
    for contact in ("event", None):
        forward, backward = ours(contact, start, rounds)
        for name, value in (("forward", forward), ("backward", backward)):
            claims.append(Claim(f"quadruped, contact={contact}, {name}", value, "µs a step"))
        verdict = f"   bars {BARS[0]}, {BARS[1]}" if contact else ""
        print(f"contact={contact!r:<8} forward {forward:7.2f}   backward {backward:7.2f}{verdict}")
    model, data = mujoco_standing()
    theirs = shortest_time(lambda: mujoco.mj_step(model, data, 1000), rounds) * 1e3
    print(f"mj_step          forward {theirs:7.2f}   {data.ncon} contacts")
    claims.append(Claim("quadruped, mj_step of MuJoCo", theirs, "µs a step", source=f"MuJoCo {mujoco.__version__}"))
    together(start, rounds)
    print(write_claims(__file__, claims))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
