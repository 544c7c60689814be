"""Energy, stress and tangent of an element under the three laws, with viscosity and its muscle; see docs/soft.md.

With C(E) = 2μE + λ tr(E) 1 and Q(E) = ½ E : C(E), the energy of a step of length h from F₀ to F is

    linear               Q(ε) + β/h Q(ε − ε₀)                                ε = sym F − 1
    St. Venant–Kirchhoff Q(E) + β/h Q(E − E₀)                                E = (FᵀF − 1)/2
    neo-Hookean          μ/2 (tr FᵀF − D) − μ ln J + λ/2 ln²J + β/h Q(E − E₀)

and ½ T |F f|² for a muscle of tension T along f. The derivative to F is the stress P, elastic, viscous and active. The
viscous part is objective: a rotation costs nothing.
"""

import warp as wp

from .precision import AXES, CORNERS, D, Mat, real
from .structs import ElementStruct

LINEAR = wp.constant(0)
NEO_HOOKEAN = wp.constant(2)


@wp.func
def unit():
    """Identity of strains, which cloth has along two axes in its plane."""
    identity = wp.identity(n=D, dtype=wp.float64)
    if wp.static(CORNERS == D):
        identity[D - 1, D - 1] = real(0.0)
    return identity


@wp.func
def symmetric(a: Mat):
    return real(0.5) * (a + wp.transpose(a))


@wp.func
def elastic(strain: Mat, m: ElementStruct):
    """Elastic stress C(strain) of a strain."""
    return real(2.0) * m.a * strain + m.b * wp.trace(strain) * unit()


@wp.func
def strain_of(F: Mat, law: int):
    if law == LINEAR:
        return symmetric(F) - unit()
    return real(0.5) * (wp.transpose(F) * F - unit())


@wp.func
def strain_rate(m: ElementStruct, F: Mat, G: Mat):
    """Derivative of the strain along G."""
    if m.law == LINEAR:
        return symmetric(G)
    return symmetric(wp.transpose(F) * G)


@wp.func
def chain_stress(m: ElementStruct, F: Mat, stress: Mat):
    """Stress on F from the stress on the strain."""
    if m.law == LINEAR:
        return stress
    return F * stress


@wp.func
def along_fiber(m: ElementStruct, F: Mat):
    """Fiber tensor F f ⊗ f."""
    return wp.outer(F * m.fiber, m.fiber)


@wp.func
def energy(m: ElementStruct):
    """Energy of an element; infinite if it is neo-Hookean and inverted."""
    strain = strain_of(m.F, m.law)
    change = strain - strain_of(m.F0, m.law)
    stretched = m.F * m.fiber
    total = real(0.5) * (m.c * wp.ddot(change, elastic(change, m)) + m.pull * wp.dot(stretched, stretched))
    if m.law == NEO_HOOKEAN:
        J = wp.determinant(m.F)
        if not J > real(0.0):
            return real(wp.inf)
        log = wp.log(J)
        stretch = real(0.5) * (wp.ddot(m.F, m.F) - AXES) - log
        return total + m.a * stretch + real(0.5) * m.b * log * log
    return total + real(0.5) * wp.ddot(strain, elastic(strain, m))


@wp.func
def stress_of_time(m: ElementStruct):
    """Derivative of P to c."""
    return chain_stress(m, m.F, elastic(strain_of(m.F, m.law) - strain_of(m.F0, m.law), m))


@wp.func
def stress(m: ElementStruct):
    """Stress P, the derivative of the energy to F."""
    total = m.c * stress_of_time(m) + m.pull * along_fiber(m, m.F)
    if m.law == NEO_HOOKEAN:
        T = wp.transpose(wp.inverse(m.F))
        return total + m.a * (m.F - T) + m.b * wp.log(wp.determinant(m.F)) * T
    return total + chain_stress(m, m.F, elastic(strain_of(m.F, m.law), m))


@wp.func
def tangent(m: ElementStruct, G: Mat):
    """Derivative of P along G, which is symmetric."""
    strain = strain_of(m.F, m.law)
    change = chain_stress(m, m.F, elastic(strain_rate(m, m.F, G), m))
    total = m.c * change + m.pull * along_fiber(m, G)
    if m.law != LINEAR:
        total += m.c * (G * elastic(strain - strain_of(m.F0, m.law), m))
    if m.law == NEO_HOOKEAN:
        T = wp.transpose(wp.inverse(m.F))
        bent = (m.a - m.b * wp.log(wp.determinant(m.F))) * (T * wp.transpose(G) * T)
        return total + m.a * G + bent + m.b * wp.ddot(T, G) * T
    if m.law != LINEAR:
        total += G * elastic(strain, m)
    return total + change


@wp.func
def tangent_before(m: ElementStruct, G: Mat):
    """Derivative of P : G to F₀, of the viscous part only."""
    return -m.c * chain_stress(m, m.F0, elastic(strain_rate(m, m.F, G), m))
