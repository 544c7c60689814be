"""Energy, stress and tangent of an element under the three laws, with viscosity and its muscle; see docs/soft.md.

With C(E) = 2μE + λ tr(E) 1 and Q(E) = ½ E : C(E), a step of length h from F₀ to F costs

    linear               Q(ε) + β/h Q(ε − ε₀)                                ε = sym F − 1
    St. Venant–Kirchhoff Q(E) + β/h Q(E − E₀)                                E = (FᵀF − 1)/2
    neo-Hookean          μ/2 (tr FᵀF − D) − μ ln J + λ/2 ln²J + β/h Q(E − E₀)

and ½ T |F f|² for a muscle of tension T along f. The derivative to F is the stress P, elastic, viscous and active. The
viscous part is objective: turning a body costs nothing.
"""

import warp as wp

from .precision import AXES, CORNERS, D, Mat, real
from .structs import ElementStruct

LINEAR = wp.constant(0)
NEO_HOOKEAN = wp.constant(2)


@wp.func
def unit():
    """Of strains, which cloth has along two axes of its own."""
    found = wp.identity(n=D, dtype=wp.float64)
    if wp.static(CORNERS == D):
        found[D - 1, D - 1] = real(0.0)
    return found


@wp.func
def symmetric(a: Mat):
    return real(0.5) * (a + wp.transpose(a))


@wp.func
def elastic(strain: Mat, m: ElementStruct):
    """C(strain)."""
    return real(2.0) * m.a * strain + m.b * wp.trace(strain) * unit()


@wp.func
def strain_of(F: Mat, law: int):
    if law == LINEAR:
        return symmetric(F) - unit()
    return real(0.5) * (wp.transpose(F) * F - unit())


@wp.func
def strain_rate(m: ElementStruct, F: Mat, G: Mat):
    """The derivative of the strain along G."""
    if m.law == LINEAR:
        return symmetric(G)
    return symmetric(wp.transpose(F) * G)


@wp.func
def turned(m: ElementStruct, F: Mat, stress: Mat):
    """What a stress on the strain is on F."""
    if m.law == LINEAR:
        return stress
    return F * stress


@wp.func
def along_fibre(m: ElementStruct, F: Mat):
    """F f ⊗ f."""
    return wp.outer(F * m.fibre, m.fibre)


@wp.func
def energy(m: ElementStruct):
    """Infinite where a neo-Hookean element is turned inside out."""
    strain = strain_of(m.F, m.law)
    change = strain - strain_of(m.F0, m.law)
    stretched = m.F * m.fibre
    found = real(0.5) * (m.c * wp.ddot(change, elastic(change, m)) + m.pull * wp.dot(stretched, stretched))
    if m.law == NEO_HOOKEAN:
        J = wp.determinant(m.F)
        if not J > real(0.0):
            return real(wp.inf)
        log = wp.log(J)
        stretch = real(0.5) * (wp.ddot(m.F, m.F) - AXES) - log
        return found + m.a * stretch + real(0.5) * m.b * log * log
    return found + real(0.5) * wp.ddot(strain, elastic(strain, m))


@wp.func
def stress_of_time(m: ElementStruct):
    """The derivative of P to c."""
    return turned(m, m.F, elastic(strain_of(m.F, m.law) - strain_of(m.F0, m.law), m))


@wp.func
def stress(m: ElementStruct):
    """P, the derivative of the energy to F."""
    found = m.c * stress_of_time(m) + m.pull * along_fibre(m, m.F)
    if m.law == NEO_HOOKEAN:
        T = wp.transpose(wp.inverse(m.F))
        return found + m.a * (m.F - T) + m.b * wp.log(wp.determinant(m.F)) * T
    return found + turned(m, m.F, elastic(strain_of(m.F, m.law), m))


@wp.func
def tangent(m: ElementStruct, G: Mat):
    """The derivative of P along G; it is symmetric, so this is its transpose too."""
    strain = strain_of(m.F, m.law)
    change = turned(m, m.F, elastic(strain_rate(m, m.F, G), m))
    found = m.c * change + m.pull * along_fibre(m, G)
    if m.law != LINEAR:
        found += m.c * (G * elastic(strain - strain_of(m.F0, m.law), m))
    if m.law == NEO_HOOKEAN:
        T = wp.transpose(wp.inverse(m.F))
        bent = (m.a - m.b * wp.log(wp.determinant(m.F))) * (T * wp.transpose(G) * T)
        return found + m.a * G + bent + m.b * wp.ddot(T, G) * T
    if m.law != LINEAR:
        found += G * elastic(strain, m)
    return found + change


@wp.func
def tangent_before(m: ElementStruct, G: Mat):
    """The derivative of P : G to F₀: only the viscous part remembers it."""
    return -m.c * turned(m, m.F0, elastic(strain_rate(m, m.F, G), m))
