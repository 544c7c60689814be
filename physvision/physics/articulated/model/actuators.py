"""Actuators, and their inner states as velocities of rotors beside the bodies.

An actuator state a with a′ = (control − a) / τ, or a′ = control, is the velocity of a rotor on its own axis, with
inertia J, damping J / τ (zero), and a torque of J / τ (J) times the control. So it is part of the state, at the end of
`q` (its integral) and of `v`, and is integrated and differentiated as all motion is. J is small enough for the energy
and momentum of the rotors to be negligible.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from physvision.physics.articulated.model.bodies import Body, Joint
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.settings import SETTINGS


@dataclass(frozen=True)
class Actuators:
    """Map from controls to generalized forces: clamp, then multiply.

    Attributes:
        gain: Force per unit of control, (nu, nv + transmissions), N m or N.
        low: Lower limits of the controls, (nu,).
        high: Upper limits of the controls, (nu,).
        names: Names of the controls.
    """

    gain: np.ndarray
    low: np.ndarray
    high: np.ndarray
    names: tuple[str, ...]


@dataclass(frozen=True)
class ActuatorState:
    """Inner state of an actuator that follows its control with a delay.

    Attributes:
        name: Name of the actuator.
        time_constant: Time constant τ, s; infinite for an integrator.
        force: Force per unit of the state on each velocity of the bodies, then on each transmission.
    """

    name: str
    time_constant: float
    force: np.ndarray

    @property
    def gain(self) -> float:
        """Torque on the rotor per unit of control, N m."""
        inertia = SETTINGS.actuator_state_inertia
        return inertia if math.isinf(self.time_constant) else inertia / self.time_constant

    @property
    def rotor(self) -> Body:
        """Rotor whose velocity is the state; it turns about its center of mass, so gravity exerts no torque."""
        inertia = SETTINGS.actuator_state_inertia
        damping = 0.0 if math.isinf(self.time_constant) else self.gain
        name = f"activation of {self.name}"
        return Body(name, None, [Joint(damping=damping, name=name)], mass=inertia, inertia=(inertia,) * 3)


def couple_actuator_states(tree: KinematicTree, states: tuple[ActuatorState, ...], friction_rows: int) -> KinematicTree:
    """Add the forces of actuator states to a tree, whose last velocities are those of the rotors.

    Args:
        tree: Tree with the rotors.
        states: Actuator states in the order of their rotors.
        friction_rows: Number of rows of dry friction between the velocities and the transmissions.
    """
    first = tree.nv - len(states)
    couplings = [
        (first + k, column if column < first else tree.nv + friction_rows + column - first, float(state.force[column]))
        for k, state in enumerate(states)
        for column in np.flatnonzero(state.force).tolist()
    ]
    return replace(
        tree,
        coupling_source=np.array([source for source, _, _ in couplings], np.int32),
        coupling_target=np.array([target for _, target, _ in couplings], np.int32),
        coupling_gain=np.array([gain for _, _, gain in couplings], float),
    )
