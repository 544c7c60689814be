"""Linear complementarity problems, solved in batches and differentiated at the solution."""

from physvision.physics.lcp.problem import MechanicalProblem, Problem
from physvision.physics.lcp.solve import MechanicalSolution, Solution, solve

__all__ = ["MechanicalProblem", "MechanicalSolution", "Problem", "Solution", "solve"]
