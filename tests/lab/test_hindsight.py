"""Hindsight: the search meets brute force, goes on as if never cut, and keeps no bad schedule."""

from itertools import permutations

import numpy as np
import pytest
from msgspec.structs import replace

from lab.__main__ import main
from lab.hindsight import search as searching
from lab.hindsight.report import row_of
from lab.hindsight.search import ONLINE, search, starts
from lab.hindsight.steering import Nudge, Run, drive
from ronda.bench.runs.results import SealedLines
from ronda.instances.files.json import read
from ronda.instances.files.packaged import load
from ronda.instances.job import Costs, Estimate, Job, Truth

LENGTHS, SUBMITTED = (100.0, 10.0, 30.0), (0.0, 1.0, 5.0)


def job(name, profile, work, submit_s, **more):
    """Return a job whose size is known."""
    known = {"estimate": Estimate(work=work), "truth": Truth(work=work)}
    return Job(id=name, submit_s=submit_s, profile=profile, **known, **more)


@pytest.fixture
def queue():
    """Three jobs on one GPU, the longest first; a restart takes 1,000 s, so that nobody stops."""
    many = enumerate(zip(LENGTHS, SUBMITTED, strict=True))
    jobs = tuple(job(f"j{k}", "rigid", work, at) for k, (work, at) in many)
    return replace(load("one-gpu"), name="queue", jobs=jobs, costs=Costs(restart_s=1000.0))


@pytest.fixture
def elastic():
    """Five elastic jobs that come to four GPUs one after the other."""
    works, most = (400.0, 90.0, 200.0, 60.0, 150.0), {"gpus": 4, "min_gpus": 1, "max_gpus": 4}
    jobs = tuple(job(f"j{k}", "app", w, 20.0 * k, **most) for k, w in enumerate(works))
    return replace(load("two-jobs"), name="elastic", jobs=jobs, costs=Costs(restart_s=60.0))


def lines_in(folder):
    """Return a file of trials."""
    folder.mkdir(exist_ok=True)
    return SealedLines(
        folder / "trials.jsonl", "a trial", lambda n: (n["instance"], n["seed"], n["trial"])
    )


def searched(instance, folder, trials, keep=lambda run: None):
    """Make trials; return all lines in the file."""
    list(search(instance, lines_in(folder), 2, trials, keep))
    return lines_in(folder).all()


def least_mean():
    """The least mean JCT of jobs that run one after the other in any order."""
    best = np.inf
    for order in permutations(range(3)):
        now = total = 0.0
        for j in order:
            now = max(now, SUBMITTED[j]) + LENGTHS[j]
            total += now - SUBMITTED[j]
        best = min(best, total / 3)
    return best


def test_the_search_finds_the_optimum_of_brute_force(queue, tmp_path):
    """Whoever does not know the future starts the long job; 10, 36 and 141 s are the best.

    A search that is cut, with half a line at the end of its file, goes on as if it had not been.
    """
    kept = []
    whole = searched(queue, tmp_path / "whole", 12, kept.append)
    assert whole[1]["mean_jct_s"] == pytest.approx((100 + 109 + 135) / 3)
    assert least_mean() == pytest.approx((10 + 36 + 141) / 3)
    assert kept[-1].mean_jct_s == pytest.approx(least_mean())
    found = [line["mean_jct_s"] for line in whole if line["mean_jct_s"] is not None]
    assert min(found) > least_mean() - 1e-9

    searched(queue, tmp_path / "cut", 11)
    path = tmp_path / "cut" / "trials.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    assert searched(queue, tmp_path / "cut", 12) == whole


def test_the_best_run_can_be_made_from_the_beginning(elastic, tmp_path):
    """A search is never worse than its starts; its trials run only from their first nudge on."""
    kept = []
    lines = searched(elastic, tmp_path, 12, kept.append)
    best = [line["mean_jct_s"] for line in lines if line["best"]]
    begun = [n for n in lines if n["move"] == "start" and n["policy"] not in ONLINE]
    assert best == sorted(best, reverse=True)
    assert best[-1] < min(line["mean_jct_s"] for line in begun)
    last = kept[-1]
    again = drive(elastic, last.policy, last.knowledge, last.nudges)
    assert again.schedule.jobs == last.schedule.jobs


def test_a_job_that_is_held_back_starts_at_the_first_decision_after(queue):
    """The long job waits for both others: j1 1-11, j2 11-41, j0 from 41 s on.

    A run is given up when it is far behind that: j2 5-35, j1 35-45.
    """
    run = drive(queue, "prices", "declared", [Nudge(0.0, "j0", until_s=20.0)])
    assert [outcome.end_s for outcome in run.schedule.jobs] == [141.0, 11.0, 41.0]
    assert drive(queue, "prices", "declared", [Nudge(0.0, "j1", until_s=15.0)], run) is None


def test_a_job_gets_no_more_gpus_than_it_is_told(elastic):
    """From a moment on, and until another nudge says more."""
    nudges = [Nudge(30.0, "j0", most_gpus=1), Nudge(200.0, "j0", most_gpus=4)]
    run = drive(elastic, "prices", "declared", nudges)
    parts = run.schedule.jobs[0].segments
    assert {s.option.gpus for s in parts if 40.0 <= s.start_s < 200.0} <= {1}
    assert max(s.option.gpus for s in parts if s.start_s >= 200.0) > 1
    free = drive(elastic, "prices", "declared").schedule.jobs[0].segments
    assert [s.option.gpus for s in free] != [s.option.gpus for s in parts]


def test_a_schedule_that_breaks_a_rule_is_never_the_best(queue, tmp_path, monkeypatch):
    """A driver that claims to have ended a job sooner than it can is found out."""

    def cheats(instance, policy, knowledge, nudges=(), leader=None):
        if leader is None:
            return drive(instance, policy, knowledge)
        first, *others = leader.schedule.jobs
        (*before, last) = first.segments
        cut = replace(last, end_s=last.end_s - 1.0)
        sooner = replace(first, end_s=cut.end_s, segments=(*before, cut))
        schedule = replace(leader.schedule, jobs=(sooner, *others))
        return Run(leader.policy, "declared", (), schedule, leader.jct_s - 1.0, leader.decisions)

    monkeypatch.setattr(searching, "drive", cheats)
    kept = []
    lines = searched(queue, tmp_path, len(starts(queue)) + 5, kept.append)
    assert [line["best"] for line in lines[-5:]] == [False] * 5
    assert ["progress: job j0: segment 0 did 100 in 99 s, not 99"] in [n["wrong"] for n in lines]
    assert kept[-1].mean_jct_s == pytest.approx((100 + 109 + 135) / 3)


def test_a_row_by_hand():
    """Of a gap of 400 s, 100 s are loose, 50 s reachable and 250 s undecided."""
    begun = {"move": "start", "knowledge": "declared", "best": False}
    lines = [
        begun | {"policy": "srtf", "mean_jct_s": 1600.0},
        begun | {"policy": "milp(gap=1e-3)", "mean_jct_s": 1400.0, "best": True},
        begun | {"policy": "prices(horizon_s=300)", "mean_jct_s": 1380.0, "best": True},
        {"move": "nudges", "mean_jct_s": 1350.0, "best": True},
    ]
    shown = row_of("it", 1000.0, 1100.0, 1350.0, "true", lines)
    assert shown[3:] == ["1,400.0 (milp)", "true", "1,350.0 (4)", "27.3", "25", "12", "62"]
    assert row_of("it", 1000.0, 1100.0, np.inf, "true", [])[3:] == ["–"] * 7


def test_the_command_keeps_the_schedule_and_fills_a_page(tmp_path, capsys):
    """A later call with --minutes 0 writes the same table."""
    page = tmp_path / "page.md"
    page.write_text("<!-- hindsight: made -->\n<!-- end of hindsight -->\n")
    words = ["hindsight", "one-gpu", "--out", f"{tmp_path / 'out'}", "--trials", "12"]
    assert main([*words, "--minutes", "1", "--into", f"{page}"]) == 0
    shown = capsys.readouterr().out
    assert "| one-gpu | 5.7 |" in shown
    assert shown in page.read_text()
    jobs = read(tmp_path / "out" / "one-gpu.json.zst").jobs
    assert sum(o.end_s - o.submit_s for o in jobs) / 3 == pytest.approx(17 / 3)
    assert main([*words, "--minutes", "0"]) == 0
    assert capsys.readouterr().out == shown
    assert main(["hindsight", "round-gangs", "--out", f"{tmp_path / 'new'}"]) == 2
