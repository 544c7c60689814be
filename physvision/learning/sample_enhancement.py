"""Sample enhancement: augmented transitions from the engine's Jacobians (Qiao et al., ICML 2021).

A real step from (q, v) under an action a to (q', v') also describes nearby steps, to first order. With ν a change of
the initial velocities and δ one of the action, they end at

    (q' ⊕ (∂q'/∂v ν + ∂q'/∂a δ), v' + ∂v'/∂v ν + ∂v'/∂a δ),

with ⊕ the operation of `Engine.integrate`. The environment's functions compute observation and reward from both states
and a + δ. A reward to first order would underestimate the cost of every action by its second-order term, which over a
hundred steps exceeds the gain from the actions. Initial positions are not changed: near a joint at its stop or a foot
on the ground, half of the nearby positions are penetrating, and no step can start there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.core import State
from physvision.envs import Environment
from physvision.learning.replay_buffer import Batch, ReplayBuffer

PENDING, AVAILABLE, UNAVAILABLE = 0, 1, 2  # status of a transition's Jacobian


@dataclass(frozen=True)
class SampleEnhancementSettings:
    """Settings of augmented transitions.

    Attributes:
        augmented_per_real: Augmented transitions for each real one; 0 turns sample enhancement off. The paper uses 9.
        action_range: Largest change of an action, in units of its limit; larger ones add more information and error.
        velocity_range: Largest change of an initial velocity, in standard deviations of the replay buffer; larger ones
            add more information and error. Tuned on the ant, as `action_range` was.
        drop_contact_changes: If true, steps in which a contact or a joint stop opens or closes are not augmented.
        max_jacobian_norm: Largest norm of a Jacobian's row, in standard deviations; larger rows are scaled down to it.
            A larger limit admits stiffer steps.
        jacobian_batch: Steps that are differentiated in one launch; more of them take more memory.
    """

    augmented_per_real: int = 0
    action_range: float = 0.5
    velocity_range: float = 0.3
    drop_contact_changes: bool = False
    max_jacobian_norm: float = 10.0
    jacobian_batch: int = 50


class JacobianStats(NamedTuple):
    """Counts of transitions whose Jacobians were computed.

    Attributes:
        failed: Number of transitions whose Jacobian is not valid.
        dropped: Number of transitions left out because a contact changes in them.
        engine_steps: Environment steps that the engine simulated for them.
    """

    failed: int
    dropped: int
    engine_steps: int


class SampleEnhancement:
    """Jacobians of all transitions of a replay buffer, and the augmented transitions that follow from them.

    Attributes:
        env: Environment whose engine is differentiated.
        settings: Settings of augmented transitions.
        jacobian_buffer: Final state, Jacobian and status of each transition, at its index in the replay buffer.
        velocity_std: Standard deviation of each velocity in the replay buffer.
    """

    def __init__(self, env: Environment, settings: SampleEnhancementSettings, capacity: int) -> None:
        """Start without any transitions.

        Args:
            env: Environment whose engine is differentiated.
            settings: Settings of augmented transitions.
            capacity: Capacity of the replay buffer.
        """
        self.env, self.settings = env, settings
        nq, nv = env.engine.nq, env.engine.nv
        self.velocity_std, self._num_inputs = torch.ones(nv, dtype=torch.float64), nv + len(env.action_limit)
        self._field_sizes = {"jacobian": 2 * nv * self._num_inputs, "q": nq, "v": nv, "status": 0}
        dtypes = {"q": torch.float64, "v": torch.float64, "status": torch.int8}
        self.jacobian_buffer = ReplayBuffer(capacity, self._field_sizes, dtypes)

    def add(self, count: int) -> None:
        """Append a number of transitions, newly added to the replay buffer, with pending Jacobians."""
        rows = {name: torch.zeros(count, width) for name, width in self._field_sizes.items() if width}
        self.jacobian_buffer.add(rows | {"status": torch.full((count,), PENDING)})

    def compute_jacobians(self, replay_buffer: ReplayBuffer) -> JacobianStats:
        """Compute the Jacobians of all transitions that are pending."""
        failed, dropped, steps = 0, 0, 0
        self.velocity_std = replay_buffer.contents()["v"].std(0).clamp_min(1e-6)
        pending = torch.nonzero(self.jacobian_buffer.contents()["status"] == PENDING)[:, 0]
        for indices in pending.split(self.settings.jacobian_batch):
            rows = replay_buffer.gather(indices)
            end, jacobian, valid = step_jacobians(self.env, rows)
            failed, steps = failed + int((~valid).sum()), steps + len(indices) * jacobian.shape[1]
            if self.settings.drop_contact_changes:
                changed = valid & has_contact_change(self.env, rows)
                dropped, steps = dropped + int(changed.sum()), steps + len(indices)
                valid &= ~changed
            jacobian = torch.where(valid[:, None, None], self._clip_rows(jacobian), 0.0).flatten(1)
            status = torch.where(valid, AVAILABLE, UNAVAILABLE)
            self.jacobian_buffer.overwrite(indices, {"jacobian": jacobian, "q": end.q, "v": end.v, "status": status})
        return JacobianStats(failed, dropped, steps)

    def _clip_rows(self, jacobian: Float[Tensor, "rows outputs inputs"]) -> Float[Tensor, "rows outputs inputs"]:
        """Scale rows down to the largest norm; the unit of positions is `velocity_std` times the duration of a step."""
        step_duration = self.env.frame_skip * self.env.engine.dt
        output_units = torch.cat([step_duration * self.velocity_std, self.velocity_std])
        input_units = torch.cat([self.velocity_std, torch.ones(len(self.env.action_limit))])
        norm = (jacobian * input_units / output_units[:, None]).norm(dim=2, keepdim=True)
        limit = self.settings.max_jacobian_norm
        return jacobian * (limit / norm.clamp_min(limit))

    def augment(self, rows: Batch, indices: Tensor, generator: torch.Generator) -> Batch:
        """Replace all but one in `augmented_per_real` + 1 transitions by augmented ones; those without a Jacobian stay.

        Args:
            rows: Transitions of the replay buffer.
            indices: Their indices in the replay buffer.
            generator: Random generator of the choice of transitions and of their changes.
        """
        stored, count = self.jacobian_buffer.gather(indices), len(indices)
        keep_real = torch.rand(count, generator=generator) < 1 / (self.settings.augmented_per_real + 1)
        keep_real |= stored["status"] != AVAILABLE
        uniform = 2 * torch.rand(count, self._num_inputs, generator=generator) - 1
        dv, da = uniform.split([len(self.velocity_std), len(self.env.action_limit)], 1)
        dv, da = self.settings.velocity_range * self.velocity_std * dv, self.settings.action_range * da
        jacobian = stored["jacobian"].unflatten(1, (-1, self._num_inputs))
        augmented = augmented_transitions(self.env, rows, State(stored["q"], stored["v"]), jacobian, dv, da)
        return rows | {
            name: torch.where(keep_real[:, None] if value.ndim == 2 else keep_real, rows[name], value)
            for name, value in augmented.items()
        }

    def state_dict(self) -> dict[str, Any]:
        """Return the Jacobians and the standard deviations."""
        return {"jacobian_buffer": self.jacobian_buffer.state_dict(), "velocity_std": self.velocity_std}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        self.jacobian_buffer.load_state_dict(state["jacobian_buffer"])
        self.velocity_std = state["velocity_std"]


def step_jacobians(
    env: Environment, rows: Batch
) -> tuple[State, Float[Tensor, "rows outputs inputs"], Bool[Tensor, " rows"]]:
    """Return final states of transitions, the Jacobians ∂(q', v')/∂(v, a), and a mask of the valid ones.

    Derivatives of q' are those of its displacement, see `Engine.difference`. Each step is simulated once for each
    output, all of them in one forward and one backward launch.
    """
    engine, count = env.engine, len(rows["v"])
    outputs = 2 * engine.nv
    start = State(rows["q"], rows["v"]).repeat(outputs)
    v, action = start.v.requires_grad_(), rows["action"].to(start.q).repeat_interleave(outputs, 0).requires_grad_()
    with torch.enable_grad():
        result = env.step(State(start.q, v), action * action.new_tensor(env.action_limit))
        end = result.state
        values = torch.cat([engine.difference(end.q.detach(), end.q), end.v], 1).unflatten(0, (count, outputs))
        jacobian = torch.cat(torch.autograd.grad(values.diagonal(dim1=1, dim2=2).sum(), [v, action]), 1)
    jacobian = jacobian.unflatten(0, (count, outputs))
    valid = ~result.failed.unflatten(0, (count, outputs)).any(1) & jacobian.isfinite().all((1, 2))
    return State(end.q.detach()[::outputs], end.v.detach()[::outputs]), jacobian, valid


def has_contact_change(env: Environment, rows: Batch) -> Bool[Tensor, " rows"]:
    """Return true for transitions in which a contact or a joint stop opens or closes."""
    if env.contact_flags is None:
        return torch.zeros(len(rows["obs"]), dtype=torch.bool)
    start = State(rows["q"], rows["v"])
    with torch.no_grad():
        end = env.step(start, rows["action"].to(start.q) * start.q.new_tensor(env.action_limit)).state
    return (env.contact_flags(start) != env.contact_flags(end)).any(1)


def augmented_transitions(
    env: Environment,
    rows: Batch,
    end: State,
    jacobian: Float[Tensor, "rows outputs inputs"],
    dv: Float[Tensor, "rows velocities"],
    da: Float[Tensor, "rows actions"],
) -> Batch:
    """Return the fields in which an augmented transition differs from a real one, to first order.

    Args:
        env: Environment of the transitions.
        rows: Real transitions.
        end: Their final states.
        jacobian: Their Jacobians, as returned by `step_jacobians`.
        dv: Changes of the initial velocities, in m/s or rad/s.
        da: Changes of the actions, as fractions of the action limits; actions are clipped to [−1, 1].
    """
    action = (rows["action"] + da).clamp(-1, 1)
    start = State(rows["q"], rows["v"] + dv)
    inputs = torch.cat([dv.to(jacobian), (action - rows["action"]).to(jacobian)], 1)
    end_dq, end_dv = (jacobian @ inputs[..., None])[..., 0].to(end.q).chunk(2, 1)
    augmented_end = State(env.engine.integrate(end.q, end_dq), end.v + end_dv)
    next_obs = env.observe(augmented_end, rows["elapsed_steps"] + 1).to(rows["next_obs"])
    reward = env.reward(start, augmented_end, action.to(end.q) * end.q.new_tensor(env.action_limit))
    return {
        "obs": env.observe(start, rows["elapsed_steps"]).to(rows["obs"]),
        "v": start.v,
        "action": action,
        "next_obs": next_obs,
        "reward": reward.to(rows["reward"]),
        "terminated": env.is_terminal(next_obs).to(rows["terminated"]),
    }
