"""The contract of whatever can be stepped: physics engines, learned baselines and hybrids of both."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch._C._functorch import is_functorch_wrapped_tensor

from physvision.core import State, Status, Trajectory
from physvision.core.checks import check_like, check_shape, check_tensor


class Engine(nn.Module):
    """A model of motion on a fixed grid of times: state `k` is the state at `k · dt`.

    A subclass sets `nq`, `nv`, `nu` and `dt`, and defines `rollout`, `initial_state` and `properties`. Where
    positions are not a vector space (quaternions), it also overrides `integrate` and `difference`.

    Attributes:
        nq: numbers in a position.
        nv: numbers in a velocity.
        nu: numbers in a control.
        dt: seconds between two states.
        status: how the last rollout went; None before the first.
    """

    nq: int
    nv: int
    nu: int
    dt: float

    def __init__(self) -> None:
        super().__init__()
        self.status: Status | None = None
        self._warned = False

    @property
    def properties(self) -> Any:
        """A frozen dataclass of tensors: masses, lengths, friction … in SI units."""
        raise NotImplementedError

    def initial_state(self, batch: int = 1) -> State:
        """The state that the model's description starts from, `batch` times."""
        raise NotImplementedError

    def rollout(
        self,
        state: State,
        steps: int,
        controls: Float[Tensor, "batch steps nu"] | None = None,
        properties: Any | Mapping[str, Tensor] | None = None,
        truncate: int | None = None,
    ) -> Trajectory:
        """Simulate `steps` steps.

        Args:
            state: where every world starts.
            steps: how many steps, at least 1.
            controls: held constant over each step, (batch, steps, nu); None for zero.
            properties: a whole dataclass or a mapping of leaf names; overrides the engine's own.
            truncate: backward, the gradient of each state reaches at most so many steps into the past.
        """
        raise NotImplementedError

    def step(
        self,
        state: State,
        control: Float[Tensor, "batch nu"] | None = None,
        properties: Any | Mapping[str, Tensor] | None = None,
    ) -> State:
        """The state one step later."""
        controls = None if control is None else control.unsqueeze(1)
        return self.rollout(state, 1, controls, properties).final

    def forward(self, state: State, steps: int, *args, **kwargs) -> Trajectory:
        """The same as `rollout`."""
        return self.rollout(state, steps, *args, **kwargs)

    def integrate(self, q: Float[Tensor, "batch nq"], dv: Float[Tensor, "batch nv"]) -> Float[Tensor, "batch nq"]:
        """The position reached from `q` by the displacement `dv`: a velocity held for one second."""
        return q + dv

    def difference(self, q0: Float[Tensor, "batch nq"], q1: Float[Tensor, "batch nq"]) -> Float[Tensor, "batch nv"]:
        """The displacement that leads from `q0` to `q1`: the inverse of `integrate`."""
        return q1 - q0

    def linearize(
        self, state: State, control: Float[Tensor, "batch nu"] | None = None
    ) -> tuple[Float[Tensor, "batch twice_nv twice_nv"], Float[Tensor, "batch twice_nv nu"]]:
        """Derivatives of a step: δ(q′, v′) = A δ(q, v) + B δu, displacements in the tangent space.

        Each world is repeated once for each row of the answer, so one call and one backward pass give all rows.
        """
        rows = 2 * self.nv
        batch, like = state.batch, state.q
        dq = like.new_zeros(batch * rows, self.nv, requires_grad=True)
        dv = like.new_zeros(batch * rows, self.nv, requires_grad=True)
        du = like.new_zeros(batch * rows, self.nu, requires_grad=True)
        with torch.enable_grad():
            start = state.detach().repeat(rows)
            u = du if control is None else control.detach().repeat_interleave(rows, 0) + du
            end = self.step(State(self.integrate(start.q, dq), start.v + dv), u)
            change = torch.cat([self.difference(end.q.detach(), end.q), end.v], 1)
            picked = (change * torch.eye(rows, dtype=like.dtype, device=like.device).repeat(batch, 1)).sum()
            gradients = torch.autograd.grad(picked, (dq, dv, du), allow_unused=True, materialize_grads=True)
        gq, gv, gu = (g.reshape(batch, rows, -1) for g in gradients)
        return torch.cat([gq, gv], 2), gu

    def _check_state(self, state: State) -> None:
        q, v = check_tensor("state.q", state.q), check_tensor("state.v", state.v)
        check_shape("state.q", q, (None, self.nq))
        check_shape("state.v", check_like("state.v", v, "state.q", q), (q.shape[0], self.nv))

    def _check_controls(self, state: State, steps: int, controls: Tensor | None) -> None:
        if controls is not None:
            check_like("controls", check_tensor("controls", controls), "state.q", state.q)
            check_shape("controls", controls, (state.batch, steps, self.nu))

    def _report(self, status: Status) -> None:
        """Keep the status and warn of failed worlds, once an engine; never waits for a GPU."""
        if is_functorch_wrapped_tensor(status.converged):
            return  # inside a functional transform there is nothing to look at yet
        self.status = status
        if self._warned or status.converged.is_cuda or bool(status.converged.all()):
            return
        self._warned = True
        failed = status.failed()
        named = ", ".join(str(world) for world in failed[:8]) + (" …" if len(failed) > 8 else "")
        warnings.warn(
            f"{len(failed)} of {status.converged.numel()} worlds failed (world {named}; first at step "
            f"{int(status.first_bad_step[failed[0]])}, residual {float(status.residual[failed[0]]):.3g}). The other "
            "worlds are not touched. See trajectory.status; this is said once an engine.",
            RuntimeWarning,
            stacklevel=3,
        )
