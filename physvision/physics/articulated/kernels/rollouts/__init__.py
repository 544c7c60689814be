"""Kernels that simulate whole trajectories in one launch, and their adjoints."""
