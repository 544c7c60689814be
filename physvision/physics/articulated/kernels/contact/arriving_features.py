"""Impacts of features that arrive while other features of the same two convex shapes touch already.

The separation of such shapes does not reach zero from above: their closest points stay in contact, or part, while
another corner or edge approaches. At the end of the flight the rows that penetrate, with features that did not touch at
its start, are those that have arrived. The deepest one is fixed to the shapes (`fixed_features`), and the flight ends
at the root of its separation; if others penetrate there, at their root, and so on. So the time of impact is the root of
a smooth function, and its derivative that of this function. The middle of the flight is searched once too.
"""

import warp as wp

from ..collision.closest_points import CONVEX
from ..collision.fixed_features import UNKNOWN, FixedFeatures, fix_features, fixed_primitive, start_shape, store_impact
from ..collision.narrow_phase import pair_primitive
from ..collision.support_shapes import convex_shape, hull_table
from ..precision import scalar
from ..spatial.root_finding import make_bracket, narrow_bracket, secant_estimate
from ..structs import Contact, System, Tree, Workspace
from .flight import move_along_flight, move_candidate_along_flight
from .settings import SOLVER

TIME_TOLERANCE = wp.constant(scalar(SOLVER.time_tolerance))
CONTACT_TOLERANCE = wp.constant(scalar(SOLVER.contact_tolerance))
GRAZING_DISTANCE = wp.constant(scalar(SOLVER.grazing_distance))
MAX_ITERATIONS = wp.constant(SOLVER.max_root_iterations)
MAX_ARRIVALS = wp.constant(SOLVER.max_arrivals)


@wp.func
def is_convex_group(s: System, start: int):
    """Return True if the pair `start` is the first of two convex shapes."""
    return s.model.pairs.kind[start] == CONVEX


@wp.func
def watch_features(contact: Contact, s: System, world: int, watched: int, group: int):
    """Watch a group as the one of number `watched`: store the largest separation of its pairs that are active contacts.

    A pair whose features were farther apart at the start of the flight, and which penetrates during it, has arrived.
    """
    level = CONTACT_TOLERANCE * scalar(1.0)
    for pair in range(s.model.groups.start[group], s.model.groups.start[group + 1]):
        if contact.detection.is_active[world, pair] != 0:
            level = wp.max(level, contact.detection.separation[world, pair])
    contact.detection.watched_group[world, watched] = group
    contact.detection.held_separation[world, watched] = level


@wp.func(inline=True)
def store_start_poses(contact: Contact, s: System, world: int):
    """Store the poses of shapes at the start of a flight."""
    for shape in range(s.model.shapes.count):
        contact.detection.start_rotation[world, shape] = contact.detection.shape_rotation[world, shape]
        contact.detection.start_origin[world, shape] = contact.detection.shape_origin[world, shape]


@wp.func(inline=True)
def start_separation(contact: Contact, s: System, world: int, pair: int, features: FixedFeatures):
    """Return the separation of fixed features at the start of the flight; -1 where it is not known."""
    separation = scalar(-1.0)
    primitive = fixed_primitive(
        start_shape(contact, s, world, s.model.pairs.first[pair]),
        start_shape(contact, s, world, s.model.pairs.second[pair]),
        hull_table(s.model),
        features,
    )
    if primitive.form != UNKNOWN:
        separation = primitive.separation - s.model.pairs.margin[pair]
    return separation


@wp.func(inline=True)
def current_primitive(contact: Contact, s: System, world: int, pair: int, features: FixedFeatures):
    """Return the primitive of fixed features at the current poses."""
    primitive = fixed_primitive(
        convex_shape(contact, s, world, s.model.pairs.first[pair]),
        convex_shape(contact, s, world, s.model.pairs.second[pair]),
        hull_table(s.model),
        features,
    )
    primitive.separation = primitive.separation - s.model.pairs.margin[pair]
    return primitive


@wp.func(inline=True)
def deepest_arrival(contact: Contact, s: System, world: int, watched: int):
    """Return the row that penetrates deepest at the current poses with features that have arrived; -1 if none does."""
    arrival = wp.int32(-1)
    lowest = scalar(-1.0) * CONTACT_TOLERANCE
    for k in range(watched):
        group = contact.detection.watched_group[world, k]
        level = contact.detection.held_separation[world, k]
        for pair in range(s.model.groups.start[group], s.model.groups.start[group + 1]):
            primitive = pair_primitive(contact, s, world, pair)
            separation = primitive.separation
            if separation < lowest:
                features = fix_features(
                    convex_shape(contact, s, world, s.model.pairs.first[pair]),
                    convex_shape(contact, s, world, s.model.pairs.second[pair]),
                    primitive,
                )
                initial_separation = start_separation(contact, s, world, pair, features)
                if initial_separation > level or (initial_separation > CONTACT_TOLERANCE and separation < -level):
                    arrival = pair
                    lowest = separation
    return arrival


@wp.func(inline=True)
def find_arrival(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, watched: int):
    """End the flight earlier, at the impact of features of watched groups that arrive before its end.

    Poses are left at the end of the flight, or at any other time of it without an arrival.
    """
    features = FixedFeatures()
    pair = wp.int32(-1)
    is_middle_searched = wp.int32(0)
    time = contact.events.duration[world, row]
    arrivals = wp.int32(0)
    while arrivals < MAX_ARRIVALS:
        move_along_flight(tree, work, contact, s, world, row, time)
        arrival = deepest_arrival(contact, s, world, watched)
        if arrival >= 0:
            pair = arrival
            features = fix_features(
                convex_shape(contact, s, world, s.model.pairs.first[pair]),
                convex_shape(contact, s, world, s.model.pairs.second[pair]),
                pair_primitive(contact, s, world, pair),
            )
            separation = current_primitive(contact, s, world, pair, features).separation
            if is_middle_searched != 0 and arrivals == 0 and separation > -GRAZING_DISTANCE:
                contact.events.is_grazing[world] = 1
            interval = make_bracket(scalar(0.0), time, start_separation(contact, s, world, pair, features), separation)
            iteration = wp.int32(0)
            while (
                iteration < MAX_ITERATIONS
                and interval.high - interval.low > TIME_TOLERANCE * time
                and interval.value_high < scalar(0.0)
            ):
                t = secant_estimate(interval)
                move_candidate_along_flight(tree, work, contact, s, world, row, t, pair)
                value = current_primitive(contact, s, world, pair, features).separation
                interval = narrow_bracket(interval, t, value, value > scalar(0.0))
                iteration += 1
            time = interval.high
            arrivals += 1
        elif is_middle_searched == 0 and pair < 0:
            is_middle_searched = 1
            time = scalar(0.5) * time
        else:
            arrivals = MAX_ARRIVALS
    if pair >= 0:
        move_along_flight(tree, work, contact, s, world, row, time)
        store_impact(contact, world, row, current_primitive(contact, s, world, pair, features))
        contact.events.duration[world, row] = time
        contact.events.impact_pair[world, row] = pair
