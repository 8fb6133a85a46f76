"""What a switch costs: the model's pause is the driver's, and no run goes on without an end."""

from dataclasses import dataclass, field
from typing import ClassVar

import msgspec
import numpy as np
import pytest

from ronda.formulations.objectives.outlook import outlook
from ronda.formulations.objectives.switching_cost import horizon_s
from ronda.formulations.options.build import build
from ronda.formulations.options.table import option
from ronda.formulations.placement.requests import place
from ronda.horizon import live
from ronda.horizon.driver import run
from ronda.instances import generate
from ronda.instances.budget import Budget
from ronda.instances.check.checker import check
from ronda.instances.instance import Cadence
from ronda.instances.job import Costs
from ronda.instances.plan import Plan
from ronda.solvers.contract import OPTIMISING


@dataclass
class Restless:
    """Changes, stops and starts jobs at random; notes when each is expected to progress."""

    seed: int
    change: float = 0.5
    name: ClassVar[str] = "restless"
    capabilities: ClassVar[object] = OPTIMISING
    expected: dict[tuple[str, float], tuple[float, float]] = field(default_factory=dict)

    def plan(self, round, *, deadline, seed, initial=None):
        """Draw an option, or none, for every job; running jobs may keep theirs."""
        rng, table = np.random.default_rng([self.seed, seed]), build(round, prune=False)
        seen = outlook(round, table, horizon_s(round))
        chosen, left = {}, [pool.gpus for pool in table.pools]
        running = [j for j, state in enumerate(table.jobs) if state.allocation is not None]
        others = rng.permutation([j for j in range(len(table.jobs)) if j not in running])
        for j in [*running, *others.tolist()]:
            own = np.arange(table.start[j], table.start[j + 1])
            keeps = j in running and (table.must_run[j] or rng.random() > self.change)
            rows = own[table.current[own]] if keeps else own
            rows = rows[table.gpus[rows] <= np.array(left)[table.pool[rows]]]
            if len(rows):
                chosen[table.jobs[j].job.id] = k = int(rng.choice(rows))
                left[int(table.pool[k])] -= int(table.gpus[k])
        placed = place(round, {job: option(table, k) for job, k in chosen.items()})
        for job, allocation in placed.allocations.items():
            k = chosen[job]
            state = table.jobs[int(table.job[k])]
            if state.allocation is not None and state.allocation.goes_on(allocation):
                continue
            of_model = seen.left_s[k] - seen.remaining[table.job[k]] / table.rate[k]
            pause_s = state.pause_at(round.now_s, int(table.gpus[k]), round.costs)
            if table.current[k]:
                of_model = pause_s  # the option stays, only its nodes change
            self.expected[job, round.now_s] = (pause_s, float(of_model))
        return Plan(policy=self.name, allocations=placed.allocations)


def trace(seed, costs):
    """Return a small instance with these costs and without limits of power."""
    made = generate.horizon(jobs=8, gpus=16, seed=seed)
    return msgspec.structs.replace(
        made, budget=Budget(), costs=costs, cadence=Cadence(period_s=120.0)
    )


@pytest.mark.parametrize(
    "costs",
    [
        Costs(start_s=20.0, restart_s=90.0),
        Costs(start_s=10.0, restart_by_gpus=((1, 30.0), (4, 200.0), (64, 400.0))),
        Costs(start_s=40.0, restart_s=300.0, scale_s=15.0),
    ],
    ids=["one", "by GPUs", "in place"],
)
def test_the_model_charges_what_the_driver_charges(costs):
    """Random decisions: every allocation progresses when the round said it would."""
    policy, instance, cut_short = Restless(0), trace(0, costs), 0
    schedule = run(instance, policy)
    assert check(instance, schedule) == []
    for job in schedule.jobs:
        for segment in job.segments:
            pause_s, of_model = policy.expected[job.id, segment.start_s]
            ready_s = segment.start_s + pause_s
            assert segment.resume_s == pytest.approx(min(ready_s, segment.end_s))
            assert of_model == pytest.approx(pause_s)
            cut_short += ready_s > segment.end_s
    assert cut_short > 10  # so that debts were made, and paid


def test_a_job_that_never_gets_on_is_pinned_until_it_does(monkeypatch):
    """A policy that changes every job every round, faster than they restart, still ends."""
    monkeypatch.setattr(live, "MOST_IN_VAIN", 5)
    instance = trace(0, Costs(start_s=200.0, restart_s=200.0))
    schedule = run(instance, Restless(1, change=1.0))
    assert check(instance, schedule) == []
    pinned = {job for record in schedule.rounds for job in record.pinned_jobs}
    assert pinned
    for record, later in zip(schedule.rounds, schedule.rounds[1:], strict=False):
        if record.pinned_jobs and later.now_s < record.now_s + 200.0:
            assert set(record.pinned_jobs) <= {*later.pinned_jobs} | _done_by(schedule, later.now_s)


def _done_by(schedule, now_s):
    """Return the jobs that have progressed at some time up to now."""
    return {
        job.id
        for job in schedule.jobs
        if any(s.resume_s < now_s and s.done > 0 for s in job.segments)
    }


@pytest.mark.parametrize(
    ("policy", "restart_s"),
    [
        ("milp", 60.0),
        ("prices", 60.0),
        ("prices", 600.0),
        ("genetic", 120.0),
        ("powerflow", 60.0),
        ("pollux-like", 600.0),
        ("ones", 300.0),
    ],
)
def test_runs_end_whatever_a_restart_costs(policy, restart_s):
    """Restarts of a minute and more once made all running jobs flip for ever at ticks of 60 s."""
    made = generate.horizon(jobs=6, gpus=8, seed=11)
    instance = msgspec.structs.replace(
        made,
        budget=Budget(),
        costs=Costs(start_s=30.0, restart_s=restart_s),
        cadence=Cadence(period_s=60.0),
    )
    schedule = run(instance, policy)
    changes = sum(len(job.segments) - 1 for job in schedule.jobs)
    assert changes < 20 * len(schedule.jobs)
    assert not any(record.pinned_jobs for record in schedule.rounds)


@pytest.mark.parametrize("policy", ["milp", "prices", "genetic", "evolve"])
def test_a_job_is_stopped_only_if_its_restart_is_worth_it(make_instance, policy):
    """With 100 s of a to go, b (2 s) waits for it if a restart takes 200 s, but not if 10 s."""
    jobs = [("a", 0, 4, 200), ("b", 100, 4, 2)]
    for restart_s, expected in ((200.0, {"a": 200, "b": 202}), (10.0, {"a": 212, "b": 102})):
        schedule = run(make_instance(jobs, costs=Costs(restart_s=restart_s)), policy)
        assert {job.id: job.end_s for job in schedule.jobs} == pytest.approx(expected)
