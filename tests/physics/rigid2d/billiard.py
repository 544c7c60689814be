"""An exact event-driven billiard of equal discs in a box, elastic and frictionless, with its Jacobian.

Written from the closed forms alone: between impacts discs move straight; a wall turns one component round; equal
discs exchange what they have along the line of centers. The Jacobian of each impact is its saltation matrix.
"""

# pyright: reportCallIssue=false

import numpy as np


class Billiard:
    def __init__(self, positions, velocities, radius=20.0, low=0.0, high=400.0):
        self.x = np.array(positions, float)
        self.v = np.array(velocities, float)
        self.r, self.low, self.high = radius, low + radius, high - radius
        self.n = len(self.x)
        self.jacobian = np.eye(4 * self.n)

    def _next(self):
        best = (np.inf, None)
        for i in range(self.n):
            for k in range(2):
                if self.v[i, k] > 0:
                    best = min(best, ((self.high - self.x[i, k]) / self.v[i, k], (i, k, "wall")), key=lambda e: e[0])
                elif self.v[i, k] < 0:
                    best = min(best, ((self.low - self.x[i, k]) / self.v[i, k], (i, k, "wall")), key=lambda e: e[0])
            for j in range(i):
                d, u = self.x[i] - self.x[j], self.v[i] - self.v[j]
                b, c, a = d @ u, d @ d - 4 * self.r**2, u @ u
                if b < 0 and b * b > a * c:
                    best = min(best, (c / (-b + np.sqrt(b * b - a * c)), (i, j, "pair")), key=lambda e: e[0])
        return best

    def _fly(self, time):
        self.x += time * self.v
        step = np.eye(4 * self.n)
        step[: 2 * self.n, 2 * self.n :] = time * np.eye(2 * self.n)
        self.jacobian = step @ self.jacobian

    def _strike(self, i, j, kind):
        size = 2 * self.n
        gradient = np.zeros(2 * size)  # of the gap
        reset = np.eye(2 * size)
        before = np.concatenate([self.v.ravel(), np.zeros(size)])
        if kind == "wall":
            gradient[2 * i + j] = 1.0
            reset[size + 2 * i + j, size + 2 * i + j] = -1.0
            self.v[i, j] *= -1
        else:
            d, u = self.x[i] - self.x[j], self.v[i] - self.v[j]
            n = d / np.linalg.norm(d)
            gradient[2 * i : 2 * i + 2], gradient[2 * j : 2 * j + 2] = n, -n
            dn = (np.eye(2) - np.outer(n, n)) / np.linalg.norm(d)
            by_d = np.outer(n, u @ dn) + (u @ n) * dn
            for row, column, sign in ((i, i, -1), (i, j, 1), (j, i, 1), (j, j, -1)):
                rows = slice(size + 2 * row, size + 2 * row + 2)
                reset[rows, 2 * column : 2 * column + 2] += sign * by_d
                reset[rows, size + 2 * column : size + 2 * column + 2] += sign * np.outer(n, n)
            self.v[i] -= (u @ n) * n
            self.v[j] += (u @ n) * n
        after = np.concatenate([self.v.ravel(), np.zeros(size)])
        salt = reset + np.outer(after - reset @ before, gradient) / (gradient @ before)
        self.jacobian = salt @ self.jacobian

    def run(self, duration):
        left, impacts = duration, 0
        while True:
            time, event = self._next()
            if event is None or time >= left:
                self._fly(left)
                return impacts
            self._fly(time)
            self._strike(*event)
            left -= time
            impacts += 1
