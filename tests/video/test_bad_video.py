"""Files that cannot be read or written: one typed error that says why, and nothing half-written."""

import contextlib
import struct
import wave
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

from physvision import video
from physvision.core import FileError, InputError, ShapeError, VideoError

FRAMES = np.random.default_rng(0).integers(0, 256, (60, 48, 64, 3)).astype(np.uint8)


def test_no_such_file(tmp_path):
    with pytest.raises(FileError, match=r"none\.mp4: no such file"):
        video.read(tmp_path / "none.mp4")
    with pytest.raises(FileError, match="no such file"):
        video.read_info(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"not a video at all\n" * 50, np.random.default_rng(1).bytes(4096)], ids=["empty", "text", "noise"]
)
def test_not_a_video(tmp_path, content):
    (tmp_path / "a.mp4").write_bytes(content)
    with pytest.raises(VideoError, match=r"a\.mp4: (not a video|no picture|damaged|the video without frames)"):
        video.read(tmp_path / "a.mp4")


def test_text_is_no_video(tmp_path):
    """FFmpeg draws it, as terminals do."""
    (tmp_path / "a.txt").write_text("The ball rolls to the left.\n" * 50)
    with pytest.raises(VideoError, match=r"a\.txt: not a video, .*it holds text"):
        video.read(tmp_path / "a.txt")


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi"])
def test_a_title_in_other_bytes_than_utf8_is_no_fault(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    with av.open(str(path), "w") as container:
        container.metadata["title"] = "swing xx"
        stream = container.add_stream("ffv1" if suffix != ".mp4" else "libx264rgb", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "bgr0" if suffix != ".mp4" else "rgb24"
        for frame in FRAMES[:3]:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame)))
        container.mux(stream.encode(None))
    data = path.read_bytes()
    assert data.count(b"swing xx") == 1
    path.write_bytes(data.replace(b"swing xx", "swing é!".encode("latin-1")))
    assert len(video.read(path)) == 3
    assert video.read_info(path).width == 64


@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".webm", ".gif"])
def test_damaged_bytes_end_in_typed_errors(tmp_path, suffix):
    """Whatever bytes are changed, a video is read or named as unreadable."""
    data = video.write(tmp_path / f"a{suffix}", FRAMES[:6, :16, :16], 30).read_bytes()
    path, random = tmp_path / f"b{suffix}", np.random.default_rng(5)
    for _ in range(60):
        mutant = bytearray(data)
        for place in random.integers(0, min(len(data), 2000), 4):
            mutant[place] = random.integers(256)
        path.write_bytes(mutant)
        for call in (video.read, video.read_info, video.read_timestamps, video.read_audio):
            with contextlib.suppress(VideoError):
                call(path)


def test_audio_only(tmp_path):
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(16000))
    with pytest.raises(VideoError, match="no picture in this file, it holds audio"):
        video.read(tmp_path / "a.wav")


def test_zero_frames(tmp_path):
    with av.open(str(tmp_path / "a.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "bgr0"
        container.start_encoding()
    for call in (video.read, video.read_info):
        with pytest.raises(VideoError, match="without frames"):
            call(tmp_path / "a.mkv")


@pytest.mark.parametrize("fraction", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("suffix", [".mp4", ".mkv", ".avi", ".webm", ".mov"])
def test_truncated_files(tmp_path, suffix, fraction):
    path = video.write(tmp_path / f"a{suffix}", FRAMES, 30)
    data = path.read_bytes()
    path.write_bytes(data[: int(fraction * len(data))])
    with pytest.raises(VideoError, match=rf"a\{suffix}: .*cut off"):
        video.read(path)


def test_an_mp4_with_its_index_in_front_is_found_truncated(tmp_path):
    path = tmp_path / "a.mp4"
    with av.open(str(path), "w", options={"movflags": "faststart"}) as container:
        stream = container.add_stream("libx264", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        for frame in FRAMES:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame)))
        container.mux(stream.encode(None))
    assert len(video.read(path)) == 60
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(VideoError, match="cut off after"):
        video.read(path)
    messages = []
    readable = list(video.stream(path, on_truncation=messages.append))
    assert 10 < len(readable) < 60
    assert len(messages) == 1
    assert "cut off after" in messages[0]


@pytest.mark.parametrize(
    ("frames", "error", "match"),
    [
        (np.zeros((0, 4, 4, 3), np.uint8), VideoError, "no frame was given"),
        (np.zeros((2, 4, 4, 2), np.uint8), ShapeError, r"\(4, 4, 2\)"),
        (np.zeros((4, 4), np.uint8), ShapeError, "times, height, width"),
        (np.full((2, 4, 4), np.nan), InputError, "finite"),
        (np.zeros((2, 4, 4), np.int64), InputError, "int64"),
        ([np.zeros((4, 4, 3), np.uint8), np.zeros((4, 6, 3), np.uint8)], ShapeError, "frame 1: expected"),
    ],
)
def test_frames_that_cannot_be_written_leave_no_file(tmp_path, frames, error, match):
    with pytest.raises(error, match=match):
        video.write(tmp_path / "a.mp4", frames, 30)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_container_names_the_known_ones(tmp_path):
    with pytest.raises(InputError, match=r"expected one of \.mp4.*'\.xyz'"):
        video.write(tmp_path / "a.xyz", FRAMES, 30)
    with pytest.raises(InputError, match="fps"):
        video.write(tmp_path / "a.mp4", FRAMES, float("nan"))


def test_a_failing_iterator_leaves_the_old_file_alone(tmp_path):
    path = video.write(tmp_path / "a.mp4", FRAMES[:5], 30)
    before = path.read_bytes()

    def frames():
        yield FRAMES[0]
        raise RuntimeError("the camera was unplugged")

    with pytest.raises(RuntimeError, match="unplugged"):
        video.write(path, frames(), 30)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.mp4"]


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileError, match="there is no folder"):
        video.write(tmp_path / "none" / "a.mp4", FRAMES, 30)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_reported(tmp_path):
    path = tmp_path / "a.mkv"
    video.VideoWriter(path, 30)._partial.symlink_to("/dev/full")
    with pytest.raises(VideoError, match="No space left on device"):
        video.write(path, FRAMES, 30)
    assert list(tmp_path.iterdir()) == []


def test_a_list_of_other_files_is_no_video(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    video.write("a.mp4", FRAMES, 30)
    playlist = f"#EXTM3U\n#EXTINF:2.0,\nfile://{tmp_path}/a.mp4\n#EXT-X-ENDLIST\n"
    texts = {"b.mp4": "ffconcat version 1.0\nfile a.mp4\n", "b.m3u8": playlist, "a.m3u8": "#EXTM3U\na.mp4\n"}
    for name, text in texts.items():
        Path(name).write_text(text)
        with pytest.raises(VideoError, match="not a video"):
            video.read(name)
    Path("concat:a.mp4|a.mp4").write_bytes(Path("a.mp4").read_bytes())
    assert len(video.read("concat:a.mp4|a.mp4")) == 60


def test_frames_larger_than_memory_are_refused_before_they_are_decoded(tmp_path):
    (tmp_path / "a.gif").write_bytes(b"GIF89a" + struct.pack("<HHBBB", 16000, 16000, 0x80, 0, 0) + bytes(6) + b"\x3b")
    with pytest.raises(VideoError, match="states frames of 16000 x 16000 pixels"):
        video.read(tmp_path / "a.gif")
    folder = tmp_path / "images"
    folder.mkdir()
    Image.new("1", (9000, 9000)).save(folder / "0.png")
    for call in (video.read_info, lambda path: video.read(path, conversion=video.Conversion(fps=30))):
        with pytest.raises(VideoError, match="states frames of 9000 x 9000 pixels"):
            call(folder)


def test_a_gap_of_days_is_not_filled_with_copies(tmp_path):
    with av.open(str(tmp_path / "a.mkv"), "w") as container:
        stream = container.add_stream("ffv1", rate=30)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "bgr0"
        for frame, time in zip(FRAMES, (0, 33, 10**8), strict=False):
            picture = av.VideoFrame.from_ndarray(frame).reformat(format="bgr0")
            picture.pts, picture.time_base = time, Fraction(1, 1000)
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))
    assert len(video.read(tmp_path / "a.mkv")) == 3
    with pytest.raises(InputError, match=r"3e\+06 copies of the frame at 0.033 s, for the next is at 100000 s"):
        video.read(tmp_path / "a.mkv", conversion=video.Conversion(fps=30))
