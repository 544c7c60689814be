"""Cost of reading a long video: processor time and peak memory, beside OpenCV's reader.

    python benchmarks/video.py [--frames 20000] [--side 100]

Each reader has a process of its own; memory is that of the whole process, the imports included.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

READERS = {
    "imports alone": "from physvision import video; count = 0",
    "physvision.video": """
from physvision import video
count = sum(len(piece) for piece in video.chunks(path, 32))""",
    "cv2.VideoCapture, without torch": """
import cv2
capture, count = cv2.VideoCapture(path), 0
while capture.read()[0]:
    count += 1""",
}
MEASURE = """
import sys, time
path, begin = sys.argv[1], time.process_time()
{reading}
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(count, time.process_time() - begin, int(peak.split()[1]) / 1024)
"""


def make(path: Path, frames: int, side: int) -> None:
    from physvision import video
    from physvision.datasets import BilliardsRecipe

    recipe = BilliardsRecipe(trials=1, frames=300, size=side, radius=side / 20)
    trial = recipe.make("train", 0)["frames"]
    video.write(path, (trial[index % 300] for index in range(frames)), 30)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--frames", type=int, default=20_000)
    parser.add_argument("--side", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="video-") as folder:
        path = Path(folder) / "long.mp4"
        make(path, options.frames, options.side)
        decoded = options.frames * options.side**2 * 3 / 2**20
        print(f"{options.frames} frames of {options.side} x {options.side}, H.264, {decoded:.0f} MB when decoded")
        print(f"{'reader':34} {'frames':>8} {'s of processor':>15} {'peak MB':>9}")
        for name, reading in READERS.items():
            command = [sys.executable, "-c", MEASURE.format(reading=reading), str(path)]
            count, seconds, peak = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            print(f"{name:34} {count:>8} {float(seconds):15.1f} {float(peak):9.0f}")


if __name__ == "__main__":
    main()
