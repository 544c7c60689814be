"""Short-horizon actor–critic (SHAC; Xu et al., ICLR 2022): gradients through policy and engine over short windows.

All worlds are simulated for a window of h steps with gradients; a critic V estimates the return beyond:

    actor     −(Σ_t γ^t r_t + γ^h V(s_h)) / h        mean over worlds
    critic    (V(s_t) − R_t)²,   R_t = r_t + γ ((1 − λ) V̄(s_{t+1}) + λ R_{t+1}),   V̄ the target critic

With a window as long as the episode of a time-aware environment, the critic is not evaluated, and the method is
backpropagation through the whole rollout.

Adaptive horizon (after AHAC, Georgiev et al., ICML 2024): a step whose acceleration exceeds a limit, as in a stiff
contact, cuts a world's gradient; the critic estimates the return beyond, and gradients of later steps end there.
The length h grows where the mean acceleration is below the limit, and shrinks where it is above.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.policies import GradientMonitor, PolicyRollout, rollout_policy
from physvision.core import InputError, State, TrainingError
from physvision.envs import Environment
from physvision.learning.actor import Actor
from physvision.learning.env_task import EnvironmentTask
from physvision.learning.learner import Learner
from physvision.learning.networks import EnsembleMlp, polyak_update

ADAM_BETAS = (0.7, 0.95)  # those of the SHAC authors' code
MIN_LR_FRACTION = 0.01  # fraction of the initial learning rate at the end of the decay


@dataclass(frozen=True)
class ShacSettings:
    """Settings of short-horizon actor–critic (SHAC). Defaults are the authors' code's, with smaller networks.

    Attributes:
        num_envs: Worlds that are simulated together; more of them make gradients less noisy.
        horizon: Environment steps of a window, initial ones if the horizon adapts; longer windows rely less on the
            critic and have noisier gradients.
        hidden_sizes: Hidden layer sizes of the actor.
        critic_hidden_sizes: Hidden layer sizes of the critic.
        actor_lr: Initial learning rate of Adam for the actor; a higher one learns faster and less stably.
        critic_lr: Initial learning rate of Adam for the critic.
        lr_decay_steps: Environment steps over which learning rates fall to a hundredth; 0 for constant rates.
        discount: Discount factor γ; closer to 1 it looks further ahead.
        td_lambda: Weight λ of long returns in the critic's targets; higher has less bias and more variance.
        gradient_decay: Fraction of a world's gradient that is propagated back through each step; the critic's gradient
            after the step replaces the rest. Lower is smoother and more biased.
        target_tau: Fraction by which the target critic follows the critic after each window; higher is faster and less
            stable.
        critic_epochs: Epochs of critic updates over a window.
        num_minibatches: Minibatches of an epoch.
        max_grad_norm: Largest norm of the actor's gradient; larger gradients are scaled down to it.
        init_log_std: Initial logarithm of the standard deviation of actions; higher explores more.
        max_acceleration: Acceleration over a step, m/s² and rad/s² in one norm, above which a window's gradient is cut;
            None for no limit and a constant horizon.
        horizon_range: Shortest and longest window, in environment steps.
        horizon_lr: Steps by which the horizon grows after each window whose acceleration is far below the limit.
        max_state_grad_norm: Largest norm of the derivative of a world's return with respect to its state between two
            steps; None for no limit. Near contacts, those of a few worlds are a hundred times larger than all
            others.
        normalize_obs: If true, observations are normalized by their running mean and standard deviation.
        layer_norm: If true, hidden layers are normalized.
        state_independent_std: If true, the standard deviation of actions does not depend on the observation.
        domain_randomization: If true, each world has its own properties, drawn around the engine's; evaluations use the
            engine's.
        reset_noise: Standard deviation of the noise on velocities at the start of each window, in m/s or rad/s.
    """

    num_envs: int = 64
    horizon: int = 32
    hidden_sizes: tuple[int, ...] = (128, 64, 32)
    critic_hidden_sizes: tuple[int, ...] = (64, 64)
    actor_lr: float = 2e-3
    critic_lr: float = 2e-3
    lr_decay_steps: int = 0
    discount: float = 0.99
    td_lambda: float = 0.95
    gradient_decay: float = 1.0
    target_tau: float = 0.8
    critic_epochs: int = 16
    num_minibatches: int = 4
    max_grad_norm: float = 1.0
    init_log_std: float = -1.0
    max_acceleration: float | None = None
    horizon_range: tuple[int, int] = (8, 64)
    horizon_lr: float = 1.0
    max_state_grad_norm: float | None = None
    normalize_obs: bool = True
    layer_norm: bool = True
    state_independent_std: bool = True
    domain_randomization: bool = False
    reset_noise: float = 0.0


@dataclass(frozen=True)
class Window:
    """Transitions of all worlds over a window.

    Attributes:
        obs: Observations at the start of each step, without gradients.
        next_obs: Observations at the end of each step.
        reward: Reward of each step.
        terminated: If true, the step ends in a terminal state.
        truncated: If true, the step reaches the time limit of an episode that is not terminated.
        gradient_cut: If true, no gradient is propagated back through the step.
        active: If true, the episode had not ended before the step.
        valid: If true, the world did not fail.
    """

    obs: Float[Tensor, "batch steps obs"]
    next_obs: Float[Tensor, "batch steps obs"]
    reward: Float[Tensor, "batch steps"]
    terminated: Bool[Tensor, "batch steps"]
    truncated: Bool[Tensor, "batch steps"]
    gradient_cut: Bool[Tensor, "batch steps"]
    active: Bool[Tensor, "batch steps"]
    valid: Bool[Tensor, " batch"]

    def detached(self) -> Window:
        """Return the window without gradients."""
        return replace(self, next_obs=self.next_obs.detach(), reward=self.reward.detach())


class Shac(Learner):
    """Short-horizon actor–critic: an actor that learns through the engine, and its critic.

    Use it where the engine is differentiable and many worlds are cheap; it assumes rewards that are smooth in state and
    action. The module's docstring describes the method.

    Attributes:
        critic: Value network on observations.
        target_critic: Copy of the critic that follows it slowly.
        horizon: Current length of a window before rounding, in environment steps.
        nonfinite_gradients: Number of steps whose gradient was not finite and was set to zero.
    """

    def __init__(self, env: Environment, settings: ShacSettings, seed: int) -> None:
        """Reset the worlds and initialize the networks.

        Args:
            env: Environment to train on.
            settings: Settings of SHAC.
            seed: Seed of all random numbers.
        """
        super().__init__(env, settings.num_envs, seed)
        self.settings, self.horizon, self.nonfinite_gradients = settings, float(settings.horizon), 0
        obs_size = self.worlds.observations().shape[1]
        self.actor = Actor(
            obs_size,
            settings.hidden_sizes,
            len(env.action_limit),
            "elu",
            init_log_std=settings.init_log_std,
            normalize_obs=settings.normalize_obs,
            layer_norm=settings.layer_norm,
            state_independent_std=settings.state_independent_std,
        )
        critic_sizes = (obs_size, *settings.critic_hidden_sizes, 1)
        self.critic = EnsembleMlp(1, critic_sizes, "elu", layer_norm=settings.layer_norm)
        self.target_critic = deepcopy(self.critic).requires_grad_(False)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), settings.actor_lr, ADAM_BETAS, fused=True)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), settings.critic_lr, ADAM_BETAS, fused=True)
        self._properties = None
        if settings.domain_randomization:
            if env.randomize is None:
                raise InputError(
                    "domain_randomization: expected false for an environment without `randomize`, got true"
                )
            self._properties = env.randomize(settings.num_envs, torch.Generator().manual_seed(seed))
        self._metrics: dict[str, float] = {}

    def advance(self) -> None:
        """Simulate a window and learn from it."""
        settings = self.settings
        self._decay_learning_rates()
        task = EnvironmentTask(self.env, round(self.horizon), self.generator, settings.max_acceleration, self.dtype)
        monitor, start = GradientMonitor(), self._noisy_state()
        steps = self.worlds.elapsed_steps[:, None] + torch.arange(task.episode_steps)
        # The backward pass differentiates the mean over worlds and steps, so the limit is divided by their number.
        limit = None if settings.max_state_grad_norm is None else settings.max_state_grad_norm / steps.numel()
        rollout = rollout_policy(
            task,
            self.actor,
            start,
            steps[..., None].float(),
            gradient_decay=settings.gradient_decay,
            max_state_grad_norm=limit,
            monitor=monitor,
            properties=self._properties,
        )
        window = self._window(rollout, steps)
        returns = self._actor_objective(window)
        self.actor_optimizer.zero_grad()
        (-returns[window.valid].sum() / max(1, int(window.valid.sum())) / task.episode_steps).backward()
        self._update_actor(monitor)
        critic_loss = self._update_critic(window)
        self._advance_worlds(rollout, window)
        if settings.max_acceleration is not None:
            self._adapt_horizon(task, rollout, settings.max_acceleration)
        self.env_steps += self.worlds.num_envs * task.episode_steps
        self._metrics |= {
            "mean_reward": float(window.reward.detach()[window.active].mean()),
            "termination_rate": float(window.terminated.any(1).double().mean()),
            "critic_loss": critic_loss,
            "horizon": float(task.episode_steps),
        }

    def _noisy_state(self) -> State:
        """Return the current states of the worlds with noise added to the velocities."""
        state, std = self.worlds.state, self.settings.reset_noise
        noise = torch.randn(state.v.shape, generator=self.generator, dtype=state.v.dtype) if std else 0.0
        return State(state.q, state.v + std * noise)

    def _window(self, rollout: PolicyRollout, steps: Tensor) -> Window:
        """Return the observations, rewards and episode ends of a rollout."""
        assert rollout.starts is not None
        assert rollout.failed is not None
        env, before, after = self.env, rollout.starts.flatten(), rollout.trajectory[1:].flatten()
        reward = env.reward(before, after, rollout.controls.flatten(0, 1)).unflatten(0, steps.shape).to(self.dtype)
        next_obs = env.observe(after, steps.flatten() + 1).to(self.dtype).unflatten(0, steps.shape)
        obs = env.observe(before, steps.flatten()).detach().to(self.dtype).unflatten(0, steps.shape)
        terminated, time_limit = env.is_terminal(next_obs.detach()), steps + 1 >= env.max_episode_steps
        done = terminated | time_limit | rollout.failed
        active = torch.cat([torch.ones_like(done[:, :1]), ~done[:, :-1]], 1).cumprod(1).bool()
        valid = ~(rollout.failed & active).any(1)
        gradient_cut = torch.zeros_like(done) if rollout.gradient_cut is None else rollout.gradient_cut
        truncated = time_limit & ~terminated
        return Window(obs, next_obs, reward, terminated, truncated, gradient_cut, active, valid)

    def _actor_objective(self, window: Window) -> Float[Tensor, " batch"]:
        """Return the return of each world: rewards of each segment between cuts, and the value of its last state.

        If gradients decay between steps, only the gradient of the result is meaningful. With g_t the gradient with
        respect to the state after step t, and d the decay,
        g_t = ∂r_{t+1}/∂s_t + γ ∂s_{t+1}/∂s_t ((1 − d) ∂V/∂s_{t+1} + d g_{t+1}).
        """
        value = self._value(self.critic, window.next_obs, frozen_weights=True)
        num_steps = window.reward.shape[1]
        total, weight = window.reward.new_zeros(len(value)), window.reward.new_ones(len(value))
        for k in range(num_steps):
            total = total + torch.where(window.active[:, k], weight * window.reward[:, k], 0.0)
            weight = weight * self.settings.discount
            segment_ends = window.truncated[:, k] | window.gradient_cut[:, k] | (k == num_steps - 1)
            value_weight = torch.where(segment_ends, weight, (1 - self.settings.gradient_decay) * weight)
            bootstraps = window.active[:, k] & ~window.terminated[:, k]
            total = total + torch.where(bootstraps, value_weight * value[:, k], 0.0)
            weight = torch.where(window.gradient_cut[:, k], 1.0, weight)
        return total

    def _update_actor(self, monitor: GradientMonitor) -> None:
        """Take one step of Adam for the actor."""
        self.nonfinite_gradients += len(monitor.nonfinite)
        norm = torch.nn.utils.clip_grad_norm_(list(self.actor.parameters()), self.settings.max_grad_norm)
        self._metrics["grad_norm"] = float(norm)
        if not bool(norm.isfinite()):
            locations = ", ".join(f"world {world} at step {step}" for world, step in monitor.nonfinite[:5])
            raise TrainingError(
                f"actor gradient is {float(norm)} after {self.env_steps} environment steps (first non-finite at: "
                f"{locations or 'none in a single world'}); lower actor_lr or max_state_grad_norm"
            )
        self.actor_optimizer.step()

    @torch.no_grad()
    def _td_lambda_targets(self, window: Window) -> Float[Tensor, "batch steps"]:
        """Return the TD(λ) return R_t of every step."""
        value = self._value(self.target_critic, window.next_obs)
        targets, next_return, td_lambda = torch.zeros_like(value), value[:, -1], self.settings.td_lambda
        for k in reversed(range(value.shape[1])):
            bootstrap = (1 - td_lambda) * value[:, k] + td_lambda * next_return
            bootstrap = torch.where(window.truncated[:, k], value[:, k], bootstrap)
            bootstrap = torch.where(window.terminated[:, k], 0.0, bootstrap)
            next_return = window.reward[:, k] + self.settings.discount * bootstrap
            targets[:, k] = next_return
        return targets

    def _update_critic(self, window: Window) -> float:
        """Fit the critic to the window's returns and return its mean squared error."""
        window = window.detached()
        mask = window.active & window.valid[:, None]
        obs, target = window.obs[mask], self._td_lambda_targets(window)[mask]
        total, num_updates = 0.0, 0
        for _ in range(self.settings.critic_epochs):
            order = torch.randperm(len(obs), generator=self.generator)
            for minibatch in order.chunk(self.settings.num_minibatches):
                loss = (self._value(self.critic, obs[minibatch]) - target[minibatch]).square().mean()
                self.critic_optimizer.zero_grad()
                loss.backward()
                self.critic_optimizer.step()
                total, num_updates = total + loss.detach(), num_updates + 1
        polyak_update(self.target_critic, self.critic, self.settings.target_tau)
        if self.actor.normalizer is not None and len(obs):
            # Updated last, because all networks have to use the same normalization within a window.
            self.actor.normalizer.update(obs)
        return float(total) / max(1, num_updates)

    def _value(self, critic: EnsembleMlp, obs: Float[Tensor, "*batch obs"], frozen_weights: bool = False) -> Tensor:
        """Return a critic's values of observations, (*batch)."""
        rows = obs.flatten(0, -2)
        rows = rows if self.actor.normalizer is None else self.actor.normalizer(rows)
        return critic(rows, frozen_weights)[0, :, 0].unflatten(0, obs.shape[:-1])

    def _advance_worlds(self, rollout: PolicyRollout, window: Window) -> None:
        """Set the worlds to the end of the window and reset those whose episode ended."""
        failed = ~window.valid
        self.worlds.set_states(rollout.trajectory.final.detach(), failed, rollout.controls.shape[1])
        self.worlds.reset((window.terminated | window.truncated).any(1) | failed)

    def _adapt_horizon(self, task: EnvironmentTask, rollout: PolicyRollout, max_acceleration: float) -> None:
        """Lengthen or shorten later windows according to the mean acceleration of this one."""
        trajectory = rollout.trajectory
        acceleration = task.mean_acceleration(trajectory[:-1].flatten(), trajectory[1:].flatten()).mean()
        shortest, longest = self.settings.horizon_range
        horizon = self.horizon + self.settings.horizon_lr * (1 - float(acceleration) / max_acceleration)
        self.horizon = min(max(horizon, shortest), longest)

    def _decay_learning_rates(self) -> None:
        """Set the learning rates for the current environment step."""
        settings = self.settings
        decay_steps = settings.lr_decay_steps
        fraction = max(MIN_LR_FRACTION, 1 - self.env_steps / decay_steps) if decay_steps else 1.0
        for optimizer, lr in ((self.actor_optimizer, settings.actor_lr), (self.critic_optimizer, settings.critic_lr)):
            for group in optimizer.param_groups:
                group["lr"] = lr * fraction

    def metrics(self) -> dict[str, float]:
        """Return statistics of the last window and the number of failures so far."""
        failures = {"failures": self.worlds.failures, "nonfinite_gradients": self.nonfinite_gradients}
        return self._metrics | {name: float(value) for name, value in failures.items()}

    def modules(self) -> dict[str, Any]:
        """Return the networks and their optimizers."""
        names = ("actor", "critic", "target_critic", "actor_optimizer", "critic_optimizer")
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Return the base class's state, the horizon and the number of nonfinite gradients."""
        return super().state_dict() | {"horizon": self.horizon, "nonfinite_gradients": self.nonfinite_gradients}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the result of `state_dict`."""
        super().load_state_dict(state)
        self.horizon, self.nonfinite_gradients = state["horizon"], state["nonfinite_gradients"]
