"""Double pendulums from tables of lengths: arms in two planes, arms that have masses of their own, a camera aside."""

# pyright: reportCallIssue=false, reportGeneralTypeIssues=false

import numpy as np
import pytest
import torch
from identification.clip_tracks import tracks_of
from scipy.integrate import solve_ivp

from physvision.datasets.clips import Filming, draw
from physvision.estimation import Unknowns
from physvision.identification import identify
from physvision.identification.kinds import double_pendulum
from physvision.identification.model import Evidence
from physvision.identification.view import View
from physvision.perception import Track

NOISE = 5e-4  # m


@pytest.mark.slow
def test_a_table_in_meters_of_arms_in_two_planes():
    clip = draw("double_pendulum", 1, Filming(fps=60.0))
    random = np.random.default_rng(0)
    poses = clip.motion.poses(clip.times)[..., :2] * [1, -1]
    pivot = np.array(clip.motion.visible_points[0]) * [1, -1] if clip.motion.visible_points else np.zeros(2)
    poses[:, 1] = pivot + 0.98 * (poses[:, 1] - pivot) + [0.004, -0.002]
    poses = poses[:90] + random.normal(0, NOISE, (90, 2, 2))
    tracks = [
        Track(clip.timestamps[:90], poses[:, body], np.full(90, NOISE), np.ones(90, bool), name=f"{body}", unit="m")
        for body in range(2)
    ]
    result = identify(tracks, "double_pendulum")
    assert result.fit.noise < 1.5 * NOISE
    for name in ("length_1", "length_2"):
        low, high = result.parameters[name].interval_95
        assert low - (high - low) / 2 < clip.truth[name] < high + (high - low) / 2
    assert abs(result.parameters["gravity"].value / 9.81 - 1) < 0.02
    assert {"damping_1", "damping_2"} <= result.parameters.keys()


def bars(times):
    """Angles from straight down of two bars, by Lagrange's equations; and the lengths that each swings like.

    Masses 0.1 and 0.06 kg, centers at 0.08 and 0.05 m, moments 2e-4 and 5e-5 kg m² about them, hinges 0.2 m apart,
    their joints damped at 0.3 / s.
    """
    mass, center, moment, arm = np.array([0.1, 0.06]), np.array([0.08, 0.05]), np.array([2e-4, 5e-5]), 0.2
    inner = moment[0] + mass[0] * center[0] ** 2 + mass[1] * arm**2
    outer, coupled = moment[1] + mass[1] * center[1] ** 2, mass[1] * arm * center[1]
    pulls = 9.81 * np.array([mass[0] * center[0] + mass[1] * arm, mass[1] * center[1]])

    def rate(time, state):
        a, b, u, w = state
        matrix = np.array([[inner, coupled * np.cos(a - b)], [coupled * np.cos(a - b), outer]])
        turn = coupled * np.sin(a - b) * np.array([-(w**2), u**2])
        inwards, rub = 0.3 * inner * u, 0.3 * outer * (w - u)
        damped = np.array([rub - inwards, -rub])
        return np.array([u, w, *np.linalg.solve(matrix, turn - pulls * np.sin([a, b]) + damped)])

    motion = solve_ivp(rate, (0, times[-1]), [2.0, 2.4, 0.0, 0.0], t_eval=times, rtol=1e-10, atol=1e-10).y
    # Only of the outer bar alone; of the inner one it depends on which mass at the hinge counts as whose.
    return motion[:2].T, outer / (mass[1] * center[1])


def test_the_law_of_bars_from_their_accelerations():
    times = np.arange(70) / 100
    angles, swing = bars(times)
    omega, _, reach = double_pendulum.estimate_dynamics(times, *angles.T, 0.15 / 0.2)
    # The quartics' own error: they span ninety degrees of the fastest turns.
    assert abs(omega * 0.2 / 9.81 - 1) < 0.02
    assert abs(reach[1] * 0.15 / swing - 1) < 0.02


@pytest.mark.slow
def test_bars_with_masses_of_their_own_seen_by_a_camera_aside():
    random = np.random.default_rng(0)
    times = np.arange(70) / 100
    fine = np.arange(0, 0.72, 1e-4)
    angles, swing = bars(fine)

    def project(sample_times):
        angle = np.stack([np.interp(sample_times, fine, angle_of_bar) for angle_of_bar in angles.T], 1)
        joint = 0.2 * np.stack([np.sin(angle[:, 0]), -np.cos(angle[:, 0])], 1)
        ends = joint + 0.15 * np.stack([np.sin(angle[:, 1]), -np.cos(angle[:, 1])], 1)
        positions = np.stack([joint, ends], 1)
        # From 1 m, eight degrees aside: a pinhole, its pictures measured in meters of the middle, y down.
        x, y = positions[..., 0], -positions[..., 1]
        return np.stack([x * np.cos(0.14), y], -1) / (1 + 0.14 * x)[..., None]

    rows = project(times)[..., 1]
    for _ in range(4):  # a row is read the later, the lower it is: 5 ms for 0.7 m
        late = times[:, None] + 5e-3 * (rows + 0.35) / 0.7
        rows = np.stack([project(late[:, k])[:, k, 1] for k in range(2)], 1)
    positions = np.stack([project(late[:, k])[:, k] for k in range(2)], 1) + random.normal(0, NOISE, (70, 2, 2))
    tracks = [
        Track(times, positions[:, k].copy(), np.full(70, NOISE), np.ones(70, bool), name=f"{k}", unit="m")
        for k in range(2)
    ]
    result = identify(tracks, "double_pendulum")
    assert result.fit.noise < 1.3 * NOISE
    for name, truth in {"length_1": 0.2, "swing_length_2": swing, "gravity": 9.81}.items():
        low, high = result.parameters[name].interval_95
        assert low - (high - low) / 2 < truth < high + (high - low) / 2
        assert high - low < 0.1 * truth


def test_point_masses_in_air_move_as_the_law_has_it():
    """With every unknown at its truth; bobs with a thousandth of their inertia about the hinge are 12 mrad off."""
    clip = draw("double_pendulum", 0, Filming(fps=60.0))
    model = double_pendulum.candidate_models(Evidence(tracks_of(clip), View(*clip.filming.size), {}))[0]
    angles = clip.motion.poses(clip.times)[:, :, 2]
    truth, scale = clip.truth, clip.view.scale
    truth_values = {
        "gravity": 9.81 * scale, "mass_ratio": truth["mass_ratio"], "air_damping": truth["damping"],
        "angles": angles[0], "arm_lengths": [scale * truth["length_1"], scale * truth["length_2"]],
        "angular_velocities": [0.0, 0.0],
    }  # fmt: skip
    unknowns = Unknowns(model.unknowns)
    values = unknowns.values(unknowns.start()) | {
        name: torch.as_tensor(value, dtype=torch.float64)[None] for name, value in truth_values.items()
    }
    setup = model.setup(values)
    steps = len(clip.times) - 1
    motion = model.engine.rollout(setup.state, steps, setup.controls[:, :steps], setup.properties)
    # Air's torque takes how fast the arms turn from noisy tracks: to some percent of a slow decay.
    assert np.abs(motion.q[0].cumsum(1).numpy() - angles).max() < 2e-3
