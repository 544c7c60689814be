"""Time of impact: the first separation that reaches zero in a flight, by a bracketed root to rounding."""

import warp as wp

from ..collision.broad_phase import list_near_groups, max_approach, next_near_group, update_link_displacements
from ..collision.joint_limits import max_limit_approach
from ..collision.narrow_phase import candidate_separation
from ..precision import convex_pairs, scalar
from ..spatial.root_finding import make_bracket, narrow_bracket, secant_estimate
from ..structs import Contact, System, Tree, Workspace
from .arriving_features import find_arrival, is_convex_group, store_start_poses, watch_features
from .flight import move_along_flight, move_candidate_along_flight
from .settings import SOLVER

TIME_TOLERANCE = wp.constant(scalar(SOLVER.time_tolerance))
GRAZING_DISTANCE = wp.constant(scalar(SOLVER.grazing_distance))
MAX_DIP_RATIO = wp.constant(scalar(SOLVER.max_dip_ratio))
MAX_ITERATIONS = wp.constant(SOLVER.max_root_iterations)
NEAR_FLIGHTS = wp.constant(scalar(SOLVER.near_flights))
UNLIMITED_PENETRATION = wp.constant(scalar(1.0e30))  # m; initial penetrations are not limited
CONTACT_TOLERANCE = wp.constant(scalar(SOLVER.contact_tolerance))


@wp.func
def contact_threshold(contact: Contact, s: System, world: int):
    """Return the separation below which slow candidates count as contacts, so that rolling makes no impacts."""
    return wp.max(CONTACT_TOLERANCE, s.model.restitution_threshold * contact.events.remaining_time[world, 0])


@wp.func(inline=True)
def time_of_impact(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int, pair: int):
    """Return the time in the flight at which the pair's separation reaches zero; -1 if it does not.

    Three separations, at the start, the middle and the end, give the parabola to search: a dip between them is examined
    at its minimum. The depth of the dip is stored.
    """
    remaining = contact.events.remaining_time[world, row]
    start = contact.detection.separation[world, pair]
    mid = contact.detection.mid_separation[world, pair]
    end = contact.detection.end_separation[world, pair]
    curvature = scalar(2.0) * (start - scalar(2.0) * mid + end)
    slope = scalar(4.0) * mid - scalar(3.0) * start - end
    contact.detection.dip_depth[world, pair] = GRAZING_DISTANCE
    if start <= scalar(0.0):
        return scalar(0.0)  # it touches already; only rounding makes it negative
    interval = make_bracket(scalar(0.0), scalar(0.5) * remaining, start, mid)
    is_unverified = wp.int32(0)  # whether the separation at the high end is not computed yet
    if mid >= scalar(0.0):
        interval = make_bracket(scalar(0.5) * remaining, remaining, mid, end)
        if (
            end >= scalar(0.0)
            and curvature > scalar(0.0)
            and slope < scalar(0.0)
            and slope > -MAX_DIP_RATIO * curvature
        ):
            dip = start - slope * slope / (scalar(4.0) * curvature)
            if dip < wp.max(scalar(0.1) * wp.min(start, end), GRAZING_DISTANCE):
                is_unverified = 1
                interval = make_bracket(scalar(0.0), scalar(-0.5) * slope / curvature * remaining, start, scalar(-1.0))
    has_root = interval.value_high < scalar(0.0)
    iteration = wp.int32(0)
    while (
        iteration < MAX_ITERATIONS
        and interval.high - interval.low > TIME_TOLERANCE * remaining
        and interval.value_high < scalar(0.0)
    ):
        t = interval.high
        if is_unverified == 0:
            t = secant_estimate(interval)
        move_candidate_along_flight(tree, work, contact, s, world, row, t, pair)
        value = candidate_separation(contact, s, world, pair)
        if is_unverified != 0:
            contact.detection.dip_depth[world, pair] = wp.abs(value)
            interval.value_high = value
            has_root = value < scalar(0.0)
            is_unverified = 0
        else:
            interval = narrow_bracket(interval, t, value, value > scalar(0.0))
        iteration += 1
    result = scalar(-1.0)
    if has_root:
        result = interval.high
        if curvature > scalar(0.0):
            approach_speed = slope + scalar(2.0) * curvature * result / remaining
            contact.detection.dip_depth[world, pair] = approach_speed * approach_speed / (scalar(4.0) * curvature)
    return result


@wp.func
def is_group_active(contact: Contact, s: System, world: int, group: int):
    """Return True if all pairs of a group take part in the flight."""
    result = bool(True)
    for pair in range(s.model.groups.start[group], s.model.groups.start[group + 1]):
        if contact.detection.is_active[world, pair] == 0:
            result = bool(False)
    return result


@wp.func(inline=True)
def list_group(
    tree: Tree, contact: Contact, s: System, world: int, group: int, threshold: scalar, count: int, watched: int
):
    """List the candidates of a group that may end the flight behind the first `count`, and watch it if they touch.

    Returns the numbers of both lists.
    """
    start = s.model.groups.start[group]
    approach = scalar(-1.0e30)
    is_far = contact.detection.group_separation[world, group] > threshold
    has_manifold = bool(False)
    if wp.static(convex_pairs):
        has_manifold = is_convex_group(s, start)
    # Features that overlap in the model's reference pose are held, whatever comes near beside them.
    is_watched = not is_far and has_manifold and s.model.pairs.is_held[start] == 0
    is_watched = is_watched and contact.detection.is_active[world, start] != 0
    if is_far or is_watched or not is_group_active(contact, s, world, group):
        approach = max_approach(tree, contact, s, world, start)
    if wp.static(convex_pairs):
        if is_watched and approach > CONTACT_TOLERANCE:
            watch_features(contact, s, world, watched, group)
            watched += 1
    if contact.detection.group_separation[world, group] <= approach:
        for pair in range(start, s.model.groups.start[group + 1]):
            is_manifold = pair != start and has_manifold
            if is_far:
                # Shapes are still at the start of the flight.
                contact.detection.is_active[world, pair] = 0
                if not is_manifold:
                    contact.detection.separation[world, pair] = candidate_separation(contact, s, world, pair)
            is_touching = not is_far and contact.detection.separation[world, pair] <= CONTACT_TOLERANCE
            if contact.detection.is_active[world, pair] == 0 and (not is_manifold or is_touching):
                if is_manifold:
                    contact.detection.separation[world, pair] = wp.min(
                        contact.detection.separation[world, pair], scalar(0.0)
                    )
                if contact.detection.separation[world, pair] <= approach:
                    contact.detection.monitored[world, count] = pair
                    count += 1
    return count, watched


@wp.func(inline=True)
def list_monitored_candidates(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int):
    """List the candidates that may end the flight, those within reach that do not take part in it.

    Returns their number, that of pairs of convex shapes whose closest points take part, so that other features of
    theirs are watched, and a bound of how far any two shapes approach each other. Of other convex shapes the closest
    points are enough: no row is nearer.

    There are none if any penetration is allowed: shapes that are pushed apart may run into others, which the next push
    separates. Two shapes come no closer than by twice the largest displacement, so that groups out of that reach need
    no look; the list of those within it reaches farther, and holds for some flights.
    """
    remaining = contact.events.remaining_time[world, row]
    threshold = contact_threshold(contact, s, world)
    approach_bound = scalar(0.0)
    count = wp.int32(0)
    watched = wp.int32(0)
    if s.model.max_penetration < UNLIMITED_PENETRATION and (
        contact.events.count[world, row] < s.model.candidates or s.model.noncontact_blocks != 0
    ):
        approach_bound = scalar(2.0) * update_link_displacements(tree, work, contact, s, world, row, remaining)
        max_distance = approach_bound + threshold
        if not (contact.detection.near_slack[world] >= max_distance):
            list_near_groups(contact, s, world, threshold, NEAR_FLIGHTS * max_distance)
        group = next_near_group(contact, s, world, 0)
        while group < s.model.groups.count:
            bound = contact.detection.group_separation[world, group]
            if bound <= threshold or bound <= approach_bound:
                count, watched = list_group(tree, contact, s, world, group, threshold, count, watched)
            group = next_near_group(contact, s, world, group + 1)
        for limit in range(s.model.pairs.count, s.model.candidates):
            if contact.detection.is_active[world, limit] == 0:
                if contact.detection.separation[world, limit] <= max_limit_approach(
                    tree, work, s, world, row, limit, remaining
                ):
                    contact.detection.monitored[world, count] = limit
                    count += 1
    else:
        contact.detection.near_slack[world] = scalar(-1.0)
    return count, watched, approach_bound


@wp.func(inline=True)
def find_event(tree: Tree, work: Workspace, contact: Contact, s: System, world: int, row: int):
    """Compute the duration of the flight and the candidate that ends it, among those that do not take part in it."""
    remaining = contact.events.remaining_time[world, row]
    duration = remaining
    impact_pair = wp.int32(-1)
    is_grazing = wp.int32(0)
    count, watched, approach_bound = list_monitored_candidates(tree, work, contact, s, world, row)
    contact.events.monitored_count[world, row] = count + watched
    contact.events.has_fixed_features[world, row] = 0
    if wp.static(convex_pairs):
        if watched > 0:
            store_start_poses(contact, s, world)
    if count > 0:
        half = wp.int32(1)
        while half <= 2:
            move_along_flight(tree, work, contact, s, world, row, scalar(0.5) * scalar(half) * remaining)
            for k in range(count):
                pair = contact.detection.monitored[world, k]
                contact.detection.mid_separation[world, pair] = contact.detection.end_separation[world, pair]
                contact.detection.end_separation[world, pair] = candidate_separation(contact, s, world, pair)
            half += 1
        for k in range(count):
            pair = contact.detection.monitored[world, k]
            time = time_of_impact(tree, work, contact, s, world, row, pair)
            if time >= scalar(0.0) and time < duration:
                duration = time
                impact_pair = pair
            elif time < scalar(0.0) and contact.detection.dip_depth[world, pair] < GRAZING_DISTANCE:
                is_grazing = 1
    if impact_pair >= 0:
        # Grazing after the event is examined again in the next flight.
        is_grazing = wp.int32(contact.detection.dip_depth[world, impact_pair] < GRAZING_DISTANCE)
    if is_grazing != 0:
        contact.events.is_grazing[world] = 1
    contact.events.duration[world, row] = duration
    contact.events.impact_pair[world, row] = impact_pair
    slack = contact.detection.near_slack[world] - duration / remaining * approach_bound
    contact.detection.near_slack[world] = slack
    if wp.static(convex_pairs):
        if watched > 0:
            find_arrival(tree, work, contact, s, world, row, watched)
