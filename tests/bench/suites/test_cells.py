"""What a suite multiplies out to."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from ronda.bench.runs.variant import reference_w
from ronda.bench.suites.cells import expand
from ronda.bench.suites.suite import Suite, SuitePart
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint, read, write
from ronda.instances.files.packaged import load

MAKER = """
from msgspec.structs import replace
from ronda.instances.files.packaged import load

def few(jobs: int, *, name: str = "one-gpu"):
    made = load(name)
    return replace(made, jobs=made.jobs[:jobs])

def drawn(seed: int):
    return few(1 + seed % 2)

def broken():
    return 1 / 0

def nothing():
    return None
"""

MINE = """
from ronda.solvers.policies.rigid.queues import Fifo

class Mine(Fifo):
    name = "mine"
"""


@pytest.fixture
def beside(tmp_path):
    """A folder with code of one's own."""
    (tmp_path / "mine.py").write_text(MAKER + MINE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def stands(tmp_path, beside):
    """Expand a suite; return where its runs stand."""

    def of(**given):
        usual = {"instances": ("one-gpu",), "policies": ("fifo",)}
        found = expand(Suite(**usual | given), tmp_path / "out", "s.toml", beside)
        return [cell.at for cell in found.cells]

    return of


def expanded(tmp_path, **given):
    """Return what a suite runs."""
    usual = {"instances": ("one-gpu",), "policies": ("fifo",)}
    return expand(Suite(**usual | given), tmp_path / "out", "s.toml", tmp_path)


def test_all_is_multiplied_out(stands):
    """2 instances x 2 costs x (1 + 3 seeds of what is random) x 2 levels = 32."""
    found = stands(
        instances=("one-gpu", "two-jobs"),
        policies=("fifo", "genetic"),
        knowledge=("oracle", "declared"),
        seeds="0-2",
        change={"restart_s": [0, 30.5]},
    )
    assert len(found) == 2 * 2 * (1 + 3) * 2
    assert found[0] == {
        "instance": "one-gpu",
        "restart_s": "0",
        "policy": "fifo",
        "knowledge": "oracle",
        "seed": "0",
    }
    assert {at["restart_s"] for at in found} == {"0", "30.5"}


def test_what_is_drawn_is_drawn_for_every_seed(tmp_path):
    """With noise there are as many instances as seeds, also for a policy without randomness."""
    found = expanded(tmp_path, seeds="3-5", change={"size_noise": [0.0, 0.5]})
    assert [(cell.at["size_noise"], cell.at["seed"]) for cell in found.cells] == [
        ("0", "3"),
        *(("0.5", f"{seed}") for seed in (3, 4, 5)),
    ]
    assert [cell.case.variant.seed for cell in found.cells] == [0, 3, 4, 5]
    assert len({cell.case.fingerprint for cell in found.cells}) == 4


def test_values_are_dealt_to_seeds(stands):
    """Seed 3 gets instance 3 % 2 = 1 and load 3 % 3 = 0."""
    found = stands(
        instances=("venus-vcvly", "venus-vcvgl"),
        seeds="0-3",
        by_seed=("instance", "load"),
        change={"load": [0.5, 0.6, 0.7], "window": {"jobs": 2}},
    )
    assert [(at["instance"], at["load"]) for at in found] == [
        ("venus-vcvly", "0.5"),
        ("venus-vcvly", "0.7"),
        ("venus-vcvgl", "0.5"),
        ("venus-vcvgl", "0.6"),
    ]
    assert [at["seed"] for at in found] == ["0", "2", "3", "1"]


def test_a_budget_is_a_share_of_the_watts_of_the_instance_as_it_is(tmp_path):
    """Whatever else is changed."""
    plain = load("energy-hand")
    change = {"budget": [0.5, 1.0], "power": 2.0}
    found = expanded(tmp_path, instances=("energy-hand",), change=change)
    half, whole = (cell.case.variant for cell in found.cells)
    assert (half.factor, half.sustained_w) == (0.5, 0.5 * reference_w(plain))
    assert whole.sustained_w == reference_w(plain)


def test_tables_by_name_are_an_axis(stands):
    """Nested lists are axes as well."""
    found = stands(
        change={"faults": {"none": {}, "some": {"node_failures": 3.0}}, "window": {"jobs": [1, 2]}}
    )
    assert {(at["faults"], at["jobs"]) for at in found} == {
        (kind, jobs) for kind in ("none", "some") for jobs in ("1", "2")
    }


def test_parameters_of_policies_multiply(stands):
    """And are written as on the command line."""
    found = stands(policies=("fifo", {"policy": "prices", "patience": [3, 1], "gap": 0.1}))
    assert [at["policy"] for at in found] == [
        "fifo",
        "prices(patience=3, gap=0.1)",
        "prices(patience=1, gap=0.1)",
    ]


def test_parts_may_ask_for_the_same_work(tmp_path):
    """It is done once, and stands in both places."""
    found = expanded(
        tmp_path, runs=(SuitePart(change={"restart_s": [7]}), SuitePart(change={"restart_s": 7}))
    )
    assert len(found.cells) == 2
    assert len(found.cases) == 1


def test_made_instances_are_called_by_their_parameters_and_kept(tmp_path):
    """One file for each; they are written once asked to."""
    table = {"make": "sweep", "name": "s", "trials": [2, 3], "like": {"good": 0.5}}
    found = expanded(tmp_path, instances=(table,), seeds="0-1")
    assert [cell.case.instance for cell in found.cells] == [
        f"s-trials{trials}-{seed}" for trials in (2, 3) for seed in (0, 1)
    ]
    assert {cell.at["instance"] for cell in found.cells} == {"s"}
    assert not (tmp_path / "out").exists()
    found.keep()
    for cell in found.cells:
        made = read(cell.case.source)
        assert Path(cell.case.source).parent == tmp_path / "out" / "instances"
        assert fingerprint(made) == cell.case.fingerprint
        assert len(made.jobs) == int(cell.at["trials"])
        assert made.made["good"] == 0.5


def test_ones_own_makers_stand_beside_the_suite(beside):
    """What takes a seed is drawn."""
    given = {"instances": ({"make": "mine.py:few", "jobs": [1, 2]}, {"make": "mine.py:drawn"})}
    found = expanded(beside, **given, seeds="0-1")
    assert [
        (cell.at["instance"], cell.at.get("jobs"), cell.at["seed"]) for cell in found.cells
    ] == [
        ("few", "1", "0"),
        ("few", "2", "0"),
        ("drawn", None, "0"),
        ("drawn", None, "1"),
    ]
    assert [len(made.jobs) for made in found.made.values()] == [1, 2, 1, 2]


def test_ones_own_policies_stand_beside_the_suite(beside):
    """Nobody knows whether the seed matters to them."""
    found = expanded(beside, policies=("mine.py:Mine",), seeds="0-1")
    assert [(cell.at["policy"], cell.at["seed"]) for cell in found.cells] == [
        ("mine.py:Mine", "0"),
        ("mine.py:Mine", "1"),
    ]
    assert {Path(cell.case.policy.partition(":")[0]) for cell in found.cells} == {
        beside / "mine.py"
    }


def test_namesakes_are_refused(tmp_path, two_nodes):
    """Two different instances of one name could not be told apart, in parts of a suite either."""
    write(two_nodes, tmp_path / "a.json")
    write(replace(two_nodes, jobs=two_nodes.jobs[:1]), tmp_path / "b.json")
    parts = tuple(SuitePart(instances=(str(tmp_path / name),)) for name in ("a.json", "b.json"))
    with pytest.raises(InputError, match="another instance with the name 'two-nodes'"):
        expanded(tmp_path, runs=parts)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"instances": ()}, "s.toml, instances: found none"),
        ({"policies": ()}, "s.toml, policies: found none"),
        ({"instances": ("no-such",)}, "s.toml, instance: found 'no-such', neither"),
        ({"policies": ("joy",)}, "s.toml, policies: found 'joy'; expected one of"),
        ({"policies": ("fifo(x=1)",)}, "s.toml, policies fifo: found parameter 'x'"),
        ({"knowledge": ("oracle",), "predictor": "no.json", "change": {"nodes": -1}}, "nodes"),
        ({"seeds": "x"}, "s.toml, seeds: found 'x'"),
        ({"by_seed": ("load",)}, 's.toml, by_seed: found "load"'),
        ({"change": {"rstart_s": 1}}, r"change: found unknown field \"rstart_s\"; .*restart_s"),
        ({"change": {"seed": 1}}, 'change: found unknown field "seed"'),
        ({"change": {"restart_s": "x"}}, 'change.restart_s: found "x"; expected a number'),
        ({"change": {"restart_s": -1}}, "change.restart_s: found -1"),
        ({"change": {"restart_s": []}}, r"change.restart_s: found \[\]; expected different"),
        ({"change": {"load": [1, 1.0]}}, r"change.load: found \[1, 1.0\]; expected different"),
        ({"change": {"load": [[1]]}}, r"change.load\[0\]: found \[1\]; expected a text or a"),
        ({"change": {"budget": 0}}, "change.budget: found 0; expected a number > 0"),
        ({"change": {"faults": {"a": {"x": 1}}}}, r"change.faults: found unknown field \"x\""),
        ({"change": {"faults": {"slowest": 2}}}, "change.slowest: found 2; expected 0.01 to 1"),
        ({"change": {"share": "joy"}, "instances": ({"make": "sweep"},)}, "found joy; expected"),
        ({"instances": ("two-jobs",), "change": {"load": 1}}, "all jobs submitted at once"),
        ({"change": {"search": {"sweep": "a", "trials": 1, "gpus": 1}}}, "no sweep 'a'"),
        ({"instances": ({"trials": 1},)}, r"instances\[0\].make: found \"\"; expected one of hor"),
        ({"instances": ({"make": "joy"},)}, r"instances\[0\].make: found \"joy\""),
        ({"instances": ({"make": "no.py:x"},)}, "no.py: FileNotFoundError"),
        ({"instances": ({"make": "mine.py:x"},)}, 'no function "x"; expected one of "broken"'),
        ({"instances": ({"make": "mine.py:few"},)}, r'instances\[0\]: found no field "jobs"'),
        ({"instances": ({"make": "mine.py:few", "jobs": "x"},)}, r"\[0\].jobs: found \"x\""),
        ({"instances": ({"make": "mine.py:few", "job": 1},)}, r"\"job\"; expected \"jobs\"\? of"),
        ({"instances": ({"make": "mine.py:drawn", "seed": 1},)}, 'unknown field "seed"'),
        ({"instances": ({"make": "mine.py:broken"},)}, "ZeroDivisionError"),
        ({"instances": ({"make": "mine.py:nothing"},)}, "found a NoneType"),
        ({"instances": ({"make": "sweep", "trials": 0},)}, r"instances\[0\]\."),
        ({"instances": ({"make": "sweep", "like": {"goo": 1}},)}, r"like: found unknown field"),
        ({"instances": ({"make": "sweep", "policy": [1]},)}, "another axis \"policy\""),
        ({"instances": ({"make": "sweep", "trials": [2]},), "change": {"window": {"jobs": [2]}},
          "policies": ({"patience": 3},)}, "policies: found"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(stands, given, said):
    """With its place in the suite."""
    with pytest.raises(InputError, match=said):
        stands(**given)


def test_parts_that_change_an_instance_otherwise_are_told_apart(stands):
    """Nodes that sleep make another instance; what parts have in common is not said."""
    sleep = {"sleep": {"host_idle_w": 800.0, "sleep_w": 20.0, "wake_s": 300.0}}
    part = {"policies": ("fifo",), "change": {"resample": {}}}
    runs = (SuitePart(**part), SuitePart(**part | {"change": part["change"] | sleep}))
    assert [at["instance"] for at in stands(runs=runs)] == ["one-gpu", "one-gpu, nodes that sleep"]
    part["change"] = {"restart_s": [1.0, 2.0]}
    assert {at["instance"] for at in stands(runs=(SuitePart(**part),))} == {"one-gpu"}
