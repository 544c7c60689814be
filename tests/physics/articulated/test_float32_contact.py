"""Contact gradients in float32 against those in float64, on the random scenes of experiments/contact_gradients.py.

The tolerance is derived by backward error analysis. A step in float32 is an exact step from perturbed inputs: its
OPERATIONS roundings on the longest way from a pose to a velocity, u = 2⁻²⁴ each, and those of T steps add up as
independent ones do, to √(T · OPERATIONS) u (Higham and Mary, 2019); DEVIATIONS of it are allowed. A perturbation of the
initial state acts longer than one of a later step, so the gradient in float32 is at most as far from that in float64 as
the latter moves where initial state and properties are perturbed by as much. That movement is measured in float64, the
largest of PERTURBATIONS random ones. Where it is not small, a contact event appears, vanishes or changes its mode
within rounding, and float32 holds no gradient of the scene: such gradients are counted apart.
"""

import math
from importlib import import_module
from pathlib import Path

import pytest
import torch

from physvision import State

SCENES = 200
UNIT_ROUNDOFF = 2.0**-24
OPERATIONS = 32
DEVIATIONS = 4
PERTURBATIONS = 16
MAX_MOVEMENT = 0.01  # of the gradient, beyond which a scene is ill-conditioned in float32


@pytest.fixture
def scenes(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[3] / "experiments")
    return import_module("contact_gradients")


def gradients(scene, values, weights, dtype):
    """Return the gradient to every input, world by world, and for each world if its rollout converged."""
    inputs = {name: value.to(dtype).requires_grad_() for name, value in values.items()}
    leaves = {name: value for name, value in inputs.items() if name not in ("q", "v", "u")}
    path = scene.engine.rollout(State(inputs["q"], inputs["v"]), scene.steps, inputs["u"], leaves)
    weights = weights.to(dtype)
    end = path.q[:, -1] @ weights[0] + path.v[:, -1] @ weights[1, : scene.engine.nv]
    adjoints = torch.autograd.grad(end.sum(), list(inputs.values()))
    return {name: value.double() for name, value in zip(inputs, adjoints, strict=True)}, path.status.converged


def compare(module, seed):
    """Return (error, tolerance, size) of the gradient to every input of a scene, or None if its motion fails."""
    scene, rng = module.scene(seed), torch.Generator().manual_seed(seed)
    values = {
        "q": scene.start.q,
        "v": scene.start.v,
        "u": 0.3 * torch.randn(1, scene.steps, scene.engine.nu, generator=rng, dtype=torch.float64),
    }
    values |= {name: getattr(scene.engine.properties, name)[None] for name in module.LEAVES}
    weights = torch.randn(2, scene.engine.nq, generator=rng, dtype=torch.float64)
    # Both start from numbers that float32 holds.
    values = {name: value.float().double() for name, value in values.items()}
    size = DEVIATIONS * math.sqrt(scene.steps * OPERATIONS) * UNIT_ROUNDOFF
    perturbed = {}
    for name, value in values.items():
        sign = 2 * torch.rand(PERTURBATIONS, *value.shape[1:], generator=rng, dtype=torch.float64) - 1
        # Positions and velocities are of the order of one, whichever of their components is small.
        scale = value.abs().clamp_min(1.0) if name in ("q", "v") else value.abs()
        perturbed[name] = torch.cat([value, value + size * sign * scale])
    double, converged = gradients(scene, perturbed, weights, torch.float64)
    single, single_converged = gradients(scene, values, weights, torch.float32)
    if not bool(converged.all()) or not bool(single_converged.all()):
        return None
    entries = []
    for name, value in double.items():
        rows = value.flatten(1)
        movement = float((rows[1:] - rows[:1]).norm(dim=1).max())
        norm = float(rows[0].norm())
        # Rounding in the adjoint itself moves its result by as many roundings.
        entries.append((float((single[name].flatten() - rows[0]).norm()), movement + size * norm, norm))
    return entries


def summarize(module, seeds):
    """Return the fractions of scenes that run, of comparable gradients, and of these within the tolerance."""
    results = [entries for seed in seeds if (entries := compare(module, seed)) is not None]
    flat = [entry for entries in results for entry in entries if entry[2] > 0.0]
    comparable = [entry for entry in flat if entry[1] <= MAX_MOVEMENT * entry[2]]
    within = [entry for entry in comparable if entry[0] <= entry[1]]
    print(f"{len(results)} of {len(seeds)} scenes run; {len(comparable)} of {len(flat)} gradients are comparable;")
    print(f"{len(within)} are within the tolerance, worst {max(entry[0] / entry[1] for entry in comparable):.2g} of it")
    return len(results) / len(seeds), len(comparable) / len(flat), len(within) / len(comparable)


def missed(kind, within, comparable):
    """Mark a kind of scene whose float32 gradients are known to miss the tolerance, with the figures."""
    reason = f"sustained contact in float32: {within} of {comparable} comparable gradients are within the tolerance"
    return pytest.param(kind, marks=pytest.mark.xfail(reason=reason, strict=True, raises=AssertionError))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "kind",
    [
        missed("collision", 345, 368),
        missed("drop", 240, 325),
        missed("obstacle", 299, 315),
        missed("slide", 176, 270),
        missed("robot", 59, 127),
        "arm",
    ],
)
def test_float32_gradients_through_contact(scenes, kind):
    kinds = list(scenes.KINDS)
    ran, _, within = summarize(scenes, range(kinds.index(kind), SCENES, len(kinds)))
    assert ran >= 0.98
    assert within >= 0.99


@pytest.mark.extended
def test_float32_gradients_of_an_arm_that_strikes_a_ball(scenes):
    ran, comparable, within = summarize(scenes, (5, 11, 17, 23))
    assert (ran, comparable, within) == (1.0, 1.0, 1.0)
