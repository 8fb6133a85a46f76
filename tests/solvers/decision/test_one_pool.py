"""Small rounds of one pool in plain numbers: the same answers as by the general method."""

import math

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.allocation.case import make_case
from ronda.formulations.allocation.regret import regrets
from ronda.formulations.objectives.forms import values
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.instances.check.answer import check
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.profile import Parametric, Profile
from ronda.instances.round import Round
from ronda.solvers.contract import Deadline
from ronda.solvers.decision import one_pool
from ronda.solvers.decision.one_pool import allocate_in_one_pool
from ronda.solvers.policies.optimising.prices import Prices
from ronda.solvers.solve import solve


def free(seed):
    """Return a tiny round without limits on power."""
    return replace(generate.tiny_round(seed), power_cap_w=None, energy_j=None)


def choose(round_, worth=None):
    """Choose in one pool by the objective `rank`, or by other values."""
    table = build(round_)
    worth = values(round_, table, "rank") if worth is None else worth(table)
    return allocate_in_one_pool(round_, table, worth, Deadline())


OF_THIS_KIND = [seed for seed in range(300) if choose(free(seed)) is not None]


def test_there_are_enough_such_rounds():
    """A third of the generated rounds has one pool; some jobs must go on running."""
    assert len(OF_THIS_KIND) > 60
    assert any(build(free(seed)).must_run.any() for seed in OF_THIS_KIND)


@pytest.mark.parametrize("seed", OF_THIS_KIND)
def test_equal_to_the_general_method(seed, monkeypatch):
    """Objective, price bound and regrets agree, and the plan is a valid one."""
    round_ = free(seed)
    plan = solve(round_, Prices(gap=1e-9))
    assert check(round_, plan) == []
    assert plan.record.message.startswith("exact prices;")
    assert plan.stop is StopReason.COMPLETE
    monkeypatch.setattr(one_pool, "MOST_JOBS", 0)
    general = solve(round_, Prices(gap=1e-9))
    assert not general.record.message.startswith("exact prices;")
    assert plan.objective == pytest.approx(general.objective, rel=1e-9)
    assert plan.prices.keys() == general.prices.keys()
    assert plan.details["dual_gap"] <= general.details["dual_gap"] + 1e-7
    assert plan.details["regret"].keys() == general.details["regret"].keys()


def test_the_dual_bound_is_that_of_the_price():
    """D(p) by hand from the table: capacity at the price, and the best surplus of every job."""
    round_ = free(OF_THIS_KIND[0])
    table = build(round_)
    worth = values(round_, table, "rank")
    choice = allocate_in_one_pool(round_, table, worth, Deadline())
    (price,) = choice.prices.values()
    surplus = np.where(np.isfinite(worth), worth - price * table.gpus, -np.inf)
    best = [
        max(0.0, surplus[begin:end].max(initial=-np.inf))
        for begin, end in zip(table.start, table.start[1:], strict=False)
    ]
    bound = price * table.pools[0].gpus + sum(best)
    assert choice.details["dual_gap"] == pytest.approx((bound - choice.objective) / bound, abs=1e-9)


def test_values_in_other_units_give_the_same_choice():
    """Worth a millionth, or a million times as much."""
    for seed in OF_THIS_KIND[:40]:
        round_ = free(seed)
        table = build(round_)
        worth = values(round_, table, "rank")
        usual = allocate_in_one_pool(round_, table, worth, Deadline())
        for factor in (1e-6, 1e6):
            scaled = allocate_in_one_pool(round_, table, worth * factor, Deadline())
            assert scaled.chosen.tolist() == usual.chosen.tolist()
            assert scaled.objective == pytest.approx(usual.objective * factor, rel=1e-12)


@pytest.mark.parametrize("seed", OF_THIS_KIND[::4])
def test_regrets_are_those_of_the_prices(seed):
    """As from the surpluses of all options that none beats, whatever the jobs got in the end."""
    round_ = free(seed)
    table = build(round_)
    worth = values(round_, table, "rank")
    choice = allocate_in_one_pool(round_, table, worth, Deadline())
    (price,) = choice.prices.values()
    rows = make_case(round_, table, worth).rows
    surplus = np.full(len(table), -np.inf)
    surplus[rows] = worth[rows] - price * table.gpus[rows]
    for got in (choice.chosen, np.full(len(table.jobs), -1)):
        expected = regrets(table.start, surplus, table.must_run, got)
        assert choice.regret(got) == pytest.approx(expected.tolist(), rel=1e-9, abs=1e-15)


def hand_made(*gpus, nodes=(4,), racks=False):
    """Return a round of one waiting job for each number of GPUs, on nodes of these sizes."""
    names = [f"r{k}" for k in range(len(nodes))] if racks else [None] * len(nodes)
    cluster = Cluster(
        gpu_types=(GpuType(name="G", memory_gib=16.0, idle_w=10.0),),
        racks=tuple(Rack(name=name, power_cap_w=1e6) for name in names if name),
        node_groups=tuple(
            NodeGroup(name=f"g{k}", count=2, gpus_per_node=n, gpu_type="G", rack=name or "")
            for k, (n, name) in enumerate(zip(nodes, names, strict=True))
        ),
    )
    model = Parametric(alpha_c_s=0.0, beta_c_s=1.0)
    jobs = [
        JobState(
            job=Job(
                id=f"j{k}", submit_s=0.0, profile="p", gpus=n, estimate=Estimate(work=100.0 + k)
            ),
            since_s=0.0,
        )
        for k, n in enumerate(gpus)
    ]
    profile = Profile(name="p", throughput={"G": model}, base_batch=8.0)
    return Round(cluster=cluster, profiles={"p": profile}, waiting=tuple(jobs), now_s=0.0)


@pytest.mark.parametrize(
    "round_",
    [
        generate.round(48, None, "tight", 1),  # limits power
        hand_made(3, 3, 3),  # two nodes of 4 hold two jobs of 3, and counting GPUs says 2.67
        hand_made(1, nodes=(4,), racks=True),  # limits the power of a rack
        hand_made(*[1] * 65, nodes=(64,)),  # many jobs
        hand_made(),  # none
    ],
    ids=["power", "nodes", "rack power", "many", "none"],
)
def test_other_rounds_are_left_to_the_general_method(round_):
    """More counts in them than the GPUs of one pool, or there is too much, or nothing."""
    assert choose(round_) is None


def test_unequal_nodes_are_counted_by_gpus_alone():
    """As in the general method."""
    choice = choose(hand_made(3, 3, 3, nodes=(4, 8)))
    assert choice.status is SolutionStatus.OPTIMAL
    assert (choice.chosen >= 0).all()


def test_worthless_options_are_not_taken():
    """As in `make_case`; in a round in which nothing is worth anything there are no offers."""
    round_ = hand_made(1, 2)
    choice = choose(round_, lambda table: np.where(table.job == 0, -1.0, 1.0))
    assert choice.chosen.tolist()[0] == -1
    assert choice.chosen.tolist()[1] >= 0
    assert choice.regret(np.array([-1, 1])) == [math.inf, 1.0]
    assert choice.regret(np.array([-1, -1])) == [math.inf, -1.0]
    assert choose(round_, lambda table: np.zeros(len(table))) is None


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_undefined_values_are_left_to_the_general_method(odd):
    """Which takes no such option."""
    round_ = hand_made(1, 2)
    assert choose(round_, lambda table: np.where(table.job == 0, odd, 1.0)) is None
