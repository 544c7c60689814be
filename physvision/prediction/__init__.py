"""A checkpoint and a video in; states, the predicted future and a report out."""

from physvision.prediction.outcome import Outcome
from physvision.prediction.prediction import Prediction, Segment
from physvision.prediction.predictor import Predictor
from physvision.prediction.saving import save

__all__ = ["Outcome", "Prediction", "Predictor", "Segment", "save"]
