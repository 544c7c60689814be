"""When a flight ends: the first gap to close on its way, at the time that a bracketed root gives to rounding."""

import warp as wp

from physvision.physics.articulated.kernels.collision.broad_phase import find_reach, reach_of
from physvision.physics.articulated.kernels.collision.joint_limits import stop_reach
from physvision.physics.articulated.kernels.collision.narrow_phase import gap_of, place_in_world
from physvision.physics.articulated.kernels.dynamics.joints import advance
from physvision.physics.articulated.kernels.precision import DOUBLE, scalar
from physvision.physics.articulated.kernels.spatial.root_finding import bracket, guess, narrowed
from physvision.physics.articulated.kernels.structs import ContactMemory, Contacts, Tree, Workspace

ROUNDING = wp.constant(scalar(4.0e-16 if DOUBLE else 2.0e-7))
GRAZING = wp.constant(scalar(1.0e-6 if DOUBLE else 1.0e-4))  # m; an event that so little makes or undoes has no slope
LATEST = wp.constant(scalar(2.0 * 1.01))  # a dip of twice the bend is at the end; the parabola may tell it later
ITERATIONS = wp.constant(100)
BOUNDLESS = wp.constant(scalar(1.0e30))  # m; of an overlap
TOUCHING = wp.constant(scalar(1.0e-9 if DOUBLE else 1.0e-5))  # m; a gap below it is closed


@wp.func
def near_enough(contacts: Contacts, memory: ContactMemory, world: int):
    """The gap up to which what is slow touches: what rolls or rocks does not leave and strike."""
    return wp.max(TOUCHING, contacts.rest_speed * memory.left[world, 0])


@wp.func
def move_by(tree: Tree, work: Workspace, world: int, row: int, t: scalar):
    """q[row + 1] after a flight of time t."""
    for d in range(tree.velocities):
        work.rate[world, row + 1, d] = work.v[world, row, d] + scalar(0.5) * t * work.a[world, row, d]
    advance(tree, world, work.q, row, row + 1, work.rate, row + 1, t)


@wp.func(inline=True)
def fly(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int, t: scalar):
    """The same, and the links and shapes there."""
    move_by(tree, work, world, row, t)
    place_in_world(tree, contacts, memory, world, work.q, row + 1)


@wp.func(inline=True)
def closing_time(
    tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int, pair: int
):
    """When within the flight the pair's gap closes; -1 if it does not.

    Three gaps tell where to look: at the start, in the middle, at the end. A dip between them is looked for at the
    least of the parabola through them. The parabola tells as well how deep the pair dips, which is noted.
    """
    left = memory.left[world, row]
    start = memory.gap[world, pair]
    middle = memory.middle_gap[world, pair]
    end = memory.end_gap[world, pair]
    bend = scalar(2.0) * (start - scalar(2.0) * middle + end)
    slope = scalar(4.0) * middle - scalar(3.0) * start - end
    memory.depth[world, pair] = GRAZING
    if start <= scalar(0.0):
        return scalar(0.0)  # it has arrived; rounding alone can have brought it farther
    between = bracket(scalar(0.0), scalar(0.5) * left, start, middle)
    unknown = wp.int32(0)  # whether the gap at the bracket's high end has yet to be looked at
    if middle >= scalar(0.0):
        between = bracket(scalar(0.5) * left, left, middle, end)
        if end >= scalar(0.0) and bend > scalar(0.0) and slope < scalar(0.0) and slope > -LATEST * bend:
            dip = start - slope * slope / (scalar(4.0) * bend)
            if dip < wp.max(scalar(0.1) * wp.min(start, end), GRAZING):
                unknown = 1
                between = bracket(scalar(0.0), scalar(-0.5) * slope / bend * left, start, scalar(-1.0))
    closes = between.value_high < scalar(0.0)
    iteration = wp.int32(0)
    while iteration < ITERATIONS and between.high - between.low > ROUNDING * left and between.value_high < scalar(0.0):
        t = between.high
        if unknown == 0:
            t = guess(between)
        fly(tree, work, contacts, memory, world, row, t)
        value = gap_of(contacts, memory, world, pair)
        if unknown != 0:
            memory.depth[world, pair] = wp.abs(value)
            between.value_high = value
            closes = value < scalar(0.0)
            unknown = 0
        else:
            between = narrowed(between, t, value, value > scalar(0.0))
        iteration += 1
    found = scalar(-1.0)
    if closes:
        found = between.high
        if bend > scalar(0.0):
            closing = slope + scalar(2.0) * bend * found / left
            memory.depth[world, pair] = closing * closing / (scalar(4.0) * bend)
    return found


@wp.func
def all_listed(contacts: Contacts, memory: ContactMemory, world: int, group: int):
    """Whether all pairs of a group that was looked at take part in the flight."""
    found = bool(True)
    for pair in range(contacts.group_start[group], contacts.group_start[group + 1]):
        if memory.listed[world, pair] == 0:
            found = bool(False)
    return found


@wp.func(inline=True)
def watch(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int):
    """List the candidates that may end the flight, those within reach that do not take part in it: their number.

    None does where any overlap is allowed: what is pushed apart there may run into others, which the next push frees.
    """
    left = memory.left[world, row]
    enough = near_enough(contacts, memory, world)
    watched = wp.int32(0)
    if contacts.overlap < BOUNDLESS and (memory.count[world, row] < contacts.candidates or contacts.beside != 0):
        known = wp.int32(0)  # whether it was found how far links get
        for group in range(contacts.groups):
            start = contacts.group_start[group]
            reach = scalar(-1.0e30)
            if memory.group_gap[world, group] > enough or not all_listed(contacts, memory, world, group):
                if known == 0:
                    find_reach(tree, work, contacts, memory, world, row, left)
                    known = 1
                reach = reach_of(tree, contacts, memory, world, start)
            if memory.group_gap[world, group] <= reach:
                for pair in range(start, contacts.group_start[group + 1]):
                    if memory.group_gap[world, group] > enough:
                        # Shapes are still where the flight begins.
                        memory.listed[world, pair] = 0
                        memory.gap[world, pair] = gap_of(contacts, memory, world, pair)
                    if memory.listed[world, pair] == 0 and memory.gap[world, pair] <= reach:
                        memory.watched[world, watched] = pair
                        watched += 1
        for stop in range(contacts.pairs, contacts.candidates):
            if memory.listed[world, stop] == 0:
                if memory.gap[world, stop] <= stop_reach(tree, work, contacts, world, row, stop, left):
                    memory.watched[world, watched] = stop
                    watched += 1
    return watched


@wp.func(inline=True)
def find_event(tree: Tree, work: Workspace, contacts: Contacts, memory: ContactMemory, world: int, row: int):
    """How long the flight is, and the pair that ends it: none that takes part in it, or is out of reach."""
    left = memory.left[world, row]
    duration = left
    struck = wp.int32(-1)
    nearly = wp.int32(0)
    watched = watch(tree, work, contacts, memory, world, row)
    memory.looked_ahead[world, row] = watched
    if watched > 0:
        half = wp.int32(1)
        while half <= 2:
            fly(tree, work, contacts, memory, world, row, scalar(0.5) * scalar(half) * left)
            for k in range(watched):
                pair = memory.watched[world, k]
                memory.middle_gap[world, pair] = memory.end_gap[world, pair]
                memory.end_gap[world, pair] = gap_of(contacts, memory, world, pair)
            half += 1
        for k in range(watched):
            pair = memory.watched[world, k]
            found = closing_time(tree, work, contacts, memory, world, row, pair)
            if found >= scalar(0.0) and found < duration:
                duration = found
                struck = pair
            elif found < scalar(0.0) and memory.depth[world, pair] < GRAZING:
                nearly = 1
    if struck >= 0:
        # What nearly closes after the event is looked at again in the next flight.
        nearly = wp.int32(memory.depth[world, struck] < GRAZING)
    if nearly != 0:
        memory.grazes[world] = 1
    memory.duration[world, row] = duration
    memory.struck[world, row] = struck
