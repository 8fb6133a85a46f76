"""``ronda consolidate``: fields, table, the plan as a file, limits."""

import json

import pytest

import ronda as library
from every_move import scattered

SEED = 22
"""Of a round in which two moves empty a node each."""

FIELDS = {
    *("round", "save", "saved", "bound", "gap", "stop", "status", "jobs", "moves", "emptied"),
    *("emptied_racks", "filled_racks"),
    *("filled", "saved_w", "lost_gpu_s", "lost_j", "times", "seed", "message"),
}


@pytest.fixture
def round_file(tmp_path):
    """A round whose nodes hold jobs here and there."""
    library.write(scattered(SEED), tmp_path / "scattered.json")
    return tmp_path / "scattered.json"


def test_fields_and_the_plan(ronda, round_file, tmp_path):
    """The numbers are those of the library; the plan that is written passes the checker."""
    plan = tmp_path / "plan.json"
    done = ronda("consolidate", round_file, "--moves", 1, "--out", plan, "--json")
    assert done.exit_code == 0, done.output
    fields = json.loads(done.stdout.splitlines()[-1])
    assert fields.keys() == FIELDS
    found = library.consolidate(scattered(SEED), moves=1)
    assert fields["saved"] == fields["bound"] == found.plan.objective == 1.0
    assert [move["jobs"] for move in fields["moves"]] == [list(move.jobs) for move in found.moves]
    assert library.read(plan).allocations == found.plan.allocations
    assert ronda("instances", "check", round_file, plan).exit_code == 0


def test_the_table_names_jobs_and_nodes(ronda, round_file):
    """Who moves from where to where, which nodes are empty then, and what it costs."""
    found = library.consolidate(scattered(SEED))
    shown = ronda("consolidate", round_file).stdout
    for move in found.moves:
        (line,) = (line for line in shown.splitlines() if line.split()[:1] == [*move.jobs])
        assert f"{move.source[0][0]}×{move.gpus}" in line
    assert f"{found.plan.objective:g} nodes" in shown
    assert ", ".join(map(str, found.emptied)) in shown


def test_watts_sleep_in_the_plan(ronda, round_file, tmp_path):
    """With watts as the goal the plan puts nodes without jobs to sleep."""
    plan = tmp_path / "plan.json"
    assert ronda("consolidate", round_file, "--save", "watts", "--out", plan).exit_code == 0
    read = library.read(plan)
    assert read.asleep
    assert library.check(scattered(SEED), read) == []
