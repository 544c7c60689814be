"""The step in plain torch, from the equations alone: joints and gaps are functions of q, their rows come from autograd.

Frictionless, one impact at a time. A duration h of motion from (q₀, v₀) under accelerations a(q) solves, by Newton's
method on Λ, φ(q₁) = 0 with q₁ = q₀ + h v₀ + ½h² a(q₀) + W ∂φ(q₀)ᵀ Λ, then projects the velocity on ∂φ(q₁) v₁ = 0. An
impact happens where a gap reaches zero; its duration carries its derivative by one Newton step from the root.
"""

import torch


class TorchWorld:
    """`joints(q)` and each of `gaps` are functions of one q; `inverse` masses and `acceleration(q)` are vectors."""

    def __init__(self, inverse, acceleration, joints, gaps, restitutions):
        self.inverse, self.acceleration, self.joints = inverse, acceleration, joints
        self.gaps, self.restitutions = gaps, restitutions

    @staticmethod
    def rows(function, q):
        if not q.requires_grad:
            q = q.detach().requires_grad_()
        values = torch.atleast_1d(function(q))
        picked = [torch.autograd.grad(value, q, create_graph=True)[0] for value in values]
        return torch.stack(picked) if picked else q.new_zeros(0, q.numel())

    def solve(self, rows, columns, rest):
        return torch.linalg.solve(rows @ (self.inverse[:, None] * columns.mT), rest)

    def flow(self, q, v, h):
        rows = self.rows(self.joints, q)
        free = q + h * v + h * h / 2 * self.acceleration(q)
        end, load = free, v.new_zeros(len(rows))
        for _ in range(8):
            load = load - self.solve(self.rows(self.joints, end), rows, torch.atleast_1d(self.joints(end)))
            end = free + self.inverse * (rows.mT @ load)
        half = v + h / 2 * self.acceleration(q) + self.inverse * (rows.mT @ load) / h
        speed = half + h / 2 * self.acceleration(end)
        rows = self.rows(self.joints, end)
        return end, speed - self.inverse * (rows.mT @ self.solve(rows, rows, rows @ speed))

    def first_gap(self, q, v, h):
        """The first gap that is closed after h, and when it closed: Newton's method."""
        q, v = q.detach(), v.detach()
        result = (h, None)
        for gap in self.gaps:
            if gap(self.flow(q, v, h)[0]) < 0 < gap(q):
                time = 0.5 * h
                for _ in range(20):
                    end, speed = self.flow(q, v, time)
                    time -= float((gap(end) / (self.rows(gap, end.detach())[0] @ speed)).detach())
                result = min(result, (time, gap), key=lambda pair: pair[0])
        return result

    def impact(self, gap, q, v):
        normal = self.rows(gap, q)
        rows = torch.cat([self.rows(self.joints, q), normal])
        bounce = self.restitutions[self.gaps.index(gap)] * (normal @ v)
        rest = torch.cat([rows[:-1] @ v, rows[-1:] @ v + bounce])
        return v - self.inverse * (rows.mT @ self.solve(rows, rows, rest))

    def step(self, q, v, dt):
        left = torch.tensor(dt, dtype=q.dtype)
        while True:
            time, gap = self.first_gap(q, v, float(left.detach()))
            if gap is None:
                return self.flow(q, v, left)
            end, speed = self.flow(q, v, time)
            rate = (self.rows(gap, end.detach())[0] @ speed).detach()
            moment = time - (gap(end) - gap(end).detach()) / rate
            q, v = self.flow(q, v, moment)
            v, left = self.impact(gap, q, v), left - moment
