"""Future of three balls, predicted from a film by a pretrained checkpoint.

python examples/predict_a_film.py
"""

import sys

import matplotlib.pyplot as plt

from physvision.datasets import BilliardsRecipe
from physvision.prediction import Predictor


def main(out: str = "predict.png") -> None:
    """Draw the last frame, what was seen before it and what comes next."""
    predictor = Predictor.from_checkpoint("billiards-3", horizon=0.5)
    film = BilliardsRecipe(trials=10, frames=40, seed=1, balls=3).make("test", 0)["frames"]  # or a path, or a camera
    prediction = predictor(film)
    plt.imshow(film[-1])
    for ball in range(3):
        columns = [3 * ball, 3 * ball + 1]
        past, future = prediction.states.q[:, columns], prediction.future.q[0][:, columns]
        plt.plot(*(past.T - 0.5), color="white", linewidth=1)
        plt.plot(*(future.T - 0.5), "--", color="yellow", linewidth=1)
    for ball, place in enumerate(prediction.future.q[0, -1].reshape(3, 3).tolist()):
        print(f"ball {ball} in half a second: x = {place[0]:.1f} px, y = {place[1]:.1f} px")
    plt.axis("off")
    plt.savefig(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
