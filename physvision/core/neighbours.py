"""Make libraries that were built for CUDA importable beside a torch that was not."""

import importlib.util
from pathlib import Path

import torch

# The two operators that torchvision's Python side expects its compiled side to have declared.
_OPERATORS = {
    "torchvision::nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "torchvision::qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def declare_torchvision_operators() -> None:
    """Declare torchvision's operators where its compiled library does not load.

    physvision does without torchvision, but torchmetrics, and so lightning, imports it wherever it is installed. The
    wheel on PyPI is linked against CUDA: beside a CPU build of torch that import fails. Nobody here calls the
    operators; they only have to have a name.
    """
    specification = importlib.util.find_spec("torchvision")
    if specification is None or specification.origin is None:
        return
    try:
        torch.ops.load_library(str(Path(specification.origin).with_name("_C.so")))
    except OSError:
        for name, schema in _OPERATORS.items():
            namespace, operator = name.split("::")
            if not hasattr(getattr(torch.ops, namespace), operator):
                torch.library.define(name, schema)
