"""A run that is interrupted goes on where it stopped."""

import pytest

from physvision.core.result_cache import cached_results


def test_what_was_interrupted_goes_on_where_it_stopped(tmp_path):
    path, worked = tmp_path / "folder" / "squares.jsonl", []

    def square(number):
        if number == 3 and 3 not in worked:
            worked.append(3)
            raise KeyboardInterrupt
        worked.append(number)
        return {"number": number, "square": number**2}

    def number(result):
        return result["number"]

    with pytest.raises(KeyboardInterrupt):
        cached_results(path, range(5), square, number)
    results = cached_results(path, range(5), square, number)
    assert worked == [0, 1, 2, 3, 3, 4]
    assert {key: result["square"] for key, result in results.items()} == {0: 0, 1: 1, 2: 4, 3: 9, 4: 16}


def test_every_process_sees_what_the_others_found(tmp_path):
    path = tmp_path / "squares.jsonl"
    for part in (range(0, 6, 2), range(1, 6, 2)):
        results = cached_results(path, part, lambda n: {"number": n}, lambda result: result["number"])
    assert sorted(results) == list(range(6))
    assert sorted(cached_results(path, (), lambda n: {}, lambda result: result["number"])) == list(range(6))
