"""What nodes say about options alone: no plan on nodes exceeds a cut."""

from dataclasses import replace

import numpy as np
import pytest

from ronda.formulations.allocation.model_data import Fidelity, make_case
from ronda.formulations.options.build import build
from ronda.formulations.positions.model import build_positions as exact_model
from ronda.formulations.positions.variables import restrict_ways, ways
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.profile import Parametric, Profile
from ronda.instances.round import Round
from ronda.solvers.decision.node_cuts import node_cut
from ronda.solvers.exact.from_pyomo import linear_form
from ronda.solvers.exact.highs import solve_form
from ronda.solvers.exact.linear_form import Effort


def most_of(model, cut):
    """Return the most that any plan on nodes has of a cut's left side, by HiGHS."""
    form = linear_form(model)
    at = {id(variable): k for k, variable in enumerate(form.columns)}
    cost = np.zeros(len(form.columns))
    own = [at[id(variable)] for variable in (*model.x.values(), *model.blocks)]
    cost[own] = [*cut.use, *cut.block_use]
    asked = replace(form, cost=cost, offset=0.0, maximize=True)
    return solve_form(asked, Effort(gap=0.0)).objective


def test_a_way_that_is_not_in_the_model_counts_in_the_rack_that_is_cheapest_for_it():
    """Racks of three and two nodes of 4 GPUs; two gangs of 12 GPUs compete for the first one.

    Only there they find three nodes, so its nodes have a price and those of the other none. A gang
    of 8 GPUs that is not in the model uses the second rack: it counts nothing, and one gang of 12
    and the one of 8 together are within the cut.
    """
    far = Parametric(alpha_c_s=0.0, beta_c_s=1.0, alpha_x_s=3.0)  # slow across racks
    cluster = Cluster(
        gpu_types=(GpuType(name="G", memory_gib=16.0),),
        racks=(Rack(name="r0"), Rack(name="r1")),
        node_groups=tuple(
            NodeGroup(name=f"g{k}", count=n, gpus_per_node=4, gpu_type="G", rack=f"r{k}")
            for k, n in enumerate((3, 2))
        ),
    )
    states = tuple(
        JobState(
            job=Job(id=name, submit_s=0.0, profile="far", gpus=n, estimate=Estimate(work=8000.0)),
            since_s=0.0,
        )
        for name, n in (("a", 12), ("b", 12), ("c", 8))
    )
    profile = Profile(name="far", throughput={"G": far}, base_batch=24.0)
    round_ = Round(cluster=cluster, profiles={"far": profile}, waiting=states)
    table = build(round_)
    every = ways(make_case(round_, table, table.rate, Fidelity.NODES))
    wide, narrow = (
        np.flatnonzero(every.tied & (table.gpus[every.case.rows] == n)) for n in (12, 8)
    )
    assert (len(wide), len(narrow)) == (2, 1)
    cut = node_cut(exact_model(restrict_ways(every, wide)), every, wide)
    assert (cut.use[wide] > 0).all()
    assert cut.use[narrow] == pytest.approx(0.0)
    assert cut.use[wide[0]] + cut.use[narrow[0]] <= cut.capacity
    assert most_of(exact_model(every), cut) <= cut.capacity + 1e-9
