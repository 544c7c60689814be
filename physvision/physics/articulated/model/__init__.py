"""Descriptions of a mechanism: bodies, joints, actuators, transmissions, loop joints, fluid, and its properties."""
