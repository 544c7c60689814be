"""Prediction with a checkpoint: a video in; states, the predicted motion and a report out."""

from physvision.prediction.prediction import Prediction, Segment
from physvision.prediction.predictor import Predictor, predict
from physvision.prediction.report_data import ReportData
from physvision.prediction.saving import save

__all__ = ["Prediction", "Predictor", "ReportData", "Segment", "predict", "save"]
