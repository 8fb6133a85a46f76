"""The order in which a policy would start the jobs that wait."""

from itertools import chain

import pytest
from msgspec.structs import replace

from ronda.hosts.clusters.order import start_tiers
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.job import After
from ronda.instances.plan import Plan
from ronda.solvers.policies.rigid.queues import queued
from ronda.solvers.registry import policy
from tests.helpers.shared_cluster import job, shared, tenant


class Asked:
    """A policy that keeps the rounds that it was asked about, and fails from the `fails`-th on."""

    def __init__(self, spec, fails=99):
        self.made, self.rounds, self.fails = policy(spec), [], fails
        self.name, self.capabilities = self.made.name, self.made.capabilities

    def plan(self, round, **options):
        """Decide as the policy does."""
        self.rounds.append(round)
        if len(self.rounds) >= self.fails:
            raise ValueError("no")
        return self.made.plan(round, **options)


def tiers_of(spec, round_, **options):
    """Return the tiers, and the policy that was asked."""
    asked = Asked(spec, options.pop("fails", 99))
    plan = policy(spec).plan(round_, seed=0)
    limit = Deadline(options.pop("limit_s", 60.0))
    return start_tiers(asked, round_, plan, deadline=limit, seed=0, **options), asked


@pytest.mark.parametrize("spec", ["prices", "fifo", "sjf", "qssf", "kueue-like", "las"])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_every_job_once(spec, most):
    """The first tier is the plan's, every job has one tier, and the policy is asked seldom."""
    round_ = generate.round(jobs=80, gpus=32, seed=3)
    tiers, asked = tiers_of(spec, round_, most=most)
    assert sorted(chain(*tiers)) == sorted(s.job.id for s in round_.waiting)
    assert len(tiers) <= most
    assert len(asked.rounds) <= max(0, most - 2)
    if most > 1:
        plan = policy(spec).plan(round_, seed=0)
        assert {*tiers[0]} == {s.job.id for s in round_.waiting} & plan.allocations.keys()
    for k, seen in enumerate(asked.rounds):
        gone = {*chain(*tiers[: k + 1])}
        assert not seen.running
        assert [s.job.id for s in seen.waiting] == [
            s.job.id for s in round_.waiting if s.job.id not in gone
        ]


@pytest.mark.parametrize("spec", ["fifo", "sjf", "qssf"])
@pytest.mark.parametrize("backfill", ["none", "free"])
def test_queue_kept(spec, backfill):
    """No job is before one of its shape that the policy's queue has first."""
    for seed in range(3):
        limited = generate.round(jobs=80, gpus=32, seed=seed)
        round_ = replace(limited, power_cap_w=None, energy_j=None, banked_j=None)
        tiers, _ = tiers_of(f"{spec}(backfill={backfill})", round_, most=6)
        place = {s.job.id: k for k, s in enumerate(queued(round_, spec))}
        shape = {s.job.id: s.job.gpus for s in round_.waiting}
        for one in {*shape.values()}:
            # The last tier is the rest, which nobody was asked about.
            *flat, rest = ([place[j] for j in tier if shape[j] == one] for tier in tiers)
            flat = [*chain(*flat)]
            assert flat == sorted(flat)
            assert not rest or not flat or max(flat) < min(rest)


def test_tiers_by_hand():
    """Jobs of 8, 8, 4, 4 and 8 GPUs on 8: each tier fills the node once."""
    round_ = shared(
        job("runs", 4, on=[0]),
        *(job(name, n) for name, n in [("a", 8), ("b", 8), ("c", 4), ("d", 4), ("e", 8)]),
    )
    assert tiers_of("fifo", round_)[0] == [[], ["a"], ["b"], ["c", "d", "e"]]
    assert tiers_of("fifo", round_, most=9)[0] == [[], ["a"], ["b"], ["c", "d"], ["e"]]
    free = "fifo(backfill=free)"
    assert tiers_of(free, round_)[0] == [["c"], ["a"], ["b"], ["d", "e"]]


def test_late_last():
    """Jobs that may not start yet come after all others, whatever room there is."""
    round_ = shared(
        job("first", 4),
        replace(job("blocked", 1), blocked="held by its user"),
        job("later", 1, eligible_s=500.0),
        job("follows", 1, after=(After(job="first"),)),
        job("second", 8),
    )
    late = ["blocked", "later", "follows"]
    assert tiers_of("fifo", round_)[0] == [["first"], ["second"], late]
    assert tiers_of("fifo", round_, most=2)[0] == [["first"], ["second", *late]]
    assert tiers_of("fifo", round_, most=1)[0] == [["first", "second", *late]]


def test_limits_of_tenants():
    """A limit counts only who runs, so the next tier has it for itself."""
    round_ = shared(
        job("runs", 4, on=[0], tenant="t", preemptible=False),
        *(job(f"t{k}", 2, tenant="t") for k in range(3)),
        job("u", 2, tenant="u"),
        tenants=(tenant("t", 4, limit=4), tenant("u", 4)),
    )
    found, _ = tiers_of("prices", round_)
    assert found[0] == ["u"]
    assert len(found[1]) == 2
    assert len(found[2]) == 1


def test_a_policy_that_fails():
    """The rest is one tier, in order of submission."""
    round_ = shared(*(job(name, 8) for name in "abcde"))
    assert tiers_of("fifo", round_, fails=2)[0] == [["a"], ["b"], ["c", "d", "e"]]
    assert tiers_of("fifo", round_, fails=1)[0] == [["a"], ["b", "c", "d", "e"]]
    (first,), rest = tiers_of("prices", round_, limit_s=1e-6)[0]
    assert rest == sorted({*"abcde"} - {first})


def test_nobody_waits():
    """Nobody starts where nobody waits; a job that can never run is in the last tier."""
    assert tiers_of("fifo", shared(job("runs", 4, on=[0])))[0] == [[]]
    large = shared(job("small", 8), replace(job("large", 8), blocked="too large"), job("n", 8))
    assert start_tiers(
        policy("fifo"), large, Plan(policy="nobody"), deadline=Deadline(), seed=0
    ) == [[], ["small"], ["n"], ["large"]]


def test_whose_turn_comes_with_the_next_ends():
    """Two GPUs are free after 100 s and six after 900 s: the job of two is next, and one of six."""
    round_ = shared(
        job("late", 6, on=[0], work=1_000.0),
        job("soon", 2, on=[0], work=200.0),
        *(job(name, n) for name, n in [("a", 6), ("b", 2), ("c", 6), ("d", 2)]),
    )
    free = "fifo(backfill=free)"
    tiers, asked = tiers_of(free, round_, most=9, ends=3)
    assert tiers == [[], ["b"], ["a"], ["d"], ["c"]]
    assert [sorted(s.job.id for s in seen.running) for seen in asked.rounds[:3]] == [
        ["late"],
        ["b"],
        ["a"],
    ]
    assert tiers_of(free, round_, most=9)[0] == [[], ["a", "b"], ["c", "d"]]
    # A job that needs the whole node waits for more ends: one, two, four …
    whole = shared(*(job(f"r{k}", 1, on=[0]) for k in range(8)), job("a", 8))
    tiers, asked = tiers_of("fifo", whole, most=9, ends=9)
    assert tiers == [[], ["a"]]
    assert [len(seen.running) for seen in asked.rounds] == [7, 5, 1, 0]
