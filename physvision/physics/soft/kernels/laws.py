"""Energy, stress and tangent of an element under the three laws, with viscosity; see the page docs/soft.md.

With C(E) = 2μE + λ tr(E) 1 and Q(E) = ½ E : C(E), a step of length h from F₀ to F costs

    linear               Q(ε) + β/h Q(ε − ε₀)                                ε = sym F − 1
    St. Venant–Kirchhoff Q(E) + β/h Q(E − E₀)                                E = (FᵀF − 1)/2
    neo-Hookean          μ/2 (tr FᵀF − D) − μ ln J + λ/2 ln²J + β/h Q(E − E₀)

whose derivative to F is the stress P, elastic and viscous. The viscous part is objective: turning a body costs nothing.
"""

import warp as wp

from . import AXES, D, Mat, real

LINEAR = wp.constant(0)
NEO_HOOKEAN = wp.constant(2)


@wp.func
def unit():
    return wp.identity(n=D, dtype=wp.float64)


@wp.func
def symmetric(a: Mat):
    return real(0.5) * (a + wp.transpose(a))


@wp.func
def elastic(strain: Mat, a: real, b: real):
    """C(strain)."""
    return real(2.0) * a * strain + b * wp.trace(strain) * unit()


@wp.func
def strain_of(F: Mat, law: int):
    if law == LINEAR:
        return symmetric(F) - unit()
    return real(0.5) * (wp.transpose(F) * F - unit())


@wp.func
def energy(F: Mat, F0: Mat, law: int, a: real, b: real, c: real):
    """With a = μ, b = λ and c = β/h; infinite where a neo-Hookean element is turned inside out."""
    strain = strain_of(F, law)
    change = strain - strain_of(F0, law)
    found = real(0.5) * c * wp.ddot(change, elastic(change, a, b))
    if law == NEO_HOOKEAN:
        J = wp.determinant(F)
        if not J > real(0.0):
            return real(wp.inf)
        log = wp.log(J)
        stretch = real(0.5) * (wp.ddot(F, F) - AXES) - log
        return found + a * stretch + real(0.5) * b * log * log
    return found + real(0.5) * wp.ddot(strain, elastic(strain, a, b))


@wp.func
def stress(F: Mat, F0: Mat, law: int, a: real, b: real, c: real):
    """P, the derivative of the energy to F."""
    strain = strain_of(F, law)
    viscous = c * elastic(strain - strain_of(F0, law), a, b)
    if law == LINEAR:
        return elastic(strain, a, b) + viscous
    if law == NEO_HOOKEAN:
        T = wp.transpose(wp.inverse(F))
        return a * (F - T) + b * wp.log(wp.determinant(F)) * T + F * viscous
    return F * (elastic(strain, a, b) + viscous)


@wp.func
def tangent(F: Mat, F0: Mat, law: int, a: real, b: real, c: real, G: Mat):
    """The derivative of P along G; it is symmetric, so this is its transpose too."""
    if law == LINEAR:
        return (real(1.0) + c) * elastic(symmetric(G), a, b)
    strain = strain_of(F, law)
    change = elastic(symmetric(wp.transpose(F) * G), a, b)
    viscous = c * elastic(strain - strain_of(F0, law), a, b)
    if law == NEO_HOOKEAN:
        inverse = wp.inverse(F)
        T = wp.transpose(inverse)
        bent = (a - b * wp.log(wp.determinant(F))) * (T * wp.transpose(G) * T)
        return a * G + bent + b * wp.ddot(T, G) * T + G * viscous + c * (F * change)
    return G * (elastic(strain, a, b) + viscous) + (real(1.0) + c) * (F * change)


@wp.func
def tangent_before(F: Mat, F0: Mat, law: int, a: real, b: real, c: real, G: Mat):
    """The derivative of P : G to F₀: only the viscous part remembers it."""
    if law == LINEAR:
        return -c * elastic(symmetric(G), a, b)
    return -c * (F0 * elastic(symmetric(wp.transpose(F) * G), a, b))


@wp.func
def stress_of_time(F: Mat, F0: Mat, law: int, a: real, b: real):
    """The derivative of P to c."""
    change = elastic(strain_of(F, law) - strain_of(F0, law), a, b)
    if law == LINEAR:
        return change
    return F * change
