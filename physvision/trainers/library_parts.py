"""Allow-list of the classes of Lightning and torch that a configuration may name, and of their arguments.

The libraries' annotations say what values an argument may have. Nothing on the list takes a function, an address or a
class. A class that is missing here is reached by a module of one's own that registers it, see
`physvision.models.register`.
"""

from __future__ import annotations

from functools import partial
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints

import torch
from lightning.pytorch import callbacks, loggers, strategies

from physvision.core.registry import register

_CALLBACKS = {
    "DeviceStatsMonitor": "cpu_stats",
    "EarlyStopping": "monitor min_delta patience verbose mode strict check_finite stopping_threshold "
    "divergence_threshold check_on_train_epoch_end",
    "GradientAccumulationScheduler": "scheduling",
    "LearningRateMonitor": "logging_interval log_momentum log_weight_decay",
    "ModelCheckpoint": "dirpath filename monitor verbose save_last save_top_k save_weights_only mode "
    "auto_insert_metric_name every_n_train_steps every_n_epochs save_on_train_epoch_end enable_version_counter",
    "ModelSummary": "max_depth",
    "RichModelSummary": "max_depth",
    "RichProgressBar": "refresh_rate leave",
    "StochasticWeightAveraging": "swa_lrs swa_epoch_start annealing_epochs annealing_strategy",
    "Timer": "duration interval verbose",
    "TQDMProgressBar": "refresh_rate process_position leave",
}
_LOGGERS = {
    "CSVLogger": "save_dir name version prefix flush_logs_every_n_steps",
    "TensorBoardLogger": "save_dir name version prefix log_graph default_hp_metric sub_dir",
}
_STRATEGIES = {"DDPStrategy": "find_unused_parameters gradient_as_bucket_view static_graph process_group_backend"}
_ADAM = "lr betas eps weight_decay amsgrad fused"
_OPTIMIZERS = {
    "Adam": _ADAM,
    "AdamW": _ADAM,
    "NAdam": "lr betas eps weight_decay momentum_decay",
    "RAdam": "lr betas eps weight_decay",
    "RMSprop": "lr alpha eps weight_decay momentum centered",
    "SGD": "lr momentum dampening weight_decay nesterov",
}
# Of these all but the optimizer.
_SCHEDULES = {
    "ConstantLR": "factor total_iters",
    "CosineAnnealingLR": "T_max eta_min",
    "ExponentialLR": "gamma",
    "LinearLR": "start_factor end_factor total_iters",
    "MultiStepLR": "milestones gamma",
    "StepLR": "step_size gamma",
}


def _allow(package: str, kind: type, names: str, is_partial: bool) -> None:
    """Register a function that calls `kind`, or returns a partial call of it, with these arguments and no others."""

    def factory(**arguments: Any) -> Any:
        return partial(kind, **arguments) if is_partial else kind(**arguments)

    own = signature(kind).parameters
    try:
        hints = get_type_hints(kind.__init__)
    except NameError:  # of types that the library imports for type checkers alone
        hints = {}
    defaults = {key: own[key].default if key in own else None for key in names.split()}
    parameters = [Parameter(key, Parameter.KEYWORD_ONLY, default=default) for key, default in defaults.items()]
    factory.__annotations__ = {key: hints.get(key, Any) for key in defaults}
    factory.__signature__ = Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    register(f"{package}.{kind.__name__}")(factory)


for _package, _parts in (
    (callbacks, _CALLBACKS),
    (loggers, _LOGGERS),
    (strategies, _STRATEGIES),
    (torch.optim, _OPTIMIZERS),
    (torch.optim.lr_scheduler, _SCHEDULES),
):
    for _name, _arguments in _parts.items():
        _allow(_package.__name__, getattr(_package, _name), _arguments, is_partial=_parts in (_OPTIMIZERS, _SCHEDULES))
