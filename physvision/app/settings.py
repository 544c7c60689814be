"""Limits of the application: sizes of what it takes in, and times that it waits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AppSettings:
    """Limits of the server and its worker.

    Attributes:
        max_clip_bytes: Largest clip, bytes; a raised limit admits longer films and needs as much of the disk. Five
            minutes of a phone's 4K film have about 2 GB.
        max_request_bytes: Largest request other than a clip, bytes; a saved analysis of ten minutes has 8 MB.
        max_analyses: Number of analyses that are kept; the oldest is removed with its files when one more begins.
        max_frames: Largest number of frames of a clip; ten minutes at 60 frames a second.
        max_pixels: Largest number of pixels of a frame; 8K has 33 million.
        frame_side: Longest side of the pictures in the page, pixels; more costs disk and time of decoding.
        long_frame_side: Longest side of the pictures of a clip with more than `long_frames` frames, pixels.
        long_frames: Number of frames above which the pictures are smaller.
        frame_quality: Quality of the pictures, from 1 to 100.
        page_seconds: Time after which the worker starts though no page was opened, s.
        cancel_seconds: Time after which a worker that does not cancel is killed, s.
        reply_seconds: Time that a request for a short answer waits, s.
        sessions: Number of analyses whose fit a worker keeps for the sliders; others are fitted again.
    """

    max_clip_bytes: int = 2 * 2**30
    max_request_bytes: int = 16 * 2**20
    max_analyses: int = 12
    max_frames: int = 36_000
    max_pixels: int = 40_000_000
    frame_side: int = 960
    long_frame_side: int = 640
    long_frames: int = 1_800
    frame_quality: int = 80
    page_seconds: float = 1.0
    cancel_seconds: float = 4.0
    reply_seconds: float = 120.0
    sessions: int = 4


DEFAULT_SETTINGS = AppSettings()
