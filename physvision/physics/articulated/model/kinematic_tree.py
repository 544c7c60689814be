"""The kinematic tree of a mechanism as arrays of links."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from physvision.core import Placed


@dataclass(frozen=True)
class KinematicTree:
    """Links with one joint each, numbered from the root outwards.

    A body without a joint is part of the link that carries it, or of the world. A body with several joints is a chain
    of links of which the last has its mass. A link's frame has its origin at the joint's anchor and its z along the
    axis; the body's frame is at a constant pose in the link's frame.
    """

    body_names: tuple[str, ...]
    joint_names: tuple[str, ...]
    kind: np.ndarray  # (links,) code of the joint's kind
    parent: np.ndarray  # (links,) −1 for the world
    first_position: np.ndarray  # (links + 1,) start of the joint in q
    first_velocity: np.ndarray  # (links + 1,) start of the joint in v
    placed_body: np.ndarray  # (links,) body whose pose places the link; −1 within a chain
    frame_rotation: np.ndarray  # (links, 3, 3) link frame in the body's frame
    frame_offset: np.ndarray  # (links, 3)
    zero_rotation: np.ndarray  # (links, 3, 3) link frame at q = 0 in the body's frame
    zero_offset: np.ndarray  # (links, 3)
    body_link: np.ndarray  # (bodies,) link that the body is part of, −1 for the world
    body_parent: np.ndarray  # (bodies,) −1 for the world
    fixed: np.ndarray  # (bodies,) true without a joint
    motion_subspace: np.ndarray  # (nv, 6) angular part first
    initial_q: np.ndarray  # (nq,)
    limited: np.ndarray  # (links,) true with joint limits
    beyond_limits: np.ndarray  # (links, 2) true if the initial position is beyond the lower limit, the upper one
    spring_link: np.ndarray  # (nv,) link whose spring is integrated implicitly, −1 for none
    quaternions: np.ndarray  # starts of the quaternions in q
    # Forces in proportion to a velocity, as of actuator states: (couplings,); a target beyond nv is a constraint row.
    coupling_source: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    coupling_target: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    coupling_gain: np.ndarray = field(default_factory=lambda: np.zeros(0))
    drag_axes: np.ndarray | None = None  # (bodies, 3, 3) axes of the boxes for fluid drag; None without a fluid

    @property
    def links(self) -> int:
        """Number of links of the tree."""
        return len(self.kind)

    @property
    def bodies(self) -> int:
        """Number of bodies of the tree."""
        return len(self.body_names)

    @property
    def root(self) -> np.ndarray:
        """First link of each link's tree, (links,)."""
        root = np.arange(self.links)
        for link, parent in enumerate(self.parent):
            root[link] = link if parent < 0 else root[parent]
        return root

    @property
    def nq(self) -> int:
        """Number of position coordinates."""
        return int(self.first_position[-1])

    @property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return int(self.first_velocity[-1])

    def shape_link(self, placed: Placed) -> int:
        """Link that a shape is attached to, −1 for the world."""
        return -1 if placed.body is None else int(self.body_link[placed.body])

    def parent_body_link(self, link: int) -> int:
        """Nearest ancestor link that carries a body; the links between are further joints of the link's own body."""
        body_links = set(self.body_link.tolist())
        while link >= 0:
            link = int(self.parent[link])
            if link in body_links:
                break
        return link
