"""Room: free GPUs and watts, power caps of racks, nodes that sleep."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.watts import left_w, spare
from ronda.horizon.solve import solve
from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.cluster import Cluster, Rack
from ronda.instances.plan import SolutionStatus
from ronda.solvers.greedy.room import ONE_BY_ONE, Draw


def test_a_rack_without_watts_is_passed_over(elastic_round, live_job):
    """Rack r0 (one node of 4: 80 W idle) may draw 100 W: the job of 430 W goes to rack r1."""
    round_ = elastic_round(live_job("a", "linear", 1.0), nodes=1, gpus_per_node=4)
    node = round_.cluster.node_groups[0]
    groups = tuple(msgspec.structs.replace(node, name=f"n{i}", rack=f"r{i}") for i in range(2))
    racks = (Rack(name="r0", power_cap_w=100.0), Rack(name="r1"))
    cluster = Cluster(gpu_types=round_.cluster.gpu_types, node_groups=groups, racks=racks)
    round_ = msgspec.structs.replace(round_, cluster=cluster)
    for name in ("fifo", "tiresias"):
        plan = solve(round_, name)
        assert plan.allocations["a"].placement == ((1, 1),), name
        assert check(round_, plan) == []


def test_nodes_wake_for_jobs_that_find_no_room_on_those_awake(elastic_round, live_job):
    """Node 0 sleeps: the first job of 4 GPUs starts on node 1, the second one wakes node 0."""
    jobs = [live_job(name, "linear", 1.0, gpus=4) for name in "ab"]
    round_ = elastic_round(*jobs, nodes=2, gpus_per_node=4, asleep=(0,))
    plan = solve(round_, "fifo")
    assert {job: a.placement for job, a in plan.allocations.items()} == {
        "a": ((1, 4),),
        "b": ((0, 4),),
    }
    assert (plan.asleep, plan.status) == ((), SolutionStatus.FEASIBLE)
    assert check(round_, plan) == []


def test_rounds_of_one_cluster_do_not_disturb_each_other(elastic_round, live_job):
    """What is kept with the cluster is never changed: the second plan equals the first."""
    round_ = elastic_round(live_job("a", "linear", 1.0, gpus=8))
    assert solve(round_, "fifo").allocations == solve(round_, "fifo").allocations != {}


def looser_and_tighter(round_, seed):
    """Return a round with a bank and a trickle of energy drawn, and no cap on power."""
    rng = np.random.default_rng(seed)
    energy_j = rng.uniform(0.5, 2.0) * round_.energy_j
    sustained_w = rng.uniform(0.5, 1.0) * energy_j / round_.window_s
    banked_j = rng.choice([None, 0.0, rng.uniform(0, 1) * energy_j])
    return msgspec.structs.replace(
        round_, power_cap_w=None, energy_j=energy_j, sustained_w=sustained_w, banked_j=banked_j
    )


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("until_end", [True, False])
def test_pieces_fit_as_if_all_were_added_up_again(seed, until_end):
    """Pieces taken by ones and by many: what fits is what leaves watts at every time they bend.

    At most 60 times, so that there are some of both kinds.
    """
    rng = np.random.default_rng(seed)
    round_ = looser_and_tighter(generate.round(8, 64, "tight", seed), seed)
    base = 0.3 * round_.energy_j / round_.window_s
    draw, taken, found = Draw(round_, base, until_end=until_end), [], set()
    for _ in range(60):
        lasts_s = rng.choice([np.inf, round_.window_s, rng.exponential(round_.window_s)])
        pieces = [(rng.uniform(0, 0.4) * base, lasts_s)]
        pieces += [(-0.5 * pieces[0][0], 0.5 * round_.window_s)] * rng.integers(2)
        watts, seconds = np.array([*taken, *pieces]).T
        _, left = spare(round_, base, watts, seconds, until_end=until_end)
        fits = bool((left >= -1e-9 * round_.watts).all())
        assert draw.fits(pieces) is fits
        found.add(fits)
        if fits:
            more = [(0.0, rng.exponential(1.0))] * rng.choice([0, ONE_BY_ONE + 1])
            draw.take([*pieces, *more])
            taken += [*pieces, *more]
    assert found == {True, False}


def test_a_cap_on_power_counts_watts_whatever_their_time():
    """Of 1,000 W beside the cluster's a job takes 600 W: 400 W more fit, and 401 W do not."""
    round_ = generate.round(8, 64, "tight", 0)
    round_ = msgspec.structs.replace(
        round_, energy_j=None, sustained_w=None, power_cap_w=round_.cluster.topology.idle_w + 1000
    )
    draw = Draw(round_, round_.cluster.topology.idle_w, until_end=True)
    assert draw.spare_w == pytest.approx(
        left_w(round_, round_.cluster.topology.idle_w, np.zeros(0), np.zeros(0))
    )
    draw.take([(600.0, 1.0)])
    assert draw.fits([(400.0, 1e6)])
    assert not draw.fits([(401.0, 1e-6)])
