"""``ronda sleep``: fields, table, pictures, refusals."""

import json

import pytest

from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.files.json import write

FIELDS = {
    *("mean_sleeping_nodes", "wakeups_per_day", "nodes_per_wakeup", "lack_intervals"),
    *("utilisation_before", "utilisation_after", "policy", "series", "knowledge"),
}


def test_ces_on_earth(ronda):
    """The published figures, under the names that programs rely on."""
    done = ronda("sleep", "earth-2020-09", "--policy", "ces(cluster=earth)", "--json")
    assert done.exit_code == 0, done.output
    fields = json.loads(done.stdout)
    assert fields.keys() >= FIELDS
    assert fields["mean_sleeping_nodes"] == pytest.approx(20.49, abs=0.005)
    assert fields["wakeups_per_day"] == pytest.approx(1.333, abs=0.001)
    assert fields["utilisation_after"] == pytest.approx(0.9506, abs=5e-5)
    assert fields["lack_intervals"] == 28


def test_some_policies_side_by_side(tmp_path, ronda):
    """One table, the bound labelled; pictures with their numbers, kept unless forced."""
    write(generate.demand(4, 40, 1, step_s=1800.0), tmp_path / "mine.json")
    words = ["sleep", tmp_path / "mine.json", "--policy", "vanilla", "--policy", "oracle"]
    words += ["--policy", "lot-sizing(forecast=seasonal)", "--out", tmp_path / "out"]
    done = ronda(*words)
    assert done.exit_code == 0, done.output
    assert "the future" in done.stdout
    made = {path.name for path in (tmp_path / "out").iterdir()}
    pictures = {
        f"{name}.{kind}" for name in ("nodes", "days", "forecast") for kind in ("png", "csv")
    }
    assert made == {"table.md", "table.tex", "table.csv", *pictures}
    again = ronda(*words)
    assert (again.exit_code, again.stderr.count("\n")) == (2, 1)
    results = json.loads(ronda(*words[:-2], "--json").stdout)["results"]
    assert [each["policy"].partition("(")[0] for each in results] == [
        "vanilla",
        "oracle",
        "lot-sizing",
    ]
    assert results[1]["knowledge"] == "oracle"


def test_slower_wake_ups_leave_jobs_waiting(ronda):
    """Twice the time, twice the waiting; what the controller does stays."""
    found = [
        json.loads(ronda("sleep", "earth-2020-09", "--wake-s", s, "--json").stdout)
        for s in (0, 300, 600)
    ]
    assert [each["waiting_node_s"] for each in found] == [0, 47 * 300, 47 * 600]
    assert len({each["wakeups_per_day"] for each in found}) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("one-gpu", "one-gpu: found an instance; expected a demand series"),
        ("earth-2020-9", "such as earth-2020-09"),
        ("earth-2020-09 --policy fifo", "--policy: found 'fifo'; expected one of"),
        ("earth-2020-09 --policy ces(cluster=moon)", "cluster"),
        ("earth-2020-09 --policy milp", "found 'milp'; expected lot-sizing"),
        ("earth-2020-05 --policy ces", "no published forecast in earth-2020-05"),
        ("earth-2020-09 --idle-w -3", "--idle-w: found -3; expected 0 or more"),
    ],
)
def test_what_cannot_be_meant_is_told_in_one_line(words, said, ronda):
    """Exit code 2, nothing on stdout."""
    done = ronda("sleep", *words.split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_file_is_no_folder_for_results(tmp_path, ronda):
    """Nothing is replaced."""
    (tmp_path / "out").write_text("mine")
    done = ronda("sleep", "earth-2020-09", "--out", tmp_path / "out", "--force")
    assert done.exit_code == 2
    assert (tmp_path / "out").read_text() == "mine"


def test_a_schedule_tells_what_was_needed(tmp_path, ronda):
    """A run's schedule becomes a series that `ronda sleep` and policies take as their history."""
    given = generate.horizon(6, 8, seed=0)
    write(given, tmp_path / "given.json")
    write(run(given, "fifo"), tmp_path / "schedule.json")
    words = ["instances", "demand", tmp_path / "given.json"]
    done = ronda(*words, tmp_path / "schedule.json", "--out", tmp_path / "before.json", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert 0 < told["mean"] <= told["most"] <= 1
    assert ronda("sleep", tmp_path / "before.json", "--policy", "vanilla").exit_code == 0
    other = ronda(*words[:2], "pollux-1", tmp_path / "schedule.json", "--out", tmp_path / "x.json")
    assert (other.exit_code, other.stderr.count("\n")) == (2, 1)
