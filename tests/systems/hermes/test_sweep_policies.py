"""Policies for searches: Hermes and those beside it, on sweeps whose schedule is known on paper."""

from functools import cache

import pytest
from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.instance import Instance
from ronda.instances.job import Truth
from ronda.instances.learning import TrainingLog
from ronda.instances.outcome.metrics import summarise
from ronda.solvers.registry import policy
from ronda.testing import rounds

SEARCHERS = ("hermes", "round-robin", "slaq", "asha", "hyperband", "hypersched", "sweep")
W0, REPORTS = 60.0, 10
WHOLE = W0 * REPORTS
GOOD = tuple(1.0 - 0.09 * k for k in range(REPORTS + 1))
BAD = (1.0, *(0.99,) * REPORTS)


def sweep_of(curves, gpus=1, restart_s=0.0, **sweep) -> Instance:
    """Return a sweep of trials with these losses, in this order."""
    reports = len(curves[0]) - 1
    like = generate.Trials(reports=reports, report_s=W0, restart_s=restart_s)
    made = generate.sweep(len(curves), gpus, 0, like)
    jobs = tuple(
        replace(job, truth=Truth(work=reports * W0, learning=curve))
        for job, curve in zip(made.jobs, curves, strict=True)
    )
    return replace(made, jobs=jobs, sweeps={"sweep": replace(made.sweeps["sweep"], **sweep)})


@cache
def ends_s(name, good, restart_s=0.0):
    """Return when all good trials on one GPU have ended; `good` tells of each whether it is."""
    given = sweep_of([GOOD if each else BAD for each in good], restart_s=restart_s)
    outcomes = zip(run(given, name).jobs, good, strict=True)
    return max(outcome.end_s for outcome, each in outcomes if each)


def places(good):
    """Return the same trials, each as often first in the queue."""
    return [good[k:] + good[:k] for k in range(len(good))]


def test_hermes_takes_as_long_as_on_paper():
    """N - 1 probes beside the whole of the good trial: (N - 1) w0 + W in any place of the queue.

    FIFO takes (N + 1) W / 2 on average, and round-robin nearly N W.
    """
    trials = 4
    for good in places((True, False, False, False)):
        place = good.index(True)
        assert ends_s("hermes", good) == pytest.approx((trials - 1) * W0 + WHOLE)
        assert ends_s("fifo", good) == pytest.approx((place + 1) * WHOLE)
        turns = (REPORTS - 1) * trials + place + 1
        assert ends_s("round-robin", good) == pytest.approx(turns * W0)


def test_a_preemption_costs_hermes_one_pause():
    """The good trial is stopped once, when the next one is probed, and resumes after all probes."""
    good = (True, False, False, False)
    assert ends_s("hermes", good, 30.0) == pytest.approx(3 * W0 + WHOLE + 30.0)


def gain(good, restart_s=0.0):
    """Return the mean time of FIFO over that of Hermes, over all places in the queue."""
    fifo, hermes = (
        sum(ends_s(policy, each, restart_s) for each in places(good))
        for policy in ("fifo", "hermes")
    )
    return fifo / hermes


def test_the_gain_over_fifo_falls_with_the_share_of_good_trials():
    """Good ones must all end: if all are good there is none, but for preemptions that cost."""
    one, two, four = (gain((True,) * k + (False,) * (4 - k)) for k in (1, 2, 4))
    assert one > two > four == pytest.approx(1.0)


def test_the_gain_over_fifo_falls_with_the_cost_of_a_preemption():
    """FIFO has none."""
    gains = [gain((True, False, False, False), cost) for cost in (0.0, 30.0, 120.0)]
    assert gains[0] > gains[1] > gains[2]


def test_hermes_moves_no_trial_and_shares_them_evenly():
    """Each trial stays in the queue of one GPU; five trials make queues of three and two."""
    given = generate.sweep(5, 2, 1, generate.Trials(reports=6))
    schedule = run(given, "hermes")
    assert check(given, schedule) == []
    nodes = [{n for s in o.segments for n, _ in s.placement} for o in schedule.jobs]
    assert all(len(each) == 1 for each in nodes)
    assert sorted(n for each in nodes for n in each) == [0, 0, 0, 1, 1]


def test_hermes_leaves_a_diverged_trial_to_the_end():
    """Even one whose loss fell fastest until then."""
    lost = (1.0, 0.1, *(None,) * 5)
    given = sweep_of([lost, *[tuple(1 - 0.01 * k for k in range(7))] * 2])
    schedule = run(given, "hermes")
    assert max(schedule.jobs, key=lambda o: o.end_s).id == "j0"
    assert schedule.jobs[0].segments[-1].start_s == pytest.approx(2 * 6 * W0 + 2 * W0)


def test_hysteresis_spares_preemptions():
    """A trial that is a little better does not stop the one that runs."""
    given = generate.sweep(4, 1, 2, generate.Trials(reports=8, good=1.0))
    counts = [
        summarise(given, run(given, f"hermes(hysteresis={h})"))["preemptions"] for h in (0, 0.2, 9)
    ]
    assert counts[0] > counts[1] > counts[2]


def test_asha_promotes_one_in_four_and_gives_the_rest_up():
    """Eight trials, the best first: two pass the first rung, none the second, with too few."""
    curves = [tuple(1.0 - 0.004 * k * (9 - i) for k in range(17)) for i in range(8)]
    given = sweep_of(curves)
    schedule = run(given, "asha")
    assert check(given, schedule) == []
    done = [sum(s.done for s in o.segments) / W0 for o in schedule.jobs]
    assert done == [4, 4, 1, 1, 1, 1, 1, 1]
    assert all(o.discarded for o in schedule.jobs)


def test_hyperband_halves_its_brackets():
    """R = 9, eta = 3: of nine trials three pass report 1 and one report 3; others begin later."""
    curves = [tuple(1.0 - 0.004 * k * (i + 1) for k in range(10)) for i in range(17)]
    given = sweep_of(curves, gpus=2)
    schedule = run(given, "hyperband")
    assert check(given, schedule) == []
    done = [round(sum(s.done for s in o.segments) / W0) for o in schedule.jobs]
    assert done[:9] == [1] * 6 + [3, 3, 9]
    assert done[9:14] == [3, 3, 3, 3, 9]
    assert done[14:] == [9, 9, 9]


def test_hypersched_starts_nobody_too_late_and_stops_at_the_deadline():
    """With little time left no new trial starts; at the first report after the end all end."""
    curves = [tuple(1.0 - 0.004 * k * (i + 1) for k in range(17)) for i in range(12)]
    given = sweep_of(curves, gpus=2, deadline_s=8 * W0)
    schedule = run(given, "hypersched")
    assert check(given, schedule) == []
    assert schedule.end_s <= 9 * W0
    starts = [o.segments[0].start_s for o in schedule.jobs if o.segments]
    longest = {round(s): W0 for s in starts}
    assert max(starts) <= 8 * W0 - 4 * min(longest.values())
    assert len(starts) < 12


FALLS = (1.0, *(0.9 * 0.85**k for k in range(10)))


def log_of(*losses):
    """Return the log of a trial that began at a loss of 1."""
    return TrainingLog(epochs=len(losses), initial_loss=1.0, loss=losses[-1], losses=tuple(losses))


def test_sweep_learns_from_what_trials_did_what_to_expect_of_others():
    """Where falls came true, the trial that still falls is taken, not the lower one."""
    round_ = rounds()["searching"]
    stalled, falling = round_.waiting[:2]
    waiting = (
        replace(stalled, log=log_of(0.58, 0.58, 0.58, 0.58)),
        replace(falling, log=log_of(0.9, 0.8, 0.7, 0.61)),
    )
    (group,) = round_.cluster.node_groups
    one = replace(round_.cluster, node_groups=(replace(group, count=1),))
    asked = replace(round_, cluster=one, power_cap_w=None, running=(), waiting=waiting)

    def chosen(ended):
        known = replace(round_.sweeps["sweep"], ended={"e": log_of(*ended)})
        plan = policy("sweep(hopeless=0)").plan(
            replace(asked, sweeps={"sweep": known}), deadline=Deadline(), seed=0
        )
        assert check(asked, plan) == []
        return set(plan.allocations)

    assert chosen(FALLS[1:]) == {falling.job.id}
    assert chosen((0.9, *(0.8,) * 8)) == {stalled.job.id}


def test_sweep_gives_up_what_is_hopeless():
    """Once a trial has ended, those that have learnt nothing; none before."""
    given = sweep_of([FALLS, (1.0,) * 11, (1.0,) * 11])
    schedule = run(given, "sweep")
    assert check(given, schedule) == []
    assert [o.discarded for o in schedule.jobs] == [False, True, True]
    assert schedule.jobs[1].end_s >= schedule.jobs[0].end_s
    kept = run(given, "sweep(hopeless=0)")
    assert not any(o.discarded for o in kept.jobs)


@pytest.mark.parametrize("name", SEARCHERS)
def test_no_policy_knows_losses_to_come(name):
    """Losses after a report of the first trial are changed: nothing differs until then."""
    given = generate.sweep(7, 2, 4, generate.Trials(reports=6))
    first = given.jobs[0]
    learning = first.truth.learning

    def change(k):
        other = (*learning[: k + 1], *(loss * 0.5 for loss in learning[k + 1 :]))
        truth = Truth(work=first.truth.work, learning=other)
        return replace(given, jobs=(replace(first, truth=truth), *given.jobs[1:]))

    schedules = run(given, name), run(change(3), name)
    reached = [_when(s.jobs[0], 4 * W0) for s in schedules]
    until_s = min(reached)
    starts = [
        sorted((s.start_s, o.id) for o in schedule.jobs for s in o.segments if s.start_s < until_s)
        for schedule in schedules
    ]
    assert starts[0] == starts[1]


def _when(outcome, work):
    """Return when a trial has done some work; infinite if never."""
    done = 0.0
    for segment in outcome.segments:
        if done + segment.done >= work - 1e-6:
            return segment.resume_s + work - done
        done += segment.done
    return float("inf")


@pytest.mark.parametrize("name", SEARCHERS)
def test_runs_of_searchers_are_valid_and_go_on_from_journals(name, tmp_path):
    """Checked plan by plan and as a whole; cut in the middle, a run ends as in one piece."""
    like = generate.Trials(reports=6, diverging=0.3, restart_s=20.0)
    given = generate.sweep(10, 3, 5, like)
    journal = tmp_path / "journal.jsonl"
    whole = run(given, name, journal=journal)
    assert check(given, whole) == []
    assert not any(record.violations for record in whole.rounds)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert run(given, name, journal=journal).jobs == whole.jobs
