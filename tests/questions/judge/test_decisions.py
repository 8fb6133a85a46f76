"""The worst decisions of made logs, of which it is known what was done wrong."""

from dataclasses import replace

import numpy as np
import pytest

from made_logs import busy, logged
from ronda.instances.traces.recorded import Recorded, RecordedRun
from ronda.questions.judge import decisions
from ronda.questions.judge.decisions import costly_decisions
from ronda.questions.judge.judged import certified_regret
from ronda.questions.judge.orders import Backfilling
from ronda.questions.judge.queue import judged_jobs
from ronda.questions.judge.space import node_uses
from small import make_instance


def easy(jobs, space, fixed):
    """Return starts by first come, with backfilling."""
    return Backfilling(jobs, space, fixed).run()


def worst(instance, recorded, most=1000, since_s=0.0, until_s=None):
    """Return the decisions of the only queue, and its jobs and space."""
    window_s = since_s, recorded.until_s if until_s is None else until_s
    jobs = judged_jobs(instance, recorded, "default", window_s)
    space = node_uses(jobs, since_s, recorded.until_s)
    return costly_decisions(jobs, space, {"easy": easy}, most), jobs, space


def log(jobs, starts, nodes=1):
    """Return jobs (id, submission, GPUs, seconds) that started on nodes at some times, as a log."""
    runs = {
        name: (
            RecordedRun(starts[name][0], starts[name][0] + lasts_s, {starts[name][1]: gpus}, ""),
        )
        for name, _, gpus, lasts_s in jobs
    }
    last_s = max(run.end_s for (run,) in runs.values())
    return make_instance(jobs, nodes=nodes, gpus_per_node=8), Recorded(runs, last_s)


def test_who_was_passed_over():
    """a, of 50 s, was ready before b, of 1,000 s: a first spares 950 s and 1 s is none of it."""
    jobs = [("x", 0.0, 8, 100.0), ("a", 10.0, 8, 50.0), ("b", 20.0, 8, 1000.0)]
    (found,), own, _ = worst(
        *log(jobs, {"x": (0, 0), "b": (100, 0), "a": (1100, 0)}), since_s=100.0
    )
    assert (found.at_s, found.until_s, found.started) == (100.0, 1100.0, ("b",))
    assert found.cost_s == pytest.approx(950.0)
    assert [(start.job, start.start_s, start.late_s) for start in found.late] == [("a", 100, 1000)]
    assert own.waited_s == pytest.approx(1000.0)


def test_who_started_late_although_there_was_room():
    """B starts 40 s after a has ended; nobody is started before it."""
    jobs = [("a", 0.0, 8, 100.0), ("b", 10.0, 8, 500.0), ("c", 700.0, 8, 100.0)]
    (found,), _, _ = worst(*log(jobs, {"a": (0, 0), "b": (140, 0), "c": (700, 0)}))
    assert (found.at_s, found.cost_s) == (0.0, pytest.approx(40.0))
    assert (found.early, [start.job for start in found.late]) == ((), ["b"])


@pytest.mark.parametrize("gap_s", [299.0, 301.0])
def test_room_that_is_not_proven_is_no_fault(gap_s):
    """A node without a job for more than five minutes may have been out of service."""
    late_s = 100.0 + gap_s
    jobs = [("a", 0.0, 8, 100.0), ("b", 10.0, 8, 500.0), ("c", 10.0, 1, 2000.0)]
    starts = {"a": (0, 0), "b": (late_s, 0), "c": (10, 1)}
    found, _, _ = worst(*log(jobs, starts, nodes=2))
    assert [each.cost_s for each in found] == ([pytest.approx(gap_s)] if gap_s < 300 else [])


def test_what_decisions_cost_adds_up():
    """To what the rule spares if it takes over at the best of all moments; the worst are first."""
    instance, recorded = logged(busy(8, 30, load=0.8), "fifo")
    every, jobs, space = worst(instance, recorded)
    costs = [each.cost_s for each in every]
    first, _, _ = worst(instance, recorded, most=1)
    starts = easy(jobs, space, {})
    at_once_s = jobs.cost(np.array([starts[k][0] for k in range(len(jobs.ids))]))
    assert costs == sorted(costs, reverse=True)
    assert sum(costs) >= jobs.waited_s - at_once_s - 36.0 * len(jobs.ids)
    assert sum(costs) <= jobs.waited_s
    assert first[0].cost_s == pytest.approx(costs[0])


def test_a_slow_cycle_starts_jobs_late():
    """Where a scheduler looks every two minutes, jobs start up to two minutes late, in order."""
    jobs = busy(8, 30, load=0.8)
    quick, _, _ = worst(*logged(jobs, "fifo(backfill=easy)"))
    slow, _, _ = worst(*logged(jobs, "fifo(backfill=easy)", period_s=120, on_event=False))
    assert not quick
    assert sum(each.cost_s for each in slow) > 500
    assert all(not each.early for each in slow)
    assert all(0 < each.late[0].late_s <= 120 for each in slow)


def test_others_stay_where_they_are(monkeypatch):
    """Of c and d alone, c first: a holds the node on which d seems to wait for nothing."""
    monkeypatch.setattr(decisions, "STRETCH", 1)
    monkeypatch.setattr(decisions, "AHEAD", 2)
    jobs = [("a", 0.0, 8, 300.0), ("b", 0.0, 8, 90.0), ("c", 90.0, 8, 400.0), ("d", 95.0, 8, 100.0)]
    starts = {"a": (0, 0), "b": (0, 1), "c": (90, 1), "d": (300, 0)}
    found, _, _ = worst(*log(jobs, starts, nodes=2))
    assert not found


def test_a_rule_that_does_badly_later_is_no_fault_of_the_log():
    """From the second decision on it starts nothing, so that all start as recorded.

    a starts 40 s late, and all after it; then c, of 500 s, before b, of 60 s.
    """
    jobs = [("x", 0.0, 8, 10.0), ("a", 1.0, 8, 50.0), ("b", 2.0, 8, 60.0), ("c", 3.0, 8, 500.0)]
    instance, recorded = log(jobs, {"x": (0, 0), "a": (50, 0), "c": (100, 0), "b": (600, 0)})
    own = judged_jobs(instance, recorded, "default", (0.0, recorded.until_s))
    space = node_uses(own, 0.0, recorded.until_s)

    def moody(jobs, space, fixed):
        return {} if len(fixed) == 1 else easy(jobs, space, fixed)

    for rule in (easy, moody):
        order, late = costly_decisions(own, space, {"rule": rule}, 9)
        assert (order.at_s, order.cost_s) == (100.0, pytest.approx(440.0))
        assert (late.at_s, late.cost_s) == (0.0, pytest.approx(120.0))


def test_a_decision_is_certified_as_a_round():
    """A and b wait for the one node, and a is the shorter: to start b is worth less than a.

    Where the log starts a, nothing is lost. Without time limits nobody knows.
    """
    jobs = [("x", 0.0, 8, 100.0), ("a", 10.0, 8, 60.0), ("b", 20.0, 8, 1200.0)]
    instance, recorded = log(jobs, {"x": (0, 0), "b": (100, 0), "a": (1300, 0)})
    (found,), own, space = worst(instance, recorded, since_s=100.0)
    assert certified_regret(own, space, found) is None
    own = replace(own, limit_s=own.lasts_s)
    low, high = certified_regret(own, space, found)
    assert 0.3 < low <= high < 1.0
    right = replace(found, started=("a",))
    runs = {**recorded.runs, "a": recorded.runs["b"], "b": recorded.runs["a"]}
    other, _, _ = worst(instance, replace(recorded, runs=runs), since_s=100.0)
    assert not other
    own = replace(own, ids=("a", "b"), limit_s=own.limit_s[::-1])
    assert certified_regret(own, space, right) == (0.0, pytest.approx(0.0, abs=1e-9))


def test_a_round_has_only_what_is_free_then():
    """Four of eight devices are: a, of four, is all that can start, though b is much shorter."""
    jobs = [("y", 0.0, 4, 1000.0), ("x", 0.0, 4, 100.0), ("a", 5.0, 4, 600.0), ("b", 5.0, 8, 60.0)]
    starts = {"y": (0, 0), "x": (0, 0), "a": (100, 0), "b": (1000, 0)}
    instance, recorded = log(jobs, starts)
    own = judged_jobs(instance, recorded, "default", (0.0, recorded.until_s))
    own = replace(own, limit_s=own.lasts_s)
    space = node_uses(own, 0.0, recorded.until_s)
    told = decisions.CostlyDecision("easy", 100.0, 1000.0, 1, 0.0, ("a",), ())
    assert certified_regret(own, space, told) == (0.0, pytest.approx(0.0, abs=1e-9))
