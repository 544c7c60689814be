"""Complementarity problems of contact in the plane, solved in batches and differentiated at the solution."""

from physvision.physics.lcp.settings import SolverSettings as SolverSettings
from physvision.physics.lcp.solve import Problem as Problem, Solution as Solution, solve as solve
