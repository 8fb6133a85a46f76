"""What a plan remembers: each kind a record of its own, read back as it was noted."""

import importlib
import pkgutil
from typing import ClassVar

import msgspec
import pytest

from ronda import solvers, systems
from ronda.instances.errors import InputError
from ronda.instances.files.json import read, write
from ronda.instances.plan import Plan, PlanMemory


class Turns(PlanMemory, frozen=True):
    """A queue, and since when each node's first job is there."""

    key: ClassVar[str] = "test_turns"

    queue: list[str] = []
    since_s: dict[int, float] = {}


def kinds():
    """Return all kinds of memory of the package."""
    for room in (solvers, systems):
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
    return [kind for kind in PlanMemory.__subclasses__() if kind.__module__.startswith("ronda.")]


@pytest.mark.parametrize("written", [False, True])
def test_what_is_noted_is_recalled(written, tmp_path):
    """In the process and from a file; other kinds stand next to it."""
    noted = Turns(["a", "b"], {3: 12.5})
    plan = Plan(memory={"other": [1], **noted.noted()})
    if written:
        write(plan, tmp_path / "plan.json")
        assert read(tmp_path / "plan.json") == plan
        plan = read(tmp_path / "plan.json")
    assert Turns.recall(plan) == noted


@pytest.mark.parametrize("plan", [None, Plan(), Plan(memory={"other": 3})])
def test_without_a_memory_there_are_the_defaults(plan):
    """At the first decision, and after one of another policy."""
    assert Turns.recall(plan) == Turns()


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ({"queue": [1]}, r"Expected `str`, got `int` - at `\$.queue\[0\]`"),
        ({"order": []}, "unknown field `order`"),
        ([], "Expected `object`, got `array`"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(kept, found):
    """The line names the kind."""
    with pytest.raises(InputError, match=f"^plan: memory.test_turns: found .*{found}"):
        Turns.recall(Plan(memory={"test_turns": kept}))


def test_each_kind_has_a_key_of_its_own_and_defaults():
    """Fields have types that JSON gives back as they are: lists, not tuples or sets."""
    found = kinds()
    assert len(found) > 10
    assert len({kind.key for kind in found}) == len(found)
    for kind in found:
        assert kind.recall(None).noted() == {kind.key: {}}
        assert kind.__struct_config__.frozen, kind
        text = str(msgspec.json.schema(kind)) + str(kind.__annotations__)
        assert "tuple" not in text, kind
        assert "set[" not in text, kind
