"""Losses: of states (strong), of frames (weak), and how alike frames look."""

from physvision.losses.frames import FrameLoss, foreground_weights, frame_losses, mean_square, multi_scale
from physvision.losses.likeness import psnr, ssim
from physvision.losses.states import state_loss

__all__ = [
    "FrameLoss",
    "foreground_weights",
    "frame_losses",
    "mean_square",
    "multi_scale",
    "psnr",
    "ssim",
    "state_loss",
]
