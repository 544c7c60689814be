"""A checkpoint and a video in; states, the predicted future and a report out."""

from physvision.predict.outcome import Outcome
from physvision.predict.prediction import Prediction, Segment
from physvision.predict.predictor import Predictor
from physvision.predict.saving import save

__all__ = ["Outcome", "Prediction", "Predictor", "Segment", "save"]
