"""The law of a particle, stepped by the classical Runge–Kutta method, and the adjoint of a step.

One thread a world; x is (q, v), two coordinates of each; numbers are those of `properties.LAW`. The reverse of a step
recomputes its four stages. With x' = x + h/6 (k₁ + 2 k₂ + 2 k₃ + k₄) and x_i = x + c_i h k_{i−1}, the cotangent of k_i
is its share of x̄' plus c_{i+1} h x̄_{i+1}, and x̄_i = Jᵀ(x_i) k̄_i, from i = 4 down.
"""

import warp as wp

from physvision.kernels.precision import start_warp

start_warp()
wp.set_module_options({"enable_backward": False})

Pair = wp.vec2d
Both = wp.vec4d
Reals = wp.array(dtype=wp.float64)
Reals2d = wp.array2d(dtype=wp.float64)
Reals3d = wp.array3d(dtype=wp.float64)
States = wp.array2d(dtype=Both)
_STILL = wp.constant(wp.float64(1e-12))  # so that the speed has a derivative at rest


@wp.func
def _speed(v: Pair):
    return wp.sqrt(wp.dot(v, v) + _STILL)


@wp.func
def _rate(x: Both, p: Reals, circle: int):
    v = Pair(x[2], x[3])
    away = Pair(x[0] - p[2], x[1] - p[3])
    if circle == 1:
        away = Pair(wp.sin(away[0]), wp.float64(0.0))
    a = Pair(p[0], p[1]) - p[4] * away - (p[5] + p[6] * _speed(v)) * v
    return Both(v[0], v[1], a[0], a[1])


@wp.func
def _pull(x: Both, p: Reals, circle: int, bar: Both, p_bar: Reals):
    """The transposed derivative of the rate by x times `bar`; that by the numbers is added to `p_bar`."""
    v = Pair(x[2], x[3])
    b = Pair(bar[2], bar[3])
    away = Pair(x[0] - p[2], x[1] - p[3])
    steep = Pair(wp.float64(1.0), wp.float64(1.0))
    if circle == 1:
        steep = Pair(wp.cos(away[0]), wp.float64(0.0))
        away = Pair(wp.sin(away[0]), wp.float64(0.0))
    speed = _speed(v)
    along = wp.dot(v, b)
    back = p[4] * wp.cw_mul(steep, b)
    p_bar[0] += b[0]
    p_bar[1] += b[1]
    p_bar[2] += back[0]
    p_bar[3] += back[1]
    p_bar[4] -= wp.dot(away, b)
    p_bar[5] -= along
    p_bar[6] -= speed * along
    u = Pair(bar[0], bar[1]) - (p[5] + p[6] * speed) * b - (p[6] * along / speed) * v
    return Both(-back[0], -back[1], u[0], u[1])


@wp.func
def _step(x: Both, p: Reals, circle: int, h: wp.float64):
    half = wp.float64(0.5) * h
    k1 = _rate(x, p, circle)
    k2 = _rate(x + half * k1, p, circle)
    k3 = _rate(x + half * k2, p, circle)
    k4 = _rate(x + h * k3, p, circle)
    return x + (h / wp.float64(6.0)) * (k1 + wp.float64(2.0) * (k2 + k3) + k4)


@wp.func
def _step_back(x: Both, p: Reals, circle: int, h: wp.float64, bar: Both, p_bar: Reals):
    half = wp.float64(0.5) * h
    sixth = (h / wp.float64(6.0)) * bar
    third = wp.float64(2.0) * sixth
    x2 = x + half * _rate(x, p, circle)
    x3 = x + half * _rate(x2, p, circle)
    x4 = x + h * _rate(x3, p, circle)
    b4 = _pull(x4, p, circle, sixth, p_bar)
    b3 = _pull(x3, p, circle, third + h * b4, p_bar)
    b2 = _pull(x2, p, circle, third + half * b3, p_bar)
    b1 = _pull(x, p, circle, sixth + half * b2, p_bar)
    return bar + b1 + b2 + b3 + b4


@wp.kernel
def forward(
    first: int,
    numbers: Reals2d,
    controls: Reals3d,
    circle: int,
    h: wp.float64,
    substeps: int,
    states: States,
    bad: wp.array(dtype=wp.int32),
):
    """Fill in the states after the first; `controls` is an acceleration held over each step."""
    world = first + wp.tid()
    p = wp.zeros(shape=7, dtype=wp.float64)
    for k in range(7):
        p[k] = numbers[world, k]
    x = states[world, 0]
    bad[world] = -1
    for step in range(states.shape[1] - 1):
        p[0] = numbers[world, 0] + controls[world, step, 0]
        p[1] = numbers[world, 1] + controls[world, step, 1]
        for _ in range(substeps):
            x = _step(x, p, circle, h)
        states[world, step + 1] = x
        if bad[world] < 0 and not wp.isfinite(x):
            bad[world] = step + 1


@wp.kernel
def backward(
    first: int,
    numbers: Reals2d,
    controls: Reals3d,
    circle: int,
    h: wp.float64,
    substeps: int,
    states: States,
    states_bar: States,
    start_bar: wp.array(dtype=Both),
    numbers_bar: Reals2d,
    control_bar: Reals3d,
):
    """Walk back through time; every step is computed again from the state before it."""
    world = first + wp.tid()
    p = wp.zeros(shape=7, dtype=wp.float64)
    p_bar = wp.zeros(shape=7, dtype=wp.float64)
    for k in range(7):
        p[k] = numbers[world, k]
    last = states.shape[1] - 1
    bar = states_bar[world, last]
    for back in range(last):
        step = last - 1 - back
        p[0] = numbers[world, 0] + controls[world, step, 0]
        p[1] = numbers[world, 1] + controls[world, step, 1]
        before = Pair(p_bar[0], p_bar[1])
        for inner in range(substeps):
            x = states[world, step]
            for _ in range(substeps - 1 - inner):
                x = _step(x, p, circle, h)
            bar = _step_back(x, p, circle, h, bar, p_bar)
        control_bar[world, step, 0] = p_bar[0] - before[0]
        control_bar[world, step, 1] = p_bar[1] - before[1]
        bar = bar + states_bar[world, step]
    start_bar[world] = bar
    for k in range(7):
        numbers_bar[world, k] = p_bar[k]
