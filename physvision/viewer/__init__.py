"""Interactive viewer in the browser: a simulation of any engine with bodies that can be pulled, steered and paused."""

from physvision.viewer.session import Session as Session
