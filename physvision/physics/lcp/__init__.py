"""Complementarity problems of contact in the plane, solved in batches and differentiated at the solution."""

from physvision.physics.lcp.problem import Problem
from physvision.physics.lcp.settings import SolverSettings
from physvision.physics.lcp.solve import Solution, solve

__all__ = ["Problem", "Solution", "SolverSettings", "solve"]
