"""What policies believe at each level of knowledge, and that they see nothing else."""

from collections import Counter
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.prediction.sizes import VARIANCE, Sizes
from ronda.horizon.beliefs import Beliefs
from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.files.packaged import load
from ronda.instances.instance import Cadence, Instance, Knowledge
from ronda.instances.job import JobState
from ronda.instances.models.measured import Way
from ronda.instances.models.throughput import phases
from ronda.instances.plan import Plan
from ronda.instances.profile import Parametric
from ronda.instances.round import Round
from ronda.instances.schedule import Schedule
from ronda.solvers.contract import Capability
from ronda.solvers.policies.rigid.queues import Fifo

EVERY = Cadence(period_s=60.0, on_event=False)


@cache
def instance() -> Instance:
    """Short jobs of a workload with measured steps and gradient noise."""
    found = load("pollux-1")
    assert isinstance(found, Instance)
    short = [job for job in found.jobs if job.profile in {"cifar10", "ncf"}]
    return replace(found, jobs=tuple(short[:12]))


@dataclass
class Watched:
    """Decides as ``fifo`` does, and keeps the rounds that it was asked."""

    rounds: list[Round] = field(default_factory=list)
    name = "watched"
    capabilities = Capability.NONE

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Keep the round and decide it."""
        self.rounds.append(round)
        return Fifo().plan(round, deadline=deadline, seed=seed, initial=initial)


@cache
def schedule(level: Knowledge) -> Schedule:
    """Return what ``prices`` makes of it."""
    return run(instance(), "prices", cadence=EVERY, knowledge=level)


@cache
def rounds(level: Knowledge) -> list[Round]:
    """Return the rounds of a run."""
    policy = Watched()
    run(instance(), policy, cadence=EVERY, knowledge=level)
    return policy.rounds


def assert_told(state: JobState, sizes: Sizes, now_s: float) -> None:
    """Check that a job's estimate is what some sizes leave of it."""
    done, told = state.done_at(now_s), state.job.estimate
    assert told is not None
    assert (told.work - done, told.sd) == pytest.approx(sizes.left(done), rel=1e-6)


def test_none_tells_how_far_live_jobs_have_come() -> None:
    """About twice the greatest progress of a live job of the application; at first nothing."""
    for seen in rounds("none"):
        done = {state.job.id: state.done_at(seen.now_s) for state in seen.jobs}
        most = dict.fromkeys((state.job.profile for state in seen.jobs), 0.0)
        for state in seen.jobs:
            most[state.job.profile] = max(most[state.job.profile], done[state.job.id])
        for state in seen.jobs:
            size = np.array([2.0 * most[state.job.profile]])
            if not size[0]:
                assert state.job.estimate is None
                continue
            assert_told(state, Sizes(size, np.ones(1), np.sqrt(VARIANCE)), seen.now_s)


def test_oracle_tells_the_true_sizes() -> None:
    """Oracle tells the true sizes."""
    true = {job.id: job.truth.work for job in instance().jobs if job.truth is not None}
    for seen in rounds("oracle"):
        for state in seen.jobs:
            assert state.job.estimate is not None
            assert state.job.estimate.work == true[state.job.id]


def test_a_size_is_that_of_complete_jobs_of_the_same_application() -> None:
    """In this workload all jobs of an application have one size: the more, the surer."""
    true = {job.profile: job.truth.work for job in instance().jobs if job.truth is not None}
    gone: set[str] = set()
    before: set[str] = set()
    told = 0
    for seen in rounds("history"):
        now = {state.job.id for state in seen.jobs}
        gone |= before - now
        before = now
        complete = Counter(job.profile for job in instance().jobs if job.id in gone)
        variance = VARIANCE / (1 + complete.total() - len(complete))
        for state in seen.jobs:
            if count := complete[state.job.profile]:
                spread = np.sqrt(variance) * count**-0.2
                size = Sizes(np.array([true[state.job.profile]]), np.ones(1), spread)
                assert_told(state, size, seen.now_s)
                told += 1
    assert told > 50


def test_speeds_are_not_known_before_they_were_measured() -> None:
    """Speeds are not known before they were measured."""
    first, last = rounds("none")[0], rounds("none")[-1]
    real = instance().profiles
    name = first.jobs[0].job.profile
    assert first.profiles[name].throughput != real[name].throughput
    assert first.jobs[0].noise is None
    (gpu_type,) = real[name].throughput
    steps = [p.profiles[name].throughput[gpu_type].step_s for p in (first, last)]  # type: ignore[union-attr]
    assert steps[0] != steps[1]


def test_gpu_types_are_believed_on_one_scale() -> None:
    """What is measured on one tells of the others, at once and of applications shown before."""
    given = load("pods-mixed")
    assert isinstance(given, Instance)
    policy = Watched()
    run(given, policy, knowledge="none")
    name = next(job.profile for job in given.jobs)
    real = given.profiles[name].throughput
    for seen in policy.rounds[1:]:
        ratios = []
        for gpu_type, model in seen.profiles[name].throughput.items():
            both = [phases(each, 1, 1, 32.0)[0] for each in (model, real[gpu_type])]
            ratios.append(float(both[0] / both[1]))
        assert max(ratios) < 4.0 * min(ratios)


def test_news_of_a_gpu_type_are_news_of_applications_that_did_not_run() -> None:
    """That computing takes three times as long on the V100 holds for all applications."""
    given = load("pods-mixed")
    assert isinstance(given, Instance)
    policy, beliefs = Watched(), Beliefs(history=False)
    run(given, policy)
    seen = next(each for each in policy.rounds if len(each.profiles) > 1)
    other, name = list(seen.profiles)[:2]
    types = list(seen.profiles[name].throughput)
    beliefs.measure((name, types[0]), Way(1, 1, 32.0), 1.0, 0.0)
    beliefs.measure((other, types[0]), Way(1, 1, 32.0), 1.0, 0.0)
    beliefs.believe(seen)
    beliefs.measure((other, types[1]), Way(1, 1, 32.0), 3.0, 0.0)
    shown = beliefs.believe(seen).profiles[name].throughput
    seconds = [phases(shown[gpu_type], 1, 1, 32.0)[0] for gpu_type in types]
    assert seconds == pytest.approx([1.0, 3.0])


def test_an_application_grows_to_twice_what_was_measured() -> None:
    """An application grows to twice what was measured."""
    first = rounds("history")[0]
    for state in first.jobs:
        assert state.job.max_gpus == state.job.gpus


def test_what_it_costs_to_cross_racks_is_learnt() -> None:
    """Jobs across racks are promised what they will get, once one of the application was there."""
    found, policy = load("gangs"), Watched()
    assert isinstance(found, Instance)
    jobs = [job for job in found.jobs if job.profile == "vgg16"]
    wide = tuple(replace(job, gpus=48, max_gpus=48) for job in jobs)
    given = replace(found, jobs=wide)
    run(given, policy, knowledge="history")
    (real,) = given.profiles["vgg16"].throughput.values()
    (known,) = policy.rounds[-1].profiles["vgg16"].throughput.values()
    assert isinstance(real, Parametric)
    assert isinstance(known, Parametric)
    batch = given.profiles["vgg16"].base_batch / 48
    steps = [sum(phases(model, 48, 6, batch, racks=2)) for model in (real, known)]
    assert steps[1] == pytest.approx(steps[0], rel=1e-6)


def perturbed(given: Instance, ended: set[str]) -> Instance:
    """Return the instance with other true sizes of all jobs that have not `ended`."""
    jobs = []
    for job in given.jobs:
        assert job.truth is not None
        factor = 1.0 if job.id in ended else 1.7
        jobs.append(replace(job, truth=replace(job.truth, work=job.truth.work * factor)))
    return replace(given, jobs=tuple(jobs))


def decided(made: Schedule, until_s: float) -> set[tuple[str, float, str]]:
    """Return what jobs were given by some time."""
    return {
        (job.id, segment.start_s, segment.option.batch, repr(segment.placement))
        for job in made.jobs
        for segment in job.segments
        if segment.start_s < until_s
    }


@pytest.mark.parametrize("level", ["history", "none"])
def test_the_truth_of_jobs_that_are_not_complete_decides_nothing(level: Knowledge) -> None:
    """The truth of jobs that are not complete decides nothing."""
    given, until_s = instance(), 1500.0
    real = schedule(level)
    ended = {job.id for job in real.jobs if job.end_s is not None and job.end_s < until_s}
    assert 0 < len(ended) < len(given.jobs)
    other = run(perturbed(given, ended), "prices", cadence=EVERY, knowledge=level)
    assert decided(other, until_s) == decided(real, until_s)


@pytest.mark.parametrize("level", ["oracle", "history", "none"])
def test_schedules_keep_the_rules(level: Knowledge) -> None:
    """Schedules keep the rules."""
    assert check(instance(), schedule(level)) == []
    assert not any(record.violations for record in schedule(level).rounds)


def test_forecasts_tell_what_was_believed_and_what_came() -> None:
    """Sizes of complete jobs, and rates of allocations that progressed."""
    given, forecasts = instance(), schedule("history").forecasts
    true = {job.id: job.truth.work for job in given.jobs if job.truth is not None}
    sizes = [each for each in forecasts if each.what == "size"]
    rates = [each for each in forecasts if each.what == "rate"]
    assert len(sizes) > 3
    assert all(each.real == true[each.job] for each in sizes)
    assert all(0.4 < (each.share or 0.0) < 0.8 for each in sizes[-3:])  # all of one size by then
    assert len(rates) >= len(given.jobs)
    off = sorted(abs(each.believed / each.real - 1.0) for each in rates[-5:])
    assert off[-2] < 0.5  # the last is of a job that has 64 GPUs for the first time


def test_jobs_teach_in_the_order_in_which_they_began() -> None:
    """Twelve that begin together: what is learnt must not depend on the hashes of their names."""
    given = instance()
    first = next(job for job in given.jobs if job.profile == "ncf")
    same = tuple(replace(first, id=f"job-{i}", submit_s=0.0, gpus=1) for i in range(12))
    forecasts = run(replace(given, jobs=same), "fifo", cadence=EVERY, knowledge="history").forecasts
    rates = [each.job for each in forecasts if each.what == "rate"]
    assert rates == [job.id for job in same[1:]]  # nothing was believed of the first one's


def test_what_needs_no_learning_makes_no_forecasts() -> None:
    """True or declared knowledge is not believed but told."""
    assert run(instance(), "fifo", cadence=EVERY, knowledge="oracle").forecasts == ()


@pytest.mark.parametrize("policy", ["prices", "milp-energy"])
def test_limits_on_power_and_energy_hold_though_speeds_are_learnt(policy: str) -> None:
    """Nobody draws more than its plan says, so no plan needs to be replaced."""
    found = load("philly-energy-small")
    assert isinstance(found, Instance)
    given = replace(found, jobs=found.jobs[:20])
    made = run(given, policy, knowledge="history")
    assert check(given, made) == []
    assert {record.status for record in made.rounds} <= {"optimal", "feasible"}
