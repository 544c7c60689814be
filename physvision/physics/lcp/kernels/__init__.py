"""Warp kernels of the contact solver; one thread solves one problem, in float64."""
