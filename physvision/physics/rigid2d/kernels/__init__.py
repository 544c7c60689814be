"""Warp kernels of the planar rigid-body world; one thread simulates one world."""
