"""Contact laws that are compared with the engine's own: penalty, soft, and complementarity once a step.

Each is solved once in each step of fixed length. They extend the engine by `ContactLaw` and kernels of their own.
"""

from .laws import Complementarity, Penalty, Relaxed, Soft

__all__ = ["Complementarity", "Penalty", "Relaxed", "Soft"]
