"""The start by the site's own rule: reservations in order of priority, or any job that fits."""

from math import inf

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.instances.site import LimitGroup, Quota, Tenant
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.why.outlook import FreeRoom
from ronda.questions.why.replay import delayed, replay

HOUR = 3600.0
NODES = tuple(SeenNode(name=name, has={"gpus": 8, "cpu": 64}) for name in "abcd")


def _job(job: str, hours: float, count: int = 1, rank: float = 0.0, **per: float) -> SeenJob:
    return SeenJob(id=job, limit_s=hours * HOUR, count=count, per=per or {"gpus": 8}, rank=rank)


def _runs(job: str, node: str, hours: float, **more: object) -> SeenJob:
    return replace(_job(job, hours), start_s=0.0, on={node: 1}, **more)


def _start(system: str, job: SeenJob, *others: SeenJob, **more: object) -> float:
    made = Snapshot(
        source="here", system=system, now_s=0.0, nodes=NODES, jobs=(*others, job), **more
    )
    return replay(FreeRoom(made), job).start_s / HOUR


@pytest.mark.parametrize(("hours", "slurm", "kueue"), [(2, 0, 0), (3, 26, 0)])
def test_a_hole_in_front_of_a_large_job(hours: float, slurm: float, kueue: float) -> None:
    """A job short enough for the hole is backfilled; any other waits for the large job's end.

    Without reservations it starts at once, and the large job waits for it.
    """
    big = _job("big", 24, 4, rank=9.0)
    busy = (_runs("r1", "a", 2), _runs("r2", "b", 2))
    job = _job("J", hours, 1, rank=1.0)
    assert _start("slurm", job, big, *busy) == slurm
    assert _start("kueue", job, big, *busy) == kueue
    first = replace(big, rank=0.5)
    assert _start("slurm", job, first, *busy) == 0


@pytest.mark.parametrize(
    ("limit", "late"), [(2, []), (3, [("big", HOUR)]), (5, [("big", 3 * HOUR)])]
)
def test_the_hole_and_whom_a_start_delays(limit: float, late: list[tuple[str, float]]) -> None:
    """The hole in front of a reservation is known, and by how much a longer job would delay it."""
    big, busy = _job("big", 24, 4, rank=9.0), (_runs("r1", "a", 2), _runs("r2", "b", 2))
    job = _job("J", 3, 1, rank=1.0)
    room = FreeRoom(
        Snapshot(source="here", system="slurm", now_s=0.0, nodes=NODES, jobs=(big, *busy, job))
    )
    found = replay(room, job)
    assert found.starts_now is not None
    limits = [limit for limit in (1, 2, 3) if found.starts_now(replace(job, limit_s=limit * HOUR))]
    assert limits == [1, 2]
    assert delayed(room, replace(job, limit_s=limit * HOUR), 0.0, found, 9.0) == late
    kueue = FreeRoom(
        Snapshot(source="here", system="kueue", now_s=0.0, nodes=NODES, jobs=(big, *busy, job))
    )
    assert delayed(kueue, job, 0.0, replay(kueue, job), 9.0) is None


def test_jobs_held_back_by_limits_reserve_nothing() -> None:
    """A job over its limit does not stand in the way, as in Slurm."""
    big = replace(_job("big", 24, 4, rank=9.0), user="ann")
    group = (LimitGroup(name="q", users=("ann",), most={"gpus": 16}),)
    job = replace(_job("J", 5, 1, rank=1.0), user="bob")
    busy = _runs("r1", "a", 2)
    assert _start("slurm", job, big, busy) == 26
    assert _start("slurm", job, big, busy, groups=group) == 0


def test_best_effort_counts_what_started() -> None:
    """Jobs that start first use the quota of their tenant until their time limits."""
    tenants = (Tenant(name="t", quotas=(Quota(guaranteed=16, limit=16),)),)
    first = [replace(_job(f"k{k}", 3 + k, rank=5.0), tenant="t") for k in range(2)]
    job = replace(_job("J", 1, rank=1.0), tenant="t")
    assert _start("kueue", job, *first, tenants=tenants) == 3
    assert _start("kueue", job, first[0], tenants=tenants) == 0
    assert _start("kueue", replace(job, count=3), *first, tenants=tenants) == inf


@pytest.mark.parametrize("seed", range(20))
def test_reservations_do_not_overlap(seed: int) -> None:
    """No node is reserved twice at once, every job is placed, and none starts before it could.

    A job could start no earlier than if only the number of nodes counted.
    """
    rng = np.random.default_rng([seed, 55])
    busy = [_runs(f"r{k}", name, float(rng.integers(1, 9))) for k, name in enumerate("ab")]
    queue = [
        _job(f"q{k}", float(rng.integers(1, 7)), int(rng.integers(1, 5)), rank=9.0 - k)
        for k in range(6)
    ]
    job = _job("J", 3, 2, rank=1.0)
    made = Snapshot(
        source="here", system="slurm", now_s=0.0, nodes=NODES, jobs=(*busy, *queue, job)
    )
    found = replay(FreeRoom(made), job)
    assert [each.job.id for each in found.planned] == [each.id for each in queue]
    held = [(0.0, one.limit_s or 0.0, one.on) for one in busy]
    for each in found.planned:
        assert sum(each.on.values()) == each.job.count
        end_s = each.start_s + each.job.may_run_s
        for start, end, on in held:
            assert not set(on) & set(each.on) or end <= each.start_s or end_s <= start
        free = 4 - sum(len(on) for start, end, on in held if start <= each.start_s < end)
        assert free >= each.job.count
        held.append((each.start_s, end_s, each.on))
    points = [
        found.start_s,
        *(s for s, _, _ in held if found.start_s < s < found.start_s + 3 * HOUR),
    ]
    for point in points:
        assert sum(len(on) for start, end, on in held if start <= point < end) + job.count <= 4
