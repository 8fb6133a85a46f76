"""``run`` and ``compare``: whole horizons, from the command line to the files."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ronda.bench.runs import compare, worker
from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.files import json as files
from ronda.instances.schedule import Schedule
from tests.helpers.moved import plain_elsewhere

PROMISED = {
    "instance",
    "policy",
    "seed",
    "jobs",
    "mean_jct_s",
    "p95_jct_s",
    "p99_jct_s",
    "mean_queue_s",
    "queued_jobs",
    "makespan_s",
    "preemptions",
    "energy_j",
    "gpu_utilisation",
    "bound_mean_jct_s",
    "rounds",
    "median_solve_s",
    "p99_solve_s",
    "overruns",
    "violations",
    "wall_s",
}


def test_json_has_the_promised_fields_by_hand(folder, ronda):
    """FIFO on two-nodes: a ends at 100, b runs 100-150, c 150-160; JCTs 100, 150, 150."""
    done = ronda("run", "two-nodes.json", "--policy", "fifo", "--json")
    assert done.exit_code == 0, done.output
    fields = json.loads(done.stdout.splitlines()[-1])
    assert fields.keys() >= PROMISED
    assert fields["mean_jct_s"] == pytest.approx(400 / 3)
    assert fields["mean_queue_s"] == pytest.approx((0 + 100 + 140) / 3)
    assert (fields["jobs"], fields["queued_jobs"], fields["violations"]) == (3, 2, 0)
    # 280 W idle for 160 s; 50 W more for each busy GPU: 2 x 100 + 8 x 50 + 1 x 10 GPU-seconds.
    assert fields["energy_j"] == pytest.approx(280 * 160 + 50 * (200 + 400 + 10))
    assert 0 < fields["bound_mean_jct_s"] <= fields["mean_jct_s"]
    expected = fields["mean_jct_s"] / fields["bound_mean_jct_s"] - 1
    assert fields["gap_mean_jct"] == pytest.approx(expected)


def test_table_for_people(folder, ronda):
    """The same numbers can be read without a program."""
    text = ronda("run", "two-nodes.json", "--policy", "fifo").stdout
    assert "133.3" in text.replace("133", "133.3") or "133" in text
    assert "two-nodes" in text
    assert "gap to bound" in text


def test_what_was_wrong_is_in_the_figures_of_a_run(folder, ronda):
    """Comparisons tell where a policy of one's own raised, as a run does: from these fields."""
    text = "class Mine:\n    def plan(self, round, **how):\n        raise ValueError('not today')\n"
    (folder / "mine.py").write_text(text)
    done = ronda("run", "two-nodes.json", "--policy", "./mine.py:Mine", "--json")
    assert done.exit_code == 1
    wrong = json.loads(done.stdout.splitlines()[-1])["wrong"]
    assert "raised: ValueError: not today (mine.py:3)" in wrong
    assert wrong in done.stderr


def test_figures_need_not_be_drawn(folder, ronda):
    """All the rest is kept."""
    words = ["run", "two-nodes.json", "--policy", "srtf", "--out", "out", "--no-figures"]
    assert ronda(*words).exit_code == 0
    kept = {p.name for p in (folder / "out").iterdir()}
    assert {"schedule.json.zst", "metrics.json"} <= kept
    assert "figures" not in kept


def test_folder_gets_all_results(folder, ronda):
    """Schedule, metrics, the instance, which is not packaged, and figures; no journal any more."""
    done = ronda("run", "two-nodes.json", "--policy", "srtf", "--out", "out", "--json")
    assert done.exit_code == 0, done.output
    found = sorted(p.relative_to(folder / "out").as_posix() for p in (folder / "out").rglob("*.*"))
    figures = [f"figures/{n}.{s}" for n in ("gantt", "jct_cdf", "usage") for s in ("csv", "png")]
    (instance,) = (name for name in found if name.startswith("instances/two-nodes-"))
    others = [instance, ".lock", "metrics.json", "ronda.json", "schedule.json.zst"]
    assert sorted([*figures, *others]) == sorted(found)
    kept = json.loads((folder / "out" / "metrics.json").read_text())
    assert kept.pop("checksum")
    assert kept == json.loads(done.stdout)
    assert isinstance(files.read(folder / "out" / "schedule.json.zst"), Schedule)
    checked = ronda("instances", "check", "two-nodes.json", "out/schedule.json.zst")
    assert checked.exit_code == 0
    with (folder / "out" / "figures" / "usage.csv").open() as file:
        assert float(next(csv.DictReader(file))["time_s"]) == 0


def test_a_finished_run_is_not_repeated(folder, ronda):
    """The same command shows the results again, wall time included; another one is refused."""
    words = ("run", "two-nodes.json", "--policy", "fifo", "--out", "out", "--json")
    first = ronda(*words)
    assert ronda(*words).stdout == first.stdout
    other = ronda(*words, "--seed", 1)
    assert other.exit_code == 2
    assert "seed" in other.stderr
    words = ("run", "two-nodes.json", "--policy", "fifo", "--period", 60, "--out", "timed")
    assert ronda(*words).exit_code == 0
    other = ronda("run", "two-nodes.json", "--policy", "fifo", "--out", "timed")
    assert other.exit_code == 2
    assert "period_s" in other.stderr


def start(folder, *words):
    """Start a real process, which heeds Ctrl-C even if these tests run in the background."""
    return subprocess.Popen(
        [sys.executable, "-c", "from ronda.cli import main; main()", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for(condition, seconds=120):
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


def without_times(schedule):
    """Return a schedule as plain values, without the clock times of its rounds."""
    import msgspec

    rounds = tuple(msgspec.structs.replace(r, solve_s=0.0, overhead_s=0.0) for r in schedule.rounds)
    return msgspec.structs.replace(schedule, rounds=rounds)


SLOW = """
import time

from ronda.solvers.policies.optimising.prices import Prices


class Slow:
    def plan(self, round, **given):
        time.sleep(0.02)
        return Prices().plan(round, **given)
"""


@plain_elsewhere
def test_a_killed_run_goes_on_to_the_same_schedule(folder, ronda):
    """Interrupted, then killed, the same command ends with the uninterrupted schedule."""
    (folder / "slow.py").write_text(SLOW, encoding="utf-8")
    instance, policy = generate.horizon(4, 8, "tight", 3), "./slow.py:Slow"
    files.write(instance, folder / "long.json")
    words = ("run", "long.json", "--policy", policy, "--out", "out")
    journal = folder / "out" / "journal.jsonl"
    kept = 0
    for how, code in ((signal.SIGINT, 130), (signal.SIGKILL, -9)):
        process, before = start(folder, *words), kept
        wait_for(lambda: journal.exists() and journal.read_bytes().count(b"\n") > before + 5)  # noqa: B023
        process.send_signal(how)
        _, errors = process.communicate(timeout=120)
        assert process.returncode == code
        if how == signal.SIGINT:
            assert errors.splitlines() == ["error: interrupted; the same command goes on from out"]
        kept = journal.read_bytes().count(b"\n")
        assert kept > before + 5
        assert not (folder / "out" / "metrics.json").exists()
    assert ronda(*words).exit_code == 0
    resumed, whole = files.read(folder / "out" / "schedule.json.zst"), run(instance, policy)
    assert len(whole.rounds) > kept
    assert without_times(resumed) == without_times(whole)


def test_compare_end_to_end(folder, ronda, runs_here):
    """Two instances, two policies, seeds: lines, table, figures, and JSON at the end."""
    words = [
        "compare",
        "two-nodes.json",
        "one-gpu",
        "--policies",
        "fifo,genetic(generations=2)",
    ]
    words += ["--seeds", "0-1", "--out", "out", "--json"]
    done = ronda(*words)
    assert done.exit_code == 0, done.output
    lines = [json.loads(x) for x in (folder / "out" / "results.jsonl").read_text().splitlines()]
    assert len(lines) == 2 * (1 + 2)
    for line in lines:
        assert line.keys() >= PROMISED
        assert {"status", "versions", "host", "commit", "config"} <= line.keys()
        assert line["status"] == "OK"
    summary = json.loads(done.stdout.splitlines()[-1])
    assert summary["runs"] == 6
    assert [block["instance"] for block in summary["instances"]] == ["two-nodes", "one-gpu"]
    table = (folder / "out" / "table.md").read_text()
    assert "| fifo |" in table
    assert "genetic(generations=2) (2 seeds)" in table
    assert (folder / "out" / "figures" / "overview.png").stat().st_size
    for name in ("gantt", "usage", "jct_cdf"):
        for suffix in ("png", "csv"):
            assert (folder / "out" / "figures" / "two-nodes" / f"{name}.{suffix}").stat().st_size


def test_compare_runs_only_what_is_missing(folder, ronda, runs_here):
    """The second time nothing runs; a further policy runs alone; both tables are whole."""
    words = ["compare", "two-nodes.json", "--out", "out", "--no-figures", "--policies"]
    assert ronda(*words, "fifo").exit_code == 0
    results = folder / "out" / "results.jsonl"
    before = results.read_bytes()
    again = ronda(*words, "fifo")
    assert "1 of 1 runs are in out already" in again.stderr
    assert results.read_bytes() == before
    more = ronda(*words, "fifo,sjf")
    assert more.exit_code == 0
    assert results.read_bytes().startswith(before)
    assert len(results.read_text().splitlines()) == 2
    assert "fifo" in more.stdout
    assert "sjf" in more.stdout


SLEEPY = """
import time

from ronda.solvers.policies.rigid.queues import Fifo


class Sleepy:
    def plan(self, round, **given):
        if len(round.cluster.topology.node_gpus) > 2:
            time.sleep(600)
        return Fifo().plan(round, **given)
"""


def test_compare_counts_time_outs_and_goes_on(folder, ronda, monkeypatch):
    """A run that is killed by its time-out is a result, not a failure of the command.

    The one that would sleep for ever gets a fiftieth of the time that the other may need.
    """

    def carry_out(case, answer, limits, *rest, **watch):
        assert limits.timeout_s == 100
        if Path(case.source).name == "long.json":
            limits = replace(limits, timeout_s=2.0)
        return worker.carry_out(case, answer, limits, *rest, **watch)

    monkeypatch.setattr(compare, "carry_out", carry_out)
    (folder / "sleepy.py").write_text(SLEEPY, encoding="utf-8")
    files.write(generate.horizon(4, 64, "tight", 0), folder / "long.json")
    words = ["compare", "long.json", "two-nodes.json", "--policies", "./sleepy.py:Sleepy"]
    done = ronda(*words, "--out", "out", "--timeout", 100, "--no-figures", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[-1])["statuses"] == {"TIME": 1, "OK": 1}


def test_interrupted_compare_leaves_no_process_and_goes_on(folder, ronda):
    """Ctrl-C kills the runs under way and keeps the results of those that ended."""
    (folder / "sleepy.py").write_text(SLEEPY, encoding="utf-8")
    files.write(generate.horizon(4, 64, "tight", 0), folder / "long.json")
    policy = "./sleepy.py:Sleepy"
    process = start(
        folder, "compare", "two-nodes.json", "long.json", "--policies", policy, "--jobs", "1"
    )
    results = folder / "compare-out" / "results.jsonl"
    wait_for(lambda: results.exists() and results.read_bytes().endswith(b"\n"))
    wait_for(lambda: len(os.listdir(folder / "compare-out" / "runs")) == 2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "1 of 2 runs ended; the same command goes on from compare-out" in errors
    assert len(results.read_text().splitlines()) == 1


def test_searches_are_told_apart(tmp_path, ronda):
    """A run that gives trials up has no bound to be compared with; what it found is told."""
    given = generate.sweep(6, 2, 1, generate.Trials(reports=6))
    files.write(given, tmp_path / "search.json")
    words = ["run", tmp_path / "search.json", "--policy", "asha"]
    metrics = json.loads(ronda(*words, "--json").stdout)
    assert metrics["discarded_jobs"] > 0
    assert metrics["bound_mean_jct_s"] == 0
    assert "gap_mean_jct" not in metrics
    told = ronda(*words).stdout
    assert "trials given up" in told
    assert "gap to bound" not in told
    words = ["compare", tmp_path / "search.json", "--policies", "fifo,asha", "--no-figures"]
    done = ronda(*words, "--out", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "trials given up" in (tmp_path / "out" / "table.md").read_text()
