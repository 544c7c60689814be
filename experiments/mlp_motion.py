"""Motion of balls by a network of two hidden layers, the baseline beside the engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor, nn

from physvision.core import State, Trajectory
from physvision.datasets import Dataset

_HIDDEN = 100


class MlpMotion(nn.Module):
    """Motion of all balls by one network of two hidden layers, in place of the engine.

    Args:
        slots: Number of balls.
        size: Width of the picture, px.
        dt: Time between frames, s.
        properties: If true, the network is given the properties of trials.
    """

    def __init__(self, slots: int, size: float, dt: float, properties: bool) -> None:
        super().__init__()
        self.slots, self.size, self.dt, self.properties = slots, size, dt, properties
        inputs, outputs = (7 * slots + 7 if properties else 4 * slots), 4 * slots
        self.layers = nn.Sequential(
            *(nn.Linear(inputs, _HIDDEN), nn.SiLU(), nn.Linear(_HIDDEN, _HIDDEN), nn.SiLU()),
            nn.Linear(_HIDDEN, outputs),
        )
        nn.init.zeros_(self.layers[-1].weight)
        nn.init.zeros_(self.layers[-1].bias)

    def _known(self, properties: Mapping[str, Tensor]) -> Tensor:
        present = properties["present"]
        balls = [properties["mass"] - 1.0, 0.25 * properties["radius"], present]
        trial = [properties[name][:, None] for name in ("restitution", "wall_restitution")]
        return torch.cat(
            [*balls, *trial, 0.1 * properties["sliding_deceleration"][:, None], properties["walls"] / self.size], 1
        )

    def rollout(self, state: State, steps: int, properties: Mapping[str, Tensor] | None) -> Trajectory:
        """States after each of `steps` steps of dt."""
        known = [self._known(properties)] if self.properties and properties is not None else []
        present = properties["present"] if properties and "present" in properties else torch.ones_like(state.q[:, ::3])
        states = [state]
        for _ in range(steps):
            q, v = (part.unflatten(1, (self.slots, 3)) for part in (states[-1].q, states[-1].v))
            places = torch.where(present[..., None] > 0.5, q[..., :2] / self.size, 0.0)
            inputs = torch.cat([places.flatten(1), (self.dt * v[..., :2]).flatten(1), *known], 1)
            shift, change = self.layers(inputs).unflatten(1, (2, self.slots, 2)).unbind(1)
            still = torch.zeros_like(q[..., :1])
            q = q + torch.cat([self.dt * v[..., :2] + shift, still], -1)
            v = v + torch.cat([change / self.dt, still], -1)
            states.append(State(q.flatten(1), v.flatten(1)))
        return Trajectory(torch.stack([s.q for s in states], 1), torch.stack([s.v for s in states], 1), dt=self.dt)


def learn_motion(data: Path, ahead: int, updates: int = 10000, batch: int = 256, seed: int = 0) -> MlpMotion:
    """Train the network on the true states of all training trials of balls without properties.

    Args:
        data: Folder of the data set.
        ahead: Number of steps that are predicted, all of which count.
        updates: Number of updates.
        batch: Number of motions of an update.
        seed: Seed of weights and of motions.
    """
    torch.manual_seed(seed)
    dataset = Dataset(data, "train")
    paths = [dataset.trajectory(trial) for trial in range(len(dataset))]
    q, v = (torch.cat([getattr(path, name) for path in paths]).float() for name in "qv")
    trials, frames, size = q.shape
    network = MlpMotion(size // 3, float(dataset.frame_format.width), dataset.dt, properties=False)
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, updates)
    steps = torch.arange(ahead + 1)
    for _ in range(updates):
        rows = torch.randint(trials, (batch,))[:, None], torch.randint(frames - ahead, (batch,))[:, None] + steps
        true = q[rows], v[rows]
        path = network.rollout(State(true[0][:, 0], true[1][:, 0]), ahead, None)
        places, rates = path.q - true[0], network.dt * (path.v - true[1])
        loss = places.abs().mean() + rates.abs().mean()  # of angles the errors are constant
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return network.eval()
