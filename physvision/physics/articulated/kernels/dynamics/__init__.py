"""Multibody dynamics in reduced coordinates: kinematics, forward and inverse dynamics, integration."""
