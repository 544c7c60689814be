"""Prediction: from a checkpoint and a video to states, the predicted future and a report."""

from physvision.prediction.prediction import Prediction as Prediction, Segment as Segment
from physvision.prediction.predictor import Predictor as Predictor, predict as predict
from physvision.prediction.report_page import ReportData as ReportData
from physvision.prediction.saving import save as save
from physvision.prediction.settings import PredictionSettings as PredictionSettings
