"""Warp kernels for trees of rigid bodies, one source for both precisions (see `physvision.kernels.precision`).

Frames and symbols follow Featherstone, *Rigid Body Dynamics Algorithms* (2008), with spatial vectors as pairs of
3-vectors, angular part first. A link's frame has its origin at its joint and its z axis along the joint's axis. Vectors
are expressed in world axes and about the link's origin, so that what links pass to each other is shifted but not
rotated; with r, `offset`, from the parent's origin to the link's:

    motion, parent to link   (ω, v) ↦ (ω, v − r × ω)
    force, link to parent    (n, f) ↦ (n + r × f, f)

The equations of motion are the same in all axes: where a derivative below rotates a link, its own vectors rotate with
it.
"""

from .collision.narrow_phase import contact_list
from .dynamics.inverse import inverse_dynamics, inverse_dynamics_backward
from .dynamics.kinematics import link_poses, link_poses_backward
from .precision import scalar
from .rollouts.event_contact import contact_rollout, contact_rollout_backward
from .rollouts.linearization import linearize, rollout_feedback
from .rollouts.smooth import accelerations, accelerations_backward, rollout, rollout_backward
from .structs import (
    ENTRIES,
    ContactGradientsStruct,
    ContactModelStruct,
    ContactWorkspaceStruct,
    ForcesStruct,
    GradientsStruct,
    ScheduleStruct,
    TreeStruct,
    WorkspaceStruct,
)
