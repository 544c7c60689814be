"""Searches find what motions were made with, outliers or not, and say where they could not."""

from dataclasses import replace

import pytest
import torch

from physvision.core import InputError, State
from physvision.estimation import (
    EstimationSettings,
    MotionResidual,
    PointResidual,
    Setup,
    Unknown,
    Unknowns,
    fit_with_continuation,
    gauss_newton,
    geometric_horizons,
    horizon_continuation,
    horizons,
)
from physvision.physics import articulated


def swing(length=0.7, seconds=20.0, noise=0.0, seed=0, truth=0.62):
    """The angle of a rod's pendulum over many periods, and what is to be found of it."""
    engine = articulated.chain([1.0], dt=0.02, integrator="runge_kutta_4")
    unknowns = Unknowns([Unknown("length", length, low=0.0), Unknown("angle", 0.3), Unknown("spin", 0.2, scale=3.0)])

    def setup(values):
        state = State(values["angle"][:, None], values["spin"][:, None])
        return Setup(state, articulated.chain_properties(values["length"][:, None]))

    times = 0.02 * torch.arange(round(seconds / 0.02), dtype=torch.float64)
    problem = MotionResidual(engine, unknowns, setup, times, torch.zeros(len(times), 1, dtype=torch.float64))
    exact = problem.predictions(unknowns.unconstrain({"length": truth, "angle": 0.8, "spin": 0.0}))[0]
    observed = exact + noise * torch.randn(
        exact.shape, generator=torch.Generator().manual_seed(seed), dtype=exact.dtype
    )
    return MotionResidual(engine, unknowns, setup, times, observed.detach(), weight=1 / max(noise, 1e-3))


def test_a_growing_horizon_keeps_the_phase_where_the_whole_loses_it():
    problem = swing(length=0.9)
    result = fit_with_continuation(problem, geometric_horizons(0.5, 20.0))
    assert abs(float(problem.unknowns.values(result.z)["length"]) / 0.62 - 1) < 1e-8
    assert bool(result.converged.all())
    at_once = gauss_newton(problem, max_iterations=100, robust=True)
    assert abs(float(problem.unknowns.values(at_once.z)["length"]) / 0.62 - 1) > 0.05


def test_the_best_of_many_starts():
    problem = swing(seconds=4.0)
    starts = problem.unknowns.unconstrain({
        "length": torch.tensor([3.0, 0.2, 0.8, 1.5]), "angle": 0.3, "spin": 0.0
    })  # fmt: skip
    result = fit_with_continuation(problem, geometric_horizons(0.5, 4.0), starts, max_candidates=2)
    assert len(result.z) <= 2
    assert abs(float(problem.unknowns.values(result.z)["length"][result.best_start]) / 0.62 - 1) < 1e-8


def test_starts_that_meet_go_on_as_one():
    problem = swing(seconds=4.0)
    starts = problem.unknowns.unconstrain({"length": torch.tensor([0.55, 0.6, 0.7, 0.75]), "angle": 0.8, "spin": 0.0})
    assert len(horizon_continuation(problem, geometric_horizons(1.0, 4.0), starts, max_candidates=4)) == 1


def test_patience_ends_a_search_whose_best_start_has_converged():
    problem = swing(seconds=20.0)
    starts = problem.unknowns.unconstrain({"length": torch.tensor([0.62, 3.0]), "angle": 0.8, "spin": 0.0})
    hasty = gauss_newton(problem, starts, max_iterations=60, patience=3)
    assert len(hasty.history) < len(gauss_newton(problem, starts, max_iterations=60).history)
    assert bool(hasty.converged[hasty.best_start])
    assert abs(float(problem.unknowns.values(hasty.z)["length"][hasty.best_start]) / 0.62 - 1) < 1e-8


def test_others_are_not_waited_for_where_the_best_leaves_only_noise():
    problem = swing(seconds=20.0, noise=0.01)
    starts = problem.unknowns.unconstrain({"length": torch.tensor([0.62, 3.0]), "angle": 0.8, "spin": 0.0})
    # Of the same residuals the second expects a tenth of the noise.
    soon, late = (
        gauss_newton(replace(problem, weight=times * problem.weight), starts, patience=5) for times in (1, 10)
    )
    assert len(soon.history) == len(late.history) - 5
    assert bool(soon.converged[soon.best_start])


def test_a_horizon_is_left_out_if_what_was_found_leads_beyond_it(monkeypatch):
    problem, fitted = swing(seconds=8.0), []

    def noted(part, *arguments, **options):
        fitted.append(float(part.times[-1]))
        return gauss_newton(part, *arguments, **options)

    monkeypatch.setattr(horizons, "gauss_newton", noted)
    start = problem.unknowns.unconstrain({"length": 0.6, "angle": 0.8, "spin": 0.0})
    result = horizon_continuation(problem, [2.0, 4.0, 6.0], start, max_candidates=2)
    assert fitted == pytest.approx([2.0])
    assert abs(float(problem.unknowns.values(result)["length"]) / 0.62 - 1) < 1e-4


def test_outliers_are_held_down():
    problem = swing(seconds=4.0, noise=0.01)
    problem.observed[::9] += 2.0
    lengths = {}
    for robust in (False, True):
        result = fit_with_continuation(problem, geometric_horizons(0.5, 4.0), robust=robust)
        lengths[robust] = abs(float(problem.unknowns.values(result.z)["length"]) / 0.62 - 1)
    # Of 200 angles of 0.01 rad noise the period is known to about a thousandth.
    assert lengths[True] < 4e-3 < lengths[False]


def line(offset=None):
    x = torch.linspace(0, 1, 30, dtype=torch.float64)
    unknowns = Unknowns([Unknown("slope", 1.0), Unknown("offset", 0.5, std=offset)])
    observed = (3 * x + 2)[:, None]
    return PointResidual(unknowns, lambda v, k: (v["slope"] * x[k] + v["offset"])[:, None], observed)


def test_what_is_linear_is_found_in_one_step():
    result = gauss_newton(line(), damping=0.0, max_iterations=1)
    torch.testing.assert_close(result.z, torch.tensor([[3.0, 2.0]], dtype=torch.float64), rtol=1e-9, atol=1e-9)


def test_settings_limit_a_step():
    result = gauss_newton(line(), damping=0.0, max_iterations=1, settings=EstimationSettings(max_step=0.25))
    assert result.history.diff(dim=0).abs().max() == 0.25


def test_what_is_known_beforehand_counts_as_a_measurement():
    """With a deviation far below the data's, it stays; the closed form of Bayes' line."""
    tight = gauss_newton(line(1e-6)).z[0, 1]
    assert abs(float(tight) - 0.5) < 1e-8
    loose = gauss_newton(line(1.0))
    x = torch.linspace(0, 1, 30, dtype=torch.float64)
    A = torch.stack([x, torch.ones_like(x)], 1)
    normal = A.mT @ A + torch.diag(torch.tensor([0.0, 1.0]).double())
    expected = torch.linalg.solve(normal, A.mT @ (3 * x + 2) + torch.tensor([0.0, 0.5]).double())
    torch.testing.assert_close(loose.z[0], expected, rtol=1e-8, atol=1e-8)


def test_unknowns_go_to_numbers_and_back():
    unknowns = Unknowns([
        Unknown("free", 0.3, scale=5.0), Unknown("positive", 2.0, low=0.0),
        Unknown("share", [0.2, 0.9], low=0.0, high=1.0),
    ])  # fmt: skip
    z = torch.randn(4, 4, dtype=torch.float64)
    torch.testing.assert_close(unknowns.unconstrain(unknowns.values(z)), z)
    jacobian = torch.autograd.functional.jacobian(lambda z: unknowns.flat_values(z), z[0])
    torch.testing.assert_close(jacobian.diagonal(), unknowns.derivatives(z)[0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": 2.0, "low": 0.0, "high": 1.0}, "must start between"),
        ({"start": 0.5, "high": 1.0}, "only a lower one"),
    ],
)
def test_bounds_that_make_no_sense_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Unknown("share", **options)


def test_a_start_that_fails_does_not_disturb_the_others():
    problem = swing(seconds=2.0)
    starts = problem.unknowns.start(2)
    starts[1, 2] = 1e300  # rad/s: no motion
    result = gauss_newton(problem, starts)
    alone = gauss_newton(problem, starts[:1])
    torch.testing.assert_close(result.z[0], alone.z[0])
    assert result.converged.tolist() == [True, False]
    assert result.best_start == 0
