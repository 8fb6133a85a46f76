"""What changes do to a plan, on one scale: by hand, and laws on random tiny rounds."""

import os
from itertools import product

import pytest
from msgspec.structs import replace

import ronda
from ronda.instances import generate
from ronda.questions.whatif import (
    EnergyShare,
    Gpus,
    NewJob,
    PowerCap,
    WithoutJob,
    WithoutNode,
)
from ronda.solvers.rules import with_rules
from tests.helpers.valued_rounds import cluster, rigid, snapshot

SEEDS = range(200 if os.environ.get("SOAK") else 16)


def newcomer(round_):
    """Return a job like the first one, which waits as well."""
    return replace(round_.jobs[0].job, id="new", submit_s=round_.now_s)


def better(round_):
    """Return changes of which none may lose."""
    pool = round_.cluster.topology.pools[0]
    found = [Gpus(pool.name, 1), Gpus(pool.name, 4), NewJob(newcomer(round_))]
    if round_.power_cap_w is not None:
        found.append(PowerCap(share=1.2))
    if round_.energy_j is not None:
        found.append(EnergyShare(1.3))
    return found


def worse(round_):
    """Return changes of which none may gain."""
    movable = next(s.job.id for s in round_.jobs if s.allocation is None or s.job.preemptible)
    found = [WithoutJob(movable)]
    if all(state.job.preemptible for state in round_.running):
        pool = round_.cluster.topology.pools[0]
        found += [WithoutNode(0), Gpus(pool.name, -1)]
    return found


def test_two_jobs_and_a_gpu_more_by_hand():
    """One GPU, jobs of 100 and 200 s: ranked largest first their speed is worth 1 and 2.

    The short one runs, for 2; with a second GPU both do, for 3. The GPU has a price between what
    the long job would pay, 1, and the short one, 2; a second one is foretold to earn it.
    """
    round_ = snapshot(rigid("long", 200.0), rigid("short", 100.0), on=cluster(1))
    found = ronda.whatif(round_, [Gpus("v100", 1)])
    (more,) = found.outcomes
    assert found.objective == pytest.approx(2.0)
    assert more.objective == pytest.approx(3.0)
    assert more.found == pytest.approx(1.0)
    assert 1.0 - 1e-6 <= more.foretold <= 2.0 + 1e-6
    (shift,) = more.shifts
    assert (shift.job, shift.before, shift.gain) == ("long", None, pytest.approx(1.0))
    # On its own scale the second GPU seems worth nothing.
    assert ronda.solve(more.round, "prices").objective == pytest.approx(2.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_more_never_loses_and_less_never_gains(seed):
    """Of random tiny rounds; every plan passes the checker, and none beats what was foretold."""
    round_ = generate.tiny_round(seed)
    gains, losses = better(round_), worse(round_)
    found = ronda.whatif(round_, [*gains, *losses], policy="milp")
    least = 1e-6 * max(1.0, abs(found.objective))
    assert found.base.status == "optimal"
    for outcome, rises in zip(
        found.outcomes, [True] * len(gains) + [False] * len(losses), strict=False
    ):
        assert (outcome.found >= -least) if rises else (outcome.found <= least), outcome.change
    for outcome in found.outcomes:
        assert outcome.found <= outcome.foretold + found.slack + least, outcome.change
        assert ronda.check(outcome.round, outcome.plan) == []
        assert outcome.objective == pytest.approx(found.objective + outcome.found)


@pytest.mark.parametrize(("policy", "seed"), [*product(("prices", "genetic"), range(6))])
def test_other_policies_keep_the_laws(policy, seed):
    """A search that is not exact falls back on the plan of the round as it is."""
    round_ = generate.tiny_round(seed)
    found = ronda.whatif(round_, better(round_), policy=policy)
    for outcome in found.outcomes:
        assert outcome.found >= -1e-9 * abs(found.objective)
        assert outcome.found <= outcome.foretold + found.slack + 1e-6


def test_shifts_add_up():
    """Who gains and loses explains all that was found, but for jobs that come or go."""
    round_ = generate.tiny_round(3)
    found = ronda.whatif(round_, [Gpus(round_.cluster.topology.pools[0].name, 2)])
    (outcome,) = found.outcomes
    assert sum(shift.gain for shift in outcome.shifts) == pytest.approx(outcome.found, abs=1e-7)


def test_the_round_is_not_touched():
    """The changes are made from it."""
    round_ = generate.tiny_round(1)
    before = ronda.solve(round_, "prices")
    ronda.whatif(round_, better(round_) + worse(round_))
    assert ronda.solve(round_, "prices").allocations == before.allocations


@pytest.mark.parametrize(
    ("policy", "word"),
    [("fifo", "chooses by values"), ("prices(objective=snapshot)", "snapshot")],
)
def test_policies_without_a_scale_are_refused(policy, word):
    """One that has no values, and one whose values are no price times a rate."""
    with pytest.raises(ronda.InputError, match=word):
        ronda.whatif(generate.tiny_round(0), [WithoutNode(0)], policy=policy)


def test_no_change_is_refused():
    """There is nothing to ask then."""
    with pytest.raises(ronda.InputError, match="at least one"):
        ronda.whatif(generate.tiny_round(0), [])


def test_rules_of_ones_own_hold_with_every_change():
    """A quota leaves GPUs idle: more of them are worth nothing. A term counts, a soft limit costs.

    Found is never above foretold, and no plan breaks a rule.
    """
    gpu = ronda.GpuType(name="A100", memory_gib=80.0, idle_w=50.0)
    jobs = [
        {"id": name, "gpus": 1, "work": work, "rates": {"gpus": [1], "rate": [1.0]}}
        for name, work in (("a", 900), ("b", 400), ("c", 300))
    ]
    round_ = ronda.make_round(ronda.uniform_cluster(gpu, 1, 2), jobs)

    def one(round, table):
        return ronda.Limit(table.gpus, "<=", 1)

    def soft(round, table):
        yield ronda.Limit(table.gpus, "<=", 1, penalty=1e-6)
        yield ronda.Term(5.0 + 0.0 * table.gpus)

    for rule, gains in ((one, False), (soft, True)):
        for policy in ("prices", "milp"):
            ruled = with_rules(ronda.policy(policy), [rule], "extra")
            found = ronda.whatif(round_, [Gpus("A100", 1)], policy=ruled)
            (more,) = found.outcomes
            assert (more.found > 0) is gains, more.found
            assert more.found <= more.foretold + found.slack + 1e-6
            assert ronda.broken_rules([rule], round_, found.base) == []
            assert ronda.broken_rules([rule], more.round, more.plan) == []
            assert found.objective == pytest.approx(found.base.objective)
            if gains:
                assert more.found == pytest.approx(5.0, abs=1.0)  # of a third job


def test_rules_that_see_racks_are_refused():
    """Prices bound choices of options alone."""
    ruled = ronda.policy("milp(placement=exact)", extra=[lambda round, table, rack: ()])
    with pytest.raises(ronda.InputError, match="rules that see racks"):
        ronda.whatif(generate.tiny_round(0), [WithoutNode(0)], policy=ruled)
