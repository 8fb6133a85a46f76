"""Sizes that jobs name, one node, nodes of their own, and slices, as options."""

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.options.build import build
from ronda.formulations.options.table import options
from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.instance import Instance
from ronda.instances.job import Job, JobState, Slices, Truth
from ronda.instances.profile import Parametric, PowerCurve, Profile, Rated, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.solvers.registry import policy

GPU = GpuType(name="A100", memory_gib=80, idle_w=50, clocks=(0.8, 1.0))
CLUSTER = Cluster(
    gpu_types=(GPU,),
    node_groups=tuple(
        NodeGroup(name=f"g{r}", count=4, gpus_per_node=4, gpu_type="A100", rack=f"r{r}")
        for r in range(2)
    ),
    racks=(Rack(name="r0"), Rack(name="r1")),
)
WAYS = {"gpus": (1, 2, 3, 4, 8), "nodes": (1, 1, 1, 1, 2), "batch": (8.0,) * 5, "clock": (1.0,) * 5}
PROFILES = {
    "rigid": Profile(
        name="rigid", throughput={"A100": Rigid()}, power={"A100": PowerCurve(a_w=80, b_w=200)}
    ),
    "net": Profile(
        name="net",
        throughput={"A100": Parametric(alpha_c_s=0.1, beta_c_s=0.3, alpha_n_s=0.05)},
        power={"A100": PowerCurve(a_w=80, b_w=200)},
        base_batch=8.0,
    ),
    "rated": Profile(
        name="rated",
        throughput={
            "A100": Rated(
                rate=(1.0, 1.8, 2.5, 3.0, 5.0), power_w=(200, 380, 540, 700, 1300), **WAYS
            )
        },
        base_batch=8.0,
    ),
}


MODELS = {name: PROFILES[name] for name in ("rigid", "net")}


def counts(profile, cluster=CLUSTER, **fields):
    """Return the (held, computing) GPUs of the options of a job alone in a round."""
    job = Job(id="a", submit_s=0.0, profile=profile, **fields)
    states = (JobState(job=job, since_s=0.0),)
    asked = validate(Round(cluster=cluster, profiles=PROFILES, waiting=states))
    table = build(asked, prune=False)
    found = options(table, np.arange(len(table)))
    return sorted({(o.gpus, o.computing) for o in found})


def same(*sizes):
    """Return pairs of equal numbers."""
    return [(n, n) for n in sizes]


SIZES = {
    "named": ({"gpus": 3, "min_gpus": 1, "max_gpus": 8, "sizes": (1, 3, 5)}, same(1, 3, 5)),
    "one node": ({"gpus": 2, "max_gpus": 16, "one_node": True}, same(2, 4)),
    "alone": (
        {"gpus": 3, "min_gpus": 2, "max_gpus": 8, "exclusive": True},
        [(4, 2), (4, 3), (4, 4), (8, 8)],
    ),
    "slices": (
        {"gpus": 12, "min_gpus": 1, "max_gpus": 32, "slices": Slices(nodes=3)},
        same(12, 24),
    ),
    "listed": ({"gpus": 20, "max_gpus": 32, "slices": Slices(listed=(3, 2))}, same(20)),
    "balanced": (
        {"gpus": 12, "min_gpus": 1, "max_gpus": 16, "slices": Slices(balanced=True)},
        same(4, 8, 12, 16),
    ),
    "slices alone": ({"gpus": 7, "exclusive": True, "slices": Slices(nodes=2)}, [(8, 7)]),
}


@pytest.mark.parametrize("case", SIZES)
def test_options_have_the_sizes_and_the_shape_of_the_job(case):
    """Named sizes replace the ladder; slices take multiples of their nodes; others are gone."""
    fields, expected = SIZES[case]
    assert counts("net", **fields) == expected


def test_rated_and_rigid_jobs_have_shapes_too():
    """A table gives those of its sizes that fit; a rigid job has one size or none."""
    wide = {"gpus": 2, "min_gpus": 1, "max_gpus": 8}
    assert counts("rated", **wide, sizes=(2, 3)) == same(2, 3)
    assert counts("rated", **wide, one_node=True) == same(1, 2, 3, 4)
    assert counts("rated", gpus=3, exclusive=True) == [(4, 3)]
    assert counts("rigid", gpus=3, exclusive=True) == [(4, 3)]
    assert counts("rigid", gpus=8, slices=Slices(nodes=2)) == same(8)


def test_nodes_of_its_own_must_be_whole_and_in_service():
    """Nodes with a GPU out are no nodes for it."""
    out = replace(CLUSTER, out=tuple((n, 1) for n in range(7)))
    assert counts("net", cluster=out, gpus=3, exclusive=True) == [(4, 3)]
    assert counts("net", cluster=out, gpus=5, exclusive=True) == []
    assert counts("net", cluster=out, gpus=5) == same(5)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("name", ["milp", "prices", "pollux-like", "optimus", "fifo", "powerflow"])
def test_idle_gpus_of_a_node_of_its_own_are_held_and_drawn(profile, name):
    """The plan holds 4, computes on as many as asked, and draws idle watts for the rest."""
    fields = {} if profile == "rigid" else {"min_gpus": 1}
    job = Job(id="a", submit_s=0.0, profile=profile, gpus=3, exclusive=True, **fields)
    other = Job(id="b", submit_s=0.0, profile=profile, gpus=1)
    states = tuple(JobState(job=j, since_s=0.0) for j in (job, other))
    asked = validate(Round(cluster=CLUSTER, profiles=PROFILES, waiting=states, power_cap_w=5000.0))
    plan = policy(name).plan(asked, deadline=Deadline(5.0), seed=0)
    assert check(asked, plan) == []
    given = plan.allocations["a"]
    assert given.placement[0][1] == given.option.gpus == 4
    assert given.option.computing <= 3
    assert given.placement[0][0] != plan.allocations["b"].placement[0][0]


@pytest.mark.parametrize("name", ["prices", "srtf", "optimus"])
def test_a_run_charges_nodes_of_its_own_whole(name):
    """The schedule is valid, and the GPU-seconds held are those of whole nodes."""
    jobs = tuple(
        Job(
            id=f"j{k}",
            submit_s=10.0 * k,
            profile="rigid" if k % 2 else "net",
            gpus=1 + k,
            exclusive=k < 3,
            truth=Truth(work=300.0),
        )
        for k in range(4)
    )
    asked = validate(Instance(name="x", cluster=CLUSTER, jobs=jobs, profiles=MODELS))
    answer = run(asked, policy(name))
    assert check(asked, answer) == []
    for outcome, job in zip(answer.jobs, jobs, strict=True):
        held = outcome.segments[-1].option
        assert held.gpus == (4 if job.exclusive else job.gpus)
        assert held.computing == job.gpus
