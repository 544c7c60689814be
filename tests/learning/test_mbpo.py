"""What critics learn from where a model or a network goes wrong."""

import pytest
import torch

from physvision.core import TrainingError
from physvision.envs import ENVIRONMENTS
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.off_policy import OffPolicySettings
from physvision.learning.sac import SacSettings
from physvision.learning.world_model import WorldModelSettings

PLAY = OffPolicySettings(SacSettings((16, 16), batch_size=20), learning_starts=30)
MODEL = WorldModelSettings(ensemble_size=2, num_elites=1, hidden_sizes=(16,), batch_size=8, max_updates=20)


@pytest.fixture
def learner():
    result = Mbpo(ENVIRONMENTS["Links2"](), MbpoSettings(PLAY, MODEL, num_model_rollouts=40, rollout_length=(2, 2)), 0)
    while result.env_steps < 30:
        result.advance()
    return result


def test_steps_into_the_unknown_are_left_out_and_counted(learner):
    """A quarter comes to 1e30, and a quarter to no number; the rest goes on, and is imagined further."""
    before, predict = learner.discarded_counts["model_steps"], learner.model.predict

    def wild(obs, action):
        next_obs, reward = predict(obs, action)
        next_obs[0::4, 0], next_obs[1::4, 0] = 1e30, float("nan")
        return next_obs, reward

    learner.model.predict = wild
    learner._roll_out_model()
    retained = learner.model_buffer.contents()
    assert retained["next_obs"].abs().max() < 1e3
    assert retained["obs"].abs().max() < 1e3
    # Of 40 and, at most, of the 20 that are left.
    assert 20 + 10 >= learner.discarded_counts["model_steps"] - before >= 20


def test_where_nothing_is_known_true_steps_are_learned_from(learner):
    learner.model_buffer.size = 0
    learner.model.in_training_range = lambda obs: torch.zeros(len(obs), dtype=torch.bool)
    learner._roll_out_model()
    assert learner.model_buffer.size == 0
    batch, known = learner.batch(), learner.replay_buffer.contents()["next_obs"]
    assert len(batch["next_obs"]) == 20
    assert (batch["next_obs"][:, None] == known).all(2).any(1).all()


def test_networks_that_are_no_numbers_end_the_run_with_an_error(learner):
    with torch.no_grad():
        learner.sac.critics.weights[0][0, 0, 0] = float("nan")
    learner.advance()
    with pytest.raises(TrainingError, match=r"critic_loss: expected a finite loss, got nan after 31 environment steps"):
        learner.metrics()
