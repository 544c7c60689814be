"""Training: the LightningModule of prediction autoencoders those of policies, losses, metrics and callbacks."""

from physvision.core.registry import register_all
from physvision.trainers.callbacks import ParameterTracking, PredictionFigure
from physvision.trainers.metrics import PredictionMetrics
from physvision.trainers.module import PredictionTraining
from physvision.trainers.pixels import PendulumTraining
from physvision.trainers.policies import PolicyTraining
from physvision.trainers.supervision import Supervision

__all__ = [
    "ParameterTracking",
    "PendulumTraining",
    "PolicyTraining",
    "PredictionFigure",
    "PredictionMetrics",
    "PredictionTraining",
    "Supervision",
]

register_all("physvision.trainers", (ParameterTracking, PredictionFigure))
