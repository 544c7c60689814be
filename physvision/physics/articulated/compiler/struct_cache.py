"""Kernels and numbers that are ready for calls, in one precision on one device."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple
from weakref import ref

import torch

from physvision.physics.articulated.compiler.contact_pairs import Pairs
from physvision.physics.articulated.compiler.device_model import Program
from physvision.physics.articulated.compiler.link_parameters import Parameters
from physvision.physics.articulated.model.kinematic_tree import Model
from physvision.physics.articulated.model.properties import TreeProperties

MOST_OPERATIONS = 64  # flights and impacts in a step
REST_SPEED = 1e-2  # m/s below which nothing bounces
MOST_OVERLAP = 1e-2  # m, or rad of a joint, that a world may start beyond what stops it
# Properties that are zero where bodies are only to be pushed apart.
_FORCES = (
    *("gravity", "friction", "turning_friction", "restitution"),
    *("friction_loss", "transmission_force", "joint_stiffness"),
)


class Structs(NamedTuple):
    """The kernels' structs over numbers that ask for no gradient; these must stay alive as long as the structs."""

    tree: Any
    contacts: Any
    held: tuple[Parameters, Parameters]


class Prepared:
    """A program, with structs over the engine's own properties and over those that were given last.

    Attributes:
        program: the kernels.
        own: structs over the engine's own properties, for any number of worlds.
        placed: where bodies are in their links by the engine's own properties.
    """

    def __init__(self, model: Model, pairs: Pairs | None, own: TreeProperties) -> None:
        self.program = Program(model, own.mass.dtype, own.mass.device, pairs)
        self._pairs, self._own = pairs, own
        springs, rubs = (bool((value != 0).any()) for value in (own.joint_stiffness, own.friction_loss))
        self.own = self._structs(own, 1, springs, rubs)
        self.placed = self.program.packing.bodies_in_links(own)
        self._last: tuple | None = None

    def tree_numbers(self, properties: TreeProperties, batch: int) -> Parameters:
        """The numbers of the tree for so many worlds."""
        return self.program.packing.pack(properties, batch)

    def contact_numbers(self, properties: TreeProperties, batch: int) -> Parameters:
        """The numbers of what may touch for so many worlds; none where nothing may."""
        return {} if self._pairs is None else self._pairs.pack(properties, self.program.packing, batch)

    def last(self, properties: TreeProperties, batch: int) -> Structs | None:
        """The structs over these properties, if `keep` made them for the last ones that were given."""
        if self._last is None:
            return None
        given, versions, worlds, structs = self._last
        same = given() is properties and (versions, worlds) == (_versions(properties), batch)
        return structs if same else None

    def keep(self, properties: TreeProperties, cast: TreeProperties, batch: int) -> Structs:
        """Structs over properties that were checked and cast, kept for the next call."""
        structs = self._structs(cast, batch)
        self._last = ref(properties), _versions(properties), batch, structs
        return structs

    @cached_property
    def forceless(self) -> tuple[Structs, Structs]:
        """Structs as of `without_forces` over the engine's own properties, for any number of worlds."""
        return self.without_forces(self._own, 1)

    def without_forces(self, properties: TreeProperties, batch: int) -> tuple[Structs, Structs]:
        """Structs in which nothing pushes but contacts: first with any overlap, then with a small one at most."""
        still = replace(properties, **{name: torch.zeros_like(getattr(properties, name)) for name in _FORCES})
        return self._structs(still, batch, overlap=math.inf), self._structs(still, batch)

    @torch.no_grad()
    def _structs(
        self,
        properties: TreeProperties,
        batch: int,
        springs: bool = True,
        rubs: bool = True,
        overlap: float = MOST_OVERLAP,
    ) -> Structs:
        # What two worlds share is read with stride zero, and so serves any number of them.
        worlds = max(batch, 2)
        parameters, touching = self.tree_numbers(properties, worlds), self.contact_numbers(properties, worlds)
        contacts = None
        if self._pairs is not None:
            contacts = self.program.contacts(touching, MOST_OPERATIONS, REST_SPEED, overlap)
        return Structs(self.program.tree(parameters, springs, rubs), contacts, (parameters, touching))


def _versions(properties: TreeProperties) -> list[int]:
    return [value._version for _, value in properties.items()]
