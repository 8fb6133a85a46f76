"""Whole runs on real Dask workers: the same results, and none lost with a worker."""

import os
import signal
import time
from threading import Thread

import pytest

from ronda.bench.runs import on_dask
from ronda.bench.runs.compare import Comparison
from ronda.bench.runs.on_dask import connect
from ronda.bench.runs.results import results_of
from ronda.bench.runs.specs import cases
from ronda.bench.runs.worker import RunLimits
from ronda.instances import generate
from ronda.instances.files.json import fingerprint, read, write

LIMITS = RunLimits(timeout_s=300.0, memory_mib=2048.0)


@pytest.fixture(scope="module")
def client():
    """Return a client of two worker processes."""
    with connect(workers=2) as made:
        yield made


def cases_of(folder, instance, policies, seeds=(0,)):
    """Write an instance into a folder of its own, and return cases of it."""
    folder.mkdir()
    path = folder / "instance.json"
    write(instance, path)
    loaded = {str(path): (instance, fingerprint(instance))}
    return cases(loaded, policies, seeds, time_limit_s=30.0)


def test_results_are_those_of_runs_here(client, tmp_path, two_nodes, runs_here):
    """Metrics and schedules are equal but for times; limits hold; a second time nothing runs."""
    todo = cases_of(tmp_path / "input", two_nodes, ("fifo", "srtf"))
    for name, where in (("here", None), ("there", client)):
        (tmp_path / name).mkdir()
        comparison = Comparison(tmp_path / name, LIMITS, 1, client=where)
        results = comparison.run(todo)
        assert [(r.policy, r.status) for r in results] == [("fifo", "OK"), ("srtf", "OK")]
        assert results[0].metrics["mean_jct_s"] == pytest.approx(400 / 3)
        assert results[0].host["cores"] > 0
        for case in todo:
            assert len(read(comparison.layout.schedule(case.key)).jobs) == 3
            assert not comparison.layout.log(case.key).exists()
        assert Comparison(tmp_path / name, LIMITS, 1, client=where).missing(todo) == []
    (tmp_path / "tight").mkdir()
    tight = Comparison(tmp_path / "tight", RunLimits(60.0, 5.0), 1, client=client)
    assert [r.status for r in tight.run(todo[:1])] == ["OOM"]


def test_a_lost_worker_loses_no_run(client, tmp_path):
    """A worker is killed in mid-run: what ended stays, the run under way is made by another."""
    long = generate.horizon(5, 16, "loose", 3)
    todo = cases_of(tmp_path / "input", long, ("fifo", "genetic(generations=2)"))
    comparison = Comparison(tmp_path, LIMITS, 1, client=client)
    made = []
    thread = Thread(target=lambda: made.extend(comparison.run(todo)))
    thread.start()
    results = tmp_path / "results.jsonl"
    wait_for(lambda: results.exists() and results.read_bytes().endswith(b"\n"))
    wait_for(lambda: len(processing(client)) == 1)
    kept = results.read_bytes()
    victim = next(iter(processing(client)))
    os.kill(client.run(os.getpid, workers=[victim])[victim], signal.SIGKILL)
    thread.join(300)
    assert [(r.label, r.seed, r.status) for r in made] == [(c.label, c.seed, "OK") for c in todo]
    assert results.read_bytes().startswith(kept)
    assert len(results_of(tmp_path).all()) == len(results.read_bytes().splitlines()) == len(todo)


def test_frozen_workers_are_not_waited_for(client, tmp_path, two_nodes, monkeypatch, runs_here):
    """They keep their connections and say nothing: the run is made here, and its line says why."""
    monkeypatch.setattr(on_dask, "SILENCE_S", 1.0)
    todo = cases_of(tmp_path / "input", two_nodes, ("fifo",))
    workers = client.run(os.getpid).values()
    try:
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        (result,) = Comparison(tmp_path, LIMITS, 1, client=client).run(todo)
    finally:
        for worker in workers:
            os.kill(worker, signal.SIGCONT)
    assert result.ok
    assert result.metrics["mean_jct_s"] == pytest.approx(400 / 3)
    assert result.message.startswith("carried out here: nothing was heard of its Dask worker for ")


def processing(client):
    """Return the workers that have a run under way, and which."""
    return {worker: keys for worker, keys in client.processing().items() if keys}


def wait_for(condition, seconds=120):
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.05)
