"""Policies, seeds and cases of a comparison."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ronda.bench.runs.specs import (
    PredictorFile,
    RecordedFile,
    RunCase,
    cases,
    parse_seeds,
    split_policies,
)
from ronda.horizon.driver import run
from ronda.instances.errors import InputError
from ronda.instances.files import fits as predictors
from ronda.instances.files.json import fingerprint, write
from ronda.instances.files.packaged import load
from ronda.instances.models.fits import Calibration, Predictor
from ronda.instances.schedule import RECORDED
from ronda.solvers.contract import Capability
from ronda.solvers.registry import policy


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("fifo", ("fifo",)),
        (
            "fifo, milp(gap=1e-4, objective=rank),sjf",
            ("fifo", "milp(gap=1e-4, objective=rank)", "sjf"),
        ),
        ("a(x=(1,2),y=[3,4]),b", ("a(x=(1,2),y=[3,4])", "b")),
        ("a(x='(,'),it's.py:B,c", ("a(x='(,')", "it's.py:B", "c")),
        ("fifo,fifo", ("fifo",)),
    ],
)
def test_commas_inside_brackets_do_not_split(text, expected):
    """Only commas outside brackets separate policies, and a repeat counts once."""
    assert split_policies(text) == expected


@pytest.mark.parametrize("text", ["", "fifo,", ",fifo", "fifo,,sjf", "milp(gap=1", "fifo)", ")("])
def test_lists_of_policies_that_cannot_be_read(text):
    """A slip in the list is told, with the option's name."""
    with pytest.raises(InputError, match="--policies"):
        split_policies(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0-4", (0, 1, 2, 3, 4)),
        ("0,3,5", (0, 3, 5)),
        ("7", (7,)),
        (" 2 , 0-1,1", (0, 1, 2)),
        ("5-5", (5,)),
    ],
)
def test_seeds(text, expected):
    """Ranges and lists mix, and come out ascending without repeats."""
    assert parse_seeds(text) == expected


@pytest.mark.parametrize(
    "text", ["", "x", "-1", "1.5", "4-0", "0-", "0--3", "1,,2", "0-99999999", "٣", "1e3"]
)
def test_seeds_that_cannot_be_read(text):
    """What is no whole number or rising range is refused, and so is an absurd number of seeds."""
    with pytest.raises(InputError, match="--seeds"):
        parse_seeds(text)


@given(st.sets(st.integers(0, 500), min_size=1, max_size=20))
def test_seeds_round_trip(seeds):
    """A list of seeds is read back as it was written."""
    assert parse_seeds(",".join(map(str, seeds))) == tuple(sorted(seeds))


def case(**changes):
    """Return a case."""
    fields = {"source": "x", "instance": "x", "fingerprint": "f", "label": "fifo", "policy": "fifo"}
    return RunCase(**(fields | changes))


def test_key_tells_different_work_apart_and_only_that():
    """The key depends on what is computed, not on how the user wrote it."""
    base = case()
    assert case(label="fifo()", source="./x").key == base.key
    different = [
        case(fingerprint="g"),
        case(policy="sjf"),
        case(config={"gap": 0.1}),
        case(seed=1),
        case(time_limit_s=1.0),
        case(period_s=60.0),
    ]
    assert len({base.key, *(other.key for other in different)}) == 7


def test_key_tells_predictors_apart_by_what_they_hold(tmp_path):
    """A predictor that was trained again in the same file is another; a copied one is not."""
    judged = Calibration(jobs=1, correlation=0.0, service_correlation=0.0, error=1.0, coverage=0.0)
    first = Predictor(instance="x", fingerprint="f", model="", calibration=judged)
    here, there = tmp_path / "here.json", tmp_path / "there.json"
    predictors.write_predictor(first, here)
    predictors.write_predictor(first, there)
    told = PredictorFile.by(here)
    assert told.read() == predictors.sealed(first)
    assert case(predictor=told).key == case(predictor=PredictorFile.by(there)).key
    predictors.write_predictor(msgspec.structs.replace(first, alpha=0.2), here)
    assert case(predictor=PredictorFile.by(here)).key != case(predictor=told).key
    with pytest.raises(InputError, match="another predictor"):
        told.read()


def test_key_is_a_file_name():
    """Nothing in a name can leave the folder of runs."""
    key = case(instance="../a b/ü", policy="milp(x=1)").key
    assert "/" not in key
    assert " " not in key


def test_policies_without_randomness_run_once(two_nodes):
    """Seeds multiply only the policies that use them."""
    assert Capability.RANDOM not in policy("fifo").capabilities
    loaded = {"two-nodes": (two_nodes, fingerprint(two_nodes))}
    found = cases(loaded, ("fifo", "fifo()"), (3, 4, 5), time_limit_s=1.0)
    assert [(c.label, c.seed) for c in found] == [("fifo", 3)]


def test_policies_of_others_run_with_every_seed(two_nodes, tmp_path):
    """Whatever they declare: nobody but their author knows what they do with a seed."""
    path = tmp_path / "mine.py"
    path.write_text(
        "class Mine:\n    def plan(self, round, *, deadline, seed, initial=None): ...\n"
    )
    loaded = {"two-nodes": (two_nodes, fingerprint(two_nodes))}
    found = cases(loaded, (f"{path}:Mine",), (3, 4), time_limit_s=1.0)
    assert [each.seed for each in found] == [3, 4]


def test_namesakes_are_refused(two_nodes):
    """Two different instances of one name could not be told apart in the results."""
    other = msgspec.structs.replace(two_nodes, jobs=two_nodes.jobs[:1])
    loaded = {path: (each, fingerprint(each)) for path, each in (("a", two_nodes), ("b", other))}
    with pytest.raises(InputError, match="another instance with the name 'two-nodes'"):
        cases(loaded, ("fifo",), (0,), time_limit_s=1.0)


def test_period_replaces_that_of_the_instance(two_nodes):
    """A period is put beside the instance's own rule about events."""
    assert case().cadence(two_nodes) == two_nodes.cadence
    assert case(period_s=30.0).cadence(two_nodes) == msgspec.structs.replace(
        two_nodes.cadence, period_s=30.0
    )


def test_another_record_is_another_run(tmp_path):
    """The key tells records apart, and a file that was written anew meanwhile is refused."""
    path = tmp_path / "ran.json"
    write(replace(run(load("two-jobs"), "fifo"), policy=RECORDED), path)
    own, file = RecordedFile.by(path, [load("one-gpu"), load("two-jobs")])
    assert own.name == "two-jobs"
    fields = {"source": "two-jobs", "instance": "two-jobs", "policy": RECORDED}
    other = replace(file, checksum="0" * 16)
    assert RunCase(recorded=file, **fields).key != RunCase(recorded=other, **fields).key
    assert file.read().policy == RECORDED
    with pytest.raises(InputError, match="another schedule by now"):
        other.read()
