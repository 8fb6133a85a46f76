"""Refused sizes and shapes: one line with the place, the found and the expected value."""

import pytest
from msgspec.structs import replace

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Job, JobState, Slices, Truth
from ronda.instances.profile import Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.site import Neighbourhood, Site

CLUSTER = Cluster(
    gpu_types=(GpuType(name="A100", memory_gib=80),),
    node_groups=tuple(
        NodeGroup(
            name=f"g{r}",
            count=4,
            gpus_per_node=2,
            gpu_type="A100",
            rack=f"r{r}",
            features=("ib",) if r else ("ib", "nvme"),
        )
        for r in range(2)
    ),
    racks=(Rack(name="b", level="block"), *(Rack(name=f"r{r}", parent="b") for r in range(2))),
)
PROFILES = {"p": Profile(name="p", throughput={"A100": Rigid()}, power={})}


def told(*jobs, neighbourhoods=(), cluster=CLUSTER):
    """Return the error of an instance with jobs of the given fields, or None."""
    made = [
        Job(id=f"j{k}", submit_s=0.0, profile="p", truth=Truth(work=1.0), **fields)
        for k, fields in enumerate(jobs)
    ]
    rules = tuple(
        Neighbourhood(name=name, rule=rule, within=level) for name, rule, level in neighbourhoods
    )
    asked = Instance(
        name="x",
        cluster=cluster,
        jobs=tuple(made),
        profiles=PROFILES,
        site=Site(neighbourhoods=rules),
    )
    try:
        validate(asked)
    except InputError as error:
        return str(error)
    return None


def of(**slices):
    """Return a job with slices."""
    gpus = slices.pop("gpus", 8)
    return {"gpus": gpus, "slices": Slices(**slices)}


REFUSED = {
    "size": ({"gpus": 2, "sizes": (2, 4)}, ".sizes", "4", "sizes from 2 to 2"),
    "no size": ({"gpus": 2, "sizes": (1,), "min_gpus": 1}, ".sizes", "[1]", "2 GPUs"),
    "node": ({"nodes": (8,)}, ".nodes", "8", "a node, 0 to 7"),
    "nodes": ({"gpus": 6, "nodes": (0, 1)}, ".gpus", "6", "at most 4"),
    "feature": ({"features": ("nvlink",)}, ".features", "nvlink", 'one of "ib", "nvme"'),
    "features": ({"features": ("nvme",), "nodes": (4,)}, ".features", "nvme", '"ib"'),
    "featured": ({"features": ("nvme",), "gpus": 10}, ".gpus", "10", "at most 8"),
    "one node": ({"gpus": 3, "one_node": True}, ".one_node", "3 GPUs", "at most 2"),
    "fusible": ({"exclusive": True, "fusible": "f"}, ".exclusive", "fusible", "one of both"),
    "slice": (of(nodes=5, gpus=10), ".slices", "a slice of 5 nodes", "at most 4"),
    "listed": (of(listed=(5, 1), gpus=12), ".slices", "a slice of 5 nodes", "at most 4"),
    "divides": (of(nodes=3), ".slices", "8 GPUs", "a multiple of 3 whole nodes of 2"),
    "parts": (of(nodes=1, gpus=3), ".slices", "3 GPUs", "a multiple of 1 whole nodes of 2"),
    "sums": (of(listed=(2, 1)), ".slices", "8 GPUs", "3 whole nodes"),
    "level": (of(nodes=2, within="row"), ".slices.within", "row", 'one of "block", "rack"'),
    "above": (of(nodes=2, together="row"), ".slices.together", "row", 'one of "block", "rack"'),
    "both": (of(nodes=2, balanced=True), ".slices", "2 of nodes", "one of them"),
    "none": (of(), ".slices", "0 of nodes", "one of them"),
    "hood": ({"neighbourhoods": ("h",)}, ".neighbourhoods", "h", "none"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_shape_that_no_job_can_have_is_refused(case):
    """In one line; the same job in a round, too."""
    fields, place, found, expected = REFUSED[case]
    error = told(fields)
    assert error is not None
    assert "\n" not in error
    for part in (f"jobs[0]{place}", found, expected):
        assert part in error
    job = Job(id="j0", submit_s=0.0, profile="p", **fields)
    asked = Round(cluster=CLUSTER, profiles=PROFILES, waiting=(JobState(job=job, since_s=0.0),))
    with pytest.raises(InputError, match="waiting"):
        validate(asked)


def test_shapes_that_the_cluster_can_give_are_taken():
    """At their limits."""
    assert told({"gpus": 4, "sizes": (4,)}) is None
    assert told({"gpus": 4, "nodes": (6, 7)}) is None
    assert told({"gpus": 8, "features": ("nvme",)}) is None
    assert told({"gpus": 2, "one_node": True}, {"gpus": 3, "exclusive": True}) is None
    assert told(of(nodes=4), of(nodes=4, gpus=16), of(listed=(3, 4, 1), gpus=16)) is None
    assert told(of(nodes=8, within="block", gpus=16), of(balanced=True)) is None
    assert told({"gpus": 7, "exclusive": True, "slices": Slices(nodes=2)}) is None


def test_nodes_out_of_service_make_no_shape_wrong():
    """A round is decided on what is left."""
    job = Job(id="a", submit_s=0.0, profile="p", gpus=8, slices=Slices(nodes=4), features=("nvme",))
    out = replace(CLUSTER, out=((0, 2), (1, 2)))
    validate(Round(cluster=out, profiles=PROFILES, waiting=(JobState(job=job, since_s=0.0),)))


def test_together_and_apart_must_not_contradict():
    """For two jobs of both; one rack may have several nodes, but a node has one rack."""
    both = {"neighbourhoods": ("t", "a")}

    def of_both(together, apart, *jobs):
        rules = (("t", "together", together), ("a", "apart", apart))
        return told(*jobs, neighbourhoods=rules)

    assert of_both("rack", "node", both, both) is None
    assert of_both("block", "rack", both, both) is None
    assert of_both("node", "node", both) is None
    for together, apart in (
        ("node", "node"),
        ("rack", "rack"),
        ("node", "rack"),
        ("rack", "block"),
    ):
        error = of_both(together, apart, both, both)
        assert 'together by "t" and apart by "a"' in error
        assert '"j0"' in error
    assert "site.neighbourhoods[0].within" in told({}, neighbourhoods=(("x", "apart", "row"),))
    twice = (("x", "apart", "node"), ("x", "apart", "rack"))
    assert "unique names" in told({}, neighbourhoods=twice)
