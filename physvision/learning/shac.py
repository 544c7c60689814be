"""Short-horizon actor–critic (Xu et al., ICLR 2022): gradients through policy and engine over short windows.

All worlds are played for a window of h periods with gradients; what lies beyond is told by a critic V:

    actor     −(Σ_t γ^t r_t + γ^h V(s_h)) / h        mean over worlds
    critic    (V(s_t) − R_t)²,   R_t = r_t + γ ((1 − λ) V̄(s_{t+1}) + λ R_{t+1}),   V̄ a slow copy

With a window as long as the episode of a timed game no critic is asked: that is backpropagation through the whole
rollout.

Adaptive horizon (after AHAC, Georgiev et al., ICML 2024): a period in which velocities change by more than a limit, as
in a stiff contact, ends a world's window as far as gradients go; the critic tells what comes after, and the next window
begins there. The length h rises where changes are on average below the limit, and falls where they are above.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from physvision.control.policies import Played, Watch, play
from physvision.core import InputError, State, TrainingError
from physvision.envs import Game
from physvision.learning.learner import Learner
from physvision.learning.networks import Actor, Layers, follow
from physvision.learning.task import GameTask


@dataclass(frozen=True)
class ShacSettings:
    """Numbers of the method.

    Attributes:
        worlds: how many are played at once.
        horizon: periods of a window, at first if it adapts.
        hidden: widths of the actor.
        critic_hidden: widths of the critic.
        rate: of Adam for the actor; it falls to a hundredth by the `steps`-th step.
        critic_rate: of Adam for the critic.
        steps: of the game over which the rates fall; they stay if it is 0.
        discount: γ.
        trace: λ.
        through: share of a world's signal that goes on through each period on its way back; the critic at the end of
            the period makes up for the rest.
        slow: share of the slow critic that stays with each window.
        passes: over what was seen, for the critic.
        parts: that a pass is split into.
        clip: largest norm of the actor's gradient.
        signal: largest norm of the derivative of what a world earns by its state between two periods; none if not
            given. Near contacts a few worlds' are a hundred times all others', which then learn nothing.
        spread: logarithm of the deviation of actions at the start.
        steady: whether networks are told what is seen in units of its deviations so far, layers between are levelled,
            and the deviation of actions is the same whatever is seen: three things that the authors' program does.
        varied: whether each world has properties of its own, drawn around those of the game's engine; evaluations have
            the engine's.
        push: deviation of what is added to each velocity where a window begins, m/s or rad/s.
        limit: of the acceleration over a period, m/s² and rad/s² as one norm, beyond which a window is cut; none if not
            given, and then the horizon does not adapt.
        horizons: the shortest and the longest window.
        adapt: periods by which the window changes where changes are far below the limit.
    """

    worlds: int = 64
    horizon: int = 32
    hidden: tuple[int, ...] = (128, 64, 32)
    critic_hidden: tuple[int, ...] = (64, 64)
    rate: float = 2e-3
    critic_rate: float = 2e-3
    steps: int = 0
    discount: float = 0.99
    trace: float = 0.95
    through: float = 1.0
    slow: float = 0.2
    passes: int = 16
    parts: int = 4
    clip: float = 1.0
    spread: float = -1.0
    limit: float | None = None
    horizons: tuple[int, int] = (8, 64)
    adapt: float = 1.0
    signal: float | None = None
    steady: bool = True
    varied: bool = False
    push: float = 0.0


class Shac(Learner):
    """An actor that learns through the engine, and its critic.

    Attributes:
        critic: values what is seen.
        horizon: of windows by now, which may lie between two whole numbers.
        unknown: how often the gradient of a world's period was no number.
    """

    def __init__(self, game: Game, settings: ShacSettings, seed: int) -> None:
        """Start the worlds, each at a time of its own if they end by time alone."""
        super().__init__(game, settings.worlds, seed)
        self.settings, self.horizon, self.unknown = settings, float(settings.horizon), 0
        seen = self.worlds.seen().shape[1]
        spread, steady = settings.spread, settings.steady
        self.actor = Actor(seen, settings.hidden, len(game.high), "elu", spread=spread, steady=steady)
        self.critic = Layers(1, (seen, *settings.critic_hidden, 1), "elu", levelled=steady)
        self.slow = deepcopy(self.critic).requires_grad_(False)
        betas = (0.7, 0.95)
        self.by_actor = torch.optim.Adam(self.actor.parameters(), settings.rate, betas, fused=True)
        self.by_critic = torch.optim.Adam(self.critic.parameters(), settings.critic_rate, betas, fused=True)
        if settings.varied and game.vary is None:
            raise InputError("varied: expected false for a game that has no other worlds, got true")
        chances = torch.Generator().manual_seed(seed)
        self._properties = game.vary(settings.worlds, chances) if settings.varied and game.vary else None
        self._told: dict[str, float] = {}

    def advance(self) -> None:
        """Play a window, and learn of it."""
        self._set_rates()
        task = GameTask(self.game, round(self.horizon), self.generator, self.settings.limit, self.dtype)
        watch, start = Watch(), self._pushed()
        times = self.worlds.played[:, None] + torch.arange(task.periods)
        # The backward pass is of the mean over worlds and periods.
        limit = None if self.settings.signal is None else self.settings.signal / times.numel()
        through, aims, properties = self.settings.through, times[..., None].float(), self._properties
        played = play(task, self.actor, start, aims, decay=through, limit=limit, watch=watch, properties=properties)
        window = self._judged(played, times)
        earned = self._returns(window)
        self.by_actor.zero_grad()
        (-earned[window.good].sum() / max(1, int(window.good.sum())) / task.periods).backward()
        self._follow(watch)
        values = self._learn_values(window)
        self._move(played, window)
        if self.settings.limit is not None:
            self._adapt(task, played)
        self.steps += self.worlds.count * task.periods
        paid, lost = window.reward.detach()[window.going].mean(), window.lost.any(1).double().mean()
        self._told |= {"paid": float(paid), "lost": float(lost), "critic": values, "horizon": float(task.periods)}

    def _pushed(self) -> State:
        """Where the worlds are, moving a little differently."""
        state, push = self.worlds.state, self.settings.push
        noise = torch.randn(state.v.shape, generator=self.generator, dtype=state.v.dtype) if push else 0.0
        return State(state.q, state.v + push * noise)

    def _judged(self, played: Played, times: Tensor) -> Window:
        """What was seen and earned in a window, and where worlds ended."""
        assert played.starts is not None
        game, before, after = self.game, played.starts.flatten(), played.trajectory[1:].flatten()
        reward = game.reward(before, after, played.controls.flatten(0, 1)).unflatten(0, times.shape).to(self.dtype)
        seen = game.observe(after, times.flatten() + 1).to(self.dtype).unflatten(0, times.shape)
        first = game.observe(before, times.flatten()).detach().to(self.dtype).unflatten(0, times.shape)
        assert played.failed is not None
        lost, over = game.is_over(seen.detach()), times + 1 >= game.periods
        ended = lost | over | played.failed
        going = torch.cat([torch.ones_like(ended[:, :1]), ~ended[:, :-1]], 1).cumprod(1).bool()
        good = ~(played.failed & going).any(1)
        cut = torch.zeros_like(ended) if played.cut is None else played.cut
        return Window(first, seen, reward, lost, over & ~lost, cut, going, good)

    def _returns(self, window: Window) -> Float[Tensor, " batch"]:
        """What each world earns: the stretches between cuts, each with the value of where it ends.

        Only the gradient counts where signals fade between periods: with g_t that by the state after period t, and d
        the share that goes through, g_t = ∂r_{t+1}/∂s_t + γ ∂s_{t+1}/∂s_t ((1 − d) ∂V/∂s_{t+1} + d g_{t+1}).
        """
        value = self._value(self.critic, window.seen, frozen=True)
        count = window.reward.shape[1]
        total, weight = window.reward.new_zeros(len(value)), window.reward.new_ones(len(value))
        for k in range(count):
            total = total + torch.where(window.going[:, k], weight * window.reward[:, k], 0.0)
            weight = weight * self.settings.discount
            ends = window.over[:, k] | window.cut[:, k] | (k == count - 1)
            told = torch.where(ends, weight, (1 - self.settings.through) * weight)
            total = total + torch.where(window.going[:, k] & ~window.lost[:, k], told * value[:, k], 0.0)
            weight = torch.where(window.cut[:, k], 1.0, weight)
        return total

    def _follow(self, watch: Watch) -> None:
        """One step of the actor."""
        self.unknown += len(watch.found)
        parameters = list(self.actor.parameters())
        norm = torch.nn.utils.clip_grad_norm_(parameters, self.settings.clip)
        self._told["norm"] = float(norm)
        if not bool(norm.isfinite()):
            where = ", ".join(f"world {world} in period {period}" for world, period in watch.found[:5])
            raise TrainingError(
                f"the actor's gradient after {self.steps} steps is no number; first at {where or 'none'}"
            )
        self.by_actor.step()

    @torch.no_grad()
    def _targets(self, window: Window) -> Float[Tensor, "batch periods"]:
        """R_t of every period that was played."""
        value = self._value(self.slow, window.seen)
        found, following = torch.zeros_like(value), value[:, -1]
        for k in reversed(range(value.shape[1])):
            trace = self.settings.trace
            mixed = torch.where(window.over[:, k], value[:, k], (1 - trace) * value[:, k] + trace * following)
            following = window.reward[:, k] + self.settings.discount * torch.where(window.lost[:, k], 0.0, mixed)
            found[:, k] = following
        return found

    def _learn_values(self, window: Window) -> float:
        """Fit the critic to what the window earned; its mean squared error."""
        window = window.detached()
        chosen = window.going & window.good[:, None]
        seen, target = window.first[chosen], self._targets(window)[chosen]
        total, count = 0.0, 0
        for _ in range(self.settings.passes):
            for part in torch.randperm(len(seen), generator=self.generator).chunk(self.settings.parts):
                loss = (self._value(self.critic, seen[part]) - target[part]).square().mean()
                self.by_critic.zero_grad()
                loss.backward()
                self.by_critic.step()
                total, count = total + loss.detach(), count + 1
        follow(self.slow, self.critic, 1 - self.settings.slow)
        if self.actor.measure is not None and len(seen):
            # Only now: within a window all networks are told in the same units.
            self.actor.measure.add(seen)
        return float(total) / max(1, count)

    def _value(self, critic: Layers, seen: Float[Tensor, "*batch numbers"], frozen: bool = False) -> Tensor:
        """What a critic thinks of what is seen, (*batch)."""
        rows = seen.flatten(0, -2)
        rows = rows if self.actor.measure is None else self.actor.measure(rows)
        return critic(rows, frozen)[0, :, 0].unflatten(0, seen.shape[:-1])

    def _move(self, played: Played, window: Window) -> None:
        """Put the worlds where they have got to, and start those anew that ended."""
        bad = ~window.good
        self.worlds.move(played.trajectory.final.detach(), bad, played.controls.shape[1])
        ended = (window.lost | window.over).any(1)
        self.worlds.restart(ended | bad)

    def _adapt(self, task: GameTask, played: Played) -> None:
        """Lengthen or shorten the windows to come."""
        path, limit = played.trajectory, self.settings.limit
        stiff = task.stiffness(path[:-1].flatten(), path[1:].flatten()).mean()
        low, high = self.settings.horizons
        assert limit is not None
        self.horizon = min(max(self.horizon + self.settings.adapt * (1 - float(stiff) / limit), low), high)

    def _set_rates(self) -> None:
        left = max(0.01, 1 - self.steps / self.settings.steps) if self.settings.steps else 1.0
        for optimizer, rate in ((self.by_actor, self.settings.rate), (self.by_critic, self.settings.critic_rate)):
            for group in optimizer.param_groups:
                group["lr"] = rate * left

    def told(self) -> dict[str, float]:
        """The last window, and what failed so far."""
        return self._told | {"failures": float(self.worlds.failures), "unknown": float(self.unknown)}

    def parts(self) -> dict[str, Any]:
        """Networks and optimizers."""
        names = ("actor", "critic", "slow", "by_actor", "by_critic")
        return {name: getattr(self, name) for name in names}

    def state_dict(self) -> dict[str, Any]:
        """Also the horizon."""
        return super().state_dict() | {"horizon": self.horizon, "unknown": self.unknown}

    def load_state_dict(self, kept: dict[str, Any]) -> None:
        """Go on from where `state_dict` was called."""
        super().load_state_dict(kept)
        self.horizon, self.unknown = kept["horizon"], kept["unknown"]


@dataclass(frozen=True)
class Window:
    """What was seen in each period of a window.

    Attributes:
        first: at its start, without gradients.
        seen: at its end.
        reward: of it.
        lost: whether the game was over then.
        over: whether its time was, and the game was not.
        cut: whether no signal goes back through it.
        going: whether the world still played.
        good: worlds that did not fail.
    """

    first: Float[Tensor, "batch periods numbers"]
    seen: Float[Tensor, "batch periods numbers"]
    reward: Float[Tensor, "batch periods"]
    lost: Bool[Tensor, "batch periods"]
    over: Bool[Tensor, "batch periods"]
    cut: Bool[Tensor, "batch periods"]
    going: Bool[Tensor, "batch periods"]
    good: Bool[Tensor, " batch"]

    def detached(self) -> Window:
        """The same without gradients."""
        return replace(self, seen=self.seen.detach(), reward=self.reward.detach())
