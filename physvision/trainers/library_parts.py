"""Allow-list of the classes of Lightning and torch that a configuration may name, and of their arguments.

Nothing on it takes a function, an address or a class. A class that is missing here is reached by a module of one's own
that registers it, see `physvision.models.register`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any, Literal

import torch
from lightning.pytorch import callbacks, loggers, strategies

from physvision.core.registry import register

_Mode = Literal["min", "max"]
_Betas = tuple[float, float]

_CALLBACKS: dict[str, dict[str, Any]] = {
    "DeviceStatsMonitor": {"cpu_stats": bool | None},
    "EarlyStopping": {
        "monitor": str,
        "min_delta": float,
        "patience": int,
        "verbose": bool,
        "mode": _Mode,
        "strict": bool,
        "check_finite": bool,
        "stopping_threshold": float | None,
        "divergence_threshold": float | None,
        "check_on_train_epoch_end": bool | None,
    },
    "GradientAccumulationScheduler": {"scheduling": dict[int, int]},
    "LearningRateMonitor": {
        "logging_interval": Literal["step", "epoch"] | None,
        "log_momentum": bool,
        "log_weight_decay": bool,
    },
    "ModelCheckpoint": {
        "dirpath": str | None,
        "filename": str | None,
        "monitor": str | None,
        "verbose": bool,
        "save_last": bool | Literal["link"] | None,
        "save_top_k": int,
        "save_weights_only": bool,
        "mode": _Mode,
        "auto_insert_metric_name": bool,
        "every_n_train_steps": int | None,
        "every_n_epochs": int | None,
        "save_on_train_epoch_end": bool | None,
        "enable_version_counter": bool,
    },
    "ModelSummary": {"max_depth": int},
    "RichModelSummary": {"max_depth": int},
    "RichProgressBar": {"refresh_rate": int, "leave": bool},
    "StochasticWeightAveraging": {
        "swa_lrs": float | list[float],
        "swa_epoch_start": int | float,
        "annealing_epochs": int,
        "annealing_strategy": Literal["cos", "linear"],
    },
    "Timer": {"duration": str | dict[str, int] | None, "interval": Literal["step", "epoch"], "verbose": bool},
    "TQDMProgressBar": {"refresh_rate": int, "process_position": int, "leave": bool},
}
_LOGGER = {"save_dir": str, "name": str | None, "version": int | str | None, "prefix": str}
_LOGGERS: dict[str, dict[str, Any]] = {
    "CSVLogger": _LOGGER | {"flush_logs_every_n_steps": int},
    "TensorBoardLogger": _LOGGER | {"log_graph": bool, "default_hp_metric": bool, "sub_dir": str | None},
}
_STRATEGIES: dict[str, dict[str, Any]] = {
    "DDPStrategy": {
        "find_unused_parameters": bool,
        "gradient_as_bucket_view": bool,
        "static_graph": bool,
        "process_group_backend": Literal["gloo", "nccl"] | None,
    },
}
_ADAM = {"lr": float, "betas": _Betas, "eps": float, "weight_decay": float, "amsgrad": bool, "fused": bool | None}
# Of these a configuration gives all arguments but the parameters to train.
_OPTIMIZERS: dict[str, dict[str, Any]] = {
    "Adam": _ADAM,
    "AdamW": _ADAM,
    "NAdam": {"lr": float, "betas": _Betas, "eps": float, "weight_decay": float, "momentum_decay": float},
    "RAdam": {"lr": float, "betas": _Betas, "eps": float, "weight_decay": float},
    "RMSprop": {"lr": float, "alpha": float, "eps": float, "weight_decay": float, "momentum": float, "centered": bool},
    "SGD": {"lr": float, "momentum": float, "dampening": float, "weight_decay": float, "nesterov": bool},
}
# Of these all but the optimizer.
_SCHEDULES: dict[str, dict[str, Any]] = {
    "ConstantLR": {"factor": float, "total_iters": int},
    "CosineAnnealingLR": {"T_max": int, "eta_min": float},
    "ExponentialLR": {"gamma": float},
    "LinearLR": {"start_factor": float, "end_factor": float, "total_iters": int},
    "MultiStepLR": {"milestones": list[int], "gamma": float},
    "StepLR": {"step_size": int, "gamma": float},
}


def _allow(package: str, kind: type, hints: Mapping[str, Any], *, is_partial: bool = False) -> None:
    """Register a function that calls `kind`, or returns a partial call of it, with these arguments and no others."""

    def factory(**arguments: Any) -> Any:
        return partial(kind, **arguments) if is_partial else kind(**arguments)

    own = signature(kind).parameters
    defaults = {key: own[key].default if key in own else None for key in hints}
    parameters = [Parameter(key, Parameter.KEYWORD_ONLY, default=defaults[key]) for key in hints]
    factory.__annotations__ = dict(hints)
    factory.__signature__ = Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    register(f"{package}.{kind.__name__}")(factory)


def _allow_library() -> None:
    lightning_parts = ((callbacks, _CALLBACKS), (loggers, _LOGGERS), (strategies, _STRATEGIES))
    for package, parts in lightning_parts:
        for name, hints in parts.items():
            _allow(package.__name__, getattr(package, name), hints)
    for package, parts in ((torch.optim, _OPTIMIZERS), (torch.optim.lr_scheduler, _SCHEDULES)):
        for name, hints in parts.items():
            _allow(package.__name__, getattr(package, name), hints, is_partial=True)


_allow_library()
