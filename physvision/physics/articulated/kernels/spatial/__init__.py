"""Vectors, rotations and scalar root finding, without any state of the model."""
