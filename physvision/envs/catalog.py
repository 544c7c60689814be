"""The environments of the package: pendulums to swing up, a row of links to raise, and an ant that walks.

Each function builds an `Environment`; `ENVIRONMENTS` maps names to them. Controls are clipped to their bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from physvision.core import State
from physvision.envs.environment import Environment, require_package
from physvision.physics import articulated
from physvision.physics.engine import Engine

SWING_UP_DT_S, SWING_UP_FRAME_SKIP, SWING_UP_STEPS = 0.01, 2, 500
CONTROL_COST = 1e-3  # decrease of the reward, for each (N m)² or N²
LINK_LENGTH_M, POINT_INERTIA = 0.5, 1e-9  # inertia of a body that represents a point mass, kg m²
ANT_STEP_S, ANT_DT_S = 0.05, 0.01


def _noisy_reset(engine: Engine, q: Tensor) -> Callable[[int, torch.Generator], State]:
    """Return a function that resets worlds to rest at q, with normal noise of 0.05 on positions and velocities."""

    def reset(batch: int, generator: torch.Generator) -> State:
        noise = 0.05 * torch.randn(2, batch, engine.nv, generator=generator, dtype=torch.float64)
        return State(q + noise[0], noise[1])

    return reset


def _rod_chain(num_rods: int, action_limit: tuple[float, ...]) -> Environment:
    """Build a chain of uniform rods of 1 kg and 1 m that hangs from a fixed hinge at angle zero."""
    engine = articulated.chain([1.0] * num_rods, [1.0] * num_rods, dt=SWING_UP_DT_S)

    def observe(state: State) -> Tensor:
        angles = state.q.cumsum(1)
        return torch.cat([angles.sin(), angles.cos(), state.v], 1)

    def reward(start: State, end: State, control: Tensor) -> Tensor:
        return (1 - end.q.cumsum(1).cos().mean(1)) / 2 - CONTROL_COST * control.square().sum(1)

    reset = _noisy_reset(engine, torch.zeros(num_rods, dtype=torch.float64))
    return Environment(engine, reset, observe, reward, action_limit, SWING_UP_STEPS, SWING_UP_FRAME_SKIP)


def pendulum() -> Environment:
    """Build `Pendulum`: swing up one rod with a motor too weak to lift it at once.

    A uniform rod of 1 kg and 1 m hangs from a hinge. One environment step is 0.02 s.

    | Action | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 | torque at the hinge | N m | −2 … 2 |

    | Observation | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 | sine of the angle from hanging | 1 | −1 … 1 |
    | 1 | cosine of the angle from hanging | 1 | −1 … 1 |
    | 2 | angular velocity | rad/s | unbounded |

    Reward: (1 − cos angle) / 2 − 0.001 · torque², at the end of the step. Start: hanging at rest, with normal noise of
    0.05 rad and 0.05 rad/s. Termination: never. Truncation: after 500 steps.
    """
    return _rod_chain(1, (2.0,))


def double_pendulum() -> Environment:
    """Build `DoublePendulum`: swing up two rods with a motor in each joint.

    Two uniform rods of 1 kg and 1 m hang from a hinge. One environment step is 0.02 s.

    | Action | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 | torque at the fixed hinge | N m | −8 … 8 |
    | 1 | torque between the rods | N m | −8 … 8 |

    | Observation | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0, 1 | sines of the rods' absolute angles from hanging | 1 | −1 … 1 |
    | 2, 3 | cosines of the rods' absolute angles from hanging | 1 | −1 … 1 |
    | 4, 5 | joint velocities | rad/s | unbounded |

    Reward: mean of (1 − cos angle) / 2 over the rods − 0.001 · Σ torque², at the end of the step. Start: hanging at
    rest, with normal noise of 0.05 rad and 0.05 rad/s. Termination: never. Truncation: after 500 steps.
    """
    return _rod_chain(2, (8.0, 8.0))


def acrobot() -> Environment:
    """Build `Acrobot`: swing up two rods with a motor only between them.

    It differs from `double_pendulum` only in the bounds of the actions: the fixed hinge is passive.

    | Action | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 | torque at the fixed hinge, always clipped to zero | N m | 0 |
    | 1 | torque between the rods | N m | −8 … 8 |

    Observation, reward, start, termination and truncation: those of `double_pendulum`.
    """
    return _rod_chain(2, (0.0, 8.0))


def cartpole() -> Environment:
    """Build `CartPole`: swing up a pole on a cart and balance it near the middle of the rail.

    One environment step is 0.02 s.

    | Action | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 | force on the cart | N | −10 … 10 |

    | Observation | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 | position of the cart | m | −2.4 … 2.4 until termination |
    | 1 | sine of the pole's angle from upright | 1 | −1 … 1 |
    | 2 | cosine of the pole's angle from upright | 1 | −1 … 1 |
    | 3 | velocity of the cart | m/s | unbounded |
    | 4 | angular velocity of the pole | rad/s | unbounded |

    Reward: (1 − 0.1 · position²) · (1 + cos angle) / 2 − 0.001 · force², at the end of the step. Start: hanging at rest
    in the middle, with normal noise of 0.05 in SI units. Termination: the cart is farther than 2.4 m from the middle.
    Truncation: after 500 steps.
    """
    engine = articulated.cartpole(dt=SWING_UP_DT_S)

    def observe(state: State) -> Tensor:
        angle = state.q[:, 1:]
        return torch.cat([state.q[:, :1], angle.sin(), angle.cos(), state.v], 1)

    def reward(start: State, end: State, control: Tensor) -> Tensor:
        centering = 1 - 0.1 * end.q[:, 0].square()
        return centering * (1 + end.q[:, 1].cos()) / 2 - CONTROL_COST * control.square().sum(1)

    reset = _noisy_reset(engine, torch.tensor([0.0, math.pi], dtype=torch.float64))
    steps, frame_skip = SWING_UP_STEPS, SWING_UP_FRAME_SKIP
    return Environment(engine, reset, observe, reward, (10.0,), steps, frame_skip, lambda obs: obs[..., 0].abs() > 2.4)


def links(num_links: int) -> Environment:
    """Build `Links1` … `Links7`: raise the tip of a horizontal row of links as high as it reaches.

    The task of *Efficient Differentiable Simulation of Articulated Bodies* (ICML 2021): n links of 0.5 m with a point
    mass at the far end of each, and a motor in every joint. One environment step is 1/60 s.

    | Action | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 … n − 1 | torque at each joint | N m | −10 … 10 |

    | Observation | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 … n − 1 | joint velocities | rad/s | −60 π … 60 π |
    | n … 2n − 1 | horizontal positions of the links' far ends | m | −n/2 … n/2 |
    | 2n … 3n − 1 | heights of the links' far ends | m | −n/2 … n/2 |
    | 3n | elapsed fraction of the episode | 1 | 0 … 1 |

    Reward, m²: decrease of the tip's squared distance from the highest point it can reach, so that the return is
    at most 0.5 n², the squared distance at the start. Start: horizontal, at rest. Termination: after 100 steps, which
    the observation shows. A world fails if a joint turns by more than half a turn in a step. Truncation: never before
    that.
    """
    masses = [1.0] + [2.16] * (num_links - 1)
    masses[-1] += 0.01
    bodies = [
        articulated.Body(
            f"link {k}",
            f"link {k - 1}" if k else None,
            [articulated.Joint("revolute", (1, 0, 0))],
            mass=mass,
            center_of_mass=(0, LINK_LENGTH_M, 0),
            inertia=(POINT_INERTIA,) * 3,
            position=(0, LINK_LENGTH_M if k else 0, 0),
        )
        for k, mass in enumerate(masses)
    ]
    engine = articulated.tree(bodies, dt=1 / 60, gravity=(0, 0, -9.8))

    def reset(batch: int, generator: torch.Generator) -> State:
        return State(*torch.zeros(2, batch, num_links, dtype=torch.float64))

    def link_ends(state: State) -> tuple[Tensor, Tensor]:
        angles = state.q.cumsum(1)
        return LINK_LENGTH_M * angles.cos().cumsum(1), LINK_LENGTH_M * angles.sin().cumsum(1)

    def observe(state: State) -> Tensor:
        return torch.cat([state.v, *link_ends(state)], 1)

    def squared_distance(state: State) -> Tensor:
        x, height = link_ends(state)
        return x[:, -1].square() + (height[:, -1] - num_links * LINK_LENGTH_M).square()

    def reward(start: State, end: State, control: Tensor) -> Tensor:
        return squared_distance(start) - squared_distance(end)

    # Rotation by more than half a turn in a step is not resolved, and the simulation soon diverges.
    max_speed = math.pi / engine.dt
    limits = (10.0,) * num_links
    return Environment(engine, reset, observe, reward, limits, 100, time_aware=True, max_speed=max_speed)


def ant(compliant: bool = False, integrator: str = "runge_kutta_4") -> Environment:
    """Build `Ant` or `CompliantAnt`: make Gymnasium's ant walk along x.

    A torso on four legs of two joints, from Gymnasium's model file. `Ant` has this package's event-driven hard contact,
    `CompliantAnt` MuJoCo's compliant contact. One environment step is 0.05 s, five steps of the engine.

    | Action | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0, 1 | torque at hip and ankle 4 (right back leg) | 150 N m | −1 … 1 |
    | 2, 3 | torque at hip and ankle 1 (front left leg) | 150 N m | −1 … 1 |
    | 4, 5 | torque at hip and ankle 2 (front right leg) | 150 N m | −1 … 1 |
    | 6, 7 | torque at hip and ankle 3 (left back leg) | 150 N m | −1 … 1 |

    | Observation | Meaning | Unit | Bounds |
    |---|---|---|---|
    | 0 | height of the torso | m | 0.2 … 1 until termination |
    | 1 … 4 | orientation of the torso, quaternion w, x, y, z | 1 | −1 … 1 |
    | 5 … 12 | joint angles: hip and ankle 1, 2, 3, 4 | rad | stops of the model file |
    | 13 … 15 | 0.05 · linear velocity of the torso, world frame | m/s | unbounded |
    | 16 … 18 | 0.05 · angular velocity of the torso, body frame | rad/s | unbounded |
    | 19 … 26 | 0.05 · joint velocities: hip and ankle 1, 2, 3, 4 | rad/s | unbounded |

    Reward: mean speed of the torso along x over the step, in m/s, − 0.5 · Σ action² + 1. Start: standing, with uniform
    noise of 0.1 on positions and normal noise of 0.1 on velocities. Termination: the torso is lower than 0.2 m or
    higher than 1 m. Truncation: after 1,000 steps. Domain randomization: friction × 0.7 … 1.3, joint stops up to 0.1
    rad wider and, with hard contact, restitution 0 … 0.3.

    Args:
        compliant: If true, ground and joint stops are compliant, as MuJoCo's are.
        integrator: Integrator of the compliant engine; Gymnasium and MuJoCo use Runge–Kutta for this model.
    """
    gymnasium = require_package("gymnasium", "environments")
    file = Path(str(gymnasium.__file__)).parent / "envs" / "mujoco" / "assets" / "ant.xml"
    if compliant:
        engine = articulated.load(file, dt=ANT_DT_S, contact="compliant", integrator=integrator)
    else:
        engine = articulated.load(file, dt=ANT_DT_S)
    # In the reference pose of the file the knees are beyond their stops.
    joint_angles = (0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0)
    standing_q = torch.tensor([0.0, 0.0, 0.75, 1.0, 0.0, 0.0, 0.0, *joint_angles], dtype=torch.float64)

    def reset(batch: int, generator: torch.Generator) -> State:
        displacement = 0.2 * torch.rand(batch, engine.nv, generator=generator, dtype=torch.float64) - 0.1
        v = 0.1 * torch.randn(batch, engine.nv, generator=generator, dtype=torch.float64)
        start = State(engine.integrate(standing_q.expand(batch, -1), displacement), v)
        return start if compliant else engine.resolve_penetration(start)

    def observe(state: State) -> Tensor:
        return torch.cat([state.q[:, 2:], 0.05 * state.v], 1)

    def reward(start: State, end: State, control: Tensor) -> Tensor:
        speed = (end.q[:, 0] - start.q[:, 0]) / ANT_STEP_S
        return speed - 0.5 * control.square().sum(1) + 1.0

    def termination(obs: Tensor) -> Tensor:
        return (obs[..., 0] < 0.2) | (obs[..., 0] > 1.0)

    return Environment(
        engine,
        reset,
        observe,
        reward,
        action_limit=(1.0,) * engine.nu,
        max_episode_steps=1000,
        frame_skip=round(ANT_STEP_S / ANT_DT_S),
        termination=termination,
        contact_flags=partial(_contact_flags, engine),
        randomize=partial(_randomized_properties, engine, compliant),
    )


def _randomized_properties(
    engine: articulated.Articulation, compliant: bool, batch: int, generator: torch.Generator
) -> dict[str, Tensor]:
    """Draw friction, joint stops and, with hard contact, restitution for a number of worlds."""
    nominal = dict(engine.properties.items())
    uniform = torch.rand(batch, 2 + 2 * engine.nu, generator=generator, dtype=torch.float64)
    widening = torch.tensor([-0.1, 0.1], dtype=torch.float64) * uniform[:, 2:].unflatten(1, (engine.nu, 2))
    limits = nominal["joint_limits"].repeat(batch, 1, 1)
    limits[:, -engine.nu :] += widening
    properties = {"joint_limits": limits, "friction": (0.7 + 0.6 * uniform[:, 1:2]) * nominal["friction"]}
    if not compliant:
        properties["restitution"] = (0.3 * uniform[:, :1]).expand(-1, len(nominal["restitution"]))
    return properties


def _contact_flags(engine: articulated.Articulation, state: State) -> Tensor:
    """Return true for shapes in contact, then for joints at a stop."""
    contacts = engine.contacts(state)
    shapes = torch.zeros(state.batch, len(engine.geometry) + 1, dtype=torch.bool)
    for shape_ids in (contacts.first, contacts.second):
        shapes.scatter_(1, torch.where(contacts.present, shape_ids, len(engine.geometry)).long(), True)
    lower, upper = dict(engine.properties.items())["joint_limits"][-engine.nu :].unbind(1)
    joints = state.q[:, -engine.nu :]
    return torch.cat([shapes[:, :-1], (joints < lower + 1e-6) | (joints > upper - 1e-6)], 1)


ENVIRONMENTS: dict[str, Callable[[], Environment]] = {
    "Pendulum": pendulum,
    "CartPole": cartpole,
    "DoublePendulum": double_pendulum,
    "Acrobot": acrobot,
    **{f"Links{num_links}": partial(links, num_links) for num_links in range(1, 8)},
    "Ant": ant,
    "CompliantAnt": partial(ant, compliant=True),
}
