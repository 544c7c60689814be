"""The LightningModule of prediction autoencoders, whatever they predict."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import torch
from lightning.pytorch.utilities.rank_zero import rank_zero_warn
from lightning.pytorch.utilities.types import OptimizerLRScheduler
from torch import Tensor, nn
from torch.optim import Optimizer

from physvision.core import InputError, State, TrainingError
from physvision.datasets import Sample
from physvision.datasets.modules import DataModule
from physvision.models import Forecast, Observation, PredictiveAutoencoder, TableEncoder, build
from physvision.models.checkpoints import stored_configuration
from physvision.models.object_order import aligned, with_empty_slots
from physvision.models.segmenting_encoder import Segmentation, SegmentingEncoder
from physvision.models.tabletop import park_states
from physvision.trainers.batches import check_finite, context_of, divergence_message, frozen, with_labels
from physvision.trainers.checkpoints import fault_of_loading, load_weights
from physvision.trainers.encoder_terms import estimate_terms, later_terms, segmentation_terms
from physvision.trainers.metrics import PredictionMetrics
from physvision.trainers.optimization import OptimizationSettings, adam, clip_gradients
from physvision.trainers.resuming import ResumableTraining
from physvision.trainers.segmentation import SegmentationSupervision
from physvision.trainers.settings import ForecastSettings, SampleSettings
from physvision.trainers.stages import FROM_RANDOM_WEIGHTS, Stages
from physvision.trainers.supervision import Estimate, Supervision
from physvision.trainers.symmetries import Symmetry, transformed
from physvision.trainers.synthetic import check_synthetic, synthetic

_FORECAST, _SAMPLES, _OPTIMIZATION = ForecastSettings(), SampleSettings(), OptimizationSettings()


class PredictionTraining(ResumableTraining):
    """Trains a `PredictiveAutoencoder` to predict states and frames."""

    def __init__(
        self,
        model: PredictiveAutoencoder | dict[str, Any],
        supervision: Supervision,
        segmentation: SegmentationSupervision | None = None,
        forecast: ForecastSettings = _FORECAST,
        samples: SampleSettings = _SAMPLES,
        optimization: OptimizationSettings = _OPTIMIZATION,
        stages: Stages = FROM_RANDOM_WEIGHTS,
    ) -> None:
        """Choose model, loss and schedules.

        Args:
            model: Model to train, or its configuration.
            supervision: Loss function.
            segmentation: Loss of the segmentation of a `SegmentingEncoder`; the default one if not given.
            forecast: Length of the forecasts, and the frames that are rendered of them.
            samples: Samples that the parts of the model learn from.
            optimization: Learning rates and limits of the gradient.
            stages: Weights that the training starts from, and which part of the model its first updates train.
        """
        super().__init__()
        self.model = build(model) if isinstance(model, dict) else model
        self.supervision = supervision
        if "mirror" in samples.symmetries:
            supervision.coordinates.check_mirror("symmetries")
        self.forecast_settings, self.samples, self.optimization, self.stages = forecast, samples, optimization, stages
        self.metrics = nn.ModuleDict()
        self.segmentation = None
        if stages.synthetic:
            check_synthetic(self.model)
        if isinstance(self.model.encoder, SegmentingEncoder):
            self.segmentation = segmentation or SegmentationSupervision()
            self.segmentation.start(self.model.encoder.segmentation)

    def setup(self, stage: str) -> None:
        """Refuse data whose frames are not the engine's steps: every velocity would be wrong by one factor."""
        super().setup(stage)
        if stage == "fit" and (fault := fault_of_loading(self.model)) is not None:
            rank_zero_warn(f"no checkpoint of this training can be exported or used by predict: {fault}")
        if stage == "fit" and self.stages.weights and self.trainer.ckpt_path is None:
            load_weights(self.model, self.stages.weights)
            if isinstance(self.model.encoder, SegmentingEncoder):
                assert self.segmentation is not None
                self.segmentation.start(self.model.encoder.segmentation)
        source, dt = getattr(self.trainer, "datamodule", None), self.model.engine.dt
        if not isinstance(source, DataModule):
            return
        if self.supervision.frame_weight == 0 and stage == "fit" and not source.windows("train").labeled.all():
            raise InputError(
                "supervision.frame_weight: 0 leaves samples without labels nothing to teach; raise it, or set "
                "data.labels.batch_fraction to 1 or data.labels.fraction to 1"
            )
        if abs(source.dt - dt) > 1e-3 * dt:
            raise InputError(
                f"data: {source.path} has {1 / source.dt:g} frames a second, but the engine steps {1 / dt:g} times; "
                "change the configuration's dt, or make the data anew"
            )

    def forward(self, frames: Tensor, steps: int, rendered_steps: Sequence[int] | None = None) -> Forecast:
        """Predict `steps` steps past the last of `frames`."""
        return self.model(frames, steps, rendered_steps, self.forecast_settings.truncate)

    def training_step(self, batch: Sample, batch_idx: int) -> Tensor:
        """Compute the loss of a batch."""
        check_finite(batch)
        batch = transformed(batch, self._sampled_symmetries())
        alone = self.global_step < max(self.stages.segmentation_updates, self.stages.encoder_updates)
        if alone and self.stages.synthetic:
            batch = synthetic(self.model, batch)
        batch = self.prepare(batch)
        if self.segmentation is not None and alone and bool(batch.labeled.any()):
            batch, forecast = batch[torch.nonzero(batch.labeled)[:, 0].tolist()], None
            terms = self._encoder_losses(batch)
        else:
            terms, forecast = self.losses(batch, self.steps_of(batch))
        if not bool(torch.isfinite(terms["loss"])):
            raise TrainingError(divergence_message(forecast, batch))
        size = batch.batch
        for name, value in terms.items():
            self.log(f"train/{name}", value.detach(), on_step=False, on_epoch=True, sync_dist=True, batch_size=size)
        self.log("train/loss_step", terms["loss"].detach(), prog_bar=True, sync_dist=True, batch_size=size)
        status = None if forecast is None else forecast.trajectory.status
        if status is not None:
            failed = (~status.converged).float().mean()
            self.log("train/failed", failed, on_step=False, on_epoch=True, sync_dist=True, batch_size=size)
        return terms["loss"]

    def after_update(self) -> None:
        """Average the weights of the segmentation's teacher."""
        if self.segmentation is not None:
            assert isinstance(self.model.encoder, SegmentingEncoder)
            self.segmentation.follow(self.model.encoder.segmentation)

    def prepare(self, sample: Sample) -> Sample:
        """Move the balls of empty slots off the table in the labels, as the engine has them."""
        if sample.trajectory is None or not sample.properties or "present" not in sample.properties:
            return sample
        return replace(sample, trajectory=park_states(sample.trajectory, sample.properties["present"] > 0.5))

    def losses(self, sample: Sample, steps: int) -> tuple[dict[str, Tensor], Forecast]:
        """Compute all weighted loss terms of a prepared batch, and the forecast behind them."""
        estimate, forecast, segmented = self._predict(sample, steps)
        terms = self.supervision(forecast, sample, estimate, self.global_step)
        if segmented is not None:
            assert self.segmentation is not None
            observation = forecast.observation
            assert observation is not None
            ramp = min(1.0, self.global_step / max(1, self.supervision.ramp_updates))
            terms |= segmentation_terms(self.segmentation, self.model, sample, segmented, observation.properties, ramp)
            terms |= estimate_terms(self.model.encoder, observation, sample, self.supervision.property_weight)
            terms |= later_terms(self.model, forecast, sample, self.supervision, ramp)
            terms["loss"] = torch.stack([value for name, value in terms.items() if name != "loss"]).sum()
        return terms, forecast

    def _encoder_losses(self, sample: Sample) -> dict[str, Tensor]:
        """Compute the loss of a part of the encoder, on a prepared batch of labeled samples."""
        encoder, true, context = self.model.encoder, sample.ahead, context_of(sample)
        assert isinstance(encoder, SegmentingEncoder)
        assert self.segmentation is not None
        assert true is not None
        if self.global_step < self.stages.segmentation_updates:
            segmented = encoder.segment(sample.observed, context)
            terms = segmentation_terms(self.segmentation, self.model, sample, segmented, sample.properties, 0.0)
        else:
            with frozen(encoder.segmentation):
                encoded = encoder.encode(sample.observed, context, looks=False)[0]
            observation = self.aligned(encoded.to(torch.float32), sample)
            loss = self.supervision.state_loss(observation.trajectory[-1:], true[:1])
            terms = {"encoder": self.supervision.encoder_weight * loss}
            terms |= estimate_terms(self.model.encoder, observation, sample, self.supervision.property_weight)
        return terms | {"loss": torch.stack(list(terms.values())).sum()}

    def _predict(self, sample: Sample, steps: int) -> tuple[Estimate, Forecast, Segmentation | None]:
        """Encode and predict, from true states and properties where they are known and wanted, else from estimates."""
        true, onward, truncate = sample.ahead, self.supervision.onward, self.forecast_settings.truncate
        every_window = self.samples.encoder_windows == "all" and true is not None and bool(sample.labeled.any())
        frames = sample.frames if every_window else sample.observed
        context, segmented = context_of(sample), None
        if isinstance(self.model.encoder, SegmentingEncoder):
            encoded, segmented = self.model.encoder.encode(frames, context)
            observation = self.aligned(encoded.to(torch.float32), sample)
            values = self.model.encoder.refined(observation, frames.shape[1], segmented.motion).properties
        else:
            observation = self.model.observe(frames, context)
            values = observation.properties
        states = observation.trajectory[sample.given - 1 - frames.shape[1] :]
        own = states.state(0)
        start, onward_values, future = own, values, None
        if onward == "label" and true is not None and bool(sample.labeled.any()):
            known, now = sample.labeled[:, None], true.state(0)
            start = State(torch.where(known, now.q, own.q), torch.where(known, now.v, own.v))
            onward_values = with_labels(values, sample)
            if self.supervision.physics_weight:
                with frozen(self.model.engine):  # the encoder's errors teach the encoder, not the physics
                    future = self.model.simulate(own, steps, truncate, values)
        trajectory = self.model.simulate(start, steps, truncate, onward_values)
        rendered, looks = tuple(self._sampled_steps(steps)), observation.appearance
        poses = None if context is None else context.extrinsics_at(sample.given - 1, rendered)
        labeled = sample.labeled if self.samples.decoder_samples == "labeled" else torch.ones_like(sample.labeled)
        images = self.model.decode(trajectory, rendered, onward_values, looks, poses)
        if not bool(labeled.all()):
            with frozen(self.model):
                constant = self.model.simulate(start, steps, truncate, onward_values)
                weak = self.model.decode(constant, rendered, onward_values, looks, poses)
            images = torch.where(labeled[:, None, None, None, None], images, weak)
        return Estimate(states, future), Forecast(trajectory, rendered, images, observation), segmented

    def weak_loss(self, sample: Sample, steps: int) -> tuple[Tensor, list[Tensor]]:
        """Compute the loss of frames predicted from the encoder alone.

        The decoder's inputs that bypass the engine, properties and appearance, are constants here.

        Returns:
            The weighted loss, and the encoder's outputs that the engine starts from: q, v and properties.
        """
        context, model = context_of(sample), self.model
        observation = model.observe(sample.observed, context)
        start, values = model.initial_state(observation), dict(observation.properties or {})
        trajectory = model.simulate(start, steps, self.forecast_settings.truncate, values)
        looks = observation.appearance
        looks = None if looks is None else replace(looks, code=looks.code.detach())
        constants = {name: value.detach() for name, value in values.items()}
        poses = None if context is None else context.extrinsics_at(sample.given - 1, (steps,))
        images = model.decode(trajectory, (steps,), constants, looks, poses)
        terms = self.supervision(Forecast(trajectory, (steps,), images), replace(sample, trajectory=None))
        return terms["frames"], [value for value in (start.q, start.v, *values.values()) if value.requires_grad]

    def aligned(self, observation: Observation, sample: Sample) -> Observation:
        """Bring the encoder's objects into the order of the labels, and complete what only labels know.

        Objects are assigned at the last given frame, once for all times. Slots that are empty take the labels' place.
        """
        encoder, true = self.model.encoder, sample.ahead
        if not isinstance(encoder, TableEncoder) or true is None:
            return observation
        now, labeled = true.state(0), sample.labeled
        present = torch.ones_like(now.q[:, ::3], dtype=torch.bool)
        if sample.properties and "present" in sample.properties:
            present = sample.properties["present"] > 0.5
        return with_empty_slots(aligned(observation, now, present, labeled), now, present, labeled)

    def steps_of(self, sample: Sample) -> int:
        """Number of steps to predict in this epoch."""
        return self.forecast_settings.steps_at(self.current_epoch, sample.horizon)

    def _sampled_steps(self, steps: int) -> list[int]:
        """Sample the steps to render."""
        count = self.forecast_settings.rendered_frames
        if count == "last":
            return [steps]
        return torch.randperm(steps + 1, generator=self._generator(0))[:count].sort().values.tolist()

    def _sampled_symmetries(self) -> list[Symmetry]:
        """Sample the symmetries to apply."""
        symmetries = self.samples.symmetries
        coins = torch.rand(len(symmetries), generator=self._generator(1)) < 0.5
        return [symmetry for symmetry, head in zip(symmetries, coins.tolist(), strict=True) if head]

    def _generator(self, purpose: int) -> torch.Generator:
        """A generator of this update's own, so that a resumed run and every process choose alike."""
        return torch.Generator().manual_seed(2 * self.global_step + purpose)

    def on_validation_epoch_start(self) -> None:
        """Reset the metrics of the stage."""
        self.metrics.clear()

    def on_test_epoch_start(self) -> None:
        """Reset the metrics of the stage."""
        self.metrics.clear()

    def validation_step(self, batch: Sample, batch_idx: int) -> None:
        """Update metrics and log the loss."""
        self._measure("validation", batch)

    def test_step(self, batch: Sample, batch_idx: int) -> None:
        """Update metrics and log the loss."""
        self._measure("test", batch)

    def predict_step(self, batch: Sample, batch_idx: int) -> Forecast:
        """Predict over the horizon of the samples."""
        return self.forecast(self.prepare(batch))

    def forecast(self, sample: Sample, steps: Sequence[int] | None = None) -> Forecast:
        """Predict a prepared batch from its given frames alone; labels only number the objects."""
        context, model = context_of(sample), self.model
        observation = self.aligned(model.observe(sample.observed, context), sample)
        trajectory = model.simulate(model.initial_state(observation), sample.horizon, None, observation.properties)
        indices = tuple(range(1, sample.horizon + 1)) if steps is None else tuple(steps)
        poses = None if context is None else context.extrinsics_at(sample.given - 1, indices)
        images = model.decode(trajectory, indices, observation.properties, observation.appearance, poses)
        return Forecast(trajectory, indices, images, observation)

    def _measure(self, stage: str, batch: Sample) -> None:
        batch = self.prepare(batch)
        if stage not in self.metrics:
            measured = [step for step in self.forecast_settings.eval_steps if step <= batch.horizon]
            metrics = PredictionMetrics(self.supervision.coordinates, measured, self.model.engine.dt)
            self.metrics[stage] = metrics.to(self.device)
        metrics = self.metrics[stage]
        assert isinstance(metrics, PredictionMetrics)
        forecast = self.forecast(batch, metrics.steps)
        terms = self.supervision(forecast, batch)
        metrics.update(forecast, batch)
        size = batch.batch
        self.log(f"{stage}/loss", terms["loss"], prog_bar=stage == "validation", sync_dist=True, batch_size=size)

    def on_validation_epoch_end(self) -> None:
        """Log what was measured."""
        self._log_measured("validation")

    def on_test_epoch_end(self) -> None:
        """Log what was measured."""
        self._log_measured("test")

    def _log_measured(self, stage: str) -> None:
        metrics = self.metrics[stage]
        assert isinstance(metrics, PredictionMetrics)
        self.log_dict({f"{stage}/{name}": value for name, value in metrics.compute().items()})

    def configure_optimizers(self) -> OptimizerLRScheduler:
        """Adam, with a group each for the encoder, the other networks and physical parameters."""
        rates, warmup_updates = self.optimization.peak_rates, self.optimization.warmup_updates
        return adam(self.parameter_groups(), rates, warmup_updates, int(self.trainer.estimated_stepping_batches))

    def configure_gradient_clipping(
        self, optimizer: Optimizer, gradient_clip_val: float | None = None, gradient_clip_algorithm: str | None = None
    ) -> None:
        """Clip each group apart, see `clip_gradients`."""
        for name, norm in clip_gradients(self.parameter_groups(), self.optimization.max_norms).items():
            self.log(f"train/gradient_{name}", norm)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Group trainable parameters: encoder, other networks, physics."""
        physical = list(self.model.engine.physical_parameters())
        encoder = [p for p in self.model.encoder.parameters() if p.requires_grad]
        apart = {id(parameter) for parameter in (*encoder, *physical)}
        networks = [p for p in self.model.parameters() if id(p) not in apart and p.requires_grad]
        return {"encoder": encoder, "networks": networks, "physics": physical}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Keep what rebuilds the model beside its weights, as text, if all its parts are registered."""
        super().on_save_checkpoint(checkpoint)
        with suppress(InputError):
            checkpoint["configuration"] = json.dumps(stored_configuration(self.model))
