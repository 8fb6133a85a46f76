"""A snapshot of KAI: its units, its queues, and what is in flight."""

import io
import json
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ronda
from ronda.hosts.clusters.kubernetes.kai import read_kai
from ronda.hosts.clusters.read import Text
from ronda.instances.errors import InputError
from ronda.instances.job import Slices
from ronda.instances.site import Quota
from ronda.instances.snapshots.rounds import round_of


@pytest.fixture
def whole(kai_json):
    """Return the packaged snapshot as a document."""
    return json.loads(kai_json.read_text())


def zipped(text, name="snapshot.json"):
    """Return a text in a zip file."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return file.getvalue()


def test_queues_in_their_units(seen, kai_json):
    """Cores of 1,000, memory of 10^6 bytes; −1 is all, and what is not stated is nothing."""
    found = seen("kai", kai_json)
    root, org, team, shut = found.tenants
    assert [t.parent for t in found.tenants] == [None, "cluster", "org", "org"]
    assert [q.guaranteed for q in root.quotas] == [16, 128, 1024]
    assert [q.guaranteed for q in org.quotas] == [16, 128, 1024]  # −1: all of the cluster
    assert [q.limit for q in org.quotas] == [None] * 3
    # 256,000 × 10^6 bytes are 238.4 GiB
    gpus, cpu, memory = team.quotas
    assert (gpus, cpu) == (Quota(of="gpus", guaranteed=4, limit=12), Quota(of="cpu", guaranteed=32))
    assert memory.guaranteed == pytest.approx(256_000 * 10**6 / 2**30)
    assert (team.weight, team.surplus_order, team.min_run_s, org.surplus_order) == (
        2,
        200,
        300,
        100,
    )
    assert shut.quotas[0] == Quota(of="gpus", guaranteed=4, limit=0)
    assert [q.limit for q in shut.quotas] == [0] * 3
    assert "3 × queue without a limit, which is 0" in "\n".join(found.noted.lines())
    assert (found.system, found.policy) == ("kai", "kai-like")


def test_jobs_and_what_is_in_flight(seen, kai_json):
    """A binding counts as placed; one of no pod is counted; shares are of memory, unrounded."""
    found = seen("kai", kai_json)
    big, wait, half, memo = found.jobs
    assert (big.on, big.count, big.preemptible, big.priority) == ({"n1": 2}, 2, False, "build")
    assert big.start_s - big.submit_s == 10
    assert (wait.on, wait.preemptible, wait.rank) == ({}, True, 50)
    assert wait.reason == "Unschedulable: Node-Group(s) not enough resources: GPUs"
    assert (half.share, half.per, half.preemptible) == (
        0.5,
        {"cpu": 1, "pods": 1, "gpus": 0.5},
        False,
    )
    # 24 pods of 2,000 MiB are more than 46,068 (KAI issue 416 rounds them to 0.04, and fits 24)
    assert 23 * memo.share < 1 < 24 * memo.share
    assert memo.blocked == "its queue gone does not exist"
    told = "\n".join(found.noted.lines())
    assert "1 × binding of a pod that no file has, left out, such as x/ghost" in told
    assert [node.has["gpus"] for node in found.nodes] == [8, 8]  # the reserving pod holds nothing


@pytest.mark.parametrize("policy", ["kai-like", "milp"])
def test_what_is_over_quota_is_given(seen, whole, policy):
    """A queue of its own with 4 GPUs guaranteed and no limit has a job of 8: 16 are there."""
    raw = whole["rawObjects"]
    spare = {key: {"quota": -1, "limit": -1} for key in ("cpu", "memory")}
    gpu = {"quota": 4, "limit": -1, "overQuotaWeight": 1}
    raw["queues"].append(
        {"metadata": {"name": "cluster"}, "spec": {"resources": spare | {"gpu": gpu}}}
    )
    raw["podGroups"][1]["spec"]["queue"] = "cluster"
    found = seen("kai", whole)
    assert (found.tenants[0].name, found.tenants[-1].parent) == ("cluster/all", "cluster/all")
    plan = ronda.solve(round_of(found), policy)
    assert plan.allocations["y/pg-wait"].placement == ((1, 8),)


def test_failed_bindings_place_nothing(seen, whole):
    """The pod waits again, apart from its gang."""
    whole["rawObjects"]["bindRequests"][0]["status"]["phase"] = "Failed"
    found = seen("kai", whole)
    assert [(job.id, job.on, job.count) for job in found.jobs[:2]] == [
        ("x/pg-big", {"n1": 1}, 1),
        ("x/pg-big#waiting", {}, 1),
    ]
    whole["rawObjects"]["bindRequests"][0] |= {"status": {}}
    whole["rawObjects"]["bindRequests"][0]["spec"]["selectedNode"] = "n9"
    with pytest.raises(InputError, match='selectedNode: found "n9"; expected one of the nodes'):
        seen("kai", whole)


@pytest.mark.parametrize("policy", ["kai-like", "kueue-like", "milp"])
def test_its_round_is_solved(seen, kai_json, policy):
    """The queue whose limit is 0 runs nothing, though a whole node is free; half a GPU is given."""
    made = round_of(seen("kai", kai_json))
    half = next(state.job for state in made.waiting if state.job.share == 0.5)
    assert (half.gpus, half.needs["cpu"].per_gpu) == (1, 1)
    plan = ronda.solve(made, policy)
    assert plan.allocations["x/pg-big"].placement == ((0, 8),)
    assert "y/pg-wait" not in plan.allocations


def test_gangs(seen, whole):
    """Fewer pods than a gang starts with; sub-groups; a domain of one level; shapes apart."""
    raw = whole["rawObjects"]
    raw["topologies"] = [{"metadata": {"name": "t"}, "spec": {"levels": [{"nodeLabel": "rack"}]}}]
    asked = {"topology": "t", "requiredTopologyLevel": "rack"}
    raw["podGroups"][0]["spec"] |= {"minMember": 1, "topologyConstraint": asked}
    raw["podGroups"][1]["spec"]["minMember"] = 3
    raw["bindRequests"] = None
    del raw["pods"][0]["spec"]["nodeName"]
    found = seen("kai", whole)
    big, wait = found.jobs[:2]
    assert (big.count, big.least, big.slices) == (2, 1, Slices(nodes=1, within="rack"))
    assert found.nodes[0].racks == (("rack", "r1"),)
    assert wait.blocked == "it has 1 of the 3 pods that it starts with"
    del raw["podGroups"][0]["spec"]["minMember"]
    assert seen("kai", whole).jobs[0].least == 1
    raw["podGroups"][0]["spec"]["subGroups"] = [{"name": "s", "minMember": 1}]
    raw["pods"][1]["spec"]["containers"][0]["resources"]["requests"]["nvidia.com/gpu"] = "1"
    found = seen("kai", whole)
    assert [(job.id, job.least, job.per["gpus"]) for job in found.jobs[:2]] == [
        ("x/pg-big", None, 4),
        ("x/pg-big#1", None, 1),
    ]


def test_zip_as_the_plugin_writes_it(seen, kai_json):
    """One file inside; what is no whole archive is refused."""
    text = kai_json.read_bytes()
    assert seen("kai", zipped(text)).jobs == seen("kai", kai_json).jobs
    for broken in (zipped(text)[:200], b"PK\x03\x04", zipped(text)[:100] + zipped(text)[140:]):
        with pytest.raises(InputError, match="f0: found a zip file that cannot be read"):
            seen("kai", broken)


def test_a_zip_that_grows_is_refused(seen, monkeypatch):
    """4 MiB of blanks are a few KiB in the archive."""
    monkeypatch.setenv("RONDA_LIMITS", "mib=1")
    with pytest.raises(InputError, match="more than 1 MiB"):
        seen("kai", zipped(b" " * (4 << 20)))


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (
            ("queues", 1, "spec", "resources", "gpu", "quota"),
            -2,
            "found -2; expected a number from",
        ),
        (("queues", 1, "spec", "resources", "gpu", "limit"), "4", "limit: found"),
        (("queues", 1, "spec", "reclaimMinRuntime"), "5 minutes", "a duration such as"),
        (("queues", 0, "spec", "parentQueue"), "team", "the cycle of queues org → team → org"),
        (("queues",), [], "no queue"),
        (("pods", 0, "spec", "nodeName"), "n9", 'on node "n9"'),
        (("pods",), {"a": 1}, "a list"),
    ],
)
def test_odd_fields(seen, whole, path, value, words):
    """One line that names the field."""
    at = whole["rawObjects"]
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    with pytest.raises(InputError, match=words):
        seen("kai", whole)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_half_snapshots_raise_nothing_else(data):
    """Any part of the file, zipped or not, is read or refused in one line."""
    from pathlib import Path

    text = (Path(__file__).parent / "kai.json").read_bytes()
    part = text[: data.draw(st.integers(1, len(text)))]
    packed = zipped(text)
    at = data.draw(st.integers(4, len(packed) - 1))
    spoilt = packed[:at] + bytes([data.draw(st.integers(0, 255))]) + packed[at + 1 :]
    for each in (part, zipped(part), spoilt):
        line = ""
        try:
            read_kai([Text("f", each)], None)
        except InputError as error:
            line = str(error)
        assert line.isprintable()
