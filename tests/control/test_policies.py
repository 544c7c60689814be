"""Policies in the loop: gradients through policy, memory and engine; servos; the habits of training."""

import math

import pytest
import torch

from physvision.control.policies import (
    FeedbackTask,
    MlpPolicy,
    OpenLoopTask,
    Policy,
    rollout_open_loop,
    rollout_policy,
)
from physvision.control.policies.rollouts import scale_gradient
from physvision.core import State
from physvision.physics import articulated
from physvision.trainers import PolicyTraining, StabilizerSettings


class Swing(FeedbackTask):
    """A pendulum of two rods whose policy senses all of its state and pushes both hinges."""

    def __init__(self, episode_steps=6, frame_skip=2):
        self.engine = articulated.chain([0.5, 0.4], dt=0.01)
        self.episode_steps, self.frame_skip = episode_steps, frame_skip

    def reset(self, batch, generator):
        q = torch.randn(batch, 2, generator=generator, dtype=torch.float64)
        return State(q, torch.zeros_like(q)), torch.ones(batch, 1, dtype=torch.float64)

    def observe(self, state, goal):
        return torch.cat([state.q, state.v, goal], 1)

    def act(self, state, output):
        return 10 * output

    def losses(self, state, goal):
        return (state.q - goal).square().sum(1)


class GruPolicy(Policy):
    """Gated recurrent unit and a linear output layer."""

    def __init__(self, obs_size, hidden_size, output_size):
        super().__init__()
        self.hidden_size = hidden_size
        self.cell = torch.nn.GRUCell(obs_size, hidden_size)
        self.output = torch.nn.Linear(hidden_size, output_size)

    def forward(self, obs, hidden):
        hidden = self.cell(obs, hidden)
        return self.output(hidden), hidden


def make(kind):
    torch.manual_seed(3)
    policy = MlpPolicy(5, (7,), 2) if kind == "dense" else GruPolicy(5, 6, 2)
    return policy.double()


@pytest.mark.parametrize("kind", ["dense", "recurrent"])
def test_gradients_of_weights_are_those_of_differences(kind):
    """Central differences at two step sizes, whose extrapolation leaves a fourth order."""
    task, policy = Swing(), make(kind)
    start, goal = task.reset(2, torch.Generator().manual_seed(1))
    vector = torch.nn.utils.parameters_to_vector(policy.parameters()).detach()
    direction = torch.randn(len(vector), generator=torch.Generator().manual_seed(2), dtype=torch.float64)

    def loss(step):
        torch.nn.utils.vector_to_parameters(vector + step * direction, policy.parameters())
        return rollout_policy(task, policy, start, goal).losses.mean()

    gradient = torch.cat([entry.flatten() for entry in torch.autograd.grad(loss(0.0), list(policy.parameters()))])
    with torch.no_grad():
        coarse, fine = ((loss(h) - loss(-h)) / (2 * h) for h in (2e-3, 1e-3))
    assert float(gradient @ direction) == pytest.approx(float(4 * fine - coarse) / 3, rel=1e-7)


def test_a_memory_carries_gradients_and_starts_blank():
    """What is sensed in the first period matters for the last output only through the memory."""
    policy = make("recurrent")
    first = torch.randn(1, 5, dtype=torch.float64, requires_grad=True)
    memory = policy.initial_hidden(first)
    assert not bool(memory.any())
    _, memory = policy(first, memory)
    output, _ = policy(torch.zeros_like(first), memory)
    assert float(torch.autograd.grad(output.sum(), first)[0].abs().max()) > 0


def test_a_period_is_steps_of_one_control():
    task, policy = Swing(episode_steps=3, frame_skip=4), make("dense")
    start, goal = task.reset(2, torch.Generator().manual_seed(1))
    rollout = rollout_policy(task, policy, start, goal)
    whole = task.engine.rollout(start, 12, rollout.controls.repeat_interleave(4, 1))
    torch.testing.assert_close(rollout.trajectory.q, whole.q[:, ::4], rtol=0, atol=1e-14)
    torch.testing.assert_close(rollout.losses[:, -1], task.losses(whole.final, goal))


def test_the_backward_signal_decays():
    """Of a loss at the end, the gradient by the start is the decay to the power of the periods between."""
    task, policy = Swing(episode_steps=5), make("dense")
    start, goal = task.reset(1, torch.Generator().manual_seed(1))
    q = start.q.requires_grad_()

    def slope(decay):
        rollout = rollout_policy(task, policy, State(q, start.v), goal, gradient_decay=decay)
        return torch.autograd.grad(rollout.losses[0, -1], q)[0]

    torch.testing.assert_close(slope(0.9), 0.9**4 * slope(1.0))
    assert scale_gradient(q, 0.5).equal(q)


class Ahead(OpenLoopTask):
    """The same pendulum, whose policy is told the time and the goal."""

    def __init__(self, episode_steps=6):
        self.swing = Swing(episode_steps)
        self.engine, self.episode_steps, self.frame_skip = self.swing.engine, episode_steps, self.swing.frame_skip

    def reset(self, batch, generator):
        return self.swing.reset(batch, generator)

    def losses(self, state, goal):
        return self.swing.losses(state, goal)

    def observe(self, goal):
        times = torch.arange(self.episode_steps, dtype=goal.dtype)[:, None].expand(len(goal), -1, 4)
        return torch.cat([times, goal.unsqueeze(1).expand(-1, self.episode_steps, -1)], 2)

    def act(self, output):
        return 10 * output


def test_a_plan_is_played_as_if_asked_period_by_period():
    """Motion, losses, and gradients that decay between pieces; piece by piece of one period as in `rollout_policy`."""
    plan, policy = Ahead(), make("dense")
    start, goal = plan.reset(2, torch.Generator().manual_seed(1))
    times = plan.observe(goal)

    class Clocked(Swing):
        count = -1

        def observe(self, state, goal):
            self.count += 1
            return times[:, self.count]

    def result(player, task, **options):
        rollout = player(task, policy, start, goal, **options)
        slopes = torch.autograd.grad(rollout.losses.mean(), list(policy.parameters()))
        return [rollout.trajectory.q, rollout.controls, rollout.losses, *slopes]

    for decay in (1.0, 0.9, torch.tensor([[0.9], [0.5]], dtype=torch.float64)):
        for value, reference in zip(
            result(rollout_open_loop, plan, gradient_decay=decay, chunk_steps=1),
            result(rollout_policy, Clocked(), gradient_decay=decay),
            strict=True,
        ):
            torch.testing.assert_close(value, reference, rtol=0, atol=1e-12)
    # A longer piece moves alike, and its gradient decays less often.
    apart = [
        a - b
        for a, b in zip(
            result(rollout_open_loop, plan, gradient_decay=0.9, chunk_steps=3),
            result(rollout_open_loop, plan),
            strict=True,
        )
    ]
    assert max(float(entry.detach().abs().max()) for entry in apart[:3]) < 1e-12
    assert max(float(entry.abs().max()) for entry in apart[3:]) > 1e-6


def trained(updates, learning_rate=1e-3, **habits):
    from lightning import Trainer

    stabilizers = StabilizerSettings(**habits)
    module = PolicyTraining(
        make("dense"), Swing(), updates, batch=4, learning_rate=learning_rate, stabilizers=stabilizers
    )
    quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    Trainer(max_epochs=1, accelerator="cpu", **quiet).fit(module)
    return module


def test_training_makes_the_loss_smaller():
    module = trained(updates=40, learning_rate=0.01)
    task = module.task
    start, goal = task.reset(64, torch.Generator().manual_seed(9))
    zero_output = make("dense")
    zero_output.zero_output()
    with torch.no_grad():
        assert float(rollout_policy(task, module.policy, start, goal).losses.mean()) < 0.9 * float(
            rollout_policy(task, zero_output, start, goal).losses.mean()
        )


def test_each_habit_is_an_option():
    """Before the first update outputs are zero; the gradient that Adam sees is clipped; the loss is that asked for."""
    module = trained(updates=1, learning_rate=0.0)
    assert not bool(module.last.controls.any())
    assert bool(trained(updates=1, zero_init_output=False).last.controls.any())

    def norm(limit):
        module = trained(updates=1, learning_rate=0.0, zero_init_output=False, max_grad_norm=limit)
        return math.sqrt(sum(float(parameter.grad.square().sum()) for parameter in module.policy.parameters()))

    assert norm(None) > 1e-2
    assert norm(1e-3) == pytest.approx(1e-3, rel=1e-3)
    for mean_loss in (True, False):
        stabilizers = StabilizerSettings(mean_loss=mean_loss, gradient_decay=1.0)
        module = PolicyTraining(make("dense"), Swing(), 1, batch=4, stabilizers=stabilizers)
        module.log = lambda *_, **__: None
        loss = module.training_step(0, 0)
        losses = module.last.losses
        assert float(loss) == pytest.approx(float((losses if mean_loss else losses[:, -1]).mean()))
