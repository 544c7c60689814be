"""Pendulum autoencoder from few labels: states for 100, 25, 10, 2 and 0 % of the samples.

Samples without labels teach by their frames alone. Where labels are few they come again, until they are four
fifths of what is seen. Where there are none networks learn at lower rates: nothing says how fast the links are, and
at the configurations' an encoder soon throws them at speeds that no engine follows, from where nothing leads back.
Trainings that were interrupted go on, those that are complete are not repeated.

    physvision generate pendulum --trials 2400 --out data/pendulum
    python experiments/pendulum_supervision.py [--updates 2000] [--runs out/pendulum_labels] [--out out]
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import torch
from jsonargparse import auto_cli
from pendulum_autoencoder import MODELS, by_model, heading, held_out, measured, row, train

mpl.use("Agg")
from matplotlib import pyplot as plt

FRACTIONS = (1.0, 0.25, 0.1, 0.02, 0.0)
BAR = 1.3


def draw(errors: dict[str, list[float]], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    places = range(len(FRACTIONS))
    for name, entry in errors.items():
        axes.plot(places, entry, marker="o", label=name)
    axes.set_xticks(places, [f"{100 * fraction:g} %" for fraction in FRACTIONS])
    axes.set(xlabel="samples with labels", ylabel="error of angles 1 s ahead, rad", ylim=(0, None))
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def main(
    data: str = "data/pendulum",
    updates: int = 2000,
    runs: Path = Path("out/pendulum_labels"),
    out: Path = Path("out"),
    names: tuple[str, ...] = tuple(MODELS),
) -> None:
    """Train with fewer and fewer labels.

    Args:
        data: the data set.
        updates: Updates of each training.
        runs: where trainings are kept.
        out: folder of the figure.
        names: Names of the compared models.
    """
    torch.set_num_threads(1)
    batches = held_out(data)
    print(heading())
    errors: dict[str, list[float]] = {}
    for name in names:
        for fraction in FRACTIONS:
            options = ("--data.labels.fraction", str(fraction), "--data.labels.batch_fraction", "0.8")
            options += ("--trainer.limit_train_batches", str(updates))
            if not fraction:
                options += ("--model.optimization.learning_rate", "1e-3")
                options += ("--model.optimization.encoder_learning_rate", "1e-3")
            run = train(MODELS[name], runs / f"{MODELS[name]}-{fraction}", data, epochs=1, options=options)
            result = measured(by_model(run.model), batches)
            errors.setdefault(name, []).append(result["state_error/1s"])
            print(row(f"{name}, {100 * fraction:g} % labels", result, run), flush=True)
    draw(errors, out / "pendulum_supervision.png")
    if "physics layer" in errors:
        ratio = errors["physics layer"][2] / errors["physics layer"][0]
        verdict = "met" if ratio <= BAR else "MISSED"
        print(f"physics, error at 10 % of labels over 100 %: {ratio:.2f}; bar {BAR}: {verdict}")
    print(f"figure: {out / 'pendulum_supervision.png'}")


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
