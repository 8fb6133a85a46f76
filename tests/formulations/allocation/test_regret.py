"""Regrets by prices, in plans of the price policy, and explanations of a job's lot."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable, regrets, surpluses
from ronda.formulations.options.table import option
from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.questions.explain import Reason, explain_jobs
from ronda.solvers.contract import Capability
from ronda.solvers.decision.plan import Question
from ronda.solvers.registry import POLICIES, policy


def test_regret_by_hand():
    """Two jobs and a must-run one at a price of 2 for the only resource.

    Surpluses: job 0: 5-2=3, 6-4=2; job 1: 1-2=-1; job 2 (must run): 1-4=-3.
    Chosen 0, none, 2: 3 - max(2, 0) = 1; 0 - (-1) = 1; no other choice.
    """
    problem = Separable(
        start=np.array([0, 2, 3, 4]),
        value=np.array([5.0, 6.0, 1.0, 1.0]),
        use=Uses.of([np.array([1.0, 2.0, 1.0, 2.0])]),
        capacity=np.array([3.0]),
        names=("gpus",),
        must=np.array([False, False, True]),
        block_value=np.zeros(0),
        block_use=np.zeros((1, 0)),
        block_count=np.zeros(0),
        block_integer=np.zeros(0, dtype=bool),
    )
    surplus = surpluses(problem, np.array([2.0]))
    assert surplus.tolist() == [3.0, 2.0, -1.0, -3.0]
    found = regrets(problem.start, surplus, problem.must, np.array([0, -1, 3]))
    assert found.tolist() == [1.0, 1.0, np.inf]
    # The second-best option for job 0, and job 1 runs at a loss: 2 - 3 and -1 - 0.
    found = regrets(problem.start, surplus, problem.must, np.array([1, 2, 3]))
    assert found.tolist() == [-1.0, -1.0, np.inf]


def test_regret_of_jobs_without_a_way():
    """Job 0 must run but has no option, job 1 none at all; job 2 must run and does not: -inf.

    Job 3 must run, and its only other option is out of the question.
    """
    start, surplus = np.array([0, 0, 0, 1, 3]), np.array([2.0, 1.0, -np.inf])
    must, chosen = np.array([True, False, True, True]), np.array([-1, -1, -1, 1])
    assert regrets(start, surplus, must, chosen).tolist() == [np.inf, np.inf, -np.inf, np.inf]


@given(st.integers(0, 2**32 - 1))
def test_regret_is_what_a_loop_finds(seed):
    """Jobs with and without options, -inf among them: equal to a loop over the definition."""
    rng = np.random.default_rng(seed)
    start = np.concatenate([[0], np.cumsum(rng.integers(0, 4, 6))])
    surplus = np.where(rng.random(start[-1]) < 0.2, -np.inf, rng.normal(size=start[-1]))
    must = rng.random(6) < 0.3
    chosen = np.full(6, -1)
    for j in range(6):
        rows = [k for k in range(start[j], start[j + 1]) if np.isfinite(surplus[k])]
        if rows and (must[j] or rng.random() < 0.6):
            chosen[j] = rng.choice(rows)
    found = regrets(start, surplus, must, chosen)
    for j in range(6):
        ways = {k: surplus[k] for k in range(start[j], start[j + 1]) if np.isfinite(surplus[k])}
        if not must[j]:
            ways[-1] = 0.0
        own = ways.pop(chosen[j], None)
        if own is not None:
            assert found[j] == (own - max(ways.values()) if ways else np.inf)


@pytest.mark.parametrize("severity", ["loose", "tight"])
def test_plan_carries_the_regret_of_every_job(severity):
    """Surplus of what is placed less that of the best other option, at the plan's own prices."""
    round_ = generate.round(24, None, severity, 3)
    plan = solve(round_, "prices")
    assert plan.details.regret.keys() == {state.job.id for state in round_.jobs}
    for one in explain_jobs(round_, plan, [state.job.id for state in round_.jobs]):
        own = one.chosen.surplus
        best = max(o.surplus for o in one.options if not o.chosen and not o.current)
        now = [o.surplus for o in one.options if o.current and not o.chosen]
        # What it has now is shown though another option may beat it: then it does not count.
        allowed = {own - best, own - max([best, *now])}
        assert any(one.regret == pytest.approx(r, abs=1e-12) for r in allowed)
        if one.regret < -1e-6:
            assert one.reason in (Reason.SECOND_BEST, Reason.CROWDED_OUT)
        # The prices decide all but the few jobs of the core.
    good = [r >= -1e-6 for r in plan.details.regret.values()]
    assert np.mean(good) > 0.5


def test_options_after_waking_are_weighed_with_what_ready_nodes_cost():
    """One of three nodes sleeps: the regrets are those of the prices of all and of ready GPUs."""
    round_ = generate.round(24, None, "tight", 0)
    (group,) = round_.cluster.node_groups
    slow = msgspec.structs.replace(group, sleep_w=20.0, wake_s=300.0)
    there = [s for s in round_.running if all(node != 2 for node, _ in s.allocation.placement)]
    gone = [msgspec.structs.replace(s, allocation=None) for s in round_.running if s not in there]
    round_ = msgspec.structs.replace(
        round_,
        cluster=msgspec.structs.replace(round_.cluster, node_groups=(slow,)),
        running=tuple(there),
        waiting=(*round_.waiting, *gone),
        asleep=(2,),
    )
    plan = solve(round_, "milp-energy(thrift=0.2)")
    assert plan.prices["ready_gpus[default/A100]"] > 0
    told = explain_jobs(
        round_, plan, [state.job.id for state in round_.jobs], parameters={"thrift": 0.2}
    )
    for one in told:
        own = one.chosen.surplus
        best = max(o.surplus for o in one.options if not o.chosen)
        assert one.regret == pytest.approx(own - best, abs=1e-9)
    assert any(o.late for one in told for o in one.options)


def test_running_job_that_cannot_change_has_no_regret():
    """Its plan has none, and its explanation says that it must run."""
    round_ = generate.round(12, None, "balanced", 0)
    held, *others = round_.running
    fixed = msgspec.structs.replace(held, job=msgspec.structs.replace(held.job, preemptible=False))
    round_ = msgspec.structs.replace(round_, running=(fixed, *others))
    plan = solve(round_, "prices")
    assert held.job.id not in plan.details.regret
    (one,) = explain_jobs(round_, plan, [held.job.id])
    assert (one.reason, one.regret, one.runs) == (Reason.MUST_RUN, None, True)
    assert [o.chosen for o in one.options] == [True]


def test_job_that_is_too_dear_waits_for_that():
    """Every option of it costs more than it is worth; not to run is the best of its options."""
    round_ = generate.round(24, None, "tight", 0)
    plan = solve(round_, "prices")
    idle = [s.job.id for s in round_.jobs if s.job.id not in plan.allocations]
    found = [one for one in explain_jobs(round_, plan, idle) if one.reason is Reason.TOO_DEAR]
    assert found
    for one in found:
        assert not one.runs
        assert all(o.surplus <= 1e-6 for o in one.options)
        assert one.chosen.gpus == 0


def test_chosen_job_without_room_is_told_apart():
    """A plan that lists a job as unplaced: it waits though its choice was worth its price."""
    round_ = generate.round(24, None, "tight", 0)
    plan = solve(round_, "prices")
    job = max(plan.allocations, key=lambda i: plan.details.regret[i])
    gone = {i: a for i, a in plan.allocations.items() if i != job}
    details = msgspec.structs.replace(plan.details, regret={}, unplaced={job: "no room"})
    crowded = msgspec.structs.replace(plan, allocations=gone, details=details)
    (one,) = explain_jobs(round_, crowded, [job])
    assert one.reason is Reason.NO_ROOM
    assert one.regret < 0
    assert one.regret == pytest.approx(-max(o.surplus for o in one.options))


@pytest.mark.parametrize("name", ["milp", "genetic(generations=3)"])
def test_prices_of_other_policies_explain_the_same_costs(name):
    """Under an energy limit with sleeping nodes a GPU also costs the waking of its node.

    Both bounds are the least Lagrangian bound of one relaxation, stated with nodes apart from jobs
    or with a share of a node's watts in each job's: what an option costs is the same but for ties.
    """
    round_ = generate.round(24, None, "tight", 0)
    jobs = [state.job.id for state in round_.jobs]
    ours = explain_jobs(round_, solve(round_, "prices"), jobs)
    theirs = explain_jobs(round_, solve(round_, name), jobs)
    assert ours[0].prices[0].each > 0
    for a, b in zip(ours, theirs, strict=True):
        best = [max(o.surplus for o in one.options) for one in (a, b)]
        assert best[0] == pytest.approx(best[1], abs=1e-3)


def test_weighed_options_are_those_of_the_table():
    """Worth, GPUs and clock of what is shown as chosen are those of the plan's allocation."""
    round_ = generate.round(24, None, "tight", 2)
    plan = solve(round_, "prices")
    setting = Question.of(round_, "rank")
    for one in explain_jobs(round_, plan, list(plan.allocations)):
        got, held = one.chosen, plan.allocations[one.job].option
        assert (got.gpus, got.clock, got.batch) == (held.gpus, held.clock, held.batch)
        rows = [k for k in range(len(setting.table)) if option(setting.table, k) == held]
        assert got.worth in setting.values[rows]


def test_fallback_and_unknown_job_are_refused():
    """What was not weighed cannot be explained; a job that is not there is not guessed."""
    round_ = generate.round(12, None, "balanced", 0)
    with pytest.raises(InputError, match="no choice by prices"):
        explain_jobs(round_, solve(round_, "fifo"), ["j03"])
    with pytest.raises(InputError, match=r"'j3'.*j03"):
        explain_jobs(round_, solve(round_, "prices"), ["j3"])


def test_policies_that_say_they_have_prices_have_them():
    """The capability and the plans agree."""
    round_ = generate.round(12, None, "tight", 0)
    for name in POLICIES:
        made = policy(name)
        if Capability.PRICES not in made.capabilities:
            assert solve(round_, made).prices == {}
    assert Capability.PRICES in policy("prices").capabilities
    assert solve(round_, "prices").prices
