"""Prediction: from a checkpoint and a video to states, the predicted future and a report."""

from physvision.prediction.prediction import Prediction, Segment
from physvision.prediction.predictor import Predictor, predict
from physvision.prediction.report_page import ReportData
from physvision.prediction.saving import save
from physvision.prediction.settings import PredictionSettings

__all__ = ["Prediction", "PredictionSettings", "Predictor", "ReportData", "Segment", "predict", "save"]
