"""Nothing is remembered without a bound: a scheduler runs for months in one process."""

import ast
import gc
import weakref
from pathlib import Path

import pytest

from ronda.instances.models.cache import Remembered, per_record

ROOT = Path(__file__).parents[1]
LAYERS = (
    *("instances", "formulations", "solvers", "horizon"),
    *("systems", "questions", "hosts", "bench", "ronda/cli"),
)
FEW = {"_fields", "_hints", "class_of", "left_alone", "document", "_site"}
"""Functions of a kind of record, a public function, a base policy, a command, a document, a site of
tasks: there are few of them."""


def caches():
    """Return every decorated function that remembers: file, function, decorator."""
    found = []
    for layer in LAYERS:
        for path in sorted((ROOT / layer).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            if path.stem == "cache" or ("cache" not in text and "per_record(" not in text):
                continue
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    for each in map(ast.unparse, node.decorator_list):
                        if each.partition("(")[0] in {"cache", "lru_cache", "per_record"}:
                            found.append((path.relative_to(ROOT), node, each))
    return found


def test_caches_have_a_bound():
    """A number that is written down; without one there is nothing to vary, or it is listed."""
    listed = caches()
    assert len(listed) > 10
    for path, function, decorator in listed:
        name, _, given = decorator.partition("(")
        if name == "cache":
            plain = not ast.unparse(function.args)
            assert plain or function.name in FEW, (path, decorator)
        else:
            bound = given.rstrip(")").removeprefix("maxsize=").removesuffix(", typed=True")
            assert isinstance(eval(bound, {}), int), (path, decorator)  # as in 1 << 14


class Kept:
    """Something that can be watched."""


def test_records_beyond_the_bound_are_forgotten():
    """With what was computed of them: the last two stay."""
    asked = []

    @per_record(maxsize=2)
    def twice(record, number):
        asked.append(number)
        return 2 * number

    records = [Kept() for _ in range(5)]
    watched = [weakref.ref(record) for record in records]
    assert [twice(record, 1) for record in records] == [2] * 5
    assert twice(records[-1], 1) == 2
    assert len(asked) == 5
    del records
    gc.collect()
    assert [ref() is not None for ref in watched] == [False, False, False, True, True]


@pytest.mark.parametrize("number", [1, 100])
def test_many_arguments_of_one_record_are_bounded_too(number):
    """A profile that is kept for ever sees another noise every round."""

    @per_record(maxsize=8)
    def values(record, noise):
        return Kept()

    record = Kept()
    made = [weakref.ref(values(record, noise)) for noise in range(number)]
    gc.collect()
    assert sum(ref() is not None for ref in made) == min(number, 8)


def test_what_is_missing_is_made_together_and_the_oldest_forgotten():
    """Asking makes a value the newest; what was made before an error is not made again."""
    asked, last = [], Remembered[int, int](maxsize=3)

    def squares(numbers):
        asked.append(list(numbers))
        for number in numbers:
            if number > 9:
                raise ValueError(number)
            yield number, number * number

    assert last.of([1, 2, 1], squares) == [1, 4, 1]
    assert last.of([3, 1], squares) == [9, 1]
    assert last.of([2, 4], squares) == [4, 16]  # 1, the oldest, makes way
    with pytest.raises(ValueError, match="10"):
        last.of([5, 10], squares)
    assert last.of([5, 4], squares) == [25, 16]
    assert last.of([3], squares) == [9]  # it has made way for 5
    assert asked == [[1, 2], [3], [4], [5, 10], [], [3]]
