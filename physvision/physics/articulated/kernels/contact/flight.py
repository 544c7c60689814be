"""Motion during a flight, the part of a step between two events: positions and poses after some of its time."""

import warp as wp

from ..collision.narrow_phase import update_poses
from ..dynamics.joints import integrate_positions
from ..precision import scalar
from ..structs import Contact, System, Tree, Workspace


@wp.func
def integrate_flight(tree: Tree, work: Workspace, world: int, row: int, t: scalar):
    """Write q[row + 1], the positions at time t of the flight that starts at `row`."""
    for d in range(tree.velocities):
        work.step_velocity[world, row + 1, d] = work.v[world, row, d] + scalar(0.5) * t * work.a[world, row, d]
    integrate_positions(tree, world, work.q, row, row + 1, work.step_velocity, row + 1, t)


@wp.func(inline=True)
def move_along_flight(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, t: scalar):
    """Write q[row + 1] at time t of the flight, and update the poses of links and shapes."""
    integrate_flight(tree, work, world, row, t)
    update_poses(tree, contact, s, world, work.q, row + 1)
