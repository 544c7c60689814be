"""Spheres in a box in three dimensions, exact: events in 50 digits, with the Jacobian of the final state.

Between impacts spheres move straight. A wall turns one component of a velocity round, times the restitution; two
spheres exchange momentum along the line of centers. A small change of the state before an impact at the time t reaches
it δt later, and the state behind it changes by what a change of the state itself and a change of t make of it.
"""

import numpy as np
from mpmath import mp, mpf, sqrt

mp.dps = 50


class Billiard:
    def __init__(self, positions, velocities, radii, masses, size, restitution):
        exact = np.vectorize(mpf, otypes=[object])
        self.x, self.v = exact(positions), exact(velocities)
        self.r, self.m = exact(radii), exact(masses)
        self.size, self.e = mpf(size), mpf(restitution)
        self.n = len(self.r)
        # Rows: how each position and velocity moves with all positions and velocities of the start.
        unit = exact(np.eye(6 * self.n)).reshape(2, self.n, 3, 6 * self.n)
        self.dx, self.dv = unit[0], unit[1]

    def _wall(self, i, k):
        u = self.v[i, k]
        if u == 0:
            return None
        return ((self.size - self.r[i] if u > 0 else self.r[i]) - self.x[i, k]) / u

    def _impact_time(self, i, j):
        d, u = self.x[i] - self.x[j], self.v[i] - self.v[j]
        b, c, a = d @ u, d @ d - (self.r[i] + self.r[j]) ** 2, u @ u
        if b >= 0 or b * b <= a * c:
            return None
        return c / (-b + sqrt(b * b - a * c))

    def _next(self):
        results = [(self._wall(i, k), ("wall", i, k)) for i in range(self.n) for k in range(3)]
        results += [(self._impact_time(i, j), ("pair", i, j)) for i in range(self.n) for j in range(i)]
        return min(((t, event) for t, event in results if t is not None), key=lambda entry: entry[0])

    def _fly(self, t):
        self.x, self.dx = self.x + t * self.v, self.dx + t * self.dv

    def _strike(self, kind, i, k):
        """δt from the gap; positions at the old time; velocities jump; positions at the new time taken back."""
        if kind == "wall":
            later = -self.dx[i, k] / self.v[i, k]
            self.dx = self.dx + self.v[..., None] * later
            self.v[i, k] *= -self.e
            self.dv[i, k] = -self.e * self.dv[i, k]
        else:
            d, u = self.x[i] - self.x[k], self.v[i] - self.v[k]
            length = sqrt(d @ d)
            n = d / length
            dd, du = self.dx[i] - self.dx[k], self.dv[i] - self.dv[k]
            later = -(n @ dd) / (n @ u)
            self.dx = self.dx + self.v[..., None] * later
            dd = self.dx[i] - self.dx[k]
            dn = (dd - np.outer(n, n @ dd)) / length
            jump = (1 + self.e) * np.outer(n, u @ dn + n @ du) + (1 + self.e) * (n @ u) * dn
            push = (1 + self.e) * (n @ u) * n
            fraction = self.m[k] / (self.m[i] + self.m[k])
            self.v[i], self.v[k] = self.v[i] - fraction * push, self.v[k] + (1 - fraction) * push
            self.dv[i], self.dv[k] = self.dv[i] - fraction * jump, self.dv[k] + (1 - fraction) * jump
        self.dx = self.dx - self.v[..., None] * later

    def run(self, duration):
        """How many impacts there were."""
        left, impacts = mpf(duration), 0
        while True:
            t, event = self._next()
            if t >= left:
                self._fly(left)
                return impacts
            self._fly(t)
            self._strike(*event)
            left -= t
            impacts += 1

    def state(self):
        return np.concatenate([self.x.ravel(), self.v.ravel()]).astype(float)

    def jacobian(self):
        return np.concatenate([self.dx, self.dv]).reshape(6 * self.n, 6 * self.n).astype(float)
