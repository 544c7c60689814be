"""A checkpoint and a video in; states, the predicted future and a report out."""

from physvision.predict.predictor import Piece, Prediction, Predictor

__all__ = ["Piece", "Prediction", "Predictor"]
