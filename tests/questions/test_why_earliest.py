"""The earliest start of a waiting job, on small clusters whose answer is known by hand."""

from math import inf

import pytest
from msgspec.structs import replace

from ronda.instances.job import After, Slices
from ronda.instances.site import LimitGroup, Quota, Tenant
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.outlook import FreeRoom
from ronda.questions.why.reason import dominant

HOUR = 3600.0
NODE = SeenNode(name="a", has={"gpus": 8, "cpu": 64, "memory_gib": 512}, gpu_type="A100")
TWO = (NODE, replace(NODE, name="b"))


def _runs(job: str, node: str, hours: float, **held: float) -> SeenJob:
    return SeenJob(id=job, start_s=0.0, limit_s=hours * HOUR, per=held, on={node: 1}, user=job)


def _waits(count: int = 1, **per: float) -> SeenJob:
    return SeenJob(id="J", limit_s=10 * HOUR, count=count, per=per)


def _ask(job: SeenJob, *running: SeenJob, nodes: tuple[SeenNode, ...] = TWO, **more: object):
    made = Snapshot(
        source="here", system="slurm", now_s=0.0, nodes=nodes, jobs=(*running, job), **more
    )
    return WaitingJob(FreeRoom(made), job)


BUSY = (_runs("r1", "a", 2, gpus=6, cpu=60), _runs("r2", "b", 5, gpus=7, cpu=8))


@pytest.mark.parametrize(
    ("job", "hours", "name"),
    [
        (_waits(gpus=1), 0, ""),
        (_waits(gpus=2, cpu=8), 2, "on:cpu"),
        (_waits(gpus=3), 2, "on:gpus"),
        (_waits(gpus=9), inf, "on:gpus"),
        (_waits(2, gpus=2), 2, "on:gpus"),
        (_waits(3, gpus=8), inf, "on:gpus"),
        (replace(_waits(2, gpus=4), own_nodes=True), 5, "on:gpus"),
        (replace(_waits(2, gpus=4), one_node=True), 2, "on:gpus"),
        (replace(_waits(gpus=1), exclusive=True), 2, "exclusive"),
        (replace(_waits(gpus=1), gpu_types=("H100",)), inf, "gpu_types"),
        (replace(_waits(gpus=1), nodes=("b",)), 0, ""),
        (replace(_waits(gpus=8), nodes=("b",)), 5, "on:gpus"),
        (replace(_waits(gpus=8), not_nodes=("a",)), 5, "on:gpus"),
        (replace(_waits(gpus=1), after=(After(job="r2", delay_s=HOUR),)), 6, "after"),
        (replace(_waits(gpus=1), eligible_s=3 * HOUR), 3, "eligible"),
        (replace(_waits(gpus=1), blocked="held by its user"), inf, "blocked"),
        (replace(_waits(8, gpus=1), least=3), 0, ""),
    ],
)
def test_start_and_reason(job: SeenJob, hours: float, name: str) -> None:
    """Room on nodes, shapes, the choice of nodes, and order each give their start and reason."""
    waiting = _ask(job, *BUSY)
    assert waiting.start() == hours * HOUR
    assert dominant(waiting).name == name
    assert dominant(waiting).never is (hours == inf)


def test_nodes_out_and_leaving() -> None:
    """A node that leaves before the job's limit is closed until it is back, and one that is out."""
    leaves = replace(NODE, leaves_s=9 * HOUR, back_s=12 * HOUR)
    out = replace(NODE, name="b", out="drained", back_s=20 * HOUR)
    for limit, hours, name in ((9, 0, ""), (10, 12, "leaves"), (None, 12, "leaves")):
        job = replace(_waits(gpus=1), limit_s=None if limit is None else limit * HOUR)
        waiting = _ask(job, nodes=(leaves, out))
        assert waiting.start() == hours * HOUR
        assert dominant(waiting).name == name
    both = _ask(replace(_waits(2, gpus=8), own_nodes=True), nodes=(leaves, out))
    assert both.start() == 20 * HOUR
    assert dominant(both).name == "out"


@pytest.mark.parametrize(
    ("groups", "hours", "row"),
    [
        ((LimitGroup(name="q", most={"gpus": 14}),), 2, "limit[q,gpus]"),
        ((LimitGroup(name="q", most={"gpus": 15}),), 0, ""),
        ((LimitGroup(name="q", max_jobs=2),), 2, "jobs[q]"),
        ((LimitGroup(name="q", users=("r1",), most={"gpus": 1}),), 0, ""),
        ((LimitGroup(name="q", per="job", most={"gpus": 1}),), inf, "limit[q/J,gpus]"),
        ((LimitGroup(name="q", max_limit_s=9 * HOUR),), inf, "longest"),
        ((LimitGroup(name="q", max_gpu_s=57 * HOUR),), 10 / 13, "run[q,gpus]"),
        ((LimitGroup(name="q", most={"A100": 14}),), 2, "limit[q,A100]"),
    ],
)
def test_limits(groups: tuple[LimitGroup, ...], hours: float, row: str) -> None:
    """Limits of groups count what runs and what the job would hold, now and later."""
    job = _waits(gpus=2)
    waiting = _ask(job, *BUSY, groups=groups)
    assert waiting.start() == pytest.approx(hours * HOUR)  # 12 + 35 + 20 - 13 * 10 / 13 = 57
    assert dominant(waiting).name == row


def test_quota_that_is_borrowed() -> None:
    """What a sibling borrows comes back when its jobs end; the row is that of the tree."""
    tree = (
        Tenant(name="all"),
        Tenant(name="a", parent="all", quotas=(Quota(guaranteed=7, borrow=0),)),
        Tenant(name="b", parent="all", quotas=(Quota(guaranteed=7),)),
    )
    running = tuple(replace(job, tenant="b") for job in BUSY)
    waiting = _ask(replace(_waits(gpus=2), tenant="a"), *running, tenants=tree)
    assert waiting.start() == 2 * HOUR
    assert dominant(waiting).name == "tree[all,gpus]"
    waiting = _ask(replace(_waits(4, gpus=2), tenant="a"), tenants=tree)
    assert waiting.start() == inf
    assert dominant(waiting).name == "borrow[a,gpus]"


def test_slices() -> None:
    """Slices need whole racks' worth of nodes, however many nodes are free in sum."""
    nodes = tuple(
        replace(NODE, name=f"{rack}{n}", racks=(("block", rack),))
        for rack in "xy"
        for n in range(3)
    )
    busy = _runs("r", "x0", 4, gpus=8)
    job = SeenJob(id="J", count=4, per={"gpus": 8}, own_nodes=True, slices=Slices(nodes=2))
    assert (
        _ask(replace(job, slices=Slices(nodes=2, within="block")), busy, nodes=nodes).start() == 0
    )
    six = replace(job, count=6, slices=Slices(nodes=3, within="block"))
    assert _ask(six, busy, nodes=nodes).start() == 4 * HOUR
    three = replace(job, count=3, slices=Slices(listed=(3,), within="block"))
    assert _ask(three, busy, nodes=nodes).start() == 0
    both = (busy, _runs("s", "y0", 5, gpus=8))
    waiting = _ask(three, *both, nodes=nodes)
    assert waiting.start() == 4 * HOUR
    assert dominant(waiting).name == "slices"


def test_whole_nodes_are_charged() -> None:
    """A job with its nodes to itself is charged all that they have, and no more than asked else."""
    group = (LimitGroup(name="q", most={"cpu": 32}),)
    waiting = _ask(replace(_waits(cpu=1), exclusive=True), groups=group)
    assert waiting.start() == inf
    found = dominant(waiting)
    assert found.name == "limit[q,cpu]"
    assert "charged 64 CPUs (it asks for 1 CPU" in found.text
    assert waiting.start({"exclusive"}) == 0


def test_order() -> None:
    """A job that could start now has those of higher rank before it."""
    first = replace(_waits(gpus=8), id="K", rank=9.0)
    job = replace(_waits(gpus=1), rank=1.0, reason="Priority")
    found = dominant(_ask(job, first))
    assert found.kind == "order"
    assert "1 job stands before it" in found.text
    assert "K (8 GPUs, priority 9)" in found.proof[0]


def test_a_chain_of_waiting_jobs() -> None:
    """A job behind one that waits starts when that one has run its limit; a circle never does."""
    first = replace(_waits(gpus=8), id="K", limit_s=3 * HOUR, nodes=("b",))
    job = replace(_waits(gpus=1), after=(After(job="K", delay_s=HOUR),))
    assert _ask(job, first, *BUSY).start() == (5 + 3 + 1) * HOUR
    assert (
        _ask(replace(job, after=(After(job="K", when="start"),)), first, *BUSY).start() == 5 * HOUR
    )
    assert _ask(job, replace(first, limit_s=None), *BUSY).start() == inf
    assert _ask(job, replace(first, after=(After(job="J"),)), *BUSY).start() == inf


def test_limits_on_one_model_leave_the_others() -> None:
    """A limit on A100 holds nobody on other nodes, of another model or none, nor a job of CPUs."""
    group = (LimitGroup(name="q", most={"A100": 0}),)
    other = replace(NODE, name="b", gpu_type="H100")
    none = replace(NODE, name="b", gpu_type=None, features=("cpu", "A100"))
    assert _ask(_waits(gpus=1), nodes=(NODE,), groups=group).start() == inf
    for second in (other, none):
        assert _ask(_waits(gpus=1), nodes=(NODE, second), groups=group).start() == 0
    both = (*group, LimitGroup(name="r", most={"cpu": 128}))
    assert _ask(_waits(2, cpu=64), nodes=(NODE, none), groups=both).start() == 0
