"""Worlds of free bodies that touch, and their states, for the tests of contact."""

import torch
from physics.articulated.trees import contact_tree

from physvision import State
from physvision.core import Placed
from physvision.physics.articulated import Body, Joint

DOUBLE = torch.float64
STILL = (0.0, 0.0, 0.0)


def free(name, shape, mass=1.0, inertia=(0.01, 0.012, 0.015)):
    return Body(name, None, [Joint("free")], mass=mass, inertia=inertia, shapes=[Placed(shape)])


def world(bodies, **options):
    return contact_tree(bodies, **({"dt": 0.01, "contact": "event", "gravity": (0, 0, 0)} | options))


def state(*bodies):
    """Of free bodies: (position, velocity, turning) each, unturned; or with a quaternion in the fourth place."""
    q = [[*body[0], *(body[3] if len(body) > 3 else (1.0, 0.0, 0.0, 0.0))] for body in bodies]
    v = [[*body[1], *body[2]] for body in bodies]
    return State(torch.tensor(q, dtype=DOUBLE).reshape(1, -1), torch.tensor(v, dtype=DOUBLE).reshape(1, -1))
