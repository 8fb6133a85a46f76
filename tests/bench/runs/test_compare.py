"""Comparisons in real processes, without the command line."""

import json

import pytest

from ronda.bench.runs.compare import Comparison, failed
from ronda.bench.runs.results import Status
from ronda.bench.runs.specs import cases
from ronda.bench.runs.worker import RunLimits
from ronda.instances.files.json import fingerprint, read, write

LIMITS = RunLimits(timeout_s=60.0, memory_mib=2048.0)


@pytest.fixture
def todo(tmp_path, two_nodes):
    """Return the cases of a comparison of two policies."""
    path = tmp_path / "two-nodes.json"
    write(two_nodes, path)
    loaded = {str(path): (two_nodes, fingerprint(two_nodes))}
    return cases(loaded, ("fifo", "srtf"), (0,), time_limit_s=5.0)


def test_results_schedules_and_progress(todo, tmp_path):
    """Every case has a result in the order asked for, a schedule, and news at its end."""
    news = []
    comparison = Comparison(
        tmp_path, LIMITS, 2, watch=lambda case, share, result: news.append((case, share, result))
    )
    results = comparison.run(todo)
    assert [(r.policy, r.status) for r in results] == [("fifo", "OK"), ("srtf", "OK")]
    assert results[0].metrics["mean_jct_s"] == pytest.approx(400 / 3)
    assert results[0].peak_rss_mib > 10
    assert failed(results) == []
    for case in todo:
        assert len(read(comparison.layout.schedule(case.key)).jobs) == 3
        assert not comparison.layout.log(case.key).exists()
    assert {case.policy for case, share, result in news if result is not None} == {"fifo", "srtf"}


def test_what_is_there_is_not_run_again(todo, tmp_path, runs_here):
    """A second comparison finds all; one whose schedule was lost runs again."""
    Comparison(tmp_path, LIMITS, 1).run(todo)
    again = Comparison(tmp_path, LIMITS, 1)
    assert again.missing(todo) == []
    again.layout.schedule(todo[0].key).unlink()
    assert again.missing(todo) == [todo[0]]


def test_an_instance_that_changed_meanwhile_is_an_error(todo, tmp_path, two_nodes):
    """The process refuses to run something else than was asked for, and the log says why."""
    import msgspec

    other = msgspec.structs.replace(two_nodes, jobs=two_nodes.jobs[:1])
    write(other, tmp_path / "two-nodes.json")
    results = Comparison(tmp_path, LIMITS, 1).run(todo[:1])
    assert results[0].status is Status.ERROR
    assert "changed" in results[0].message
    assert failed(results) == results


def test_memory_limit(todo, tmp_path):
    """Not even Python itself fits into 5 MiB."""
    results = Comparison(tmp_path, RunLimits(60.0, 5.0), 1).run(todo[:1])
    assert results[0].status is Status.OOM
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["memory_mib"] == 5.0


def test_labels_are_those_of_the_question(todo, tmp_path, runs_here):
    """A result found under another spelling of the policy is shown as asked for now."""
    import msgspec

    Comparison(tmp_path, LIMITS, 2).run(todo)
    renamed = [msgspec.structs.replace(case, label=f"{case.label}()") for case in todo]
    results = Comparison(tmp_path, LIMITS, 2).run(renamed)
    assert [r.label for r in results] == ["fifo()", "srtf()"]
