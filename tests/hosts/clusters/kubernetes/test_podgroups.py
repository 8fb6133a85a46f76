"""Kubernetes' own gangs and pods on their own, and devices of dynamic resource allocation."""

import pytest

import ronda
from kube_objects import listed, node, pod
from ronda.instances.job import Slices
from ronda.instances.snapshots.rounds import round_of

GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def group(name, spec, version="scheduling.k8s.io/v1alpha2", kind="PodGroup"):
    """Return a pod group."""
    metadata = {"name": name, "namespace": "a"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def noted(found):
    """Return what a snapshot counted, as one text."""
    return "\n".join(found.noted.lines())


@pytest.mark.parametrize(
    ("stated", "link"),
    [
        (group("g", GANG), {"schedulingGroup": {"podGroupName": "g"}}),
        (group("g", GANG, "scheduling.k8s.io/v1beta1"), {"schedulingGroup": {"podGroupName": "g"}}),
        (
            group("g", {"minMember": 2}, "scheduling.x-k8s.io/v1alpha1"),
            "scheduling.x-k8s.io/pod-group",
        ),
        (
            group("g", {"minMember": 2}, "scheduling.volcano.sh/v1beta1"),
            "scheduling.k8s.io/group-name",
        ),
        (
            group(
                "g",
                {"podGroups": [{"name": "main", "policy": {"gang": {"minCount": 2}}}]},
                "scheduling.k8s.io/v1alpha1",
                "Workload",
            ),
            {"workloadRef": {"name": "g", "podGroup": "main"}},
        ),
    ],
)
def test_gangs_of_all_kinds(seen, stated, link):
    """Three pods of which two are enough, linked as each API does it."""
    own = {"labels": {link: "g"}, "annotations": {link: "g"}} if isinstance(link, str) else link
    pods = [pod(f"p{k}", gpus=4, **own) for k in range(3)]
    (job,) = seen("kubernetes", listed(node("n1", gpus="8"), stated, *pods)).jobs
    assert (job.count, job.least, job.blocked, job.per["gpus"]) == (3, 2, None, 4)
    (job,) = seen("kubernetes", listed(node("n1", gpus="8"), stated, pods[0])).jobs
    assert job.blocked == "it has 1 of the 2 pods that it starts with"
    (job,) = seen("kubernetes", listed(node("n1", gpus="8"), pods[0])).jobs
    assert job.blocked.endswith("g does not exist")


def test_gangs_that_run_in_part(seen):
    """Two of four pods run, three are needed: one more is enough for the rest."""
    link = {"schedulingGroup": {"podGroupName": "g"}}
    three = {"schedulingPolicy": {"gang": {"minCount": 3}}}
    pods = [pod(f"p{k}", on="n1" if k < 2 else None, gpus=2, **link) for k in range(4)]
    on, rest = seen("kubernetes", listed(node("n1", gpus="8"), group("g", three), *pods)).jobs
    assert (on.id, on.count, on.on) == ("a/g", 2, {"n1": 2})
    assert (rest.id, rest.count, rest.least, rest.start_s) == ("a/g#waiting", 2, 1, None)


def test_basic_groups_are_pods_one_by_one(seen):
    """And a gang in one domain is a slice, in racks of that level."""
    link = {"schedulingGroup": {"podGroupName": "g"}}
    pods = [pod(f"p{k}", gpus=8, **link) for k in range(2)]
    basic = group("g", {"schedulingPolicy": {"basic": {}}})
    nodes = [node(f"n{k}", {"rack": f"r{k}"}, gpus="8") for k in range(2)]
    found = seen("kubernetes", listed(*nodes, basic, *pods))
    assert [job.id for job in found.jobs] == ["a/p0", "a/p1"]
    keys = {"schedulingConstraints": {"topology": [{"key": "rack"}]}}
    found = seen("kubernetes", listed(*nodes, group("g", GANG | keys), *pods))
    assert found.jobs[0].slices == Slices(nodes=2, within="rack")
    assert found.jobs[0].blocked is None
    assert found.nodes[1].racks == (("rack", "r1"),)
    assert ronda.solve(round_of(found), "milp").allocations == {}  # each rack has one node


def test_pods_on_their_own(seen):
    """Waiting and running ones are jobs; those of DaemonSets, of nodes, or over are not."""
    pods = [
        pod("runs", on="n1", gpus=2, priority=7, priorityClassName="high"),
        pod("small", on="n1", cpu="500m"),
        pod("waits", gpus=8),
        pod("gated", gpus=1, schedulingGates=[{"name": "example.com/hold"}]),
        pod("daemon", on="n1", owner="DaemonSet", cpu="2"),
        pod("static", on="n1", owner="Node", cpu="1"),
        pod("over", on="n1", phase="Succeeded", gpus=8),
    ]
    pods[2]["status"]["conditions"] = [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes",
        }
    ]
    found = seen("kubernetes", listed(node("n1", gpus="8"), *pods))
    job = {each.name: each for each in found.jobs}
    assert [*job] == ["runs", "small", "waits", "gated"]
    assert (job["runs"].on, job["runs"].priority, job["runs"].rank) == ({"n1": 1}, "high", 7)
    assert job["waits"].reason == "Unschedulable: 0/1 nodes"
    assert job["gated"].blocked == "scheduling gates: example.com/hold"
    assert found.nodes[0].has == {"cpu": 61, "memory_gib": 512, "gpus": 8, "pods": 108}
    assert "1 × pod that is over, left out, such as a/over" in noted(found)
    assert [s.job.id for s in round_of(found).running] == ["a/runs"]


def test_parts_of_gpus(seen):
    """GPUs that are all cut alike have parts; others have resources only."""
    cut = {"nvidia.com/gpu": "0", "nvidia.com/mig-3g.20gb": "2", "nvidia.com/mig-1g.5gb": "8"}
    nodes = [node("n1", {"nvidia.com/gpu.count": "2"}, **cut)]
    nodes.append(node("n2", {"nvidia.com/gpu.count": "2"}, **cut | {"nvidia.com/mig-1g.5gb": "7"}))
    nodes.append(node("n3", {"nvidia.com/gpu.count": "1"}, **cut))  # more than one GPU has
    nodes.append(node("n4", {"nvidia.com/gpu.count": "2"}, **cut | {"nvidia.com/gpu": "1"}))
    asks = {"containers": [{"resources": {"limits": {"nvidia.com/mig-3g.20gb": 1}}}]}
    one = pod("p")
    one["spec"] = asks
    found = seen("kubernetes", listed(*nodes, one))
    alike, other, odd, whole = found.nodes
    assert (alike.cut, alike.has["gpus"]) == (("1g.5gb",) * 4 + ("3g.20gb",), 2)
    assert alike.parts.profiles[-1].name == "7g.40gb"  # of an A100 with 40 GB
    assert (other.cut, other.has["gpus"], other.has["nvidia.com/mig-1g.5gb"]) == ((), 0, 7)
    assert (odd.cut, odd.parts) == ((), None)
    assert (whole.cut, whole.has["gpus"]) == ((), 1)
    assert (found.jobs[0].part, found.jobs[0].per["nvidia.com/mig-3g.20gb"]) == ("3g.20gb", 1)
    made = round_of(found)
    assert [s.job.part for s in made.waiting] == ["3g.20gb"]
    assert ronda.solve(made, "milp").allocations["a/p"].placement == ((0, 1),)


def test_whole_gpus_of_a_node_that_is_labelled_as_mixed(seen):
    """Counts of 0 cut nothing (KAI issue 1120)."""
    cut = {"nvidia.com/gpu": "8", "nvidia.com/mig-1g.24gb": "0"}
    (found,) = seen(
        "kubernetes", listed(node("n1", {"nvidia.com/mig.strategy": "mixed"}, **cut))
    ).nodes
    assert (found.has["gpus"], found.cut) == (8, ())


def test_shared_gpus_of_hami(seen):
    """Memory and cores of a card are on no node: left out, and counted (HAMi issue 915)."""
    asks = {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "2000", "nvidia.com/gpucores": "10"}
    one = pod("p")
    one["spec"] = {"containers": [{"resources": {"limits": asks}}]}
    found = seen("kubernetes", listed(node("n1", gpus="40"), one))
    assert found.jobs[0].per == {"gpus": 1, "pods": 1}
    assert "request for nvidia.com/gpumem, which no node lists, not read" in noted(found)


def resource_slice(name, devices, node="n1", pool="n1", count=1, generation=1):
    """Return a ResourceSlice of NVIDIA's driver."""
    body = {
        "driver": "gpu.nvidia.com",
        "nodeName": node,
        "pool": {"name": pool, "generation": generation, "resourceSliceCount": count},
        "devices": devices,
    }
    metadata = {"name": name}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": body,
    }


def device(name, kind="gpu", **more):
    """Return a device of a ResourceSlice."""
    told = {"type": {"string": kind}, "productName": {"string": "NVIDIA A100-SXM4-40GB"}}
    return {"name": name, "attributes": told, "capacity": {"memory": {"value": "40Gi"}}, **more}


def part(gpu, profile, start, size):
    """Return a device that is a part of a GPU."""
    taken = {f"memory-slice-{k}": {"value": "1"} for k in range(start, start + size)}
    made = device(f"gpu-{gpu}-mig-{profile.replace('.', '')}-{start}", "mig")
    made["attributes"]["profile"] = {"string": profile}
    made["consumesCounters"] = [{"counterSet": f"gpu-{gpu}", "counters": taken}]
    return made


def claim(name, request, kind="ResourceClaim"):
    """Return a claim, or a template of claims."""
    body = {"devices": {"requests": [{"name": "gpu", **request}]}}
    body = {"spec": body} if kind == "ResourceClaimTemplate" else body
    metadata = {"name": name, "namespace": "a"}
    return {"apiVersion": "resource.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": body}


def test_devices_and_claims(seen):
    """Whole GPUs and parts by the counters that they consume; claims of both forms."""
    parts = [part(0, "1g.5gb", k, 1) for k in range(7)]
    parts += [part(0, "3g.20gb", k, 4) for k in (0, 4)] + [part(0, "7g.40gb", 0, 8)]
    slices = [resource_slice("s1", [device("gpu-0"), device("gpu-1"), *parts])]
    rule = {"cel": {"expression": "device.attributes['gpu.nvidia.com'].profile == '3g.20gb'"}}
    mig = {"deviceClassName": "mig.nvidia.com", "selectors": [rule]}
    claims = [
        claim("two", {"exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}),
        claim("one", {"deviceClassName": "gpu.nvidia.com"}, "ResourceClaimTemplate"),  # v1beta1
        claim("part", {"exactly": mig}),
    ]
    links = {
        "p-two": {"name": "c", "resourceClaimName": "two"},
        "p-one": {"name": "c", "resourceClaimTemplateName": "one"},
        "p-part": {"name": "c", "resourceClaimName": "part"},
        "p-lost": {"name": "c", "resourceClaimName": "lost"},
    }
    pods = [pod(name, resourceClaims=[link]) for name, link in links.items()]
    found = seen("kubernetes", listed(node("n1"), *slices, *claims, *pods))
    (seen_node,) = found.nodes
    assert (seen_node.has["gpus"], seen_node.gpu_type) == (2, "NVIDIA A100-SXM4-40GB")
    assert (seen_node.gpu_memory_gib, seen_node.recut) == (40, "free")
    sizes = {p.name: (p.compute, p.memory, p.starts, p.most) for p in seen_node.parts.profiles}
    assert sizes == {
        "1g.5gb": (1, 1, (0, 1, 2, 3, 4, 5, 6), 7),
        "3g.20gb": (3, 4, (0, 4), 2),
        "7g.40gb": (7, 8, (0,), 1),
    }
    jobs = {job.name: job for job in found.jobs}
    assert [jobs[n].per.get("gpus", 0) for n in links] == [2, 1, 0, 0]
    assert (jobs["p-part"].part, jobs["p-two"].part) == ("3g.20gb", None)
    assert "1 × claim that no file has, taken to ask for nothing" in noted(found)


def test_incomplete_pools_are_ignored(seen):
    """One of two slices is missing; slices of an older generation do not count."""
    nodes = [node("n1"), node("n2")]
    slices = [
        resource_slice("s1", [device("gpu-0")], count=2),
        resource_slice("s2", [device("gpu-0")], "n2", "n2", 1, 2),
        resource_slice("s3", [device("gpu-0"), device("gpu-1")], "n2", "n2", 1, 1),
    ]
    found = seen("kubernetes", listed(*nodes, *slices))
    assert [each.has.get("gpus") for each in found.nodes] == [None, 1]
    words = "incomplete pool of devices, ignored as the scheduler does, such as pool n1 of"
    assert words in noted(found)
