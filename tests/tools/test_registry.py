"""``python -m tools.registry``: what it says holds, what does not is told, only better replaces."""

import gzip
import json
import shutil

import pytest

from ronda.horizon.solve import solve
from ronda.instances.files.json import read, write
from ronda.instances.files.packaged import load
from ronda.solvers.registry import policy
from tools.registry import records, update
from tools.registry.check import worth

NAME = "round-gangs"


@pytest.fixture
def data(tmp_path):
    """A copy of the packaged registry."""
    return shutil.copytree(records.DATA, tmp_path / "data")


@pytest.fixture
def changed(data):
    """Write an entry with other fields, and return its folder."""

    def change(**fields):
        told = json.loads((data / records.FILE).read_text())
        told["rounds"][NAME] |= fields
        (data / records.FILE).write_text(json.dumps(told))
        return data

    return change


def entry(folder):
    """Return the entry of the round."""
    return records.load(folder).rounds[NAME]


def fields(done):
    """Return the JSON of a command's last line."""
    return json.loads(done.stdout.splitlines()[-1])


def test_every_packaged_round_has_a_plan_and_a_bound():
    """And the plan is a file."""
    for name, own in records.load(records.DATA).rounds.items():
        assert own.best is not None, name
        assert own.bound is not None, name
        assert records.plan_file(records.DATA, name).exists()


def test_what_is_packaged_holds(registry):
    """Plans keep every rule and are worth what is said; bounds and optima are above them."""
    names = ("clock-or-gpus", NAME, "round-pollux", "round-arrays", "round-venus")
    done = registry(*names, "--json")
    assert done.exit_code == 0, done.output
    assert {row["name"]: row["holds"] for row in fields(done)["entries"]} == dict.fromkeys(
        names, True
    )


@pytest.mark.parametrize("spec", ["prices", "milp", "evolve"])
def test_a_plan_is_worth_what_its_policy_says(spec):
    """The objective is recomputed from the options alone."""
    round = load("round-tight-64")
    plan = solve(round, spec, deadline=60.0)
    assert worth(round, plan) == pytest.approx(plan.objective, rel=1e-9)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"best": {"objective": 1e6}}, "the plan is worth"),
        ({"bound": {"value": 1.0, "of": "nodes"}}, "is below the plan"),
        ({"model": {"content": 1.0, "columns": 1, "rows": 1, "optimum": 1.0}}, "its model is not"),
        ({"fingerprint": "0"}, "another one by now"),
    ],
)
def test_what_does_not_hold_is_told(registry, changed, wrong, words):
    """One line, and exit code 1."""
    by = {"policy": "x", "versions": {}, "date": "2026-01-01"}
    for name in ("best", "bound"):
        if name in wrong:
            wrong = {name: wrong[name] | {"by": by}}
    done = registry(NAME, "--data", changed(**wrong))
    assert done.exit_code == 1
    assert words in done.stderr


@pytest.mark.parametrize(("coefficient", "holds"), [("118.600000001", True), ("118.6001", False)])
def test_models_are_compared_to_a_share(registry, data, coefficient, holds):
    """The last digits of a power differ between processors: 118.6 W are the same to 1e-9, not 1e-6.

    118.6 (1 + 1e-11) is the packed model, 118.6 (1 + 1e-6) another one.
    """
    packed = data / "clock-or-gpus.mps.gz"
    text = gzip.decompress(packed.read_bytes()).replace(b"118.6", coefficient.encode())
    packed.write_bytes(gzip.compress(text))
    done = registry("clock-or-gpus", "--data", data)
    assert (done.exit_code == 0) is holds
    assert ("clock-or-gpus.mps.gz is not its model" in done.stderr) is not holds


def test_an_optimum_below_a_plan_is_told(registry, changed):
    """HiGHS solves the model again."""
    model = json.loads((records.DATA / records.FILE).read_text())["rounds"][NAME]["model"]
    done = registry(NAME, "--data", changed(model=model | {"optimum": 1.0}))
    assert done.exit_code == 1
    assert "HiGHS finds the optimum" in done.stderr


def test_a_worse_plan_does_not_replace_a_better_one(registry, data):
    """`srtf` falls short of the best plan; what was known stays, and the trial is kept."""
    before = entry(data)
    words = ("--update", "--policies", "srtf", "--time-limit", "20", "--data", data)
    done = registry(NAME, *words)
    assert done.exit_code == 0, done.output
    after = entry(data)
    assert (after.best, after.bound) == (before.best, before.bound)
    assert update.trial("srtf", 0) in after.tried


def test_a_better_plan_and_a_tighter_bound_replace(registry, data, tmp_path):
    """First a poor plan from a file, then the best one by a policy, which is not tried twice."""
    told = json.loads((data / records.FILE).read_text())
    del told["rounds"][NAME]["best"], told["rounds"][NAME]["tried"]
    told["rounds"][NAME]["bound"]["value"] *= 2
    (data / records.FILE).write_text(json.dumps(told))
    poor = solve(load(NAME), "srtf")
    write(poor, tmp_path / "poor.json")
    done = registry(NAME, "--plan", tmp_path / "poor.json", "--data", data)
    assert "a better plan" in done.stdout
    assert entry(data).best.objective == pytest.approx(worth(load(NAME), poor))
    words = ("--update", "--policies", "prices", "--time-limit", "20", "--data", data)
    assert registry(NAME, *words).exit_code == 0
    best = entry(data)
    assert best.best.objective > worth(load(NAME), poor)
    assert best.bound.value < told["rounds"][NAME]["bound"]["value"]
    assert read(records.plan_file(data, NAME)).objective == best.best.objective
    assert registry(NAME, *words).exit_code == 0
    assert entry(data) == best


@pytest.mark.parametrize(
    ("spec", "known"),
    [
        ("prices", True),
        ("milp(gap=1e-6, placement=aggregate)", True),
        ("milp(placement=exact)", False),
        ("milp(elastic=false)", False),
        ("sia-like", False),
        ("prices+fused", False),
        ("srtf", False),
    ],
)
def test_which_bounds_count(spec, known):
    """Those of the same objective over all options, without moves or new arrays."""
    assert update.proves(policy(spec)) is known


def test_models_are_written_where_they_are_asked_for(registry, tmp_path):
    """As the registry knows them."""
    done = registry(NAME, "--mps", tmp_path / "models")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "models" / f"{NAME}.mps").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("nothing",), "NAME: found 'nothing'"),
        ((NAME, "--update"), "--data: found none"),
        (("--plan", "plan.json", "--data", "none"), "no such file"),
    ],
)
def test_bad_input_is_one_line(registry, words, expected):
    """Exit code 2."""
    done = registry(*words)
    assert done.exit_code == 2
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1
