"""``ronda bench diff``: words, JSON, exit codes, and bad input."""

import json

import pytest

from ronda.bench.runs.results import results_of


@pytest.fixture
def folders(folder, ronda, runs_here):
    """Make results, and the same again with mean JCTs of `srtf` as 1.5 of them."""
    words = (
        *("compare", "two-nodes.json", "--policies", "fifo,srtf"),
        *("--no-figures", "--jobs", "1", "--out"),
    )
    for name in ("old", "new"):
        assert ronda(*words, name).exit_code == 0
    lines = results_of(folder / "new")
    for line in lines.all():
        if line.policy == "srtf":
            line.metrics["mean_jct_s"] *= 1.5
            lines.append(line)
    return folder


def test_what_is_worse_is_said_and_is_the_exit_code(folders, ronda):
    """And what is better the other way round is none."""
    done = ronda("bench", "diff", "old", "new")
    assert done.exit_code == 1
    assert "1.500 worse" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("1 figures are worse and 0 better")
    back = ronda("bench", "diff", "new", "old", "--json")
    assert back.exit_code == 0, back.output
    told = json.loads(back.stdout.splitlines()[-1])
    assert (told["worse"], told["new"]) == (False, [])
    by_policy = {row["policy"]: row["mean_jct_s"] for row in told["rows"]}
    assert by_policy["srtf"]["value"] == pytest.approx(1 / 1.5)
    assert by_policy["fifo"]["verdict"] == "same"


def test_a_line_that_was_cut_in_half_is_not_there(folders, ronda):
    """Its run is on the other side only."""
    path = folders / "new" / "results.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(whole[0] + whole[1][:50])
    done = ronda("bench", "diff", "old", "new")
    assert done.exit_code == 0, done.output
    assert "1 runs only before, such as two-nodes srtf seed 0" in done.stdout


def test_folders_without_results_are_refused(folders, ronda):
    """One line, exit code 2: no folder, none of results, no line, a line that was changed."""
    (folders / "none").mkdir()
    (folders / "empty").mkdir()
    (folders / "empty" / "results.jsonl").write_text("{")
    changed = folders / "new" / "results.jsonl"
    changed.write_text(changed.read_text().replace('"seed":0', '"seed":1'))
    for name, said in (
        ("nowhere", "nowhere: found no results.jsonl"),
        ("none", "none: found no results.jsonl"),
        ("empty", "results.jsonl: found no whole line"),
        ("new", "new/results.jsonl line 1: found"),
    ):
        done = ronda("bench", "diff", "old", name)
        assert (done.exit_code, len(done.output.splitlines())) == (2, 1), done.output
        assert said in done.output
