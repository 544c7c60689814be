"""Kernels of the contact laws that are compared, written against those of the articulated engine."""
