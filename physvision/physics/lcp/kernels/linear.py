"""Bordered linear systems of run-time size, for one thread: LU factorization and both solutions.

The first `inner` rows and columns of the n×n matrix (row after row) have a half bandwidth `band`; the others, its
border, are full. Entries of the inner block outside its band are neither read nor written.
"""

import warp as wp

from .precision import Array1d, IntArray1d, scalar

# Warp computes the place of every entry anew: these two loops, in which the time goes, are written for the compiler.
# Strides are those of the array, so that on a GPU worlds may lie next to each other.
_DOT = """
    using number = decltype(+*a.data);
    const size_t wide = a.strides[0], far = b.strides[0];
    const char* p = reinterpret_cast<const char*>(a.data) + wide * i;
    const char* q = reinterpret_cast<const char*>(b.data) + far * j;
    number even = 0, odd = 0;
    int k = 0;
    for (; k + 1 < n; k += 2, p += 2 * wide, q += 2 * far) {
        even += *reinterpret_cast<const number*>(p) * *reinterpret_cast<const number*>(q);
        odd += *reinterpret_cast<const number*>(p + wide) * *reinterpret_cast<const number*>(q + far);
    }
    if (k < n)
        even += *reinterpret_cast<const number*>(p) * *reinterpret_cast<const number*>(q);
    return even + odd;
"""
_ADD_MULTIPLE = """
    using number = decltype(+*a.data);
    if (a.strides[0] == sizeof(number) && b.strides[0] == sizeof(number)) {
        number* __restrict__ p = a.data + i;
        const number* q = b.data + j;
        for (int k = 0; k < n; ++k)
            p[k] += factor * q[k];
    } else {
        char* p = reinterpret_cast<char*>(a.data) + size_t(a.strides[0]) * i;
        const char* q = reinterpret_cast<const char*>(b.data) + size_t(b.strides[0]) * j;
        for (int k = 0; k < n; ++k, p += a.strides[0], q += b.strides[0])
            *reinterpret_cast<number*>(p) += factor * *reinterpret_cast<const number*>(q);
    }
"""


@wp.func_native(_DOT)
def dot(a: Array1d, i: int, b: Array1d, j: int, n: int) -> scalar:
    """Return the sum of a[i + k] b[j + k] over k < n."""


@wp.func_native(_ADD_MULTIPLE)
def add_multiple(a: Array1d, i: int, factor: scalar, b: Array1d, j: int, n: int):
    """Add `factor` b[j + k] to a[i + k], for k < n; the two ranges do not overlap."""


@wp.func
def band_start(i: int, inner: int, band: int):
    """Return the first column of row i, or row of column i, that is stored."""
    return wp.where(i < inner, wp.max(i - band, 0), 0)


@wp.func
def band_end(i: int, n: int, inner: int, band: int):
    """Return the end of the columns of row i, or rows of column i, that are stored before the border."""
    return wp.where(i < inner, wp.min(i + band + 1, inner), n)


@wp.func
def border_start(i: int, n: int, inner: int):
    """Return the first column of row i, or row of column i, that is stored after `band_end`."""
    return wp.where(i < inner, inner, n)


@wp.func
def clear_bordered(matrix: Array1d, n: int, inner: int, band: int):
    """Set all entries to zero."""
    for i in range(n):
        for j in range(band_start(i, inner, band), band_end(i, n, inner, band)):
            matrix[i * n + j] = scalar(0.0)
        for j in range(border_start(i, n, inner), n):
            matrix[i * n + j] = scalar(0.0)


@wp.func
def factor_rest(matrix: Array1d, order: IntArray1d, n: int, start: int):
    """Factorize the columns from `start` on, once those before it are done."""
    largest = scalar(0.0)
    for i in range(start, n):
        for j in range(start, n):
            largest = wp.max(largest, wp.abs(matrix[i * n + j]))
    min_pivot = largest * scalar(1.0e-30) + scalar(1.0e-30)
    for k in range(start, n):
        pivot = k
        largest_entry = wp.abs(matrix[k * n + k])
        for i in range(k + 1, n):
            if wp.abs(matrix[i * n + k]) > largest_entry * scalar(2.0):
                largest_entry = wp.abs(matrix[i * n + k])
                pivot = i
        order[k] = pivot
        if pivot != k:
            for j in range(n):
                swapped = matrix[k * n + j]
                matrix[k * n + j] = matrix[pivot * n + j]
                matrix[pivot * n + j] = swapped
        if largest_entry < min_pivot:
            matrix[k * n + k] = min_pivot
        inverse = scalar(1.0) / matrix[k * n + k]
        for i in range(k + 1, n):
            if matrix[i * n + k] != scalar(0.0):
                multiplier = matrix[i * n + k] * inverse
                matrix[i * n + k] = multiplier
                add_multiple(matrix, i * n + k + 1, -multiplier, matrix, k * n + k + 1, n - k - 1)


@wp.func
def factor_bordered(matrix: Array1d, order: IntArray1d, n: int, inner: int, band: int):
    """Replace the matrix by its LU factors; `order[k]` is the row exchanged with row k.

    No rows are exchanged among the first `inner`: they are those of a nearly symmetric, positive definite matrix. A
    column of the border without a pivot gets a tiny one, so that the caller's regularization decides its unknown.
    """
    for k in range(inner):
        order[k] = k
        end = band_end(k, n, inner, band)
        inverse = scalar(1.0) / matrix[k * n + k]
        for row in range(k + 1, end + n - inner):
            i = wp.where(row >= end, row - end + inner, row)
            if matrix[i * n + k] != scalar(0.0):
                multiplier = matrix[i * n + k] * inverse
                matrix[i * n + k] = multiplier
                add_multiple(matrix, i * n + k + 1, -multiplier, matrix, k * n + k + 1, end - k - 1)
                add_multiple(matrix, i * n + inner, -multiplier, matrix, k * n + inner, n - inner)
    factor_rest(matrix, order, n, inner)


@wp.func
def solve(factors: Array1d, order: IntArray1d, x: Array1d, n: int, inner: int, band: int):
    """Replace `x` by the solution of A x = b, given b in `x` and the factors of A."""
    for k in range(inner, n):
        if order[k] != k:
            swapped = x[k]
            x[k] = x[order[k]]
            x[order[k]] = swapped
    for i in range(n):
        start = band_start(i, inner, band)
        x[i] = x[i] - dot(factors, i * n + start, x, start, i - start)
    for back in range(n):
        i = n - 1 - back
        end = band_end(i, n, inner, band)
        border = border_start(i, n, inner)
        total = dot(factors, i * n + i + 1, x, i + 1, end - i - 1) + dot(factors, i * n + border, x, border, n - border)
        x[i] = (x[i] - total) / factors[i * n + i]


@wp.func
def solve_transposed(factors: Array1d, order: IntArray1d, x: Array1d, n: int, inner: int, band: int):
    """Replace `x` by the solution of Aᵀ x = b, given b in `x` and the factors of A."""
    for i in range(n):
        total = x[i]
        for j in range(band_start(i, inner, band), i):
            total -= factors[j * n + i] * x[j]
        x[i] = total / factors[i * n + i]
    for back in range(n):
        i = n - 1 - back
        total = x[i]
        for j in range(i + 1, band_end(i, n, inner, band)):
            total -= factors[j * n + i] * x[j]
        for j in range(border_start(i, n, inner), n):
            total -= factors[j * n + i] * x[j]
        x[i] = total
    for back in range(n - inner):
        k = n - 1 - back
        if order[k] != k:
            swapped = x[k]
            x[k] = x[order[k]]
            x[order[k]] = swapped
