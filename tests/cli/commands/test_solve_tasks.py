"""``solve`` on rounds of tasks: by patterns of nodes, with a bound and a check."""

import json

import pytest

from ronda.instances.tasks.files import read_task_plan


@pytest.fixture
def made(ronda, tmp_path, monkeypatch):
    """Make ``r.npz``, a generated round of 400 tasks on 40 nodes, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    ronda(
        "instances", "generate", "openb-like", "--nodes", "40", "--tasks", "400", "--out", "r.npz"
    )


def test_a_plan_is_told_written_and_checked(ronda, made):
    """The plan in the file is the one that is reported, and keeps every rule."""
    told = ronda("solve", "r.npz", "--out", "plan.npz", "--json")
    fields, plan = json.loads(told.stdout), read_task_plan("plan.npz")
    assert fields["objective"] == plan.objective <= plan.bound == fields["bound"]
    assert 0 < fields["gap"] < 0.1
    assert fields["violations"] == 0
    assert plan.slot_price.max() > 0 < plan.node_price.max()
    assert "keeps every rule of r.npz" in ronda("instances", "check", "r.npz", "plan.npz").stdout


def test_a_deadline_ends_the_search_with_a_plan(ronda, made):
    """A time limit that leaves no time for prices gives a valid plan and a true bound."""
    told = ronda("solve", "r.npz", "--time-limit", "0.01", "--json")
    fields = json.loads(told.stdout)
    assert fields["stop"] == "time_limit"
    assert fields["objective"] <= fields["bound"]
    assert fields["violations"] == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("r.npz", "--policy", "qssf"), "r.npz: found a round of tasks"),
        (("r.npz", "--out", "plan.json"), "plan.json: found the name"),
        (("round-tight-64", "--out", "plan.npz"), "plan.npz: found the name"),
    ],
)
def test_what_is_of_jobs_or_of_tasks_alone_is_refused(ronda, made, words, told):
    """Options and files of the other kind are refused in one line, before any work."""
    refused = ronda("solve", *words)
    assert refused.exit_code == 2
    assert refused.stderr.startswith(f"error: {told}")
    assert refused.stderr.count("\n") == 1
