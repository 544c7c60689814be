"""Warp kernels for trees of rigid bodies, one source for both precisions (see `physvision.kernels.precision`).

Frames and symbols, after Featherstone, *Rigid Body Dynamics Algorithms* (2008), with spatial vectors as pairs of
3-vectors, angular part first. A link's frame has its origin at its joint and its z along the joint's axis. Vectors are
told in the world's axes and about the link's origin, so that what links hand each other is shifted and never turned;
with r, `offset`, from the parent's origin to the link's:

    motion, parent to link   (ω, v) ↦ (ω, v − r × ω)
    force, link to parent    (n, f) ↦ (n + r × f, f)

Equations of motion are alike in all axes: where a derivative below turns a link, its own vectors turn with it.
"""

import warp as wp

scalar = globals().get("scalar", wp.float64)
# Whether there may be pairs of any convex shapes; kernels without them compile in less time.
convex_pairs = globals().get("convex_pairs", False)
# Whether friction is a pyramid, and no cone.
pyramidal = globals().get("pyramidal", False)
# Whether contacts are midway between surfaces, with tangents as MuJoCo has them, and not on the second surface.
midway = globals().get("midway", False)

# For rollouts by events and without contact: products are added in one operation, which takes a tenth less time, and
# small matrices are not packed into vectors, whose shuffling costs more than it saves.
FUSED = {"cpu_compiler_flags": f"{wp.config.cpu_compiler_flags} -ffp-contract=fast -fno-slp-vectorize"}

# The methods of contact beside events are modules that `Program` loads where they are asked for.
from .contact_list import contact_list  # noqa: E402  `scalar` comes first
from .contact_rollout import contact_rollout, contact_rollout_backward  # noqa: E402
from .inverse import inverse_dynamics, inverse_dynamics_backward  # noqa: E402
from .kinematics import link_poses, link_poses_backward  # noqa: E402
from .planning import follow, linearize  # noqa: E402
from .rollout import accelerations, accelerations_backward, rollout, rollout_backward  # noqa: E402
from .tree import (  # noqa: E402
    ENTRIES,
    ContactGradientsStruct,
    ContactMemoryStruct,
    ContactsStruct,
    ForcesStruct,
    GradientsStruct,
    ScheduleStruct,
    TreeStruct,
    WorkspaceStruct,
)

__all__ = [
    "ENTRIES",
    "ContactGradientsStruct",
    "ContactMemoryStruct",
    "ContactsStruct",
    "ForcesStruct",
    "GradientsStruct",
    "ScheduleStruct",
    "TreeStruct",
    "WorkspaceStruct",
    "accelerations",
    "accelerations_backward",
    "contact_list",
    "contact_rollout",
    "contact_rollout_backward",
    "follow",
    "inverse_dynamics",
    "inverse_dynamics_backward",
    "linearize",
    "link_poses",
    "link_poses_backward",
    "rollout",
    "rollout_backward",
    "scalar",
]
