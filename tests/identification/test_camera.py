"""What the motion shows of the camera; the truth is drawn by cv2.projectPoints (`experiments/camera_clips.py`)."""

# pyright: reportCallIssue=false, reportOperatorIssue=false, reportOptionalOperand=false, reportAttributeAccessIssue=false

import json
import math
from dataclasses import replace

import cv2
import numpy as np
import pytest
import torch
from camera_clips import Camera, OpenCvProjection, draw, tracks_of
from identification.clip_tracks import tracks_of as careful_tracks, write_tracks

from physvision.camera import Calibration, read_calibration
from physvision.core import InputError
from physvision.datasets import clips
from physvision.estimation.autocorrelation import mixture_posterior
from physvision.identification import identify
from physvision.identification.camera_parameters import interval_widening, linearize_fits
from physvision.identification.camera_posterior import CameraFits, arbitrary_camera_cost
from physvision.identification.candidates import compare_cameras
from physvision.identification.command import run_command
from physvision.identification.parameters import linearize_parameters
from physvision.identification.result_text import result_lines
from physvision.identification.settings import DEFAULT_SETTINGS
from physvision.identification.view import View

NOISE = 0.2  # px


def holds(entry, truth):
    return entry.interval_95[0] <= truth <= entry.interval_95[1]


def half_width(entry):
    return (entry.interval_95[1] - entry.interval_95[0]) / 2


def identify_pendulum(seed, camera=None, **options):
    clip, camera = draw("pendulum", seed, camera)
    return clip, camera, identify(tracks_of(clip, NOISE), "pendulum", clip.known, size=clip.filming.size, **options)


@pytest.mark.parametrize(("tilt", "direction", "k1"), [(0.25, 0.4, 0.3), (0.1, -2.0, -0.3), (0.0, 0.0, 0.1)])
def test_keystone_and_foreshortening_are_those_of_a_tilted_camera(tilt, direction, k1):
    width, height, focal = 640.0, 480.0, 500.0
    plane = np.random.default_rng(1).uniform(-150, 150, (12, 2))
    rotation = tilt * np.array([-np.sin(direction), np.cos(direction), 0])
    matrix = np.array([[focal, 0, 319.5], [0, focal, 239.5], [0, 0, 1]])
    space = np.concatenate([plane, np.zeros((12, 1))], 1)
    distortion = np.array([k1, 0, 0, 0])
    pixels = cv2.projectPoints(space, rotation, np.array([0, 0, focal]), matrix, distortion)[0][:, 0] + 0.5
    tau, half_field = math.tan(tilt / 2), width / 2 / focal
    # The rotation vector tilts the plane's far side the other way.
    keystone = -2 * tau * half_field * np.array([np.cos(direction), np.sin(direction)])
    foreshortening = -(tau**2) * np.array([np.cos(2 * direction), np.sin(2 * direction)])
    values = {"keystone": keystone[None], "foreshortening": foreshortening[None]}
    values["distortion"] = np.array([k1 * half_field**2])
    values = {name: torch.from_numpy(np.asarray(value)) for name, value in values.items()}
    frontal = np.array([320.0, 240.0]) + (1 + math.cos(tilt)) / 2 * plane
    np.testing.assert_allclose(View(width, height).project(torch.from_numpy(frontal), values), pixels, atol=1e-9)


def test_a_wide_swing_shows_the_camera():
    camera = Camera(focal=900.0, tilt=0.22, direction=0.7, roll=0.06, k1=-0.25, readout=0.012)
    clip, _, result = identify_pendulum(4, camera)
    assert result.evidence.view.arbitrary
    assert result.parameters["length"].value == pytest.approx(clip.truth["length"], rel=5e-3)
    truth = {"tilt": 0.22, "k1": -0.25, "focal_length": 900.0, "readout": 0.012}
    for name, value in truth.items():
        assert holds(result.camera[name], value), name
    # The motion shows them; nothing but its own noise is left.
    assert all(result.camera[name].identifiable for name in ("tilt", "roll", "distortion", "readout"))
    assert half_width(result.camera["tilt"]) < math.radians(3)
    assert result.fit.noise < 1.15 * NOISE


@pytest.mark.extended
def test_a_narrow_swing_has_intervals_that_admit_it():
    camera = Camera(focal=900.0, tilt=0.2, direction=0.7, roll=0.0, k1=0.3, readout=0.01)
    clip, _, result = identify_pendulum(1, camera)
    assert result.parameters["length"].value == pytest.approx(clip.truth["length"], rel=5e-3)
    for name, value in {"tilt": 0.2, "k1": 0.3, "readout": 0.01}.items():
        assert holds(result.camera[name], value), name


@pytest.mark.extended
def test_a_known_focal_length_sharpens_the_distortion():
    clip, camera, free = identify_pendulum(2)
    width, height = clip.filming.size
    calibration = Calibration((camera.focal, camera.focal), (width / 2, height / 2))
    *_, calibrated_result = identify_pendulum(2, settings=calibrated(calibration))
    assert holds(free.camera["k1"], camera.k1)
    assert holds(calibrated_result.camera["k1"], camera.k1)
    assert half_width(calibrated_result.camera["k1"]) < half_width(free.camera["k1"])
    assert "focal_length" not in calibrated_result.camera


def test_a_throw_does_not_show_the_foreshortening():
    """Throws absorb every affine map but the direction of gravity: roll shows, foreshortening stays at its prior."""
    clip = clips.draw("projectile", 3)
    result = identify(careful_tracks(clip), "projectile", clip.known, size=clip.filming.size)
    fit = result.fit.other_camera
    assert fit is not None
    low, high = (fit.problem.unknowns.values((fit.z + side * fit.uncertainty.std)[None]) for side in (-1, 1))
    arbitrary = DEFAULT_SETTINGS.view.arbitrary
    spread = {name: float((high[name] - low[name]).abs().max()) / 2 for name in ("foreshortening", "roll")}
    assert spread["foreshortening"] == pytest.approx(arbitrary.foreshortening, rel=0.02)
    assert spread["roll"] < 0.5 * arbitrary.roll
    assert not result.camera["focal_length"].identifiable


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("spring", 1), *(pytest.param(kind, 3, marks=pytest.mark.extended) for kind in ("pendulum", "projectile"))],
)
def test_careful_cameras_have_the_intervals_of_a_careful_prior(kind, seed):
    """An arbitrary camera may widen them, where the motion does not rule it out, but not by much."""
    clip = clips.draw(kind, seed)
    tracks, options = careful_tracks(clip), {"size": clip.filming.size, "fps": clip.options.get("fps")}
    view = replace(DEFAULT_SETTINGS.view, arbitrary_probability=1e-9)
    strict = replace(DEFAULT_SETTINGS, view=view)
    mixed, careful = (identify(tracks, kind, clip.known, settings=s, **options) for s in (DEFAULT_SETTINGS, strict))
    assert not mixed.evidence.view.arbitrary
    for name in clips.DETERMINED_PARAMETERS[kind]:
        pair = mixed.parameters[name], careful.parameters[name]
        assert pair[0].value == pytest.approx(pair[1].value, rel=1e-9)
        low, high = (np.subtract(*entry.interval_68[::-1]) for entry in pair[::-1])
        assert low * 0.95 < high < 1.3 * low, name


def test_the_cost_of_an_arbitrary_camera_is_that_of_its_prior():
    """Against determinants of the whole information matrix."""
    clip = clips.draw("pendulum", 3)
    careful = identify(careful_tracks(clip), "pendulum", clip.known, size=clip.filming.size).fit
    fit = careful.other_camera
    assert fit is not None
    assert arbitrary_camera_cost(careful) == 0.0
    unknowns, names = fit.problem.unknowns, ("roll", "keystone", "foreshortening", "distortion")
    precision = torch.linalg.inv(fit.uncertainty.covariance)
    careful_std = {unknown.name: unknown.std for unknown in careful.problem.unknowns}
    derivative, change, log_ratio = unknowns.derivatives(fit.z), [], 0.0
    for unknown in unknowns:
        ratio = 1.0
        if unknown.name in names:
            ratio = unknown.std / careful_std[unknown.name]
            log_ratio += unknown.size * math.log(ratio)
        std = unknown.std or math.inf
        change += [(ratio**2 - 1) / std**2] * unknown.size
    careful_precision = precision + torch.diag(derivative.square() * torch.tensor(change, dtype=torch.float64))
    log_determinants = float(torch.logdet(careful_precision) - torch.logdet(precision))
    odds = 1 / DEFAULT_SETTINGS.view.arbitrary_probability - 1
    expected = 2 * (log_ratio + math.log(odds)) - log_determinants
    assert arbitrary_camera_cost(fit) == pytest.approx(expected, rel=1e-5)
    # The motion of a careful camera is likelier with a careful one.
    assert compare_cameras(careful).probabilities[0] > 0.9


def test_the_command_takes_a_calibration_of_opencv(tmp_path, capsys):
    """Also of a lens with more coefficients than the motion could show."""
    camera = Camera(focal=500.0, tilt=0.03, direction=0.7, roll=0.0, k1=0.0, readout=0.005)
    clip, _ = draw("pendulum", 4, camera)
    assert isinstance(clip.view, OpenCvProjection)
    view = replace(clip.view, distortion=np.array([-0.35, 0.2, 0.004, -0.003, -0.05]))
    clip = replace(clip, view=view)
    write_tracks(tmp_path / "tracks.csv", tracks_of(clip, NOISE))
    storage = cv2.FileStorage(str(tmp_path / "camera.yaml"), cv2.FILE_STORAGE_WRITE)
    for name, number in zip(("image_width", "image_height"), clip.filming.size, strict=True):
        storage.write(name, number)
    storage.write("camera_matrix", view.intrinsics)
    storage.write("distortion_coefficients", view.distortion)
    storage.release()
    arguments = [str(tmp_path / "tracks.csv"), "--motion", "pendulum", "--known", "gravity=9.81"]
    run_command([*arguments, "--camera", str(tmp_path / "camera.yaml"), "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "camera k1" not in printed
    contents = json.loads((tmp_path / "out" / "parameters.json").read_text())
    assert contents["camera"]["roll"]["identifiable"]
    assert "k1" not in contents["camera"]
    assert contents["parameters"]["length"]["value"] == pytest.approx(clip.truth["length"], rel=2e-3)
    assert contents["noise_px"] < 1.15 * NOISE
    low, high = contents["camera"]["tilt"]["interval_95"]
    assert low < 0.03 < high < math.radians(8)
    settings = calibrated(read_calibration(tmp_path / "camera.yaml"))
    with pytest.raises(InputError, match="calibrate in the mode of filming"):
        identify(tracks_of(clip, NOISE), "pendulum", size=(300, 900), settings=settings)
    meters = [replace(track, unit="m") for track in tracks_of(clip, NOISE)]
    with pytest.raises(InputError, match="applies to tracks in pixels"):
        identify(meters, "pendulum", settings=settings)


def calibrated(calibration):
    return replace(DEFAULT_SETTINGS, view=replace(DEFAULT_SETTINGS.view, calibration=calibration))


@pytest.mark.extended
def test_values_of_the_camera_that_widen_an_interval_say_so():
    """With the precision matrix as the oracle: what is known is left out of it, instead of conditioned on."""
    _, _, result = identify_pendulum(3)
    cameras = compare_cameras(result.fit)
    fit = cameras.fits[0]
    covariance = mixture_posterior(fit.problem, fit.z, linearization=fit.linearization).covariance
    names = [unknown.name for unknown in fit.problem.unknowns for _ in range(unknown.size)]
    retained = [index for index, name in enumerate(names) if name != "distortion"]
    precision = torch.linalg.inv(covariance)
    remaining = torch.linalg.inv(precision[retained][:, retained])
    values, derivatives, known_errors = linearize_parameters(fit)
    index = [name for name, value in values.items() if not isinstance(value, str)].index("amplitude")
    known_variance = known_errors[index].square().sum()
    total = derivatives[index] @ covariance @ derivatives[index] + known_variance
    rest = derivatives[index][retained] @ remaining @ derivatives[index][retained] + known_variance
    widening = interval_widening(linearize_fits(CameraFits((fit,), (1.0,))), ("distortion",))
    assert widening["amplitude"] == pytest.approx(float(total / rest) ** 0.5, rel=1e-3)
    factors = interval_widening(linearize_fits(cameras), ("distortion",))
    widest = max(factor for name, factor in factors.items() if name != "scale")
    assert (widest >= 1.1) == bool(result.camera["k1"].meaning)
    shown = [line for line in result_lines(result) if line.startswith("  camera")]
    assert len(shown) == sum(bool(entry.meaning) and entry.identifiable for entry in result.camera.values())
