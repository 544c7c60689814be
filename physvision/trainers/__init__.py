"""Training: the LightningModule of prediction autoencoders those of policies, losses, metrics and callbacks."""

from physvision.core.registry import register_all
from physvision.trainers.callbacks import ParameterTracking, PredictionFigure
from physvision.trainers.gradients import EngineGradientShare, engine_gradient
from physvision.trainers.metrics import PredictionMetrics
from physvision.trainers.module import PredictionTraining
from physvision.trainers.pixels import PendulumTraining
from physvision.trainers.policies import PolicyTraining
from physvision.trainers.segmentation import SegmentationSupervision
from physvision.trainers.supervision import Supervision

__all__ = [
    "EngineGradientShare",
    "ParameterTracking",
    "PendulumTraining",
    "PolicyTraining",
    "PredictionFigure",
    "PredictionMetrics",
    "PredictionTraining",
    "SegmentationSupervision",
    "Supervision",
    "engine_gradient",
]

register_all("physvision.trainers", (EngineGradientShare, ParameterTracking, PredictionFigure))
