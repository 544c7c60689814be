"""A pendulum's length with its interval, from a film and without training.

python examples/identify_a_clip.py
"""

import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import physvision as pv
from physvision.datasets import clips


def main(out: str = "identify.png") -> None:
    """Draw a film of a pendulum as a phone would take it, and identify it."""
    with tempfile.TemporaryDirectory() as folder:
        sample = clips.draw("pendulum", 3)
        result = pv.identify(sample.write(Path(folder) / "swing.mp4"), "pendulum", known_values={"gravity": 9.81})
    length = result.parameters["length"]
    assert length.interval_95 is not None
    low, high = length.interval_95
    print(f"length {length.value:.4f} m, 95 %: {low:.4f} to {high:.4f}; the truth is {sample.truth['length']:.4f}")
    times = np.linspace(0.0, 3.0, 200)
    places = np.asarray(result.positions(times)).reshape(len(times), -1)
    plt.plot(times, places[:, 0], label="x")
    plt.plot(times, places[:, 1], label="y")
    plt.xlabel("time, s")
    plt.ylabel("place of the bob in the picture, px")
    plt.legend()
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
