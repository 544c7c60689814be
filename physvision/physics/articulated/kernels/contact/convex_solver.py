"""The accelerations of least cost under compliant contacts, by Newton's method; what they answer forces with.

With M⁻¹ = Wᵀ D⁻¹ W of `delassus`, let a = a₀ + Wᵀ D⁻½ y and H = D⁻½ W Jᵀ, so that a contact lags by s = s₀ − Hᵀ y and
the cost is

    ½ |y|² + Σ ½ D max(0, e · s)²,    its gradient y − H F,    its second derivative Q = 1 + H K Hᵀ.

It is a parabola wherever the same edges push: a whole step of Newton's method after which they still do ends at the
solution, and any other is shortened where it leads uphill. Q is positive definite, and its factor has the rows of one
tree beside those of others. The adjoint of a force f that acts beside is (M + Jᵀ K J)⁻¹ f, which is the same solve.
"""

import warp as wp

from physvision.physics.articulated.kernels.precision import DOUBLE, scalar, vec3
from physvision.physics.articulated.kernels.structs import ContactMemory, Tree, Workspace

from .convex_contact import pushing, stiffness_of, times_stiffness

STEPS = wp.constant(100)
HALVINGS = wp.constant(30)
LEVEL = wp.constant(scalar(0.1))  # of the slope at its start, at which a search along a line is done
ROUNDING = wp.constant(scalar(1.0e-14 if DOUBLE else 1.0e-6))


@wp.func
def scale_halves(tree: Tree, work: Workspace, memory: ContactMemory, world: int, c: int):
    """Half = D⁻½ W Jᵀ of contact c, from W Jᵀ."""
    for k in range(memory.path_length[world, c]):
        i = memory.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            memory.half[world, c, d] = wp.sqrt(work.pivot[world, d]) * memory.half[world, c, d]


@wp.func
def changed_lag(tree: Tree, memory: ContactMemory, world: int, c: int, x: wp.array2d(dtype=scalar)):
    """Hᵀ x of contact c."""
    total = vec3(scalar(0.0), scalar(0.0), scalar(0.0))
    for k in range(memory.path_length[world, c]):
        i = memory.path[world, c, k]
        for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
            total = total + x[world, d] * memory.half[world, c, d]
    return total


@wp.func
def assemble(tree: Tree, memory: ContactMemory, world: int, count: int):
    """`downhill` = H F − y, and the lower part of Q, with where its rows begin; notes which edges push."""
    for d in range(tree.velocities):
        memory.downhill[world, d] = -memory.answer[world, d]
        memory.row_start[world, d] = d
        memory.cost[world, d, d] = scalar(1.0)
    for c in range(count):
        pushes = pushing(memory.friction[world, c], memory.lag[world, c])
        memory.mode[world, c] = pushes
        if pushes != 0:
            length = memory.path_length[world, c]
            root = tree.first_velocity[memory.path[world, c, length - 1]]
            for k in range(length):
                i = memory.path[world, c, k]
                for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                    # What is added to a row that began later is zero so far.
                    for e in range(root, memory.row_start[world, d]):
                        memory.cost[world, d, e] = scalar(0.0)
                    memory.row_start[world, d] = wp.min(memory.row_start[world, d], root)
    for c in range(count):
        pushes = memory.mode[world, c]
        if pushes != 0:
            hard = memory.hardness[world, c]
            friction = memory.friction[world, c]
            force = times_stiffness(hard, friction, pushes, memory.lag[world, c])
            stiff = stiffness_of(hard, friction, pushes)
            length = memory.path_length[world, c]
            for k in range(length):
                i = memory.path[world, c, k]
                for d in range(tree.first_velocity[i], tree.first_velocity[i + 1]):
                    half = memory.half[world, c, d]
                    memory.downhill[world, d] = memory.downhill[world, d] + wp.dot(half, force)
                    stiffened = stiff * half
                    for m in range(k, length):
                        j = memory.path[world, c, m]
                        end = wp.min(tree.first_velocity[j + 1], d + 1)
                        for e in range(tree.first_velocity[j], end):
                            more = wp.dot(stiffened, memory.half[world, c, e])
                            memory.cost[world, d, e] = memory.cost[world, d, e] + more


@wp.func
def factor_cost(tree: Tree, memory: ContactMemory, world: int):
    """Q = L Lᵀ in place, by rows, each from where it begins on; 1/L_ii on the diagonal."""
    for i in range(tree.velocities):
        start = memory.row_start[world, i]
        left = memory.cost[world, i, i]
        for j in range(start, i):
            found = memory.cost[world, i, j]
            for k in range(wp.max(start, memory.row_start[world, j]), j):
                found -= memory.cost[world, i, k] * memory.cost[world, j, k]
            found *= memory.cost[world, j, j]
            memory.cost[world, i, j] = found
            left -= found * found
        memory.cost[world, i, i] = scalar(1.0) / wp.sqrt(left)


@wp.func
def solve_cost(tree: Tree, memory: ContactMemory, world: int, x: wp.array2d(dtype=scalar)):
    """X = Q⁻¹ x."""
    for i in range(tree.velocities):
        found = x[world, i]
        for k in range(memory.row_start[world, i], i):
            found -= memory.cost[world, i, k] * x[world, k]
        x[world, i] = found * memory.cost[world, i, i]
    for back in range(tree.velocities):
        i = tree.velocities - 1 - back
        found = x[world, i] * memory.cost[world, i, i]
        x[world, i] = found
        for k in range(memory.row_start[world, i], i):
            x[world, k] = x[world, k] - memory.cost[world, i, k] * found


@wp.func
def length_of_step(tree: Tree, memory: ContactMemory, world: int, count: int):
    """How far to go along `downhill`: to where the cost falls no more, or the whole way where it falls up to there."""
    square = scalar(0.0)
    along = scalar(0.0)
    for d in range(tree.velocities):
        square += memory.downhill[world, d] * memory.downhill[world, d]
        along += memory.downhill[world, d] * memory.answer[world, d]
    low = scalar(0.0)
    high = scalar(1.0)
    share = scalar(1.0)
    steepest = scalar(0.0)
    looking = bool(True)
    tries = wp.int32(0)
    while looking:
        slope = along + share * square
        curve = square
        for c in range(count):
            friction = memory.friction[world, c]
            change = memory.vector[world, c]
            lag = memory.lag[world, c] - share * change
            pushes = pushing(friction, lag)
            hard = memory.hardness[world, c]
            slope -= wp.dot(times_stiffness(hard, friction, pushes, lag), change)
            curve += wp.dot(times_stiffness(hard, friction, pushes, change), change)
        steepest = wp.max(steepest, wp.abs(slope))
        if (tries == 0 and slope <= scalar(0.0)) or wp.abs(slope) <= LEVEL * steepest * share or tries == HALVINGS:
            looking = bool(False)
        else:
            if slope > scalar(0.0):
                high = share
            else:
                low = share
            next_share = share - slope / curve
            # Where the parabola at hand leads out of what is known to hold the least, its middle is next.
            if not (next_share > low and next_share < high):
                next_share = scalar(0.5) * (low + high)
            share = next_share
            tries += 1
    return share


@wp.func
def find_least_cost(tree: Tree, memory: ContactMemory, world: int, count: int):
    """`answer` = y, the lags in `lag` and the factor of Q there; how much of it is left to fall, as a share of y.

    `lag` holds those of y = 0.
    """
    for d in range(tree.velocities):
        memory.answer[world, d] = scalar(0.0)
    residual = scalar(1.0)
    looking = bool(True)
    step = wp.int32(0)
    while looking:
        assemble(tree, memory, world, count)
        factor_cost(tree, memory, world)
        largest = scalar(0.0)
        uphill = scalar(0.0)
        for d in range(tree.velocities):
            uphill = wp.max(uphill, wp.abs(memory.downhill[world, d]))
        solve_cost(tree, memory, world, memory.downhill)
        for c in range(count):
            memory.vector[world, c] = changed_lag(tree, memory, world, c, memory.downhill)
        stays = bool(True)
        for c in range(count):
            lag = memory.lag[world, c] - memory.vector[world, c]
            if pushing(memory.friction[world, c], lag) != memory.mode[world, c]:
                stays = bool(False)
        share = scalar(1.0)
        if not stays:
            share = length_of_step(tree, memory, world, count)
        moved = scalar(0.0)
        for d in range(tree.velocities):
            change = share * memory.downhill[world, d]
            memory.answer[world, d] = memory.answer[world, d] + change
            moved = wp.max(moved, wp.abs(change))
            largest = wp.max(largest, wp.abs(memory.answer[world, d]))
        for c in range(count):
            memory.lag[world, c] = memory.lag[world, c] - share * memory.vector[world, c]
        step += 1
        if stays:
            residual = scalar(0.0)
            looking = bool(False)
        elif moved <= ROUNDING * largest or step == STEPS:
            residual = uphill / wp.max(largest, uphill)
            looking = bool(False)
    return residual


@wp.func
def answered(tree: Tree, work: Workspace, memory: ContactMemory, world: int):
    """Rest = D½ y, from which `solve_outward` makes M⁻¹ Jᵀ F."""
    for d in range(tree.velocities):
        work.rest[world, d] = memory.answer[world, d] / wp.sqrt(work.pivot[world, d])


@wp.func
def answer_backward(tree: Tree, work: Workspace, memory: ContactMemory, world: int):
    """Rest, which is W f, becomes D½ Q⁻¹ D⁻½ W f: of (M + Jᵀ K J)⁻¹ f what `solve_outward` needs."""
    for d in range(tree.velocities):
        memory.downhill[world, d] = wp.sqrt(work.pivot[world, d]) * work.rest[world, d]
    solve_cost(tree, memory, world, memory.downhill)
    for d in range(tree.velocities):
        work.rest[world, d] = memory.downhill[world, d] / wp.sqrt(work.pivot[world, d])
