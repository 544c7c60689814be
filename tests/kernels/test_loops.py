"""The loops that Warp is given run as those that are written."""

# pyright: reportCallIssue=false

from types import SimpleNamespace

import pytest

from physvision.kernels.loops import as_while

WRITTEN = """
def visited(first, last, turns):
    seen = []
    for k in range({}):
        if k == 3:
            continue
        for n in range(turns[k], turns[k + 1]):  # a comment
            seen.append((k, n))
            if n == 6:
                break
        seen.append(k)
    return seen
"""


def run(source: str, *given):
    scope = {"wp": SimpleNamespace(int32=int, max=max)}
    exec(source, scope)
    return scope["visited"](*given)


@pytest.mark.parametrize(
    "inside", ["last", "first, last", "first + 1, last - 1", "last, first, -1", "last - 1, -1, -1"]
)
def test_a_while_loop_visits_what_its_range_does(inside):
    written = WRITTEN.format(inside)
    given = "\n".join(map(as_while, written.split("\n")))
    assert "range" not in given
    turns = [0, 2, 2, 5, 9, 12, 12, 13, 15]
    for first in range(4):
        for last in range(7):
            assert run(given, first, last, turns) == run(written, first, last, turns)


@pytest.mark.parametrize(
    "line", ["for k in range(3):", "    for k in range(TURNS + 2):", "for k in range(0, n, 2):", "k = 1"]
)
def test_what_warp_unrolls_and_other_lines_stay(line):
    assert as_while(line) == line
