"""The working memory of one problem of n complementary unknowns."""

import warp as wp

from physvision.kernels.workspace import Layout

from . import scalar

layout = Layout(
    __name__,
    scalar,
    {"n": wp.int32},
    real={
        # The problem, and what is factorised.
        **dict.fromkeys(("matrix", "factors"), "n * n"),
        # The problem's vector, the iterate (z, w), its residual and step, and the best iterates so far.
        **dict.fromkeys(("vector", "z", "w", "residual", "dz", "dw", "best", "kept"), "n"),
    },
    whole={"order": "2 * n + 1"},
)
Inside = layout.Workspace
carve_inside = layout.carve

# The memory of a problem whose first unknowns are free: those are eliminated first.
whole_layout = Layout(
    f"{__name__}.whole",
    scalar,
    {"n": wp.int32, "free": wp.int32},
    real={
        "inside": layout.length("(n - free)")[0],
        # The block of the free unknowns, what it leaves of the other columns, and the solution before a refinement.
        "factors": "free * free",
        "columns": "free * (n - free + 1)",
        "before": "n",
    },
    whole={"inside_order": layout.length("(n - free)")[1], "order": "free"},
)
carve_whole = whole_layout.carve
