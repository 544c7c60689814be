"""Coulomb friction between a body and the plane that it slides on: two velocity kicks around each step.

A body that slides on the plane itself, such as a ball or puck on a table, decelerates at a constant rate a against its
velocity until it rests. The deceleration is split off the step, symmetrically: before it, the speed v becomes the mean
speed of the step, afterwards the final one,

    start    g(v) = v − a h/2     for v ≥ a h,     v²/(2 a h) below, where the body stops within the step;
    end      k(w) = w − a h/2     for w ≥ a h/2,   0 below.

So position and velocity are exact in free flight, including the step in which the body stops, and of second order in h
where impacts happen within a step. Both maps keep the direction, so their adjoints scale the radial component of a
cotangent by g′ or k′ and the transverse one by g/v or k/w. No other force should hold the body: one below the friction
makes it creep.
"""

import warp as wp

from .data import Data, Model
from .precision import Array1d, scalar


@wp.func
def body_deceleration(m: Model, d: Data, body: int):
    """Return the deceleration of a body, zero for none; −1 for bodies that keep their velocity."""
    rate = scalar(-1.0)
    if m.state_index[body] >= 0 and m.is_kinematic[body] == 0:
        rate = d.theta[m.sliding_deceleration + m.state_index[body]]
    return rate


@wp.func
def scale_adjoint(
    m: Model, d: Data, body: int, vx: scalar, vy: scalar, radial: scalar, across: scalar, by_rate: scalar
):
    """Carry the velocity cotangent back through a map along the unit vector (vx, vy), and add the deceleration's."""
    i = 3 * body
    along = vx * d.seed_v[i] + vy * d.seed_v[i + 1]
    d.seed_v[i] = across * d.seed_v[i] + (radial - across) * along * vx
    d.seed_v[i + 1] = across * d.seed_v[i + 1] + (radial - across) * along * vy
    entry = m.sliding_deceleration + m.state_index[body]
    d.theta_bar[entry] = d.theta_bar[entry] + by_rate * along


@wp.func
def start_sliding(m: Model, d: Data):
    """Replace the velocities at the start of a step by their means over it."""
    for body in range(m.bodies):
        rate = body_deceleration(m, d, body)
        i = 3 * body
        if rate > scalar(0.0):
            speed = wp.sqrt(d.v0[i] * d.v0[i] + d.v0[i + 1] * d.v0[i + 1])
            loss = rate * m.dt
            factor = wp.where(speed >= loss, scalar(1.0) - scalar(0.5) * loss / speed, scalar(0.5) * speed / loss)
            d.v0[i] = factor * d.v0[i]
            d.v0[i + 1] = factor * d.v0[i + 1]


@wp.func
def end_sliding(m: Model, d: Data):
    """Replace mean velocities over a step by those at its end."""
    for body in range(m.bodies):
        rate = body_deceleration(m, d, body)
        i = 3 * body
        if rate > scalar(0.0):
            speed = wp.sqrt(d.v0[i] * d.v0[i] + d.v0[i + 1] * d.v0[i + 1])
            loss = scalar(0.5) * rate * m.dt
            factor = wp.where(speed > loss, scalar(1.0) - loss / speed, scalar(0.0))
            d.v0[i] = factor * d.v0[i]
            d.v0[i + 1] = factor * d.v0[i + 1]


@wp.func
def end_sliding_adjoint(m: Model, d: Data, v: Array1d):
    """Carry cotangents back through `end_sliding`, given the velocities after it."""
    for body in range(m.bodies):
        rate = body_deceleration(m, d, body)
        if rate >= scalar(0.0):
            slot = 3 * m.state_index[body]
            speed = wp.sqrt(v[slot] * v[slot] + v[slot + 1] * v[slot + 1])
            if speed > scalar(0.0):
                loss = scalar(0.5) * rate * m.dt
                across = speed / (speed + loss)
                ux = v[slot] / speed
                uy = v[slot + 1] / speed
                scale_adjoint(m, d, body, ux, uy, scalar(1.0), across, scalar(-0.5) * m.dt)
            elif rate > scalar(0.0):
                d.seed_v[3 * body] = scalar(0.0)
                d.seed_v[3 * body + 1] = scalar(0.0)


@wp.func
def start_sliding_adjoint(m: Model, d: Data, v: Array1d):
    """Carry cotangents back through `start_sliding`, given the velocities before it."""
    for body in range(m.bodies):
        rate = body_deceleration(m, d, body)
        if rate >= scalar(0.0):
            slot = 3 * m.state_index[body]
            speed = wp.sqrt(v[slot] * v[slot] + v[slot + 1] * v[slot + 1])
            loss = rate * m.dt
            if speed > scalar(0.0):
                radial = scalar(1.0)
                across = scalar(1.0) - scalar(0.5) * loss / speed
                by_rate = scalar(-0.5) * m.dt
                if speed < loss:
                    radial = speed / loss
                    across = scalar(0.5) * speed / loss
                    by_rate = scalar(-0.5) * speed * speed / (rate * loss)
                scale_adjoint(m, d, body, v[slot] / speed, v[slot + 1] / speed, radial, across, by_rate)
            elif rate > scalar(0.0):
                d.seed_v[3 * body] = scalar(0.0)
                d.seed_v[3 * body + 1] = scalar(0.0)
