"""Rounds of snapshots: every GPU is free, held or out of service, and every job is told of."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as with_

import ronda
from ronda.instances.errors import InputError
from ronda.instances.job import After, Need
from ronda.instances.models.power import NodeDraw
from ronda.instances.rules.validate import problems
from ronda.instances.site import LimitGroup, PriorityClass, Tenant
from ronda.instances.snapshots.gpu_nodes import GpuNodes
from ronda.instances.snapshots.rounds import round_of
from ronda.instances.snapshots.snapshot import Noted, SeenJob, SeenNode, Snapshot

NOW_S = 1.8e9
A = {"gpus": 8.0, "cpu": 64.0, "memory_gib": 512.0}


def round_nodes(snapshot):
    """Return the nodes of a snapshot's round, in the order of their numbers there."""
    return GpuNodes(snapshot, [each for each in snapshot.jobs if each.has_gpus], Noted()).nodes


def node(name, **more):
    """Return a node of 8 A100."""
    fields = {"has": A, "gpu_type": "a100", "partitions": ("gpu",)} | more
    return SeenNode(name=name, **fields)


def job(name, gpus=1, **more):
    """Return a waiting job of pieces with some GPUs and 4 cores for each."""
    fields = {"per": {"gpus": gpus, "cpu": 4 * gpus}, "partitions": ("gpu",), "limit_s": 3600}
    return SeenJob(id=name, submit_s=NOW_S - 100, **(fields | more))


def seen(nodes, jobs, **more):
    """Return a snapshot."""
    fields = {"source": "files", "system": "slurm", "now_s": NOW_S} | more
    return Snapshot(nodes=tuple(nodes), jobs=tuple(jobs), **fields)


def noted_of(snapshot):
    """Return the valid round of a snapshot and what was noted, by thing."""
    noted = Noted()
    found = round_of(snapshot, noted)
    assert problems(found) == []
    return found, noted.counts


def test_jobs_and_nodes_keep_what_a_plan_needs():
    """Equal nodes are a group; running jobs are where they are, and waiting ones in pieces."""
    nodes = [node("n1"), node("x", has={"cpu": 32.0}), node("n2"), node("n3", gpu_type="v100")]
    jobs = [
        job("1", 4, count=2, on={"n1": 1, "n2": 1}, start_s=NOW_S - 60, own_nodes=True, rank=9.0),
        job("2", 8, gpu_types=("a100",), rank=7.5, blocked="held", not_nodes=("n1",)),
        job("3", 0, per={"cpu": 16.0}, on={"n1": 1, "x": 1}, start_s=NOW_S - 5),
        job("4", 0, per={"cpu": 1.0}),
        job("5", after=(After(job="1"),)),
        job("6", after=(After(job="1", when="start"),)),
    ]
    round_, counts = noted_of(seen(nodes, jobs))
    assert [n.name for n in round_nodes(seen(nodes, jobs))] == ["n1", "n2", "n3"]
    assert [(g.name, g.count, g.gpu_type) for g in round_.cluster.node_groups] == [
        ("n1..n2", 2, "a100"),
        ("n3", 1, "v100"),
    ]
    assert [kind.memory_gib for kind in round_.cluster.gpu_types] == [40, 32]  # as ronda knows
    (one,) = round_.running
    assert one.allocation.placement == ((0, 4), (1, 4))
    assert (one.job.gpus, one.job.pieces.count, one.job.pieces.own_nodes) == (8, 2, True)
    assert (one.since_s, one.rank, one.job.estimate.work) == (NOW_S - 60, 9.0, 3600)
    two, five, six = round_.waiting
    assert (two.blocked, two.rank, two.job.nodes, two.job.one_node) == ("held", 7.5, (1, 2), True)
    assert two.job.needs == {"cpu": Need(per_gpu=4.0)}
    assert (five.blocked, six.blocked) == ("it waits for job 1", None)
    assert round_.cluster.taken == ((0, "cpu", 16.0),)
    assert counts["node without GPUs, left out"] == 1
    assert counts["job without GPUs, left out"] == 2


def test_partitions_that_overlap_become_features_and_limits_of_classes():
    """A node of two partitions serves both; a limit on one of them finds its jobs all the same."""
    nodes = [node("n1", partitions=("a",)), node("n2", partitions=("a", "b")), node("n3")]
    jobs = [
        job("1", partitions=("a",), priority="normal"),
        job("2", partitions=("b",), priority="normal"),
        job("3", partitions=("a", "b")),
        job("4", partitions=()),
    ]
    groups = (
        LimitGroup(name="long", partitions=("b",), max_limit_s=1800.0),
        LimitGroup(name="few", classes=("normal",), most={"gpus": 4}),
        LimitGroup(name="none", partitions=("c",), max_jobs=1),
    )
    round_, _ = noted_of(
        seen(nodes, jobs, groups=groups, classes=(PriorityClass(name="normal", rank=3),))
    )
    assert {g.partition for g in round_.cluster.node_groups} == {"default"}
    labels = [g.features for g in round_.cluster.node_groups]
    assert labels == [
        ("partition:a", "partition:a|b"),
        ("partition:a", "partition:a|b", "partition:b"),
        (),
    ]
    told = [(s.job.features, s.job.priority) for s in round_.waiting]
    assert told == [
        (("partition:a",), "normal@a"),
        (("partition:b",), "normal@b"),
        (("partition:a|b",), "@a|b"),
        ((), "@"),
    ]
    assert [(g.name, g.classes, g.partitions) for g in round_.site.groups] == [
        ("long", ("normal@b",), ()),
        ("few", ("normal@a", "normal@b"), ()),
    ]
    assert {c.name: c.rank for c in round_.site.classes}["normal@b"] == 3
    placed = ronda.solve(round_, "fifo").allocations
    assert set(placed) == {"1", "3", "4"}
    assert placed["1"].placement[0][0] in (0, 1)


def test_partitions_that_own_their_nodes_stay():
    """Each has its own pool, and its limits stay limits of a partition."""
    groups = (LimitGroup(name="few", partitions=("b",), most={"gpus": 0}),)
    nodes = [node("n1", partitions=("a",)), node("n2", partitions=("b",))]
    jobs = [job("1", partitions=("a",)), job("2", partitions=("b",))]
    round_, _ = noted_of(seen(nodes, jobs, groups=groups))
    assert [p.name for p in round_.cluster.partitions] == ["a", "b"]
    assert round_.site.groups == groups
    assert set(ronda.solve(round_, "fifo").allocations) == {"1"}


def test_nodes_that_are_not_on_sleep_or_wake():
    """A sleeping node with a job on it wakes; one out of service is neither; jobs may wake one."""
    powers = {"n1": "on", "n2": "waking", "n3": "down", "n4": "going down", "n5": "down"}
    nodes = [node(name, power=power) for name, power in powers.items()]
    nodes += [node("n6", power="down", out="drained")]
    jobs = [job("1", 8, on={"n1": 1, "n3": 1}, count=2), job("2", 8, per={"gpus": 8.0})]
    jobs += [job("3", 8), job("4", 8)]
    round_, counts = noted_of(seen(nodes, jobs))
    assert (round_.asleep, round_.waking) == ((3, 4), (1, 2))
    assert counts["node taken to draw 800 W idle, 20 W asleep, and to wake in 300 s"] == 6
    placed = ronda.solve(round_, "fifo")
    assert {k: a.placement[0][0] for k, a in placed.allocations.items() if k != "1"} == {
        "2": 1,
        "3": 3,
        "4": 4,
    }
    assert placed.asleep == ()


def test_a_draw_lets_policies_put_nodes_to_sleep():
    """Without one, nothing is said of power while all nodes are on."""
    nodes = [node("n1"), node("n2")]
    plain = round_of(seen(nodes, []))
    drawn = round_of(seen(nodes, []), draw=NodeDraw(wake_s=60.0, wake_w=900.0))
    assert plain.cluster.node_groups[0].host_idle_w == 0.0
    (group,) = drawn.cluster.node_groups
    assert (group.host_idle_w, group.sleep_w, group.wake_s, group.wake_w) == (800, 20, 60, 100)
    asleep = [ronda.solve(r, "race-to-idle").asleep for r in (plain, drawn)]
    assert asleep == [(), (0, 1)]


def test_tenants_become_leaves():
    """A job of an inner tenant gets one below it; a tenant that nobody lists is listed."""
    tenants = (Tenant(name="all", max_jobs=1), Tenant(name="sub", parent="all"))
    jobs = [job("1", tenant="all"), job("2", tenant="sub"), job("3", tenant="other")]
    round_, _ = noted_of(seen([node("n1")], jobs, tenants=tenants))
    assert [s.job.tenant for s in round_.waiting] == ["all/own", "sub", "other"]
    assert [(t.name, t.parent) for t in round_.site.tenants] == [
        ("all", None),
        ("sub", "all"),
        ("all/own", "all"),
        ("other", None),
    ]
    assert len(ronda.solve(round_, "prices").allocations) == 2


def test_nodes_out_of_service_leave_or_come_back():
    """What runs on a drained node goes on, and nobody else starts there."""
    nodes = [
        node("n1", out="drained: fan"),
        node("n2", leaves_s=NOW_S + 600, back_s=NOW_S + 7200),
        node("n3", leaves_s=NOW_S - 60, back_s=NOW_S + 60, reserved="class"),
        node("n4", out="down", back_s=NOW_S + 10),
    ]
    jobs = [job("1", 3, on={"n1": 1}, start_s=NOW_S - 5), job("2", reservation="class"), job("3")]
    round_, counts = noted_of(seen(nodes, jobs))
    number = {n.name: k for k, n in enumerate(round_nodes(seen(nodes, jobs)))}
    assert dict(round_.cluster.out) == {number["n1"]: 5, number["n3"]: 8, number["n4"]: 8}
    assert dict(round_.leaving) == {number["n2"]: NOW_S + 600}
    assert dict(round_.returning)[number["n2"]] == NOW_S + 7200
    assert dict(round_.returning)[number["n4"]] == NOW_S + 10
    assert counts["waiting job of a reservation, left out"] == 1
    assert set(ronda.solve(round_, "fifo").allocations) == {"1"}  # job 3 does not end before n2


def test_jobs_that_no_round_can_have_are_told():
    """Each is counted with its reason; GPUs that such a job holds are nobody else's."""
    nodes = [node("n1"), node("n2", gpu_type="v100")]
    jobs = [
        job("1", 9),
        job("2", features=("ib",)),
        job("3", 1, per={"gpus": 1, "cpu": 65.0}),
        job("4", 4, count=2, on={"n1": 1, "n2": 1}, start_s=NOW_S - 5),
        job("5", share=0.5, per={}, on={"n1": 1}, start_s=NOW_S - 5),
        job("6", nodes=("elsewhere",)),
        job("7", count=4, least=2),
    ]
    noted = Noted()
    round_ = round_of(seen(nodes, jobs), noted)
    assert [s.job.id for s in round_.waiting] == ["7"]
    assert round_.cluster.out == ((0, 5), (1, 4))
    assert round_.cluster.taken == ((0, "cpu", 16.0), (1, "cpu", 16.0))
    assert noted.counts["waiting job that no round can have, left out"] == 3
    assert noted.counts["running job on parts of GPUs, or on several types, left out"] == 2
    assert noted.counts["waiting job that may use no node with GPUs, left out"] == 1
    assert "job 1 (gpus is 9, expected at most 8" in " ".join(noted.lines())


def test_a_running_job_ends_when_its_host_says():
    """Without a time limit, the end is one, from the start or from now on."""
    runs = [
        job("1", on={"n1": 1}, start_s=NOW_S - 50, ends_s=NOW_S + 50, limit_s=None),
        job("2", on={"n1": 1}, ends_s=NOW_S + 70, limit_s=None),
    ]
    round_, _ = noted_of(seen([node("n1")], runs))
    assert [s.job.limit_s for s in round_.running] == [100, 70]
    assert [s.may_hold_s(NOW_S) for s in round_.running] == [50, 70]


def test_a_fraction_of_a_gpu_needs_what_it_says():
    """Cores of a fraction are those of its one GPU, whether GPUs are told as a fraction or not."""
    jobs = [
        job("1", share=0.5, per={"gpus": 0.5, "cpu": 3.0}),
        job("2", share=0.5, per={"cpu": 3.0}),
    ]
    round_, _ = noted_of(seen([node("n1", shared=True)], jobs))
    assert [s.job.needs for s in round_.waiting] == [{"cpu": Need(per_gpu=3.0)}] * 2
    assert [(s.job.gpus, s.job.pieces) for s in round_.waiting] == [(1, None)] * 2


def test_exclusive_jobs_hold_whole_nodes():
    """A job alone on its node holds all GPUs and asks for some."""
    runs = job("1", 2, exclusive=True, on={"n1": 1}, start_s=NOW_S - 5, held={"n1": A})
    round_, _ = noted_of(seen([node("n1")], [runs, job("2", 1)]))
    option = round_.running[0].allocation.option
    assert (option.gpus, option.asked, round_.running[0].job.gpus) == (8, 2, 2)
    assert set(ronda.solve(round_, "fifo").allocations) == {"1"}


def test_racks_form_a_tree_of_unique_names():
    """Two racks of one name in two rows are two racks."""
    paths = [(("row", "r1"), ("rack", "a")), (("row", "r2"), ("rack", "a")), ()]
    nodes = [node(f"n{k}", racks=path) for k, path in enumerate(paths)]
    cluster = noted_of(seen(nodes, [job("1")]))[0].cluster
    racks = [(r.name, r.parent, r.level) for r in cluster.racks]
    assert racks == [
        ("r1", None, "row"),
        ("a", "r1", "rack"),
        ("r2", None, "row"),
        ("r2/a", "r2", "rack"),
    ]
    assert [g.rack for g in cluster.node_groups] == ["a", "r2/a", None]


def test_a_cluster_without_gpus_has_no_round():
    """The error says so in one line."""
    with pytest.raises(InputError, match="files: found no node with GPUs"):
        round_of(seen([node("n1", has={"cpu": 4.0})], []))


AMOUNT = st.sampled_from([0.0, 1.0, 2.0, 8.0])


@st.composite
def clusters(draw):
    """Draw a snapshot that its checks would pass: no node gives more GPUs than it has."""
    some = st.sampled_from
    nodes = [
        node(
            f"n{k}",
            has={"gpus": draw(AMOUNT), "cpu": 16.0},
            gpu_type=draw(some(["a100", None])),
            partitions=draw(some([(), ("a",), ("a", "b")])),
            out=draw(some([None, None, "down"])),
            leaves_s=draw(some([None, NOW_S - 1, NOW_S + 100])),
            back_s=draw(some([None, NOW_S + 50])),
        )
        for k in range(draw(st.integers(1, 4)))
    ]
    free = {n.name: int(n.has["gpus"]) for n in nodes}
    jobs = []
    for k in range(draw(st.integers(0, 6))):
        gpus, at = draw(AMOUNT), draw(some([None, *free]))
        share = draw(some([None, None, None, 0.5]))
        whole = int(max(gpus, share is not None))
        runs = at is not None and free[at] >= whole
        if runs:
            free[at] -= whole
        more = (
            {"on": {at: 1}, "start_s": NOW_S - 9.0} if runs else {"count": draw(st.integers(1, 3))}
        )
        jobs.append(
            job(
                str(k),
                gpus,
                partitions=draw(some([(), ("a",), ("b",), ("a", "b")])),
                tenant=draw(some([None, "t", "u"])),
                priority=draw(some([None, "p"])),
                exclusive=draw(some([False, False, True])),
                least=draw(some([None, 1])),
                share=share,
                nodes=draw(some([(), (), ("n0",)])),
                licences=draw(some([{}, {"ansys": 1.0}])),
                **more,
            )
        )
    groups = (LimitGroup(name="g", partitions=("a",), most={"gpus": 4}),)
    tenants = (Tenant(name="t"), Tenant(name="v", parent="t"))
    return seen(nodes, jobs, groups=groups, tenants=tenants, licences={"ansys": 2})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters())
def test_any_snapshot_has_a_valid_round_in_which_gpus_add_up(snapshot):
    """Held, free and missing GPUs are all that there are; no job is lost without a word."""
    if not any(n.has["gpus"] for n in snapshot.nodes):
        return
    round_, counts = noted_of(snapshot)
    nodes, cluster = round_nodes(snapshot), round_.cluster
    assert [int(n.has["gpus"]) for n in nodes] == [
        g.gpus_per_node for g in cluster.node_groups for _ in range(g.count)
    ]
    held = [0.0] * len(nodes)
    for state in round_.running:
        for k, gpus in state.allocation.placement:
            held[k] += gpus
    out = dict(cluster.out)
    inside = {s.job.id for s in round_.jobs}
    for k, n in enumerate(nodes):
        lost = sum(
            j.holds(n.name).get("gpus", 0) or (j.share or 0)
            for j in snapshot.jobs
            if j.id not in inside and n.name in j.on and j.has_gpus
        )
        serves = n.out is None and (n.leaves_s is None or n.leaves_s > NOW_S)
        if serves:
            assert lost <= out.get(k, 0) < lost + 1
        else:
            assert out.get(k, 0) + held[k] == n.has["gpus"]
    told = sum(count for what, count in counts.items() if "job" in what and "left out" in what)
    assert told == len(snapshot.jobs) - len(inside)


def test_notes_go_to_the_snapshot_by_default():
    """A reader of the snapshot sees what its round lost."""
    snapshot = replace(seen([node("n1")], [job("1", 9)]), noted=Noted())
    round_of(snapshot)
    assert snapshot.noted.counts["waiting job that no round can have, left out"] == 1
    assert with_(round_of(snapshot), name="x").source == "files"
