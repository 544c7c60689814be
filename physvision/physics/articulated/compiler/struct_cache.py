"""Structs over the properties of an engine that are ready for calls, in one dtype on one device."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import ref

import torch

from physvision.physics.articulated.compiler.contact_pairs import ContactPairs
from physvision.physics.articulated.compiler.device_model import DeviceModel
from physvision.physics.articulated.compiler.link_parameters import Parameters
from physvision.physics.articulated.model.kinematic_tree import KinematicTree
from physvision.physics.articulated.model.properties import TreeProperties
from physvision.physics.articulated.settings import SETTINGS

# Properties that are zero where bodies are only separated.
_FORCES = (
    *("gravity", "friction", "rotational_friction", "restitution"),
    *("friction_loss", "transmission_force_range", "joint_stiffness"),
)


@dataclass(frozen=True, eq=False)
class ModelStructs:
    """Structs over parameters without gradients, which must stay alive as long as the structs.

    Attributes:
        tree: Struct of the kinematic tree.
        contact_tree: Struct of the tree in rollouts with contact, by events about the centers of mass of free links.
        contacts: Struct of the contact problem; None without contact.
        parameters: Parameters of the links and of the contact problem behind the structs.
    """

    tree: Any
    contact_tree: Any
    contacts: Any
    parameters: tuple[Parameters, ...]


class StructCache:
    """A device model with structs over the engine's own properties and over those of the last call.

    Attributes:
        device_model: Constant arrays and kernels.
        own_structs: Structs over the engine's own properties, for any number of worlds.
        placements: Rotation and offset of each body in its link by the engine's own properties.
    """

    def __init__(self, tree: KinematicTree, pairs: ContactPairs | None, properties: TreeProperties) -> None:
        self.device_model = DeviceModel(tree, properties.mass.dtype, properties.mass.device, pairs)
        self._pairs, self._own_properties = pairs, properties
        springs, friction = (
            bool((value != 0).any()) for value in (properties.joint_stiffness, properties.friction_loss)
        )
        self.own_structs = self._structs(properties, 1, springs, friction)
        self.placements = self.device_model.link_parameters.bodies_in_links(properties)
        self._last: tuple | None = None

    def link_parameters(self, properties: TreeProperties, batch: int) -> Parameters:
        """Parameters of the links for a number of worlds."""
        return self.device_model.link_parameters.pack(properties, batch)

    def contact_parameters(self, properties: TreeProperties, batch: int) -> Parameters:
        """Parameters of the contact problem for a number of worlds; empty without contact."""
        return {} if self._pairs is None else self._pairs.pack(properties, self.device_model.link_parameters, batch)

    def rollout_parameters(self, properties: TreeProperties, batch: int) -> tuple[Parameters, Parameters]:
        """Parameters of links and contact problem in rollouts with contact, by events about centers of mass."""
        assert self._pairs is not None
        link_parameters, centered = self.device_model.link_parameters, self._pairs.is_centered
        contacts = self._pairs.pack(properties, link_parameters, batch, centered)
        return link_parameters.pack(properties, batch, centered), contacts

    def lookup(self, properties: TreeProperties, batch: int) -> ModelStructs | None:
        """Structs of the last call if it had these properties and this batch size, otherwise None."""
        if self._last is None:
            return None
        last, versions, worlds, structs = self._last
        same = last() is properties and (versions, worlds) == (_versions(properties), batch)
        return structs if same else None

    def store(self, properties: TreeProperties, cast: TreeProperties, batch: int) -> ModelStructs:
        """Make structs over checked properties and keep them for the next call.

        Args:
            properties: Properties as they were passed to the call.
            cast: Same properties in the dtype of the computation.
            batch: Number of worlds.
        """
        structs = self._structs(cast, batch)
        self._last = ref(properties), _versions(properties), batch, structs
        return structs

    @cached_property
    def forceless(self) -> tuple[ModelStructs, ModelStructs]:
        """Structs to resolve penetration, without forces other than contacts and without held pairs.

        The first accept any penetration, the second, for a check of the result, that of a valid state.
        """
        own = self._own_properties
        properties = replace(own, **{name: torch.zeros_like(getattr(own, name)) for name in _FORCES})
        separating = self._structs(properties, 1, max_penetration=math.inf, holds=False)
        return separating, self._structs(properties, 1, holds=False)

    @torch.no_grad()
    def _structs(
        self,
        properties: TreeProperties,
        batch: int,
        springs: bool = True,
        friction: bool = True,
        max_penetration: float = SETTINGS.max_initial_penetration,
        holds: bool = True,
    ) -> ModelStructs:
        # Parameters that two worlds share have a stride of zero, and so serve any number of worlds.
        worlds = max(batch, 2)
        link_parameters = self.link_parameters(properties, worlds)
        tree = self.device_model.tree_struct(link_parameters, springs, friction)
        contact_tree, contacts, parameters = tree, None, (link_parameters,)
        if self._pairs is not None:
            centered, contact_parameters = self.rollout_parameters(properties, worlds)
            parameters = (link_parameters, centered, contact_parameters)
            if bool((centered["link_center"] != 0).any()):
                contact_tree = self.device_model.tree_struct(centered, springs, friction, centered=True)
            contacts = self.device_model.contacts_struct(
                contact_parameters, self._pairs.max_events, SETTINGS.restitution_threshold, max_penetration, holds
            )
        return ModelStructs(tree, contact_tree, contacts, parameters)


def _versions(properties: TreeProperties) -> list[int]:
    return [value._version for _, value in properties.items()]
