"""What is written is what is read: pixels, sizes, times."""

import struct
import subprocess
import sys
from fractions import Fraction

import av
import cv2
import numpy as np
import pytest
import torch
from av.video.frame import PictureType

from physvision import video
from physvision.core import Clip, InputError, VideoError
from physvision.video import decoding


def moving_texture(times=12, height=48, width=64):
    """Smooth colored texture that shifts by (1, 2) pixels a frame."""
    coarse = np.random.default_rng(3).integers(0, 256, (6, 8, 3)).astype(np.uint8)
    picture = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.stack([np.roll(picture, (step, 2 * step), (0, 1)) for step in range(times)])


# Container, frames a second, and the largest step of its clock in seconds.
LOSSLESS = [
    (".mp4", 30, 0),
    (".mp4", Fraction(30000, 1001), 0),
    (".mov", 25, 0),
    (".mkv", 20, 1e-3),
    (".mkv", 59.94, 1e-3),
    (".avi", 24, 0),
    (".avi", 12.5, 0),
    (".webm", 50, 1e-3),
    (".png", 10, 1e-4),
]
LOSSY = [(".mp4", 30, 0), (".mp4", 119.88, 0), (".mkv", 15, 1e-3), (".webm", 29.97, 1e-3), (".avi", 60, 0)]


@pytest.mark.parametrize("gray", [False, True], ids=["rgb", "gray"])
@pytest.mark.parametrize(("suffix", "fps", "clock"), LOSSLESS)
def test_lossless_encodings_return_every_pixel(tmp_path, suffix, fps, clock, gray):
    frames = moving_texture()[..., 0] if gray else moving_texture()
    clip = video.read(video.write(tmp_path / f"a{suffix}", frames, fps, lossless=True), color="gray" if gray else "rgb")
    np.testing.assert_array_equal(clip.frames.squeeze(-1).numpy(), frames)
    np.testing.assert_allclose(clip.times, np.arange(12) / float(fps), atol=clock + 1e-9)
    assert [entry.name for entry in tmp_path.iterdir()] == [f"a{suffix}"]


@pytest.mark.parametrize(("suffix", "fps", "clock"), LOSSY)
def test_lossy_encodings_return_the_picture(tmp_path, suffix, fps, clock):
    frames = cv2.blur(moving_texture().reshape(-1, 64, 3), (9, 9)).reshape(12, 48, 64, 3) // 2 + 64
    clip = video.read(video.write(tmp_path / f"a{suffix}", frames, fps))
    assert clip.frames.shape == frames.shape
    error = (clip.frames.numpy().astype(float) - frames) ** 2
    assert 10 * np.log10(255**2 / error.mean()) > 35
    np.testing.assert_allclose(clip.times, np.arange(12) / fps, atol=clock + 1e-9)


@pytest.mark.parametrize("suffix", [".mp4", ".webm", ".avi"])
def test_flat_colors_come_back_as_they_were(tmp_path, suffix):
    """A wrong color matrix shifts green by 13 levels and more; rounding to 8-bit luma and color shifts by 2."""
    colors = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [200, 100, 50], [0, 0, 0], [255] * 3], np.uint8)
    frames = np.broadcast_to(np.repeat(np.repeat(colors[None], 16, 0), 16, 1), (3, 16, 96, 3))
    observed = video.read(video.write(tmp_path / f"a{suffix}", frames, 30)).frames[1, 8, 8::16].numpy().astype(int)
    assert np.abs(observed - colors).max() <= 3


def test_odd_sizes_keep_their_size(tmp_path):
    frames = moving_texture(height=47, width=61)
    for suffix in (".mp4", ".avi", ".webm"):
        assert video.read(video.write(tmp_path / f"a{suffix}", frames, 30)).frames.shape == frames.shape


def test_floats_tensors_and_iterators_are_the_same_frames(tmp_path):
    frames = moving_texture()
    given = [
        frames,
        frames / 255.0,
        torch.from_numpy(frames).float() / 255,
        iter(list(frames)),
        torch.from_numpy(frames),
    ]
    files = [video.write(tmp_path / f"{index}.mkv", item, 30, lossless=True) for index, item in enumerate(given)]
    for file in files:
        np.testing.assert_array_equal(video.read(file).frames.numpy(), frames)


def test_a_variable_frame_rate_keeps_its_times(tmp_path):
    times = torch.tensor([0.0, 0.1, 0.15, 0.5, 1.25, 1.3], dtype=torch.float64)
    clip = Clip(torch.from_numpy(moving_texture(6)), times)
    for suffix in (".mp4", ".mkv"):
        observed = video.read(video.write(tmp_path / f"a{suffix}", clip, lossless=True))
        torch.testing.assert_close(observed.times, times, atol=1e-3, rtol=0)
        assert torch.equal(observed.frames, clip.frames)


@pytest.mark.parametrize("fps", [24, 29.97, 60])
def test_the_frame_rate_is_not_that_of_rounded_steps(tmp_path, fps):
    """Matroska's clock ticks in milliseconds, so that steps of 24 frames a second are 41 and 42 ms."""
    clip = video.read(video.write(tmp_path / "a.mkv", moving_texture(60), fps))
    assert clip.fps == pytest.approx(fps, rel=1e-3 * fps / 59)
    paused = Clip(clip.frames, clip.times + 5.0 * (torch.arange(60) > 30), clip.source)
    assert paused.fps == pytest.approx(clip.fps, rel=1e-3 * fps / 50)


def turned(path, quarters):
    """The MP4 at `path` with its track header flagged as turned clockwise by that many quarters."""
    cos, sin = ((1, 0), (0, 1), (-1, 0), (0, -1))[quarters]
    fixed_unit, unit = 1 << 16, 1 << 30
    data = bytearray(path.read_bytes())
    matrix = struct.pack(
        ">9i", cos * fixed_unit, sin * fixed_unit, 0, -sin * fixed_unit, cos * fixed_unit, 0, 0, 0, unit
    )
    start = data.index(b"tkhd") + 4 + 40
    data[start : start + 36] = matrix
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_rotation_flags_are_followed(tmp_path, quarters):
    frames = moving_texture()
    path = turned(video.write(tmp_path / "a.mp4", frames, 30, lossless=True), quarters)
    expected = np.rot90(frames, -quarters, (1, 2))
    clip = video.read(path)
    np.testing.assert_array_equal(clip.frames.numpy(), expected)
    assert (video.read_info(path).height, video.read_info(path).width) == expected.shape[1:3]
    # OpenCV, which follows the flag with code of its own, agrees which way is up.
    capture = cv2.VideoCapture(str(path))
    capture.set(cv2.CAP_PROP_ORIENTATION_AUTO, 1)
    assert np.abs(capture.read()[1][..., ::-1].astype(int) - expected[0]).max() <= 3


@pytest.mark.parametrize("flips", [(-1, 0, 0, 1), (1, 0, 0, -1), (0, 1, 1, 0), (0, -1, -1, 0)])
def test_mirrors_are_followed(tmp_path, flips):
    """The container's standard: a place (x, y), counted from the middle, is shown at (a x + c y, b x + d y)."""
    a, b, c, d = flips
    frames = moving_texture(3)
    path = video.write(tmp_path / "a.mp4", frames, 30, lossless=True)
    data, fixed_unit = bytearray(path.read_bytes()), 1 << 16
    start = data.index(b"tkhd") + 44
    data[start : start + 36] = struct.pack(
        ">9i", a * fixed_unit, b * fixed_unit, 0, c * fixed_unit, d * fixed_unit, 0, 0, 0, 1 << 30
    )
    path.write_bytes(data)
    observed = video.read(path).frames.numpy()
    height, width = frames.shape[1:3]
    y, x = np.mgrid[:height, :width] * 2 - np.array([height - 1, width - 1])[:, None, None]
    columns = (a * x + c * y + observed.shape[2] - 1) // 2
    rows = (b * x + d * y + observed.shape[1] - 1) // 2
    np.testing.assert_array_equal(observed[:, rows, columns], frames)


def test_avi_with_frames_that_look_ahead(tmp_path):
    """AVI stamps frames in the order of coding, which is not that in which they are shown."""
    frames, path = moving_texture(30), tmp_path / "a.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25, options={"bf": "2", "crf": "1", "preset": "slow"})
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv444p"
        for frame in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame)))
        container.mux(stream.encode(None))
    with av.open(str(path)) as container:
        assert {frame.pict_type for frame in container.decode(video=0)} >= {PictureType.B, PictureType.P}
    clip = video.read(path)
    np.testing.assert_allclose(clip.times, np.arange(30) / 25, atol=1e-9)
    # Nearer to its own frame than to any other: the order is right.
    apart = [[np.abs(observed.astype(int) - true).mean() for true in frames] for observed in clip.frames.numpy()]
    assert np.argmin(apart, 1).tolist() == list(range(30))


def test_what_a_camera_draws_can_be_written(tmp_path):
    frames = moving_texture()
    rendered = torch.from_numpy(frames).permute(0, 3, 1, 2).float() / 255
    for name, given in (("a", rendered), ("b", iter(rendered)), ("c", rendered.numpy())):
        path = video.write(tmp_path / f"{name}.mkv", given, 30, lossless=True)
        np.testing.assert_array_equal(video.read(path).frames.numpy(), frames)
    gray = video.write(tmp_path / "d.mkv", rendered[:, :1], 30, lossless=True)
    np.testing.assert_array_equal(video.read(gray).frames.numpy(), frames[..., :1])


def test_a_folder_of_pictures_is_a_video(tmp_path):
    frames = moving_texture()
    for number, frame in enumerate(frames):
        cv2.imwrite(str(tmp_path / f"frame{number}.png"), frame[..., ::-1])
    (tmp_path / "notes.txt").write_text("not an image")
    clip = video.read(tmp_path, conversion=video.Conversion(capture_fps=240))
    # frame2 comes before frame10.
    np.testing.assert_array_equal(clip.frames.numpy(), frames)
    np.testing.assert_allclose(clip.times, np.arange(12) / 240, atol=1e-12)
    result = video.read_info(tmp_path)
    assert (result.width, result.height, result.channels, result.frames, result.codec) == (64, 48, 3, 12, "png")
    assert video.read_audio(tmp_path) is None
    half = video.read(tmp_path, conversion=video.Conversion(capture_fps=60, fps=30, size=(32, 24)))
    assert half.frames.shape == (6, 24, 32, 3)
    with pytest.raises(InputError, match="a folder of images has no times"):
        video.read(tmp_path)
    (tmp_path / "frame5.png").write_bytes(b"broken")
    with pytest.raises(VideoError, match=r"frame5\.png: not an image"):
        video.read(tmp_path, conversion=video.Conversion(capture_fps=240))


def test_a_clip_says_what_it_is_in_a_line(tmp_path):
    clip = video.read(video.write(tmp_path / "a.mkv", moving_texture(), 25, lossless=True))
    assert repr(clip) == f"Clip(12 frames of 64 x 48 pixels in color, 25 frames a second, from {tmp_path}/a.mkv)"
    assert repr(clip.window(0, 1).gray()).startswith("Clip(1 frames of 64 x 48 pixels in gray, from")


def test_a_part_and_pieces_are_the_frames_of_the_whole(tmp_path):
    path = video.write(tmp_path / "a.mkv", moving_texture(10), 20, lossless=True)
    whole = video.read(path)
    part = video.read(path, 3, 7)
    assert torch.equal(part.frames, whole.frames[3:7])
    assert torch.equal(part.times, whole.times[3:7])
    pieces = list(video.chunks(path, 4))
    assert [len(piece) for piece in pieces] == [4, 4, 2]
    assert torch.equal(torch.cat([piece.frames for piece in pieces]), whole.frames)


def test_gray_video_has_one_channel_unless_asked_otherwise(tmp_path):
    path = video.write(tmp_path / "a.mkv", moving_texture()[..., 1], 30, lossless=True)
    assert video.read(path).frames.shape[-1] == 1
    assert video.read(path, color="rgb").frames.shape[-1] == 3
    assert video.read_info(path).channels == 1


def test_describe_says_what_reading_finds(tmp_path):
    description = video.read_info(video.write(tmp_path / "a.mp4", moving_texture(), 25))
    assert (description.width, description.height, description.channels) == (64, 48, 3)
    assert (description.fps, description.frames, description.codec) == (25, 12, "h264")
    assert description.duration == pytest.approx(12 / 25)


@pytest.mark.parametrize(("side", "threads"), [(64, 1), (640, 4)])
def test_threads_follow_from_the_size_and_not_from_the_machine(tmp_path, side, threads):
    path = tmp_path / "a.mp4"
    with video.VideoWriter(path) as writer:
        writer.add(np.zeros((side, side, 3), np.uint8))
        assert writer._stream.codec_context.thread_count == threads
    with decoding.open_container(path) as (_, stream):
        assert stream.codec_context.thread_count == threads


LONG_VIDEO = """
import sys
import numpy as np
from physvision import video
frame = np.zeros((64, 64, 3), np.uint8)
def frames(count):
    for index in range(count):
        frame[:] = index // 80
        frame[index % 60 : index % 60 + 4] = 255
        yield frame
for path, count in (sys.argv[1], 2_000), (sys.argv[2], 20_000):
    video.write(path, frames(count), 30, encoding=video.Encoding("libx264", "yuv420p", {"preset": "ultrafast"}))
"""

PEAKS = """
import sys
from physvision import video
def peak():
    line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
print(0, peak())
for path in sys.argv[1:]:
    print(sum(len(piece.frames) for piece in video.chunks(path, 32)), peak())
"""


@pytest.mark.extended
def test_a_long_video_streams_in_constant_memory(tmp_path):
    """Of 234 MB of frames, reading holds one piece of 0.4 MB and what the decoder keeps.

    The process as a whole is mostly torch, whose size depends on how it was built; so the peak is compared with that
    after the imports, and that of a video with that of one a tenth as long.
    """
    paths = [str(tmp_path / "short.mp4"), str(tmp_path / "long.mp4")]
    subprocess.run([sys.executable, "-c", LONG_VIDEO, *paths], check=True)
    lines = subprocess.run([sys.executable, "-c", PEAKS, *paths], check=True, capture_output=True, text=True).stdout
    counts, (imports, short, long) = zip(*[map(float, line.split()) for line in lines.splitlines()], strict=True)
    assert counts == (0, 2_000, 20_000)
    assert long - imports < 60
    assert long - short < 16
