"""Trials of a sweep in the driver: they report losses, and a policy may give them up."""

import math
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
from msgspec.structs import replace

from arrays import Told, array
from arrays import instance as jobs_of
from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.instances.files.json import read, write
from ronda.instances.instance import Cadence
from ronda.instances.job import Costs, Truth
from ronda.instances.learning import Sweep
from ronda.instances.outcome.metrics import summarise
from ronda.instances.rules.validate import validate
from ronda.solvers.contract import Capability
from ronda.solvers.policies.rigid.queues import Fifo


def instance(trials=4, gpus=2, seed=0, **like):
    """Return a sweep of short trials."""
    return generate.sweep(trials, gpus, seed, generate.Trials(**{"reports": 4, **like}))


@dataclass(frozen=True)
class Impatient:
    """FIFO that gives up each trial whose second loss is above a limit, and notes what it saw."""

    most: float = float("inf")
    seen: list = field(default_factory=list, compare=False)
    name: ClassVar[str] = "impatient"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS

    def plan(self, round, *, deadline, seed, initial=None):
        """Decide, and give up what is hopeless."""
        self.seen.append((round.now_s, round))
        logs = {s.job.id: s.log for s in round.jobs if s.log is not None and s.log.epochs == 2}
        gone = tuple(i for i, log in logs.items() if log.loss is None or log.loss > self.most)
        left = replace(round, running=tuple(s for s in round.running if s.job.id not in gone))
        plan = Fifo().plan(left, deadline=deadline, seed=seed, initial=initial)
        return replace(plan, discarded=gone)


def test_the_policy_is_asked_at_each_report_and_sees_the_losses_so_far():
    """Two GPUs, two pairs of trials: reports after each minute, the last one is the end."""
    given, policy = instance(), Impatient()
    run(given, policy)
    assert [now_s for now_s, _ in policy.seen] == [60.0 * k for k in range(8)]
    losses = {job.id: job.truth.learning for job in given.jobs}
    for now_s, round_ in policy.seen:
        epochs = int(now_s / 60) % 4
        for state in round_.running:
            assert (state.log.losses if state.log else ()) == losses[state.job.id][1 : epochs + 1]
        ended = round_.sweeps["sweep"].ended
        assert {i: log.losses for i, log in ended.items()} == {
            i: losses[i][1:] for i in (("j0", "j1") if now_s >= 240 else ())
        }


def test_without_reports_in_the_cadence_only_events_count():
    """The log is shown when the policy is asked anyway."""
    policy = Impatient()
    run(instance(), policy, cadence=Cadence())
    assert [now_s for now_s, _ in policy.seen] == [0.0, 240.0]


def test_trials_are_given_up_for_good(tmp_path):
    """They end there; their GPUs are free at once, their GPU time is kept, no JCT counts."""
    given = instance()
    losses = sorted(job.truth.learning[2] for job in given.jobs)
    schedule = run(given, Impatient(losses[1]))
    assert check(given, schedule) == []
    ended = {o.id: (o.discarded, o.end_s) for o in schedule.jobs}
    gone = [i for i, (discarded, _) in ended.items() if discarded]
    assert len(gone) == 2
    for outcome in schedule.jobs:
        assert sum(s.done for s in outcome.segments) == (120.0 if outcome.id in gone else 240.0)
    figures = summarise(given, schedule)
    assert (figures["discarded_jobs"], figures["unfinished"]) == (2, 0)
    kept = [o.end_s for o in schedule.jobs if not o.discarded]
    assert figures["mean_jct_s"] == sum(kept) / 2
    write(schedule, tmp_path / "schedule.json")
    assert read(tmp_path / "schedule.json").jobs == schedule.jobs


def test_a_run_goes_on_from_the_journal_with_the_same_trials_given_up(tmp_path):
    """Cut after any decision, the schedule is that of a run in one piece."""
    given = instance(6, 2)
    journal = tmp_path / "journal.jsonl"
    whole = run(given, Impatient(1.0), journal=journal)
    assert any(outcome.discarded for outcome in whole.jobs)
    lines = journal.read_bytes().splitlines(keepends=True)
    for count in range(1, len(lines)):
        journal.write_bytes(b"".join(lines[:count]))
        assert run(given, Impatient(1.0), journal=journal).jobs == whole.jobs


@pytest.mark.parametrize("policy", [Impatient(1.0), "srtf", "gittins"])
def test_nothing_is_known_of_losses_to_come(policy):
    """Whatever comes after a report, what was decided by then is the same."""
    given = instance(6, 2)
    first = given.jobs[0]

    def schedule(last):
        learning = (*first.truth.learning[:3], last, last)
        changed = replace(first, truth=Truth(work=first.truth.work, learning=learning))
        return run(replace(given, jobs=(changed, *given.jobs[1:])), policy)

    low, high = schedule(0.01), schedule(None)
    until_s = 150.0
    for one, other in zip(low.jobs, high.jobs, strict=True):
        before = [[s for s in o.segments if s.start_s <= until_s] for o in (one, other)]
        assert [s.start_s for s in before[0]] == [s.start_s for s in before[1]]


def test_a_diverged_trial_reports_no_loss():
    """From then on; policies are told."""
    policy = Impatient()
    run(instance(8, 8, good=0.1, diverging=1.0), policy)
    last = policy.seen[-1][1]
    assert any(s.log is not None and s.log.loss is None for s in last.jobs)


def test_a_trial_that_is_stopped_and_resumed_reports_at_the_same_work():
    """Losses belong to the work done, not to the time."""

    @dataclass(frozen=True)
    class Turns(Impatient):
        name: ClassVar[str] = "turns"

        def plan(self, round, *, deadline, seed, initial=None):
            self.seen.append((round.now_s, round))
            order = sorted(round.jobs, key=lambda s: s.done_at(round.now_s))
            swapped = replace(round, running=(), waiting=tuple(order))
            plan = Fifo().plan(swapped, deadline=deadline, seed=seed, initial=initial)
            mine = {i: round.held.get(i, a) for i, a in plan.allocations.items()}
            return replace(plan, allocations=mine)

    given, policy = instance(2, 1), Turns()
    schedule = run(given, policy)
    assert check(given, schedule) == []
    figures = summarise(given, schedule)
    # a, b twice (the one that runs goes on if both are as far), a twice, b to its end, a.
    assert figures["preemptions"] == 3
    # Each resumption costs 10 s; the first starts cost nothing.
    assert figures["paused_gpu_s"] == pytest.approx(30.0)
    assert figures["makespan_s"] == pytest.approx(2 * 240 + 30)


def test_the_figures_of_a_sweep_are_those_on_paper():
    """One GPU; the second trial ends lowest, and is within 1 % at its third report."""
    given = instance(2, 1)
    curves = (2.0, 1.5, 1.2, 1.1, 1.05), (2.0, 1.0, 0.6, 0.503, 0.5)
    jobs = tuple(
        replace(job, truth=Truth(work=240.0, learning=curve))
        for job, curve in zip(given.jobs, curves, strict=True)
    )
    figures = summarise(*(lambda i: (i, run(i, "fifo")))(replace(given, jobs=jobs)))
    assert (figures["mean_best_s"], figures["mean_best_gpu_s"]) == (420.0, 420.0)
    assert (figures["missed_sweeps"], figures["mean_regret"]) == (0, 0.0)
    # The first trial ends far above; the second is within 10 % at its third report: 240 + 180 s.
    assert figures["mean_all_good_s"] == 420.0
    assert (figures["mean_least_loss"], figures["begun_jobs"]) == (0.5, 2)


def test_what_a_sweep_had_by_its_deadline():
    """By 300 s the second trial has begun, and reported once: 1.0 is the least so far."""
    given = instance(2, 1)
    curves = (2.0, 1.5, 1.2, 1.1, 1.05), (2.0, 1.0, 0.6, 0.503, 0.5)
    jobs = tuple(
        replace(job, truth=Truth(work=240.0, learning=curve))
        for job, curve in zip(given.jobs, curves, strict=True)
    )
    for deadline_s, least, begun in ((300.0, 1.0, 2), (239.0, 1.1, 1), (10.0, math.inf, 1)):
        sweeps = {"sweep": replace(given.sweeps["sweep"], deadline_s=deadline_s)}
        due = replace(given, jobs=jobs, sweeps=sweeps)
        figures = summarise(due, run(due, "fifo"))
        assert (figures["mean_least_loss"], figures["begun_jobs"]) == (least, begun)


@pytest.mark.parametrize(
    "wrong",
    [{"sweep": "another"}, {"epoch": None}, {"truth": Truth(work=240.0, learning=(1.0, 0.5))}],
)
def test_trials_that_cannot_report_are_refused(wrong):
    """The place is named."""
    given = instance()
    spoilt = replace(given, jobs=(replace(given.jobs[0], **wrong), *given.jobs[1:]))
    with pytest.raises(InputError, match=r"jobs\[0\]"):
        validate(spoilt)


def test_the_generator_makes_few_good_trials():
    """The share of trials that end within 1 % of the best is the one that was asked for."""
    for good, count in ((0.05, 1), (0.25, 5), (1.0, 20)):
        made = validate(generate.sweep(20, 2, 3, generate.Trials(good=good, diverging=0.2)))
        final = [job.truth.learning[-1] for job in made.jobs]
        least = min(loss for loss in final if loss is not None)
        assert sum(loss is not None and loss <= 1.01 * least for loss in final) == count
        assert made == generate.sweep(20, 2, 3, generate.Trials(good=good, diverging=0.2))
    with pytest.raises(InputError, match="good"):
        generate.sweep(4, like=generate.Trials(good=1.5))


def test_a_report_is_seen_though_another_trial_of_the_array_ends_just_then():
    """Two searches of 2 and 4 reports in one array: at the end of one the other reports as well."""
    made = jobs_of([120.0, 240.0], gpus=1, costs=Costs())
    jobs = tuple(
        replace(
            job,
            sweep=sweep,
            epoch=60.0,
            truth=Truth(
                work=60.0 * reports, learning=tuple(1 - 0.1 * k for k in range(reports + 1))
            ),
        )
        for job, sweep, reports in zip(made.jobs, "st", (2, 4), strict=True)
    )
    sweeps = {"s": Sweep(reports=2), "t": Sweep(reports=4)}
    seen = {}

    def tell(round_):
        seen[round_.now_s] = [s.log and s.log.epochs for s in round_.jobs]
        return round_.held or array(round_, ["j0", "j1"], "fused", 0, "a")

    given = validate(replace(made, jobs=jobs, sweeps=sweeps, cadence=Cadence(on_report=True)))
    assert check(given, run(given, Told(tell))) == []
    assert seen == {0.0: [None, None], 90.0: [1, 1], 180.0: [2], 240.0: [3]}
