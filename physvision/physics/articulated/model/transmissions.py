"""Transmissions: servos, dry friction and equality constraints along fixed combinations of joints."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from physvision.core import ModelError
from physvision.physics.articulated.model.kinematic_tree import KinematicTree

TRANSMISSION_KINDS = ("friction", "servo", "equality", "limit")


@dataclass(frozen=True)
class Transmission:
    """A force along a fixed combination of revolute and prismatic joints (a fixed tendon), solved with the contacts.

    Its length is p = Σ coefficient · position − rest_position, its velocity u. A "servo" applies
    control − stiffness p − damping u, evaluated at the end of the step and clamped to `force_range`, which is stable
    at any stiffness. With a finite `max_speed` it applies damping (z − u) instead, where the commanded velocity
    z = (control − stiffness p) / damping, clamped to ±max_speed, is evaluated at the start of the step: a motor of gain
    stiffness / damping, which must be below 1 / dt. If it is smooth, its force is x / √(1 + (x/f)²) with x = control −
    stiffness p − damping u and the bound f, linearized about the start of the step, and its commanded velocity
    likewise: both depend on the control however far beyond the bounds it is. What the force changes within a step is
    still cut off at `force_range`. "friction" resists all motion with a force
    within `force_range`; an "equality" keeps p at zero, a "limit" at zero or above.

    Attributes:
        coefficients: Coefficient of each joint by name, m/rad or without unit.
        kind: Kind of the force: "servo", "friction", "equality" or "limit".
        stiffness: Stiffness of a servo, N/m or N m/rad.
        damping: Damping of a servo, N s/m or N m s/rad.
        rest_position: Combined position at which a servo's spring is at rest, which an equality holds, or the smallest
            one that a limit allows, m or rad.
        force_range: Lower and upper limit of the force, N or N m.
        name: Name for messages and controls.
        max_speed: Largest commanded velocity of a servo, m/s or rad/s.
        smooth: If true, force and commanded velocity of a servo approach their limits smoothly, so that gradients do
            not vanish there.
    """

    coefficients: Mapping[str, float]
    kind: str = "servo"
    stiffness: float = 0.0
    damping: float = 0.0
    rest_position: float = 0.0
    force_range: tuple[float, float] = (-math.inf, math.inf)
    name: str = ""
    max_speed: float = math.inf
    smooth: bool = False

    def check(self, tree: KinematicTree) -> None:
        """Raise ModelError if the transmission does not fit the tree or its numbers contradict each other."""
        prefix = f"transmission {self.name!r}"
        if self.kind not in TRANSMISSION_KINDS:
            raise ModelError(f"{prefix}: expected a kind among {', '.join(TRANSMISSION_KINDS)}, got {self.kind!r}")
        self._check_joints(tree, prefix)
        low, high = self.force_range
        if not low <= high:
            raise ModelError(f"{prefix}: expected force_range (lower, upper), got {self.force_range}")
        if self.kind == "friction" and not low <= 0 <= high:
            raise ModelError(f"{prefix}: the force_range of friction must contain zero, got {self.force_range}")
        servo = self.kind == "servo"
        if not self.max_speed >= 0 or (math.isfinite(self.max_speed) and not (servo and self.damping > 0)):
            raise ModelError(
                f"{prefix}: max_speed must be at least zero and needs a servo with damping above zero, got "
                f"{self.max_speed} for kind {self.kind!r} with damping {self.damping}"
            )
        if self.smooth and not (servo and low < 0 < high):
            raise ModelError(
                f"{prefix}: smooth needs a servo with a force_range around zero, got kind {self.kind!r} and "
                f"{self.force_range}"
            )
        if servo and not (self.stiffness >= 0 and self.damping >= 0 and self.stiffness + self.damping > 0):
            raise ModelError(
                f"{prefix}: a servo needs stiffness or damping above zero, got {self.stiffness} and {self.damping}"
            )

    def _check_joints(self, tree: KinematicTree, prefix: str) -> None:
        if not self.coefficients:
            raise ModelError(f"{prefix}: expected the coefficient of at least one joint")
        for name, coefficient in self.coefficients.items():
            count = tree.joint_names.count(name)
            if count != 1:
                problem = f"there is no joint {name!r}" if count == 0 else f"there are {count} joints {name!r}"
                raise ModelError(f"{prefix}: {problem}; expected the unique name of a joint")
            link = tree.joint_names.index(name)
            if tree.first_velocity[link + 1] - tree.first_velocity[link] != 1:
                raise ModelError(f"{prefix}: joint {name!r} is neither revolute nor prismatic")
            if not (math.isfinite(coefficient) and coefficient != 0):
                raise ModelError(
                    f"{prefix}: expected a finite coefficient of {name!r} other than zero, got {coefficient}"
                )
