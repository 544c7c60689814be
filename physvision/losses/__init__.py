"""Losses: of states (strong), of frames (weak), and how alike frames look."""

from physvision.losses.frames import (
    FrameLoss as FrameLoss,
    foreground_weights as foreground_weights,
    frame_losses as frame_losses,
    mean_square as mean_square,
    multi_scale as multi_scale,
)
from physvision.losses.likeness import psnr as psnr, ssim as ssim, ssim_map as ssim_map
from physvision.losses.states import state_loss as state_loss
