"""A pendulum seen by a camera: its network, its frames, and the gradient of the motion's cost through all of them."""

# pyright: reportAttributeAccessIssue=false

import math

import pytest
import torch

from physvision.control.pixels import (
    CartPoleRenderer,
    FramePolicy,
    PixelCartPoleTask,
    SceneVariation,
    StartDistribution,
    StateCartPoleTask,
    is_upright,
    load_policy,
    run_trials,
    save_policy,
    task_for_policy,
    trials,
    upright_angle,
)
from physvision.control.policies import MlpPolicy, rollout_policy
from physvision.core import CheckpointError, InputError, State
from physvision.physics.articulated import scenes


class Cost:
    """The mean loss of an episode over the weights of a policy."""

    def __init__(self, task, policy, start):
        self.task, self.policy, self.start = task, policy, start
        self.weights = list(policy.parameters())
        self.vector = torch.nn.utils.parameters_to_vector(self.weights).detach()

    def __call__(self, vector):
        torch.nn.utils.vector_to_parameters(vector, self.weights)
        goal = torch.zeros(self.start.batch, 6, dtype=torch.float64)
        return rollout_policy(self.task, self.policy, self.start, goal).losses.mean()

    def directions(self, count, seed):
        """Random ones, in which weights change by as much as they are large on average."""
        generator = torch.Generator().manual_seed(seed)
        return self.vector.abs().mean() * torch.randn(count, len(self.vector), generator=generator, dtype=torch.float64)

    def slopes(self, directions):
        gradient = torch.autograd.grad(self(self.vector), self.weights)
        return directions @ torch.cat([entry.flatten() for entry in gradient])

    @torch.no_grad()
    def differences(self, direction, steps):
        return [float(self(self.vector + h * direction) - self(self.vector - h * direction)) / (2 * h) for h in steps]


class DoubleTask(PixelCartPoleTask):
    """In float64, in which the kernels of contact are compiled for all tests."""

    def reset(self, batch, generator):
        start, goal = super().reset(batch, generator)
        return start.to(torch.float64), goal


def test_the_network_has_as_many_parameters_as_the_papers():
    assert sum(parameter.numel() for parameter in FramePolicy(96, 288).parameters()) == 1_065_888


@pytest.mark.parametrize("recompute", [False, True])
def test_a_frame_is_encoded_once_and_used_in_three_decisions(recompute):
    """Outputs are those of the three frames looked at afresh, and so are gradients."""
    torch.manual_seed(0)
    policy = FramePolicy(22, 30, channels=4, hidden=(6, 5), recompute=recompute).double()
    frames = torch.rand(5, 2, 3 * 22 * 30, dtype=torch.float64, requires_grad=True)
    memory, outputs, encoded, calls = policy.initial_hidden(frames[0]), [], policy.encode, []
    policy.encode = lambda given: calls.append(len(given)) or encoded(given)
    for frame in frames:
        output, memory = policy(frame, memory)
        outputs.append(output)
    assert calls == [2] * len(frames)
    at, before, older = (policy.encode(frames[k].unflatten(1, (3, 22, 30))) for k in (4, 3, 2))
    record = torch.cat([at, 5 * (at - before), 5 * (before - older)], 1)
    fresh = policy.output(policy.second(policy.first(record).relu()).relu())
    torch.testing.assert_close(outputs[-1], fresh)
    slopes = [torch.autograd.grad(entry.sum(), frames, retain_graph=True)[0] for entry in (outputs[-1], fresh)]
    torch.testing.assert_close(*slopes)
    # The first frame stands for those before it, so nothing has changed yet.
    zero_output, _ = policy(frames[0], policy.initial_hidden(frames[0]))
    torch.testing.assert_close(outputs[0], zero_output)
    single = policy.encode(frames[0].unflatten(1, (3, 22, 30)))
    alone = policy.first(torch.cat([single, 0 * single, 0 * single], 1)).relu()
    torch.testing.assert_close(outputs[0], policy.output(policy.second(alone).relu()))


def test_a_batch_is_drawn_as_its_worlds_are_one_by_one():
    view = CartPoleRenderer(scenes.load("cart"), 16, 48)
    state = State(torch.tensor([[0.1, 0.3], [-0.2, 2.9]]), torch.zeros(2, 2))
    looks = SceneVariation(
        torch.tensor([[1.0, 1.0, 1.0], [0.9, 1.1, 1.0]]), torch.tensor([[0.0, 0.0, 0.0], [0.1, 0.1, -0.1]])
    )
    pair = view(state, looks)
    torch.testing.assert_close(pair[0], view(State(state.q[:1], state.v[:1]))[0])
    alone = view(
        State(state.q[1:], state.v[1:]), variation=SceneVariation(looks.color_gains[1:], looks.noise_strengths[1:])
    )[0]
    torch.testing.assert_close(pair[1], alone)
    # Light and stains change the picture where nothing moves, too.
    plain = view(State(state.q[1:], state.v[1:]))[0]
    assert float((alone - plain)[:, 0, 0].abs().min()) > 0


def test_the_tip_is_seen_where_the_engine_has_it():
    """The pole's colors are around the projection of the middle of the rod."""
    view = CartPoleRenderer(scenes.load("cart"), 96, 288)
    state = State(torch.tensor([[0.2, 0.8]]), torch.zeros(1, 2))
    changed = (view(state)[0] - view.background).abs().sum(0)
    # Red is more, blue less: what the pole does to the wall, and the cart does not.
    shown = ((view(state)[0] - view.background)[0] > 0.1) * changed
    rows, columns = torch.meshgrid(torch.arange(96.0), torch.arange(288.0), indexing="ij")
    focal, away = 48 / math.tan(0.2), 2.4 - 0.04
    middle = torch.tensor([0.2 + 0.2 * math.sin(0.8), 0.2 * math.cos(0.8)])
    expected = torch.tensor([143.5 + focal * float(middle[0]) / away, 47.5 - focal * float(middle[1]) / away])
    result = torch.stack([(shown * columns).sum(), (shown * rows).sum()]) / shown.sum()
    assert float((result - expected).norm()) < 2.0


def test_the_servo_reaches_its_velocity_with_ten_newtons():
    """From rest its force is at the limit, so 10 N speed up what 0.6 kg hang on; then it runs at what is asked for."""
    task = StateCartPoleTask()
    start = State(torch.tensor([[0.0, math.pi]], dtype=torch.float64), torch.zeros(1, 2, dtype=torch.float64))
    first = task.engine.step(start, torch.ones(1, 1, dtype=torch.float64))
    # A rod that hangs and is free to turn weighs on its hinge with a quarter of its mass.
    assert float(first.v[0, 0]) == pytest.approx(10 / (0.5 + 0.1 / 4) * 0.01, rel=2e-3)
    held = task.engine.rollout(start, 25, torch.ones(1, 25, 1, dtype=torch.float64)).final
    assert float(held.v[0, 0]) == pytest.approx(1.0, abs=0.05)
    stopped = task.engine.rollout(start, 100, torch.ones(1, 100, 1, dtype=torch.float64)).final
    assert float(stopped.q[0, 0]) == pytest.approx(0.4, abs=1e-6)


def test_gradients_through_camera_network_and_physics_are_those_of_differences():
    """In three random directions, where differences at three step sizes agree within half a percent."""
    task, start = (
        PixelCartPoleTask(22, 64, episode_steps=6),
        State(*torch.tensor([[[0.1, 0.4]], [[0.2, 0.5]]], dtype=torch.float64)),
    )
    torch.manual_seed(1)
    policy = FramePolicy(22, 64, 4, (8, 8)).double()
    cost = Cost(task, policy, start)
    directions = cost.directions(4, seed=2)
    compared = []
    for direction, slope in zip(directions, cost.slopes(directions), strict=True):
        differences = cost.differences(direction, (1e-3, 5e-4, 2.5e-4))
        if max(differences) - min(differences) < 0.005 * abs(differences[-1]):
            compared.append(slope / differences[-1])
    assert len(compared) >= 2
    assert compared == pytest.approx([1.0] * len(compared), rel=0.01)
    task.through_camera = False
    cut = cost.slopes(directions)
    task.through_camera = True
    # Without what the camera says of other states the gradient is another.
    assert float((cut - cost.slopes(directions)).norm()) > 0.02 * float(cut.norm())


def test_the_backward_signal_is_limited_world_by_world():
    """At the unstable top it grows from period to period; a limit keeps the others' as it is."""
    task = StateCartPoleTask(episode_steps=40)
    torch.manual_seed(0)
    policy = MlpPolicy(5, (8,), 1).double()
    start = State(torch.tensor([[0.0, 0.02], [0.0, 3.1]], dtype=torch.float64), torch.zeros(2, 2, dtype=torch.float64))
    q = start.q.requires_grad_()

    def slopes(limit):
        losses = rollout_policy(task, policy, State(q, start.v), torch.zeros(2, 6), max_state_grad_norm=limit).losses
        return torch.autograd.grad(losses[:, -1].sum(), q)[0]

    free, limited = slopes(None), slopes(1e3)
    torch.testing.assert_close(free, limited)
    tight = slopes(0.01)
    assert float(tight.norm(dim=1).max()) < 0.1 < float(free.norm(dim=1).max())


def test_starts_hang_or_lean_as_they_are_asked_to():
    generator = torch.Generator().manual_seed(0)
    hanging = StartDistribution().sample(200, generator)
    assert float((hanging.q[:, 1] - math.pi).abs().max()) <= 0.1
    assert float(hanging.q[:, 0].abs().max()) <= 0.05
    assert not bool(hanging.v.any())
    leans = StartDistribution(hanging_fraction=0.0, max_angle=0.3, max_rate=1.0).sample(200, generator)
    assert 0.25 < float(leans.q[:, 1].abs().max()) <= 0.3
    assert 0.4 < float(leans.v[:, 0].abs().max()) <= 0.5


def test_whole_turns_stand_as_well():
    state = State(torch.tensor([[0.0, 2 * math.pi + 0.1], [0.0, math.pi + 0.1]]), torch.zeros(2, 2))
    torch.testing.assert_close(upright_angle(state), torch.tensor([0.1, 0.1 - math.pi]))
    angles = torch.tensor([[1.0, 0.1, -0.1], [0.1, 0.1, 0.3]])
    assert is_upright(angles, 2).tolist() == [True, False]


def test_a_policy_is_tried_and_kept_in_a_file(tmp_path):
    """One that does nothing hangs; the file gives it back; another kind of file is refused."""
    policy = FramePolicy(22, 64, 4, (8, 8))
    path = save_policy(tmp_path / "mine.safetensors", policy)
    again = load_policy(path)
    assert all(torch.equal(a, b) for a, b in zip(again.parameters(), policy.parameters(), strict=True))
    assert task_for_policy(again).renderer.background.shape[-2:] == (22, 64)
    again.double().zero_output()
    result = run_trials(DoubleTask(22, 64), again, count=2, seconds=0.2, hold_seconds=0.1)
    assert result.angles.shape == (2, 10)
    assert float(result.angles.abs().min()) > 3.0
    assert not bool(result.upright.any())
    assert result.rise_times.tolist() == pytest.approx([0.2, 0.2])
    with pytest.raises(CheckpointError, match="expected the format 'physvision pendulum 1'"):
        load_policy("flow")


@pytest.mark.parametrize("seconds", [0.02, 0.204])
def test_a_trial_of_a_part_of_a_decision_more(seconds, monkeypatch):
    """What is too short for another decision is left out."""
    monkeypatch.setattr(trials, "PUSH_TIME_S", 0.2)
    policy = FramePolicy(22, 64, 4, (8, 8)).double()
    policy.zero_output()
    assert run_trials(DoubleTask(22, 64), policy, 1, seconds, 0.02).angles.shape == (1, round(seconds / 0.02))


def test_a_trial_without_a_decision_is_refused():
    policy = FramePolicy(22, 64, 4, (8, 8))
    with pytest.raises(InputError, match=r"seconds: expected at least those of one decision, 0.02, got 0.001"):
        run_trials(task_for_policy(policy), policy, 1, 0.001)


@pytest.mark.extended
def test_the_policy_that_is_shipped_swings_poles_up():
    """Poles that hang are upright in the end as often as is asked of it: eighteen of twenty starts."""
    policy = load_policy()
    result = run_trials(task_for_policy(policy), policy, count=20, seconds=15.0, hold_seconds=5.0)
    assert float(result.angles[:, 0].abs().min()) > 2.5
    assert int(result.upright.sum()) >= 18


def test_a_push_changes_the_poles_rate(monkeypatch):
    monkeypatch.setattr(trials, "PUSH_TIME_S", 0.4)
    policy = FramePolicy(22, 64, 4, (8, 8)).double()
    policy.zero_output()
    zero_output, pushed = (
        run_trials(DoubleTask(22, 64), policy, 1, 0.42, 0.02, push=push).motion for push in (0.0, 2.0)
    )
    torch.testing.assert_close(zero_output.q[:, :20], pushed.q[:, :20])
    assert float((pushed.v - zero_output.v)[0, -1, 1]) == pytest.approx(2.0, abs=0.1)
