"""What nodes hold together: exact for powers of two, else a relaxation; no row without need."""

import numpy as np
import pytest

from brute_positions import best_plan, random_values, tiny
from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import buddy, whole_nodes
from ronda.formulations.options.build import build
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.profile import rigid_profile
from ronda.instances.round import Round
from ronda.solvers.decision.by_milp import allocate
from ronda.solvers.prices.dual import Search


def optimum(round_, seed):
    """Return the best value by rows alone, and by trying every plan on nodes."""
    table = build(round_)
    values = random_values(table, seed)
    choice = allocate(round_, table, values, Search(gap=0.0))
    return choice.objective, best_plan(round_, table, values, 0.0)


@pytest.mark.parametrize("seed", range(40))
def test_exact_for_powers_of_two(seed):
    """If moves cost nothing and blocks are powers of two, nodes of any sizes hold what rows say."""
    by_rows, best = optimum(tiny(seed, powers=True), seed)
    assert by_rows == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("seed", range(40))
def test_never_cuts_off_what_can_be_placed(seed):
    """The best plan on nodes, of whatever sizes and pieces, keeps all rows."""
    by_rows, best = optimum(tiny(seed), seed)
    assert by_rows >= best - 1e-7


def rows(sizes, jobs, held=None):
    """Return the rows of rigid jobs on nodes of these sizes, by name: (use, capacity)."""
    cluster = Cluster(
        gpu_types=(GpuType(name="v", memory_gib=16),),
        node_groups=tuple(
            NodeGroup(name=f"g{k}", count=count, gpus_per_node=size, gpu_type="v")
            for k, (size, count) in enumerate(sizes.items())
        ),
    )
    states = [
        JobState(job=Job(id=f"j{k}", submit_s=0, profile="rigid", gpus=n), since_s=0)
        for k, n in enumerate(jobs)
    ]
    running = ()
    if held is not None:
        option = Option(pool=0, gpus=sum(g for _, g in held))
        runs = Job(id="held", submit_s=0, profile="rigid", gpus=option.gpus)
        allocation = Allocation(option=option, placement=held)
        running = (JobState(job=runs, since_s=0, started=True, allocation=allocation),)
    profiles = {"rigid": rigid_profile("v")}
    round_ = Round(cluster=cluster, profiles=profiles, running=running, waiting=tuple(states))
    table = build(round_)
    case = make_case(round_, table, np.arange(1.0, 1.0 + len(table)))
    counts = [c.count for c in case.classes]
    return {
        row.name: (row.use.tolist(), row.capacity - np.dot(row.nodes, counts))
        for family in (whole_nodes, buddy)
        for row in family(case)
    }


def test_gpus_of_the_pool_suffice_for_powers_of_two_on_equal_nodes():
    """Equal nodes of 8 and jobs of 1, 2, 4, 8 and 16 need no row of blocks."""
    assert rows({8: 3}, [1, 2, 4, 8, 16]) == {}


def test_levels_of_unequal_nodes():
    """Two nodes of 6 and one of 4 hold three blocks of 4 and eight of 2, but two of 6.

    A job of 6 takes a whole node: one block of 4 or three of 2; 10 are a whole node and a block.
    Pairs divide both sizes, so GPUs say it already.
    """
    assert rows({6: 2, 4: 1}, [2, 4, 6, 10]) == {
        "buddy[default/v,4]": ([0.0, 1.0, 1.0, 2.0], 3.0),
        "buddy[default/v,6]": ([0.0, 0.0, 1.0, 1.0], 2.0),
    }


def test_what_runs_on_other_pieces_takes_what_it_has():
    """A job of 4 on 2 + 2 GPUs of two nodes of 6 takes no block of 4; started again it does."""
    use, _ = rows({6: 2, 4: 1}, [4], held=((0, 2), (1, 2)))["buddy[default/v,4]"]
    assert use == [1.0, 0.0, 1.0]


def test_a_job_that_the_largest_nodes_cannot_hold_takes_nothing():
    """8 GPUs on a node of 4 and others of 2 go to the fewest nodes, whichever these are."""
    use, _ = rows({4: 1, 2: 3}, [8, 6])["buddy[default/v,4]"]
    assert use == [0.0, 1.0]
