"""Once starts have widened the learning rate of the pendulum falls, and frames have noise."""

import pytest
import torch

from physvision.core.serialization import build_arguments
from physvision.trainers import CurriculumSettings, ObservationSettings, PendulumTraining, StabilizerSettings

from lightning import Callback, Trainer  # isort: skip

STATE = ObservationSettings("state")


class Rates(Callback):
    """Writes down the rate that each update was made with."""

    def __init__(self):
        self.rates = []

    def on_train_batch_end(self, trainer, *_):
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])


def rates(tmp_path, module):
    observed = Rates()
    options = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False, "accelerator": "cpu"}
    Trainer(default_root_dir=tmp_path, max_epochs=1, enable_checkpointing=False, callbacks=[observed], **options).fit(
        module
    )
    return observed.rates


@pytest.mark.extended
def test_the_rate_falls_to_a_fiftieth_once_starts_have_widened(tmp_path):
    curriculum = CurriculumSettings(initial_progress=1.0, settling_updates=2)
    module = PendulumTraining(STATE, updates=4, batch=2, learning_rate=1e-3, curriculum=curriculum)
    assert rates(tmp_path, module) == pytest.approx([1e-3, 0.51e-3, 0.02e-3, 0.02e-3])


@pytest.mark.extended
def test_the_rate_stays_while_starts_widen(tmp_path):
    curriculum = CurriculumSettings(settling_updates=2)
    module = PendulumTraining(STATE, updates=2, batch=2, learning_rate=1e-3, curriculum=curriculum)
    assert rates(tmp_path, module) == pytest.approx([1e-3, 1e-3])
    assert float(module.settled) == 0


@pytest.mark.parametrize(("progress", "noise"), [(1.0, 0.02), (0.5, 0.0)])
def test_frames_have_noise_once_starts_have_widened(progress, noise):
    module = PendulumTraining(batch=1, curriculum=CurriculumSettings(initial_progress=progress, pixel_noise=0.02))
    module.choose_episode()
    state, aim = module.course.reset(1, torch.Generator().manual_seed(0))
    apart = module.course.observe(state, aim) - module.course.observe(state, aim)
    # Noise is enlarged with the frame; of the difference of two frames it is √2 times as large.
    assert float(apart.std()) == pytest.approx(2 * 2**0.5 * noise, rel=0.05, abs=1e-12)


def test_stabilizers_that_are_given_in_part_keep_the_pendulums_own_defaults():
    """Not those of other policies, which have no limit."""
    given = {"stabilizers": {"gradient_decay": 0.9}}
    stabilizers = build_arguments(PendulumTraining, given, "model")["stabilizers"]
    assert (stabilizers.gradient_decay, stabilizers.max_state_grad_norm) == (0.9, 10.0)
    assert StabilizerSettings().max_state_grad_norm is None
