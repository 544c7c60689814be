"""Calibrations are read as OpenCV writes them, and their distortion is that of cv2.projectPoints."""

import cv2
import numpy as np
import pytest
import torch

from physvision.camera import Calibration, read_calibration
from physvision.core import FileError, InputError, UnsupportedError

MATRIX = np.array([[500.0, 0, 310], [0, 520, 250], [0, 0, 1]])
COEFFICIENTS = (-0.3, 0.1, 0.002, -0.001, 0.05, 0.1, 0.02, 0.01)


def write(path, matrix=MATRIX, coefficients=COEFFICIENTS, size=(640, 480)):
    storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_WRITE)
    if size is not None:
        storage.write("image_width", size[0])
        storage.write("image_height", size[1])
    storage.write("camera_matrix", matrix)
    if coefficients is not None:
        storage.write("distortion_coefficients", np.array([coefficients]))
    storage.release()
    return path


@pytest.mark.parametrize("suffix", ["yml", "yaml", "xml", "json"])
def test_files_of_opencv(tmp_path, suffix):
    calibration = read_calibration(write(tmp_path / f"camera.{suffix}"))
    # OpenCV counts from the center of the first pixel.
    assert calibration == Calibration((500.0, 520.0), (310.5, 250.5), COEFFICIENTS, (640.0, 480.0))
    unknown = read_calibration(write(tmp_path / f"lens.{suffix}", coefficients=None, size=None))
    assert unknown.coefficients == ()
    assert unknown.size is None


def test_a_file_of_ros(tmp_path):
    path = tmp_path / "camera.yaml"
    path.write_text(
        "image_width: 640\nimage_height: 480\ncamera_matrix:\n  rows: 3\n  cols: 3\n"
        "  data: [500, 0, 310, 0, 520, 250, 0, 0, 1]\ndistortion_model: plumb_bob\n"
        "distortion_coefficients:\n  rows: 1\n  cols: 5\n  data: [-0.3, 0.1, 0.002, -0.001, 0.05]\n"
    )
    assert read_calibration(path) == Calibration((500.0, 520.0), (310.5, 250.5), COEFFICIENTS[:5], (640.0, 480.0))
    path.write_text(path.read_text().replace("plumb_bob", "equidistant"))
    with pytest.raises(UnsupportedError, match="equidistant"):
        read_calibration(path)


@pytest.mark.parametrize("text", ["no calibration", "%YAML:1.0\n---\nfocal: 500\n", "", "\x00\x01"])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "camera.yaml"
    path.write_text(text)
    with pytest.raises(FileError, match="expected"):
        read_calibration(path)
    with pytest.raises(FileError, match="cannot be read"):
        read_calibration(tmp_path / "missing.yaml")


def test_large_files_and_unknown_models_are_refused(tmp_path):
    path = tmp_path / "camera.yaml"
    path.write_text("# " + "x" * 1_000_000)
    with pytest.raises(InputError, match="at most 1,000,000 bytes"):
        read_calibration(path)
    with pytest.raises(UnsupportedError, match="4, 5 or 8"):
        read_calibration(write(path, coefficients=(0.0,) * 12))
    with pytest.raises(InputError, match="focal lengths above zero"):
        Calibration((500.0, -1.0), (320.0, 240.0))


@pytest.mark.parametrize("count", [4, 5, 8])
def test_distortion_is_that_of_opencv(count):
    calibration = Calibration((500.0, 520.0), (310.5, 250.5), COEFFICIENTS[:count])
    rays = np.random.default_rng(0).uniform(-0.5, 0.5, (20, 2))
    points = np.concatenate([rays, np.ones((20, 1))], 1)
    pixels = cv2.projectPoints(points, np.zeros(3), np.zeros(3), MATRIX, np.array(COEFFICIENTS[:count]))[0][:, 0] + 0.5
    distorted = calibration.distort(torch.from_numpy(500 * rays)).numpy() + calibration.center
    np.testing.assert_allclose(distorted, pixels, atol=1e-9)
    np.testing.assert_allclose(calibration.undistort(pixels), 500 * rays + calibration.center, atol=1e-7)


def test_another_resolution_of_the_same_picture():
    calibration = Calibration((500.0, 520.0), (310.5, 250.5), size=(640, 480))
    assert calibration.resized(1280, 960) == Calibration((1000.0, 1040.0), (621.0, 501.0), size=(1280, 960))
    with pytest.raises(InputError, match="calibrate in the mode of filming"):
        calibration.resized(480, 640)
    with pytest.raises(InputError, match="outside of the picture"):
        Calibration((500.0, 520.0), (310.5, 250.5)).resized(320, 240)
