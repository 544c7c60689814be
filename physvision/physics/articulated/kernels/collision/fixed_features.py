"""Features of two convex shapes, each fixed to its shape, and their separation at other poses.

The closest points of two shapes belong to other features from pose to pose, and so does a row of their manifold. Fixed
features are those of one pose: a corner and a face, two edges, or a round surface, which is fixed as a whole and has
its support point along the normal. Their separation is smooth along a motion, with the normal of the face, across two
edges, or of the closest points, and has the sign of the shapes' own where these are the features that touch.
"""

import warp as wp

from ..precision import scalar, vec3
from ..spatial.vectors import transpose_product
from ..structs import Contact, HullModel, System
from .closest_features import (
    Feature,
    axis_point,
    finish_primitive,
    line_line_primitive,
    material_point,
    point_face_primitive,
    radius_derivative,
    smooth_primitive,
    support_feature,
)
from .contact_primitives import (
    LINE_SMOOTH,
    LINES,
    MIN_LENGTH,
    PARALLEL_SINE_SQUARED,
    SMOOTH,
    SMOOTH_FACE,
    ContactPrimitive,
    is_ambiguous,
)
from .support_shapes import CYLINDER, ConvexShape, convex_shape, size_derivative

UNKNOWN = wp.constant(-1)  # form of features whose separation at other poses is not known


@wp.struct
class FixedFeatures:
    """Features of a primitive in the axes of their shapes, about their origins."""

    form: int
    is_swapped: int
    normal: vec3  # in the axes of the shape with the face, or of the second
    first: vec3
    second: vec3
    first_axis: vec3
    second_axis: vec3
    first_radius: scalar
    second_radius: scalar
    first_is_round: int
    second_is_round: int


@wp.func
def fix_features(a: ConvexShape, b: ConvexShape, primitive: ContactPrimitive):
    """Return the features of a primitive at the poses of its shapes."""
    features = FixedFeatures()
    features.form = primitive.form
    if primitive.form < SMOOTH and primitive.form != LINES:
        features.form = UNKNOWN
    if is_ambiguous(primitive):
        features.form = UNKNOWN
    features.is_swapped = primitive.is_swapped
    features.normal = transpose_product(b.rotation, primitive.normal)
    if primitive.form == SMOOTH_FACE and primitive.is_swapped != 0:
        features.normal = transpose_product(a.rotation, primitive.normal)
    features.first = transpose_product(a.rotation, primitive.first_point - a.origin)
    features.second = transpose_product(b.rotation, primitive.second_point - b.origin)
    features.first_axis = transpose_product(a.rotation, primitive.first_axis)
    features.second_axis = transpose_product(b.rotation, primitive.second_axis)
    features.first_radius = primitive.first_radius
    features.second_radius = primitive.second_radius
    features.first_is_round = wp.int32(wp.trace(primitive.first_curvature) > scalar(0.0))
    features.second_is_round = wp.int32(wp.trace(primitive.second_curvature) > scalar(0.0))
    return features


@wp.func
def fixed_feature(s: ConvexShape, local: vec3, local_axis: vec3, radius: scalar):
    """Return a point of a shape, or a line through it if it has an axis."""
    point = s.origin + s.rotation * local
    feature = material_point(s, point)
    if s.kind == CYLINDER:
        if radius > scalar(0.0):
            feature = axis_point(s, point)
        else:
            feature.radius_derivative = radius_derivative(s, point)
    feature.axis = s.rotation * local_axis
    return feature


@wp.func
def straight_primitive(a: ConvexShape, b: ConvexShape, normal: vec3, left: Feature, right: Feature):
    """Return the primitive of two points, or of a line and a point, with the normal on the side of a given one."""
    difference = left.point - right.point
    primitive = ContactPrimitive()
    primitive.form = SMOOTH
    if left.is_line != 0:
        primitive.form = LINE_SMOOTH
        left.point = left.point - wp.dot(left.axis, difference) * left.axis
        left.size_derivative = size_derivative(a, left.point)
    elif right.is_line != 0:
        primitive.form = LINE_SMOOTH
        primitive.is_swapped = 1
        right.point = right.point + wp.dot(right.axis, difference) * right.axis
        right.size_derivative = size_derivative(b, right.point)
    difference = left.point - right.point
    primitive.normal = wp.sign(wp.dot(difference, normal)) * difference / wp.max(wp.length(difference), MIN_LENGTH)
    return finish_primitive(primitive, a, b, left, right)


@wp.func(inline=False)
def fixed_primitive(a: ConvexShape, b: ConvexShape, hulls: HullModel, features: FixedFeatures):
    """Return the primitive that fixed features have at the poses of the shapes; without a form if it is not known."""
    primitive = ContactPrimitive()
    primitive.form = UNKNOWN
    primitive.normal = b.rotation * features.normal
    first = fixed_feature(a, features.first, features.first_axis, features.first_radius)
    second = fixed_feature(b, features.second, features.second_axis, features.second_radius)
    if features.form == SMOOTH_FACE:
        if features.is_swapped != 0:
            n = a.rotation * features.normal
            if features.second_is_round != 0:
                second = support_feature(b, hulls, n, second.point)
            primitive = point_face_primitive(a, b, n, second, first.point, True)
        else:
            if features.first_is_round != 0:
                first = support_feature(a, hulls, -primitive.normal, first.point)
            primitive = point_face_primitive(a, b, primitive.normal, first, second.point, False)
    elif features.form == LINES:
        cross = wp.cross(first.axis, second.axis)
        length = wp.length(cross)
        if length * length > PARALLEL_SINE_SQUARED:
            n = wp.sign(wp.dot(cross, primitive.normal)) * cross / length
            first.is_line = 1
            second.is_line = 1
            primitive = line_line_primitive(a, b, n, first, second)
    elif features.form == SMOOTH or features.form == LINE_SMOOTH:
        if features.form == LINE_SMOOTH:
            first.is_line = wp.int32(features.is_swapped == 0)
            second.is_line = wp.int32(features.is_swapped != 0)
        if features.first_is_round + features.second_is_round == 0:
            primitive = straight_primitive(a, b, primitive.normal, first, second)
        else:
            primitive = smooth_primitive(a, b, hulls, primitive.normal, first, second, first.point, second.point)
    return primitive


@wp.func(inline=True)
def start_shape(contact: Contact, s: System, world: int, shape: int):
    """Return a convex shape at the start of the flight."""
    result = convex_shape(contact, s, world, shape)
    result.rotation = contact.detection.start_rotation[world, shape]
    result.origin = contact.detection.start_origin[world, shape]
    return result


@wp.func(inline=True)
def store_impact(contact: Contact, world: int, row: int, primitive: ContactPrimitive):
    """Store the points of the fixed features whose impact ends the flight."""
    contact.events.has_fixed_features[world, row] = 1
    contact.events.impact_points[world, row] = wp.matrix_from_rows(
        primitive.normal, primitive.first_point, primitive.second_point
    )
    contact.events.first_radius[world, row] = primitive.first_radius
    contact.events.second_radius[world, row] = primitive.second_radius


@wp.func
def cap_radius_derivative(s: ConvexShape, point: vec3, radius: scalar):
    """Return the motion of a point on the surface of a cylinder as its radius grows; zero for other shapes."""
    rim = vec3()
    if s.kind == CYLINDER and radius == scalar(0.0):
        rim = radius_derivative(s, point)
    return rim


@wp.func(inline=True)
def stored_impact(contact: Contact, s: System, world: int, row: int, pair: int):
    """Return what the derivative of a separation needs of the primitive that `store_impact` stored."""
    a = convex_shape(contact, s, world, s.model.pairs.first[pair])
    b = convex_shape(contact, s, world, s.model.pairs.second[pair])
    points = contact.events.impact_points[world, row]
    primitive = ContactPrimitive()
    primitive.form = SMOOTH
    primitive.normal = vec3(points[0, 0], points[0, 1], points[0, 2])
    primitive.first_point = vec3(points[1, 0], points[1, 1], points[1, 2])
    primitive.second_point = vec3(points[2, 0], points[2, 1], points[2, 2])
    primitive.first_radius = contact.events.first_radius[world, row]
    primitive.second_radius = contact.events.second_radius[world, row]
    primitive.first_size_derivative = size_derivative(a, primitive.first_point)
    primitive.second_size_derivative = size_derivative(b, primitive.second_point)
    primitive.first_radius_derivative = cap_radius_derivative(a, primitive.first_point, primitive.first_radius)
    primitive.second_radius_derivative = cap_radius_derivative(b, primitive.second_point, primitive.second_radius)
    return primitive
