"""Jobs whose stop the site's rules would allow: above their guarantee, or of lower priority."""

from dataclasses import replace as with_fields

import pytest
from msgspec.structs import replace

from ronda.instances.site import PriorityClass, Quota, Tenant
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.why.answer import why

NODE = SeenNode(name="n", has={"gpus": 8, "cpu": 64})
TENANTS = (
    Tenant(name="all"),
    Tenant(name="mine", parent="all", quotas=(Quota(guaranteed=4),)),
    Tenant(name="theirs", parent="all", quotas=(Quota(guaranteed=4),)),
)


def _seen(job: SeenJob, *running: SeenJob, system: str = "kai", **more: object) -> Snapshot:
    return Snapshot(
        source="here", system=system, now_s=0.0, nodes=(NODE,), jobs=(*running, job), **more
    )


def _runs(job: str, gpus: float, **more: object) -> SeenJob:
    held = {"gpus": gpus, "cpu": 4.0}
    return SeenJob(id=job, start_s=0.0, limit_s=7200.0, per=held, on={"n": 1}, **more)


JOB = SeenJob(id="J", tenant="mine", per={"gpus": 4.0}, limit_s=3600.0)
OVER = _runs("r", 6, tenant="theirs")


def test_what_others_borrow() -> None:
    """A tenant below its guarantee hears of those above theirs, with the numbers."""
    found = why(_seen(JOB, OVER, tenants=TENANTS), "J")
    assert (found.reason.kind, found.reason.name) == ("order", "quota")
    assert "holds 0 of the 4 GPUs" in found.reason.text
    assert "theirs holds 6 GPUs of 4" in found.reason.text
    assert found.start_s == 7200.0


@pytest.mark.parametrize(
    "seen",
    [
        _seen(replace(JOB, per={"gpus": 5.0}), OVER, tenants=TENANTS),
        _seen(JOB, replace(OVER, preemptible=False), tenants=TENANTS),
        _seen(JOB, _runs("r", 5, tenant="mine"), tenants=TENANTS),
        _seen(JOB, _runs("r", 4, tenant="theirs"), _runs("s", 1), tenants=TENANTS),
        _seen(JOB, OVER, tenants=TENANTS, system="slurm"),
        _seen(replace(JOB, per={"gpus": 1.0, "cpu": 61.0}), OVER, tenants=TENANTS),
        with_fields(_seen(JOB, OVER), tenants=()),
    ],
)
def test_nothing_to_take_back(seen: Snapshot) -> None:
    """Above the own guarantee, for other resources, or where nobody stops, the reason stays."""
    assert why(seen, "J").reason.kind in ("room", "limit")


@pytest.mark.parametrize(
    ("mine", "theirs", "kind"), [("high", "low", "order"), ("low", "high", "room")]
)
def test_lower_priority(mine: str, theirs: str, kind: str) -> None:
    """Jobs of a lower class could make way; those of a higher one could not."""
    classes = (PriorityClass(name="high", rank=2), PriorityClass(name="low", rank=1))
    job = replace(JOB, priority=mine)
    found = why(_seen(job, _runs("r", 6, priority=theirs), classes=classes, system="kueue"), "J")
    assert found.reason.kind == kind
