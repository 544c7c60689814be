"""Motion during a flight, the part of a step between two events: positions and poses after some of its time."""

import warp as wp

from ..collision.narrow_phase import update_link_pose, update_poses, update_shape_pose
from ..dynamics.joints import integrate_joint, integrate_positions
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


@wp.func
def move_shape_along_flight(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, t: scalar, shape: int
):
    """Do as `move_along_flight` for one shape alone, and the links that carry it, outermost first."""
    carrier = s.model.shapes.link[shape]
    depth = wp.int32(0)
    i = wp.int32(carrier)
    while i >= 0:
        depth += 1
        i = tree.parent[i]
    while depth > 0:
        depth -= 1
        i = carrier
        for _ in range(depth):
            i = tree.parent[i]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            work.step_velocity[world, row + 1, d] = work.v[world, row, d] + scalar(0.5) * t * work.a[world, row, d]
        integrate_joint(tree, world, i, work.q, row, row + 1, work.step_velocity, row + 1, t)
        update_link_pose(tree, contact, world, i, work.q, row + 1)
    update_shape_pose(contact, s, world, shape, contact.detection.link_rotation)


@wp.func
def move_candidate_along_flight(
    tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, t: scalar, pair: int
):
    """Do as `move_along_flight` for what the separation of one candidate depends on."""
    if pair < s.model.pairs.count:
        contact.detection.pose_version[world] = contact.detection.pose_version[world] + 1
        move_shape_along_flight(tree, work, contact, s, world, row, t, s.model.pairs.first[pair])
        move_shape_along_flight(tree, work, contact, s, world, row, t, s.model.pairs.second[pair])
    else:
        move_along_flight(tree, work, contact, s, world, row, t)
