"""Arguments of Lightning's Trainer that a configuration may give, with the values that each may have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lightning import Callback
from lightning.pytorch.loggers import Logger
from lightning.pytorch.strategies import Strategy


@dataclass(frozen=True)
class TrainerSettings:
    """Arguments of Lightning's Trainer that a configuration may give; their meanings are Lightning's.

    Attributes:
        accelerator: Kind of device.
        strategy: Name of a strategy of Lightning, or an allowed class.
        devices: Number of devices, their indices, or "auto".
        num_nodes: Number of machines.
        precision: Precision of the numbers.
        logger: Loggers; false for none.
        callbacks: Callbacks beside Lightning's own.
        fast_dev_run: Number of batches of a trial run without checkpoints; false for a real run.
        max_epochs: Largest number of epochs.
        min_epochs: Smallest number of epochs.
        max_steps: Largest number of updates; -1 for no limit.
        min_steps: Smallest number of updates.
        max_time: Largest duration, DD:HH:MM:SS or a mapping such as {hours: 2}.
        limit_train_batches: Number or fraction of the training batches of an epoch.
        limit_val_batches: Number or fraction of the validation batches.
        limit_test_batches: Number or fraction of the test batches.
        limit_predict_batches: Number or fraction of the prediction batches.
        overfit_batches: Number or fraction of the training batches that serve for everything.
        val_check_interval: Number or fraction of training batches between validations.
        check_val_every_n_epoch: Number of epochs between validations.
        num_sanity_val_steps: Number of validation batches before the training.
        log_every_n_steps: Number of updates between two logged values.
        enable_checkpointing: If true, write checkpoints.
        enable_progress_bar: If true, show a progress bar.
        enable_model_summary: If true, print a summary of the model.
        accumulate_grad_batches: Number of batches an update.
        gradient_clip_val: Limit of the gradients; None for none.
        gradient_clip_algorithm: Kind of that limit.
        deterministic: If true, use deterministic algorithms alone.
        benchmark: If true, let cuDNN choose its algorithms by measuring them.
        inference_mode: If true, evaluate in torch's inference mode.
        use_distributed_sampler: If true, give each process its own samples.
        profiler: Name of a profiler of Lightning.
        detect_anomaly: If true, use torch's anomaly detection.
        barebones: If true, switch off all that costs time.
        sync_batchnorm: If true, share batch statistics between processes.
        reload_dataloaders_every_n_epochs: Number of epochs after which loaders are made anew.
        default_root_dir: Folder of the outputs.
    """

    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps", "tpu"] = "auto"
    strategy: str | Strategy = "auto"
    devices: int | str | list[int] = "auto"
    num_nodes: int = 1
    precision: (
        Literal[
            "64-true", "32-true", "16-true", "bf16-true", "16-mixed", "bf16-mixed", 64, 32, 16, "64", "32", "16", "bf16"
        ]
        | None
    ) = None
    logger: bool | list[Logger] | Logger | None = None
    callbacks: list[Callback] | Callback | None = None
    fast_dev_run: bool | int = False
    max_epochs: int | None = None
    min_epochs: int | None = None
    max_steps: int = -1
    min_steps: int | None = None
    max_time: str | dict[str, int] | None = None
    limit_train_batches: int | float | None = None
    limit_val_batches: int | float | None = None
    limit_test_batches: int | float | None = None
    limit_predict_batches: int | float | None = None
    overfit_batches: int | float = 0.0
    val_check_interval: int | float | None = None
    check_val_every_n_epoch: int | None = 1
    num_sanity_val_steps: int | None = None
    log_every_n_steps: int | None = None
    enable_checkpointing: bool | None = None
    enable_progress_bar: bool | None = None
    enable_model_summary: bool | None = None
    accumulate_grad_batches: int = 1
    gradient_clip_val: int | float | None = None
    gradient_clip_algorithm: Literal["norm", "value"] | None = None
    deterministic: bool | Literal["warn"] | None = None
    benchmark: bool | None = None
    inference_mode: bool = True
    use_distributed_sampler: bool = True
    profiler: Literal["simple", "advanced"] | None = None
    detect_anomaly: bool = False
    barebones: bool = False
    sync_batchnorm: bool = False
    reload_dataloaders_every_n_epochs: int = 0
    default_root_dir: str | None = None
