"""Warp kernels for trees of rigid bodies, one source for both precisions (see `physvision.kernels.precision`).

Frames and symbols, after Featherstone, *Rigid Body Dynamics Algorithms* (2008), with spatial vectors as pairs of
3-vectors, angular part first. A link's frame has its origin at its joint and its z along the joint's axis. Vectors are
told in the world's axes and about the link's origin, so that what links hand each other is shifted and never turned;
with r, `offset`, from the parent's origin to the link's:

    motion, parent to link   (ω, v) ↦ (ω, v − r × ω)
    force, link to parent    (n, f) ↦ (n + r × f, f)

Equations of motion are alike in all axes: where a derivative below turns a link, its own vectors turn with it.
"""

from .collision.narrow_phase import contact_list
from .dynamics.inverse import inverse_dynamics, inverse_dynamics_backward
from .dynamics.kinematics import link_poses, link_poses_backward
from .precision import scalar
from .rollouts.event_contact import contact_rollout, contact_rollout_backward
from .rollouts.linearization import follow, linearize
from .rollouts.smooth import (
    accelerations,
    accelerations_backward,
    rollout,
    rollout_backward,
)
from .structs import (
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
