"""Breakout from at most 1,000 random frames: only the paddle's motion is learned.

    python experiments/breakout.py [--frames 10,30,100,300,1000] [--games 10] [--first 100] [--aimed]
        [--max_frames 108000]

Needs physvision[atari]. `ALE/Breakout-v5`, frameskip 1, no sticky keys, 0 to 30 idle frames at the start, at most
108,000 frames a game. Given: colors, walls, and elastic bounces; from frames under random keys it is learned how far a
frame under a key moves the paddle, in that frame and those that follow. The player (`physvision/control/breakout.py`)
measures ball, paddle and bricks in every frame; frames of play are not fitted. With `--aimed` they are: a player then
learns, through all its games, how the ball leaves the paddle, and aims at bricks. One line a game goes to
out/breakout.jsonl, and what is there is not played again; aimed games, of which each learns from those before, always
are, and go to out/breakout_aimed.jsonl.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from claims import Claim, write_claims
from jsonargparse import auto_cli

from physvision.control.breakout import BounceStatistics, BreakoutAgent, PaddleModel, play_game
from physvision.envs.atari import AtariEnv

MAX_FRAMES = 108_000


def play_games(
    game: AtariEnv, paddle: PaddleModel, seed: int, max_frames: int, bounces: BounceStatistics | None = None
) -> dict:
    """One game: its score and length, and how many decisions a second the player made."""
    result = play_game(game, BreakoutAgent(paddle, seed, bounces), seed, max_frames)
    return {**result._asdict(), "decisions_a_second": result.frames / result.seconds}


def main(
    frames: str = "10,30,100,300,1000",
    games: int = 10,
    first: int = 100,
    max_frames: int = MAX_FRAMES,
    aimed: bool = False,
    out: Path = Path("out"),
) -> None:
    """Play what is missing, and print the table."""
    out.mkdir(exist_ok=True)
    path, game = out / ("breakout_aimed.jsonl" if aimed else "breakout.jsonl"), AtariEnv("Breakout")
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() and not aimed else []
    claims, peer = [], "DQN after 10 million decisions"
    for count in map(int, frames.split(",")):
        paddle, bounces = PaddleModel.fit(game, count, 1), BounceStatistics() if aimed else None
        text = f"{paddle.speed:.2f} pixels a frame, by frames {paddle.impulse_response.round(2)}"
        print(f"{count:5d} random frames: {text}", flush=True)
        for seed in range(first, first + games):
            if not any((row["learned"], row["seed"], row["most"]) == (count, seed, max_frames) for row in rows):
                row = {
                    "learned": count,
                    "seed": seed,
                    "most": max_frames,
                    **play_games(game, paddle, seed, max_frames, bounces),
                }
                rows.append(row)
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        results = [row for row in rows if (row["learned"], row["most"]) == (count, max_frames)]
        scores, total = np.array([row["score"] for row in results]), sum(row["frames"] for row in results)
        rate = min(row["decisions_a_second"] for row in results)
        print(
            f"{count:5d} random frames{', aimed' if aimed else ''}: mean {scores.mean():.0f} ± {scores.std():.0f}, "
            f"least {scores.min():.0f}, most {scores.max():.0f} of {len(results)} games of {total} frames in all; "
            f"{rate:.0f} decisions a second at least",
            flush=True,
        )
        name = f"mean score of ten games of Breakout, paddle learned from {count:,} random pictures"
        if len(results) == 10 and not aimed:
            claims.append(Claim(name, float(scores.mean()), "points", reference=358, source=peer))
    print(write_claims(__file__, claims))


if __name__ == "__main__":
    auto_cli(main, as_positional=False)
