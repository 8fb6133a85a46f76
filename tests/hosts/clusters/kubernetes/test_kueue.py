"""Kueue's objects as tenants, partitions and jobs, of both versions of its API."""

import json
from pathlib import Path

import pytest

import ronda
from kube_objects import admitted, kueue, listed, node, pod, queue, spec, workload
from ronda.hosts.clusters.report import snapshot_report
from ronda.instances.errors import InputError
from ronda.instances.job import Slices
from ronda.instances.rules.validate import problems
from ronda.instances.site import Quota
from ronda.instances.snapshots.rounds import round_of

RACK = "example.com/rack"


def flavor(name, labels=None, **more):
    """Return a ResourceFlavor."""
    return kueue("ResourceFlavor", name, {"nodeLabels": labels or {}, **more})


def noted(found):
    """Return what a snapshot counted, as one text."""
    return "\n".join(found.noted.lines())


def by_id(found):
    """Return the jobs of a snapshot by id."""
    return {job.id: job for job in found.jobs}


def test_a_whole_cluster(seen, kueue_yaml):
    """Nodes, quotas and jobs of the packaged file, each number by hand."""
    pytest.importorskip("yaml")
    found = seen("kueue", kueue_yaml)
    nodes = {each.name: each for each in found.nodes}
    assert nodes["a1"].has == {"cpu": 95.5, "memory_gib": 1000, "gpus": 8, "pods": 110}
    # the exporter takes 200m and 512Mi; the notebook has a GPU, so it is a job
    assert nodes["a2"].has == {"cpu": 95.8, "memory_gib": 999.5, "gpus": 8, "pods": 109}
    assert (nodes["a1"].gpu_type, nodes["a1"].gpu_memory_gib) == ("a100", 80)
    assert (nodes["a1"].partitions, nodes["c1"].partitions) == (("a100",), ("no flavor",))
    assert nodes["a1"].racks == (("cloud.provider.com/topology-rack", "r1"),)
    assert (nodes["h1"].out, nodes["a1"].out) == ("cordoned", None)

    tenants = {each.name: each for each in found.tenants}
    assert [*tenants] == ["company", "research", "team-a", "team-b"]
    assert tenants["research"].quotas == (Quota(of="h100", guaranteed=2),)
    assert tenants["team-a"].quotas == (
        Quota(of="cpu", guaranteed=96 + 48),
        Quota(of="memory_gib", guaranteed=1500),
        Quota(of="a100", guaranteed=8, borrow=4, lend=6),
        Quota(of="h100", guaranteed=4),
    )
    assert (tenants["team-a"].weight, tenants["team-a"].parent) == (2, "research")
    assert tenants["team-b"].quotas[1] == Quota(of="memory_gib", guaranteed=1024)
    assert found.policy == "kueue-like(reclaim=any,within=lower,borrow_within=lower:100)"
    assert f"nearest to its rules is {found.policy}." in snapshot_report(found).parts[2]

    jobs = by_id(found)
    train, wait = jobs["a/job-train"], jobs["b/job-wait"]
    assert (train.on, train.count, train.name, train.tenant) == ({"a1": 2}, 2, "train", "team-a")
    assert train.per == {"cpu": 0.5, "memory_gib": 40, "gpus": 4, "pods": 1}
    assert (train.limit_s, train.ends_s - train.start_s) == (14400, 14400)
    assert train.start_s - train.submit_s == 2
    assert (train.priority, train.rank, train.partitions) == ("prod", 1000, ("a100",))
    assert (wait.count, wait.least, wait.rank, wait.priority) == (2, 1, 45, "priority 45")
    assert wait.slices == Slices(nodes=2, within="cloud.provider.com/topology-rack")
    assert wait.reason.startswith("Pending: couldn't assign flavors to pod set workers")
    assert jobs["b/job-wait#1"].per == {"cpu": 2, "memory_gib": 8, "pods": 1}
    assert jobs["a/job-off"].blocked == "inactive (spec.active is false)"
    assert jobs["a/job-off"].partitions == ("a100", "h100")
    notebook = jobs["dev/notebook"]
    assert (notebook.on, notebook.preemptible, notebook.tenant) == ({"a2": 1}, False, None)
    assert "a/job-done" not in jobs
    for words in ("1 × finished workload", "1 × cohort without an object", "2 × quota summed over"):
        assert words in noted(found)
    assert found.now_s - train.submit_s == 2 * 3600  # the heartbeat at 12:00


@pytest.mark.parametrize("policy", [None, "kai-like", "milp"])
def test_its_round_is_valid_and_solved(seen, kueue_yaml, policy):
    """The running jobs go on; the gang of two nodes waits behind the notebook."""
    pytest.importorskip("yaml")
    found = seen("kueue", kueue_yaml)
    made = round_of(found)
    assert problems(made) == []
    assert {state.job.id for state in made.running} == {"a/job-train", "dev/notebook"}
    plan = ronda.solve(made, policy or found.policy)
    assert plan.allocations["a/job-train"].placement == ((0, 8),)
    assert not {"b/job-wait", "a/job-off"} & plan.allocations.keys()


def test_one_flavor_is_no_partition(seen):
    """A flavor of all nodes says nothing; its quota is one of GPUs, and binds in the round."""
    objects = [node("n1", gpus="8"), node("n2", gpus="8"), queue("q", "4"), flavor("default")]
    found = seen("kueue", listed(*objects, workload("w", gpus=8), workload("v", gpus=4)))
    assert {each.partitions for each in (*found.nodes, *found.jobs)} == {()}
    assert found.tenants[0].quotas == (Quota(of="gpus", guaranteed=4),)
    plan = ronda.solve(round_of(found), found.policy)
    assert [*plan.allocations] == ["a/v"]  # w asks for twice the quota


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_places_are_read_of_pods_or_of_the_assignment(seen, version):
    """Both forms of an assignment to hosts; pods that are there come first."""
    hosts = ["kubernetes.io/hostname"]
    if version == "v1beta1":
        domains = [{"values": ["n1"], "count": 2}, {"values": ["n2"], "count": 1}]
        told = {"levels": hosts, "domains": domains}
    else:
        slices = [
            {
                "domainCount": 2,
                "valuesPerLevel": [{"individual": {"prefix": "n", "roots": ["1", "2"]}}],
                "podCounts": {"individual": [1, 1]},
            },
            {
                "domainCount": 1,
                "valuesPerLevel": [{"universal": "n1"}],
                "podCounts": {"universal": 1},
            },
        ]
        told = {"levels": hosts, "slices": slices}
    work = workload("w", 3, 2, status=admitted(topologyAssignment=told))
    work["apiVersion"] = f"kueue.x-k8s.io/{version}"
    objects = [node("n1", gpus="8"), node("n2", gpus="8"), queue("q"), work]
    (job,) = seen("kueue", listed(*objects)).jobs
    assert (job.on, job.count) == ({"n1": 2, "n2": 1}, 3)
    mine = {"kueue.x-k8s.io/workload": "w"}
    pods = [pod(f"p{k}", on="n2", gpus=2, annotations=mine) for k in range(2)]
    on, waiting = seen("kueue", listed(*objects, *pods)).jobs
    assert (on.on, on.count) == ({"n2": 2}, 2)
    assert (waiting.id, waiting.count, waiting.on) == ("a/w#waiting", 1, {})


@pytest.mark.parametrize(
    ("labels", "annotations", "owner"),
    [
        ({}, {"kueue.x-k8s.io/workload": "w"}, None),
        ({"kueue.x-k8s.io/pod-group-name": "w"}, {}, None),
        ({"jobset.sigs.k8s.io/jobset-name": "set"}, {}, None),
        ({"ray.io/cluster": "set"}, {}, None),
        ({}, {}, "Job"),
    ],
)
def test_pods_find_their_workload(seen, labels, annotations, owner):
    """By name, by the owner's name, or by the owner's uid."""
    work = workload("w", 1, 2, status=admitted())
    work["metadata"]["ownerReferences"] = [{"kind": "JobSet", "name": "set", "uid": "uid-Job"}]
    own = pod("p", on="n1", gpus=2, labels=labels, annotations=annotations, owner=owner)
    found = seen("kueue", listed(node("n1", gpus="8"), queue("q"), work, own))
    assert [(job.id, job.on) for job in found.jobs] == [("a/w", {"n1": 1})]


def test_an_admitted_workload_needs_its_pods(seen):
    """Without them nobody knows where it runs; with others there, its own wait for nodes."""
    objects = [node("n1", gpus="8"), queue("q"), workload("w", 1, 8, status=admitted())]
    with pytest.raises(InputError, match=r"Workload \"a/w\".*kubectl get pods"):
        seen("kueue", listed(*objects))
    found = seen("kueue", listed(*objects, pod("x", on="n1", gpus=1)))
    assert by_id(found)["a/w"].on == {}
    assert "admitted workload whose pods wait, and hold" in noted(found)


def test_partial_admission_and_time_before(seen):
    """Four pods of which three were admitted and one is done; an earlier run took 100 s."""
    more = {"reclaimablePods": [{"name": "main", "count": 1}]}
    more["accumulatedPastExecutionTimeSeconds"] = 100
    work = workload("w", 4, 1, maximumExecutionTimeSeconds=600, status=admitted(count=3) | more)
    mine = {"kueue.x-k8s.io/workload": "w"}
    pods = [pod(f"p{k}", on="n1", gpus=1, annotations=mine) for k in range(2)]
    (job,) = seen("kueue", listed(node("n1", gpus="8"), queue("q"), work, *pods)).jobs
    assert (job.on, job.count) == ({"n1": 2}, 2)
    assert (job.limit_s, job.ends_s - job.start_s) == (600, 500)


def test_priorities_that_differ_from_their_class(seen):
    """A boost makes a class of its own, so that rounds order by what counts."""
    prod = {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "prod"}
    jobs = [workload(n, priority=100, priorityClassRef=prod) for n in ("plain", "boosted")]
    jobs[1]["metadata"]["annotations"] = {"kueue.x-k8s.io/priority-boost": "+7"}
    old = workload("old", priority=100, priorityClassName="prod")  # v1beta1
    kind = kueue("WorkloadPriorityClass", "prod", {}) | {"value": 100}
    found = seen("kueue", listed(node("n1", gpus="8"), queue("q"), kind, *jobs, old))
    assert [job.priority for job in found.jobs] == ["prod", "prod 107", "prod"]
    assert [(each.name, each.rank) for each in found.classes] == [("prod 107", 107), ("prod", 100)]


def test_pod_sets_find_their_pods_by_label(seen):
    """A driver on one node and workers on another; without labels nobody knows which is which."""
    sets = [
        {"name": name, "count": 1, "template": {"spec": spec(gpus)}}
        for name, gpus in (("driver", 1), ("worker", 4))
    ]
    given = [{"name": each["name"], "count": 1} for each in sets]
    status = admitted() | {"admission": {"clusterQueue": "q", "podSetAssignments": given}}
    work = workload("w", podSets=sets, status=status)
    nodes = [node("n1", gpus="8"), node("n2", gpus="8"), queue("q")]
    own = {"annotations": {"kueue.x-k8s.io/workload": "w"}}
    pods = [
        pod("p0", on="n1", gpus=1, labels={"kueue.x-k8s.io/podset": "driver"}, **own),
        pod("p1", on="n2", gpus=4, labels={"kueue.x-k8s.io/podset": "worker"}, **own),
    ]
    found = seen("kueue", listed(*nodes, work, *pods))
    assert [(job.id, job.on) for job in found.jobs] == [("a/w", {"n2": 1}), ("a/w#1", {"n1": 1})]
    with pytest.raises(InputError, match=r"Pod \"a/p1\".*no label kueue.x-k8s.io/podset"):
        seen("kueue", listed(*nodes, work, pods[0], pod("p1", on="n2", gpus=4, **own)))


def test_limits_of_several_flavors_and_groups(seen):
    """What is lent is a sum; without a cohort nothing is; GPUs say which flavors a job may have."""
    flavors = [
        {"name": "x", "resources": [{"name": "cpu", "nominalQuota": 5, "lendingLimit": 2}]},
        {"name": "y", "resources": [{"name": "cpu", "nominalQuota": 7, "borrowingLimit": 1}]},
    ]
    gpus = {"name": "nvidia.com/gpu", "nominalQuota": 8, "borrowingLimit": 2, "lendingLimit": 3}
    groups = [
        {"coveredResources": ["cpu"], "flavors": flavors},
        {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "g", "resources": [gpus]}]},
    ]
    nodes = [
        node("n1", {"kind": "g"}, gpus="8"),
        node("n2", {"kind": "x"}),
        node("n3", {"kind": "y"}),
    ]
    kinds = [flavor(name, {"kind": name}) for name in "gxy"]
    jobs = [workload("gpu", gpus=1), workload("cpu", gpus=0)]
    for cohort in (None, "c"):
        own = queue("q", cohort=cohort, resourceGroups=groups)
        found = seen("kueue", listed(*nodes, *kinds, own, *jobs))
        lent, bounds = (9, (2, 3)) if cohort else (None, (None, None))
        assert found.tenants[-1].quotas == (
            Quota(of="cpu", guaranteed=12, lend=lent),
            Quota(of="gpus", guaranteed=8, borrow=bounds[0], lend=bounds[1]),
        )
        assert [job.partitions for job in found.jobs] == [("g",), ("x", "y")]


def test_queues_that_do_not_admit(seen):
    """Stopped, inactive and absent queues block their jobs, in words."""
    off = [{"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": "no x"}]
    inactive = queue("i")
    inactive[0]["status"] = {"conditions": off}
    held = queue("h")
    held[1]["spec"]["stopPolicy"] = "Hold"
    lost = queue("l")[1:]
    names = ("s", "i", "h", "l", "nowhere")
    jobs = [workload(f"w-{name}", queue=name) for name in names]
    stopped = queue("s", stopPolicy="HoldAndDrain")
    found = seen("kueue", listed(node("n1", gpus="8"), stopped, inactive, held, lost, *jobs))
    assert [job.blocked for job in found.jobs] == [
        "its ClusterQueue s is stopped (HoldAndDrain)",
        "its ClusterQueue i is not active (FlavorNotFound: no x)",
        "its LocalQueue h is stopped (Hold)",
        "its ClusterQueue l does not exist",
        "its LocalQueue nowhere does not exist",
    ]


def test_cohorts(seen):
    """One that does not exist has no quota; a cycle is refused; names of queues stay theirs."""
    nodes = node("n1", gpus="8")
    found = seen("kueue", listed(nodes, queue("q", cohort="gone"), queue("r", cohort="gone")))
    assert [(t.name, t.parent) for t in found.tenants] == [
        ("gone", None),
        ("q", "gone"),
        ("r", "gone"),
    ]
    found = seen("kueue", listed(nodes, queue("q", cohort="q")))
    assert [(t.name, t.parent) for t in found.tenants] == [("cohort/q", None), ("q", "cohort/q")]
    ring = [kueue("Cohort", name, {"parentName": up}) for name, up in ("ab", "bc", "ca")]
    with pytest.raises(InputError, match=r"the cycle of cohorts a → b → c → a; expected") as told:
        seen("kueue", listed(nodes, queue("q", cohort="a"), *ring))
    assert told.value.exit_code == 2


def test_a_flavor_that_no_node_has(seen):
    """It is named, and its jobs may use no node."""
    objects = [
        node("n1", gpus="8"),
        queue("q", "1", flavor="h100"),
        flavor("h100", {"gpu": "h100"}),
    ]
    found = seen("kueue", listed(*objects, workload("w")))
    assert "1 × flavor with quota that no node has, such as h100" in noted(found)
    assert found.jobs[0].partitions == ("h100",)
    assert found.nodes[0].partitions == ("no flavor",)
    assert ronda.solve(round_of(found), "milp").allocations == {}


def test_topology_requests(seen):
    """Racks of the flavor's topology; slices on a host are pieces; a host for all is one node."""
    levels = [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]
    where = [kueue("Topology", "t", {"levels": levels}), flavor("default", topologyName="t")]
    nodes = [node(f"n{k}", {RACK: f"r{k // 2}"}, gpus="8") for k in range(4)]
    asked = {
        "rack": {"required": RACK},
        "host": {"required": "kubernetes.io/hostname"},
        "slices": {"podSetSliceRequiredTopology": RACK, "podSetSliceSize": 4},
        "hosts": {"podSetSliceRequiredTopology": "kubernetes.io/hostname", "podSetSliceSize": 2},
        "soft": {"preferred": RACK},
        "both": {"podSetSliceRequiredTopology": "kubernetes.io/hostname", "podSetSliceSize": 2}
        | {"required": RACK},
    }
    jobs = [workload(n, 8, 4, pod_set={"topologyRequest": each}) for n, each in asked.items()]
    found = seen("kueue", listed(*nodes, *where, queue("q", "99"), *jobs))
    job = {each.name: each for each in found.jobs}
    assert [n.racks for n in found.nodes] == [((RACK, f"r{k // 2}"),) for k in range(4)]
    assert job["rack"].slices == Slices(nodes=4, within=RACK)  # 8 pods, 2 on a node
    assert job["host"].one_node
    assert job["slices"].slices == Slices(nodes=2, within=RACK)
    assert (job["hosts"].count, job["hosts"].per["gpus"]) == (4, 8)
    assert (job["both"].count, job["both"].slices) == (4, Slices(nodes=4, within=RACK))
    assert job["soft"].slices is None
    assert "1 × topology request (preferred), not read" in noted(found)
    assert "tas" not in found.policy
    assert "2 × rule on racks for pods taken to fill whole nodes" in noted(found)
    odd = workload("odd", 3, 1, pod_set={"topologyRequest": {"required": RACK}})
    spread = seen("kueue", listed(*nodes, *where, queue("q", "99"), odd))
    assert spread.jobs[0].slices is None  # its 3 pods may be on several nodes of the rack
    assert "1 × rule on racks for pods that fill no whole nodes, not read" in noted(spread)
    plan = ronda.solve(round_of(found), "milp")
    assert {len(a.placement) for a in plan.allocations.values()} <= {4}


def test_rules_of_a_pod_on_nodes(seen):
    """Selectors, affinities, taints and tolerations, those of the flavor too."""
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    nodes = [node("n1", {"zone": "a"}, [taint], gpus="8"), node("n2", {"zone": "b"}, gpus="8")]
    nodes.append(node("n3", {"zone": "c", "age": "5"}, gpus="8"))
    more = {
        "plain": {},
        "selected": {"nodeSelector": {"zone": "b"}},
        "tolerant": {"tolerations": [{"key": "gpu", "value": "yes"}]},
        "other": {"tolerations": [{"key": "gpu", "value": "no"}]},
        "late": {"tolerations": [{"operator": "Exists", "effect": "NoExecute"}]},
    }
    for name, rule in {
        "in": {"key": "zone", "operator": "In", "values": ["a", "c"]},
        "not": {"key": "zone", "operator": "NotIn", "values": ["a"]},
        "older": {"key": "age", "operator": "Gt", "values": ["4"]},
        "never": {"key": "age", "operator": "Lt", "values": ["4"]},
    }.items():
        terms = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
        more[name] = {"affinity": {"nodeAffinity": required}}
    jobs = [workload(n, pod_set={"template": {"spec": spec(1, **m)}}) for n, m in more.items()]
    found = seen("kueue", listed(*nodes, queue("q"), flavor("default"), *jobs))
    job = {each.name: each for each in found.jobs}
    assert job["plain"].not_nodes == ("n1",)
    assert job["selected"].features == ("zone=b",)
    assert [n.features for n in found.nodes] == [(), ("zone=b",), ()]
    assert job["tolerant"].not_nodes == ()
    assert job["other"].not_nodes == job["late"].not_nodes == ("n1",)
    assert (job["in"].nodes, job["not"].nodes) == (("n1", "n3"), ("n2", "n3"))
    assert job["older"].nodes == ("n3",)
    assert job["never"].features == ("a node that its affinity asks for",)
    kind = flavor("default", tolerations=[{"key": "gpu", "operator": "Exists"}])
    assert {j.not_nodes for j in seen("kueue", listed(*nodes, queue("q"), kind, *jobs)).jobs} == {
        ()
    }


def test_what_a_pod_asks_for(seen):
    """Sums of containers, or an init container beside earlier sidecars if more; overhead."""
    asks = {
        "containers": [
            {"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}},
            {
                "resources": {
                    "requests": {"cpu": "500m"},
                    "limits": {"cpu": "9", "nvidia.com/gpu": 2},
                }
            },
        ],
        "initContainers": [
            {"restartPolicy": "Always", "resources": {"requests": {"cpu": "250m"}}},
            {"resources": {"requests": {"cpu": "2", "memory": "4Gi"}}},
        ],
        "overhead": {"cpu": "10m"},
    }
    objects = [
        node("n1", gpus="8"),
        queue("q"),
        workload("w", pod_set={"template": {"spec": asks}}),
    ]
    (job,) = seen("kueue", listed(*objects)).jobs
    # cpu: 2 + 0.25 of the init container, more than 1 + 0.5 + 0.25, and 0.01; memory: its 4
    assert job.per == {"cpu": 2.26, "memory_gib": 4, "gpus": 2, "pods": 1}


def test_policies_of_queues(seen):
    """Most queues give the rules; weights, strictness and thresholds are kept."""
    strict = {"queueingStrategy": "StrictFIFO"}
    rules = {"preemption": {"withinClusterQueue": "LowerOrNewerEqualPriority"}}
    nodes = node("n1", gpus="8")
    found = seen("kueue", listed(nodes, queue("q", **strict, **rules), flavor("default")))
    assert found.policy == "kueue-like(strategy=strict,within=lower-or-newer,tas=false)"
    fair = queue("q", **rules, fairSharing={"weight": "500m"}, admissionChecks=["remote"])
    fair[0]["status"] = {"fairSharing": {"weightedShare": 0}}
    found = seen("kueue", listed(nodes, fair, queue("r"), queue("s")))
    assert found.policy == "kueue-like(fair=true,tas=false)"
    assert found.tenants[0].weight == 0.5
    assert "1 × queue with other rules of preemption than most, such as q" in noted(found)
    assert "1 × queue with admission checks, not read, such as q" in noted(found)
    odd = queue("q", preemption={"withinClusterQueue": "Sometimes"})
    with pytest.raises(InputError, match='withinClusterQueue: found "Sometimes"'):
        seen("kueue", listed(nodes, odd))


def test_contradictions(seen):
    """A node twice, a pod on a node that is not there, a GPU too many."""
    base = [node("n1", gpus="8"), queue("q")]
    twice = json.dumps(listed(*base)), json.dumps(listed(node("n1", gpus="4")))
    with pytest.raises(InputError, match='Node "n1" in another state'):
        seen("kueue", *twice)
    mine = {"kueue.x-k8s.io/workload": "w"}
    work = workload("w", 3, 4, status=admitted())
    with pytest.raises(InputError, match='on node "n9", which no file lists'):
        seen("kueue", listed(*base, work, pod("p", on="n9", gpus=4, annotations=mine)))
    pods = [pod(f"p{k}", on="n1", gpus=4, annotations=mine) for k in range(3)]
    with pytest.raises(InputError, match="node n1: 12 gpus held of 8"):
        seen("kueue", listed(*base, work, *pods))
    with pytest.raises(InputError, match="no Workload and no ClusterQueue"):
        seen("kueue", listed(node("n1")))


CASES = Path(__file__).parents[5] / "shared" / "why" / "cases.jsonl"


@pytest.mark.skipif(not CASES.exists(), reason=f"no {CASES}")
def test_public_cases():
    """The documents of public threads, cut down as they are, are read or refused in one line."""
    from ronda.hosts.clusters.kubernetes.kueue import read_kueue
    from ronda.hosts.clusters.kubernetes.podgroups import read_kubernetes
    from ronda.hosts.clusters.read import Text

    told = {}
    for line in CASES.read_text().splitlines():
        case = json.loads(line)
        doc = case.get("raw", {}).get("doc")
        kinds = {each.get("kind") for each in (doc if isinstance(doc, list) else [doc or {}])}
        if not kinds & {"Node", "Pod", "ClusterQueue", "Workload"}:
            continue
        reader = read_kueue if kinds & {"ClusterQueue", "Workload"} else read_kubernetes
        whole = listed(doc)
        named = case["state"]["nodes"][0]["name"]
        for k, each in enumerate(whole["items"]):
            each.setdefault("metadata", {}).setdefault(
                "name", named if each["kind"] == "Node" else f"x{k}"
            )
        try:
            told[case["id"]] = reader([Text(case["id"], json.dumps(whole).encode())], None)
        except InputError as error:
            told[case["id"]] = str(error)
    assert told["A02"].nodes[0].has["gpus"] == 8
    assert [(t.name, t.parent) for t in told["K04"].tenants][:2] == [
        ("team-ab", None),
        ("team-a", "team-ab"),
    ]
    assert [t.quotas[0].guaranteed for t in told["K04"].tenants] == [4, 2, 2]
    assert "no spec.podSets" in told["K07"]
    assert "H01" in told
