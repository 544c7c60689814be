"""Losses of frames."""

from physvision.losses.frames import MultiScaleLoss, mean_square, multi_scale

__all__ = ["MultiScaleLoss", "mean_square", "multi_scale"]
