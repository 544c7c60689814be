"""Waiting for what another thread does."""

import time


def wait_for(condition, seconds=120.0):  # kernels may have to be compiled first
    """Return whether a condition came true in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not condition():
        time.sleep(0.02)
    return condition()
