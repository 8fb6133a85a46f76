"""Budgets, changes, and the cases and results of a sweep."""

import pytest
from msgspec.structs import replace

from ronda.bench.frontier.sweep import belonging, parse_budgets, parse_changes, sweep
from ronda.bench.runs.results import Result, Status
from ronda.bench.runs.variant import Variant
from ronda.bench.suites.cells import expand
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint, write


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5:1.0:6", (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)),
        (" 1 : 2 : 2 ", (1.0, 2.0)),
        ("0.8, 0.6,0.8", (0.6, 0.8)),
        ("1", (1.0,)),
    ],
)
def test_budgets(text, expected):
    """Ranges have both ends; lists come out ascending without repeats."""
    assert parse_budgets(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0",
        "-1",
        "nan",
        "inf",
        "0.5:1",
        "1:0.5:6",
        "0.5:1:1",
        "0.5:1:x",
        "1,,2",
        "1:2:9999",
    ],
)
def test_budgets_that_cannot_be_read(text):
    """A slip is told with the option's name."""
    with pytest.raises(InputError, match="--budgets"):
        parse_budgets(text)


def test_changes():
    """One change a number, once; what changes nothing is the instance as it is."""
    assert parse_changes(["idle=0.7,1,1.3", "power=0.9", "nodes=2", "idle=0.7"]) == [
        {"idle": 0.7},
        {"idle": 1.3},
        {"power": 0.9},
        {"nodes": 2},
    ]
    assert parse_changes([]) == []


@pytest.mark.parametrize(
    "text", ["idle", "idle=", "heat=2", "idle=x", "idle=0", "idle=nan", "nodes=0", "nodes=1.5"]
)
def test_changes_that_cannot_be_read(text):
    """A slip is told with the option's name."""
    with pytest.raises(InputError, match="--vary"):
        parse_changes([text])


@pytest.fixture
def cases_of(tmp_path):
    """Return the cases of two policies on an instance."""

    def cases(instance, factors=(0.8, 1.0), changes=()):
        path = str(tmp_path / "x.json")
        write(instance, path)
        asked = {"policies": ("fifo", "srtf"), "seeds": "0-1", "time_limit_s": 5.0}
        return expand(sweep(factors, changes, instances=(path,), **asked), tmp_path).cases

    return cases


def test_cases(two_nodes, cases_of):
    """Changes x budgets x policies, each with the watts of the unchanged instance's reference."""
    found = cases_of(two_nodes, changes=[{"idle": 1.3}])
    assert len(found) == 2 * 2 * 2
    assert len({case.key for case in found}) == len(found)
    assert {case.variant.sustained_w for case in found} == {680.0 * 0.8, 680.0}
    for case in found:
        assert fingerprint(case.variant.apply(two_nodes)) == case.fingerprint
    assert found[0].title == "two-nodes fifo seed 0 (budget ×0.8)"


def result(case, **fields):
    """Return a result of a case."""
    return Result(
        key=case.key,
        instance=case.instance,
        policy=case.policy,
        label=case.label,
        seed=case.seed,
        fingerprint=case.fingerprint,
        variant=case.variant,
        status=Status.OK,
        **fields,
    )


def test_earlier_results_belong_if_they_are_of_the_same_instance(two_nodes, cases_of):
    """Those of another version of the instance, or of what is asked for now, do not."""
    first, second, third, _ = cases_of(two_nodes)
    asked, earlier = result(first), result(second)
    other = replace(result(third), fingerprint="f" * 16)
    slow = replace(asked, key="slow", time_limit_s=99.0)
    elsewhere = replace(earlier, instance="another")
    plain = replace(earlier, variant=Variant())
    there = [asked, slow, earlier, other, elsewhere, plain]
    assert belonging(two_nodes, there, [asked]) == [asked, earlier]
