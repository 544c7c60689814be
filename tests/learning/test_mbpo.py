"""What critics learn from where a model or a network goes wrong."""

import pytest
import torch

from physvision.core import TrainingError
from physvision.envs import GAMES
from physvision.learning.dynamics import DynamicsSettings
from physvision.learning.mbpo import Mbpo, MbpoSettings
from physvision.learning.recorded import RecordedSettings
from physvision.learning.sac import SacSettings

PLAY = RecordedSettings(SacSettings((16, 16), batch=20), first=30)
MODEL = DynamicsSettings(members=2, elites=1, hidden=(16,), batch=8, most=20)


@pytest.fixture
def learner():
    made = Mbpo(GAMES["Links2"](), MbpoSettings(PLAY, MODEL, rollouts=40, lengths=(2, 2)), 0)
    while made.steps < 30:
        made.advance()
    return made


def test_steps_into_the_unknown_are_left_out_and_counted(learner):
    """A quarter comes to 1e30, and a quarter to no number; the rest goes on, and is imagined further."""
    before, step = learner.unknown["imagined"], learner.model.step

    def wild(seen, action):
        after, reward = step(seen, action)
        after[0::4, 0], after[1::4, 0] = 1e30, float("nan")
        return after, reward

    learner.model.step = wild
    learner._imagine()
    kept = learner.imagined.all()
    assert kept["after"].abs().max() < 1e3
    assert kept["seen"].abs().max() < 1e3
    # Of 40 and, at most, of the 20 that are left.
    assert 20 + 10 >= learner.unknown["imagined"] - before >= 20


def test_where_nothing_is_known_true_steps_are_learned_from(learner):
    learner.imagined.size = 0
    learner.model.knows = lambda seen: torch.zeros(len(seen), dtype=torch.bool)
    learner._imagine()
    assert learner.imagined.size == 0
    batch, known = learner.batch(), learner.record.all()["after"]
    assert len(batch["after"]) == 20
    assert (batch["after"][:, None] == known).all(2).any(1).all()


def test_networks_that_are_no_numbers_end_the_run_with_an_error(learner):
    with torch.no_grad():
        learner.agent.critics.weights[0][0, 0, 0] = float("nan")
    learner.advance()
    with pytest.raises(TrainingError, match=r"critics: expected a number, got nan after 31 steps"):
        learner.told()
