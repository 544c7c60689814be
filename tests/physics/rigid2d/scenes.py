"""Scenes that several tests share."""

import torch

from physvision.physics import rigid2d

THREE = ([(100, 100), (250, 120), (200, 300)], [(150, 80), (-120, 100), (60, -170)])
SIX = (THREE[0] + [(60, 300), (330, 330), (330, 60)], THREE[1] + [(90, -40), (-80, -130), (-30, 160)])


def walls(restitution=1.0, friction=0.0):
    """A box with an inside of 400 × 400, its walls 20 thick."""
    kinds = {"static": True, "restitution": restitution, "friction": friction}
    return [
        rigid2d.Rectangle((440, 20), (200, -10), name="top", **kinds),
        rigid2d.Rectangle((440, 20), (200, 410), name="bottom", **kinds),
        rigid2d.Rectangle((20, 440), (-10, 200), name="left", **kinds),
        rigid2d.Rectangle((20, 440), (410, 200), name="right", **kinds),
    ]


def ball(position, velocity=(0, 0), radius=20, **body):
    """An elastic, frictionless ball."""
    return rigid2d.Circle(radius, position, velocity=velocity, **{"restitution": 1.0, "friction": 0.0, **body})


def billiard(positions, velocities, dt=1 / 30):
    """Elastic balls in the box, without gravity."""
    balls = [ball(p, v) for p, v in zip(positions, velocities, strict=True)]
    return rigid2d.World(walls() + balls, gravity=(0, 0), dt=dt)


def chain(links, mass=7.0, dt=1 / 30):
    """The chain of the published engine, hung up at (300, 30), and the ball that is pushed against its end."""
    parts = [
        rigid2d.Rectangle((20, 60), (300, 50 + 50 * i), mass=mass / links, name=f"link {i}", friction=0.0)
        for i in range(links)
    ]
    joints = [rigid2d.Revolute("link 0", None, (300, 30))]
    joints += [rigid2d.Revolute(f"link {i}", f"link {i - 1}", (300, 25 + 50 * i)) for i in range(1, links)]
    striker = ball((50, 50 * links), name="ball")
    return rigid2d.World([*parts, striker], joints, gravity=(0, 0), dt=dt)


def start(world, batch=1):
    """The initial state in float64."""
    return world.initial_state(batch, torch.float64)
