"""Textures: bilinear between texels (the center of texel i is at i + ½), averaged over a pixel's footprint.

A pixel, or one of several taps in it, is taken to cover the box of half-widths a and b about (u, v). With f the
distance from the nearest texel's center and a ≤ ½, the mean of the bilinear interpolation along u has the weights

    w₊ = (p² − q²) / 4a,    p = max(f + a, 0),    q = max(f − a, 0),      w₊′ = (p − q) / 2a

on the next texel, the mirror image of that on the last one, and the rest on the nearest. They are smooth in u: at a
point the slope of the interpolation jumps from texel to texel, and a sum of such slopes over pixels is not the
derivative of the pixels.
"""

import warp as wp

from .precision import scalar
from .scene import HALF, ONE, REPEAT, TWO, ZERO, Gradients, Patch, Pixel, vec3

# Half-widths below this, in texels, are points.
POINT_WIDTH = wp.constant(scalar(0.01))
FOUR = wp.constant(scalar(4.0))
MAX_TEXEL = wp.constant(scalar(1.0e9))


@wp.struct
class Footprint:
    """Three by three texels and their weights, with the derivatives of the weights along their own axes."""

    columns: wp.types.vector(length=3, dtype=int)
    rows: wp.types.vector(length=3, dtype=int)
    across: vec3
    along: vec3
    across_slope: vec3
    along_slope: vec3


@wp.func
def wrap_index(i: int, n: int, repeat: bool):
    """Return a texel index within the texture, repeated or clamped."""
    result = wp.clamp(i, 0, n - 1)
    if repeat:
        result = i % n
        if result < 0:
            result = result + n
    return result


@wp.func
def weights(f: scalar, reach: scalar):
    """Return weights of the texels before, at and after, and their slopes."""
    p = wp.max(f, ZERO)
    m = wp.max(-f, ZERO)
    after = p
    before = m
    after_slope = HALF + HALF * wp.sign(f)
    before_slope = after_slope - ONE
    if reach > POINT_WIDTH:
        a = wp.min(reach, HALF)
        p = wp.max(f + a, ZERO)
        q = wp.max(f - a, ZERO)
        m = wp.max(a - f, ZERO)
        n = wp.max(-a - f, ZERO)
        after_slope = (p - q) / (TWO * a)
        before_slope = (n - m) / (TWO * a)
        after = (p - q) * (p + q) / (FOUR * a)
        before = (m - n) * (m + n) / (FOUR * a)
    w = vec3(before, ONE - before - after, after)
    return w, vec3(before_slope, -before_slope - after_slope, after_slope)


@wp.func
def footprint(patch: Patch, u: scalar, v: scalar, reach_u: scalar, reach_v: scalar):
    """Return the texels about (u, v) with their weights."""
    c = Footprint()
    # Coordinates far away must not overflow the integers.
    x = wp.clamp(u, -MAX_TEXEL, MAX_TEXEL)
    y = wp.clamp(v, -MAX_TEXEL, MAX_TEXEL)
    i = int(wp.floor(x))
    j = int(wp.floor(y))
    across, across_slope = weights(x - wp.floor(x) - HALF, reach_u)
    along, along_slope = weights(y - wp.floor(y) - HALF, reach_v)
    c.across = across
    c.across_slope = across_slope
    c.along = along
    c.along_slope = along_slope
    for k in range(3):
        c.columns[k] = patch.texel + wrap_index(i + k - 1, patch.columns, patch.wrap != 0)
        c.rows[k] = patch.columns * wrap_index(j + k - 1, patch.rows, patch.wrap == REPEAT)
    return c


@wp.func
def texel(texels: wp.array3d(dtype=scalar), b: int, channel: int, c: Footprint):
    """Return the mean of a texture over a footprint."""
    total = scalar(ZERO)
    for k in range(3):
        total += c.along[k] * (
            c.across[0] * texels[b, channel, c.rows[k] + c.columns[0]]
            + c.across[1] * texels[b, channel, c.rows[k] + c.columns[1]]
            + c.across[2] * texels[b, channel, c.rows[k] + c.columns[2]]
        )
    return total


@wp.func
def weighted_texel(texels: wp.array3d(dtype=scalar), g: Gradients, at: Pixel, c: Footprint):
    """Return the sum over channels of the pixel's adjoint times the texture, and its slopes along u and v."""
    total = scalar(ZERO)
    by_u = scalar(ZERO)
    by_v = scalar(ZERO)
    for channel in range(g.image.shape[1]):
        bar = g.image[at.b, channel, at.line, at.column]
        for k in range(3):
            left = texels[at.b, channel, c.rows[k] + c.columns[0]]
            middle = texels[at.b, channel, c.rows[k] + c.columns[1]]
            right = texels[at.b, channel, c.rows[k] + c.columns[2]]
            mean = bar * (c.across[0] * left + c.across[1] * middle + c.across[2] * right)
            slope = c.across_slope[0] * left + c.across_slope[1] * middle + c.across_slope[2] * right
            total += c.along[k] * mean
            by_u += c.along[k] * bar * slope
            by_v += c.along_slope[k] * mean
    return total, by_u, by_v


@wp.func
def add_texel_cotangents(g: Gradients, b: int, channel: int, c: Footprint, bar: scalar):
    """Add a cotangent to the texels of a footprint."""
    for k in range(3):
        for i in range(3):
            wp.atomic_add(g.texels, b, channel, c.rows[k] + c.columns[i], bar * c.along[k] * c.across[i])
