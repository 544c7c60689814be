"""Losses: of states (strong), of frames (weak), and how alike frames look."""

from physvision.losses.frames import MultiScaleLoss, mean_square, multi_scale
from physvision.losses.likeness import psnr, ssim
from physvision.losses.states import state_loss

__all__ = ["MultiScaleLoss", "mean_square", "multi_scale", "psnr", "ssim", "state_loss"]
