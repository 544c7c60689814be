"""Edges and corners of boxes, told by the middle of the edge, or the corner, as a share of the box's sizes."""

import warp as wp

from . import scalar
from .forms import axis_of
from .spatial import mat33, vec3

OUTWARD = wp.constant(scalar(-1.0e-2))  # cosine from which on a normal points out of a box
APART = wp.constant(scalar(1.0))  # m; the gap of edges that do not face each other


@wp.func
def edge_direction(turn: mat33, edge: vec3):
    """The axis along which an edge runs: the one in which its middle is not moved."""
    axis = axis_of(turn, 0)
    if edge[1] == scalar(0.0):
        axis = axis_of(turn, 1)
    if edge[2] == scalar(0.0):
        axis = axis_of(turn, 2)
    return axis


@wp.func
def edge_length(size: vec3, edge: vec3):
    length = size[0]
    if edge[1] == scalar(0.0):
        length = size[1]
    if edge[2] == scalar(0.0):
        length = size[2]
    return length


@wp.func
def leads_out(normal: vec3, turn: mat33, edge: vec3):
    """Whether a normal lies between those of the faces that meet at an edge or corner."""
    least = scalar(1.0)
    for k in range(3):
        if edge[k] != scalar(0.0):
            least = wp.min(least, scalar(2.0) * edge[k] * wp.dot(normal, axis_of(turn, k)))
    return least > OUTWARD
