"""Settings of collision detection, which are compiled into the kernels."""

from dataclasses import dataclass

from ..precision import DOUBLE


@dataclass(frozen=True)
class CollisionSettings:
    """Tolerances, thresholds and iteration limits of collision; the defaults are those of float64.

    Lengths are relative unless a unit is given. Tolerances of solved equations are near the rounding of the precision.

    Attributes:
        min_length: Length below which vectors have no direction. Raising it only guards against division by zero
            earlier. 1.0e-18 in float32.
        parallel_sine_squared: Squared sine of the angle below which two lines count as parallel. Raising it replaces
            crossings by end points.
        min_rim_sine: Sine of the tilt below which a circle has no lowest point. Raising it fixes the contact points of
            nearly level cylinders. 1.0e-4 in float32.
        min_tilt_sine: Sine below which a cylinder stands on its cap, or lies on its side. Raising it makes resting
            cylinders switch later. 1.0e-4 in float32.
        min_cap_cosine: Cosine above which the cap of a cylinder is its closest side; about 45 degrees.
        max_exhaustive_vertices: Number of vertices up to which all are compared instead of climbing along edges; where
            both take the same time.
        surface_tolerance: Relative change at which Newton iterations on smooth surfaces end. Raising it makes closest
            points less accurate. 1.0e-6 in float32.
        max_surface_iterations: Largest number of iterations on smooth surfaces; a safeguard.
        max_secants: Number of secants after which the closest point of a capsule's axis to a cylinder is found by
            halving: where the axis crosses a rim, its slope jumps.
        rim_angles: Number of normals, evenly spaced over half a turn, from which the best is refined where a capsule
            leaves a cylinder over a rim.
        max_root_steps: Largest number of Newton steps for the closest point of an ellipsoid; a safeguard.
        max_witness_height: Share of the size by which a support point may be higher than the witness on a flat side.
            Raising it keeps witnesses. 1.0e-4 in float32.
        min_improvement: Share of the size by which the separation of another choice of features must be larger. Raising
            it prefers faces. 1.0e-4 in float32.
        max_search_separation: Share of the size beyond which convex shapes are compared by bounding spheres. Raising it
            searches more pairs.
        length_tolerance: Share of the size by which a difference may exceed the shortest. Raising it ends the search
            earlier. 1.0e-6 in float32.
        hold_distance: Share of the smaller size by which penetrating shapes are held apart. Raising it makes their
            normal less accurate.
        direction_tolerance: Change of the normal at which the search ends. Raising it makes normals less accurate.
            1.0e-4 in float32.
        max_searches: Largest number of searches for the normal of penetrating shapes; a safeguard.
        max_search_iterations: Largest number of points of a search; a safeguard.
        shallow_penetration: Share of the size up to which a penetration is taken as the least without a search of all
            directions: shapes that touch. 1.0e-5 in float32.
        max_expansion_points: Largest number of points of the polytope that expands to the least penetration. Raising it
            makes deep penetrations of round shapes more accurate, and needs more stack.
        expansion_tolerance: Share of the size up to which the least penetration of polytopes may be exceeded. Raising
            it ends the search earlier. 1.0e-5 in float32.
        round_expansion_tolerance: The same of round shapes, whose normal is improved afterwards.
        visible_height: Share of the size above which a point sees a face. Raising it merges faces that are nearly
            coplanar. 1.0e-5 in float32.
        cached_normal_tolerance: Error of the squared length by which a cached normal is recognized as one.
        height_weight: Height above a face that outweighs a unit of distance along a slot's direction. Raising it admits
            higher corners.
        min_facing_cosine: Cosine between normals above which flat sides face each other; about 26 degrees.
        max_flat_sine: Sine of the tilt of two flat sides that face each other below which all points where they touch
            have the normal of the second. Raising it makes normals of sides that rock on each other less accurate.
            1.0e-3 in float32.
        max_side_sine: Sine of the angle between that normal and the one of the closest points, beyond which these do
            not belong to the flat sides. 1.0e-2 in float32.
        same_height: Distance, m, up to which all points of flat sides that touch are as close as the closest ones.
            1.0e-5 in float32.
        border_tolerance: Relative distance beyond its border at which a point still is inside a face.
        min_crossing_sine: Sine of the angle above which two borders cross. Raising it drops crossings of nearly
            parallel borders.
        same_point_tolerance: Share of the size within which contact points are the same. Raising it merges more of
            them.
        absent_separation: Separation of absent corners, m; beyond what is monitored.
        max_manifold_separation: Share of the size beyond which shapes have no manifold. Raising it computes manifolds
            earlier.
        max_beside_sine_squared: Squared sine of the angle below which two capsules may lie beside each other.
            Raising it watches ends that cannot be reached in a step.
        min_beside_length: Share of the shorter capsule along which both must lie beside each other to touch at two
            points. Raising it leaves one point to those that overlap less.
        min_axis_sine_squared: Squared sine between axis and normal below which tangents do not follow a capsule's axis.
            1.0e-12 in float32.
    """

    min_length: float = 1.0e-150
    parallel_sine_squared: float = 1.0e-6
    max_beside_sine_squared: float = 0.04
    min_beside_length: float = 0.05
    min_rim_sine: float = 1.0e-6
    min_tilt_sine: float = 1.0e-6
    min_cap_cosine: float = 0.7
    max_exhaustive_vertices: int = 32
    surface_tolerance: float = 1.0e-15
    max_surface_iterations: int = 50
    max_secants: int = 10
    rim_angles: int = 16
    max_root_steps: int = 60
    max_witness_height: float = 1.0e-9
    min_improvement: float = 1.0e-9
    max_search_separation: float = 0.25
    length_tolerance: float = 1.0e-14
    hold_distance: float = 1.0e-2
    direction_tolerance: float = 1.0e-9
    max_searches: int = 10
    max_search_iterations: int = 64
    shallow_penetration: float = 1.0e-8
    max_expansion_points: int = 64
    expansion_tolerance: float = 1.0e-10
    round_expansion_tolerance: float = 1.0e-5
    visible_height: float = 1.0e-10
    cached_normal_tolerance: float = 1.0e-6
    height_weight: float = 0.1
    min_facing_cosine: float = 0.9
    max_flat_sine: float = 1.0e-5
    max_side_sine: float = 1.0e-3
    same_height: float = 1.0e-9
    border_tolerance: float = 1.0e-6
    min_crossing_sine: float = 1.0e-2
    same_point_tolerance: float = 1.0e-4
    absent_separation: float = 1.0
    max_manifold_separation: float = 0.1
    min_axis_sine_squared: float = 1.0e-24


COLLISION = CollisionSettings()
if not DOUBLE:
    COLLISION = CollisionSettings(
        min_length=1.0e-18,
        min_rim_sine=1.0e-4,
        min_tilt_sine=1.0e-4,
        surface_tolerance=1.0e-6,
        max_witness_height=1.0e-4,
        min_improvement=1.0e-4,
        length_tolerance=1.0e-6,
        direction_tolerance=1.0e-4,
        shallow_penetration=1.0e-5,
        expansion_tolerance=1.0e-5,
        visible_height=1.0e-5,
        max_flat_sine=1.0e-3,
        max_side_sine=1.0e-2,
        same_height=1.0e-5,
        min_axis_sine_squared=1.0e-12,
    )
