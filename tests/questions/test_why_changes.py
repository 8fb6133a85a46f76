"""Changes of a request on small clusters whose cheapest one is known by hand, with its words."""

from dataclasses import replace as replace_

import pytest
from msgspec.structs import replace

from ronda.instances.job import After, Slices
from ronda.instances.site import LimitGroup
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.fits.answer import fit
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.help.changes import easings
from ronda.questions.why.outlook import FreeRoom

HOUR = 3600.0
NODE = SeenNode(name="a", has={"gpus": 8, "cpu": 64, "memory_gib": 512, "pods": 2}, gpu_type="A100")
BUSY = SeenJob(id="r", start_s=0.0, limit_s=2 * HOUR, per={"gpus": 6, "pods": 1}, on={"a": 1})
LATE = replace(BUSY, id="s", limit_s=5 * HOUR, on={"b": 1})


def _waits(count: int = 1, **per: float) -> SeenJob:
    return SeenJob(id="J", limit_s=10 * HOUR, count=count, per=per)


def _seen(job: SeenJob, *others: SeenJob, **more: object) -> Snapshot:
    fields = {"nodes": (NODE, replace(NODE, name="b", gpu_type="B")), "groups": ()} | more
    jobs = (BUSY, LATE, *others, job)
    return Snapshot(source="here", system="slurm", now_s=0.0, jobs=jobs, **fields)


def _asked(job: SeenJob, *others: SeenJob, starts_now=None, **more: object):
    return easings(WaitingJob(FreeRoom(_seen(job, *others, **more)), job), starts_now)


RACKS = tuple(
    replace(NODE, name=f"{rack}{n}", racks=(("block", rack),), has={"gpus": 8.0})
    for rack in "xy"
    for n in range(3)
)
OTHER = SeenJob(id="k", user="ann", tenant="rich", per={"cpu": 1})
CAP = LimitGroup(name="g", tenants=(), users=("ann",), classes=("low",), most={"cpu": 1})
IN_P = (replace(NODE, partitions=("p",)), replace(NODE, name="c", partitions=("q",)))


@pytest.mark.parametrize(
    ("job", "more", "text", "cost"),
    [
        (_waits(gpus=4), {}, "2 pieces of 2 GPUs instead of 1 piece of 4 GPUs", 0.1),
        (_waits(2, gpus=3), {}, "2 GPUs a piece instead of 3 (1 less)", 1 / 3),
        (_waits(3, gpus=1, pods=1), {}, "2 pieces instead of 3 (1 fewer)", 1 / 3),
        (_waits(2, gpus=1, pods=1, memory_gib=768), {}, "512 GiB of memory a piece", 1 / 6),
        (_waits(gpus=1, cpu=96), {}, "64 CPUs instead of 96 (32 less)", 1 / 6),
        (
            _waits(3, memory_gib=200),
            {"nodes": (NODE, replace(NODE, name="b", out="down"))},
            "174762 MiB of memory a piece instead of 204800 (30038 less)",
            0.5 * (1 - 174762 / 204800),
        ),
        (replace(_waits(gpus=1), exclusive=True), {}, "nodes shared with other jobs", 0.1),
        (replace(_waits(2, gpus=2), one_node=True), {}, "its pieces on several nodes", 0.15),
        (replace(_waits(gpus=1), nodes=("z",)), {}, "without the names of its nodes", 0.1),
        (replace(_waits(gpus=1), features=("hbm",)), {}, "without the label hbm", 0.15),
        (replace(_waits(gpus=1), gpu_types=("H",)), {}, "A100 instead of H", 0.2),
        (
            replace(_waits(gpus=8), partitions=("p",)),
            {"nodes": (*IN_P, replace(NODE, name="b"))},
            "partition q instead of p: --partition=q",
            0.1,
        ),
        (
            replace(_waits(cpu=2), user="ann", priority="low"),
            {"groups": (CAP,), "others": (replace(OTHER, priority="high"),)},
            "in class high: --qos=high",
            0.2,
        ),
        (
            replace(_waits(gpus=1), after=(After(job="x"),), blocked="DependencyNeverSatisfied"),
            {},
            "after the other jobs have ended, however they end: --dependency=afterany",
            0.3,
        ),
        (
            replace(_waits(gpus=1), licences={"lic": 3.0}),
            {"licences": {"lic": 2.0}},
            "2 of lic instead of 3",
            1 / 6,
        ),
        (
            replace(_waits(6, gpus=8), own_nodes=True, slices=Slices(nodes=6, within="block")),
            {"nodes": (*RACKS, *(replace(NODE, name=n) for n in "ab"))},
            "slices of 3 nodes instead of 6: --segment=3",
            0.1,
        ),
        (
            replace(_waits(gpus=1), limit_s=None),
            {"nodes": (replace(NODE, leaves_s=9 * HOUR), replace(NODE, name="b", out="down"))},
            "a time limit of 9 h instead of none: --time=9:00:00",
            0.3,
        ),
    ],
)
def test_the_cheapest_change(job: SeenJob, more: dict, text: str, cost: float) -> None:
    """What starts the job now at the lowest cost, in words with numbers."""
    fields = dict(more)
    first = _asked(job, *fields.pop("others", ()), **fields)[0]
    assert first.start_s == 0
    assert first.text.startswith(text)
    assert first.cost == pytest.approx(cost)


def test_pieces_keep_their_pods() -> None:
    """Work in fewer pieces needs fewer pods, and as much of all else."""
    other = replace(BUSY, id="t", per={"pods": 1}, limit_s=9 * HOUR)
    down = replace(NODE, name="b", out="down")
    (first, *_) = _asked(_waits(2, gpus=4, cpu=8, pods=1), other, nodes=(NODE, down))
    assert first.text == "1 piece of 8 GPUs instead of 2 pieces of 4 GPUs"
    assert first.job.per == {"gpus": 8, "cpu": 16, "pods": 1}
    assert first.start_s == 2 * HOUR


def test_two_changes_only_if_none_helps() -> None:
    """Both are told, each as small as can be."""
    (first, *_) = _asked(_waits(cpu=100, memory_gib=600))
    cpu, memory = first.text.split("; ")
    assert cpu == "64 CPUs instead of 100 (36 less)"
    assert memory == "512 GiB of memory instead of 600 (88 less): --mem=512G"
    assert first.kinds == ("cpu", "memory_gib")


def test_a_hole_of_the_queue() -> None:
    """A job that could start now is told what fits beside the others: less time, or fewer GPUs."""
    (only,) = _asked(_waits(gpus=1), starts_now=lambda job: job.limit_s <= 7300)
    assert only.text == "a time limit of 2 h 1 min instead of 10 h: --time=2:01:00"
    assert _asked(_waits(gpus=1)) == []
    assert _asked(_waits(gpus=1), starts_now=lambda _: False) == []
    split, fewer = _asked(_waits(gpus=3), starts_now=lambda job: job.per["gpus"] <= 2)
    assert split.text == "3 pieces of 1 GPU instead of 1 piece of 3 GPUs"
    assert fewer.text == "2 GPUs instead of 3 (1 less)"


def test_earlier_and_earliest() -> None:
    """If nothing starts it now, as little as starts it earlier, and as early as can be."""
    full = [replace(BUSY, per={"cpu": 8}), replace(LATE, per={"cpu": 12})]
    nodes = (replace(NODE, has={"cpu": 8}), replace(NODE, name="b", has={"cpu": 12}))
    seen = replace_(_seen(_waits(cpu=16)), nodes=nodes, jobs=tuple(full))
    found = easings(WaitingJob(FreeRoom(seen), _waits(cpu=16)))
    texts = {one.text: one.start_s / HOUR for one in found}
    assert texts == {"12 CPUs instead of 16 (4 less)": 5, "8 CPUs instead of 16 (8 less)": 2}


def test_sizes_of_a_request() -> None:
    """Each size starts when its best shape does."""
    found = fit(_seen(_waits(gpus=8)), "J")
    starts = [(one.job.count, one.job.per["gpus"], one.start_s / HOUR) for one in found.sizes]
    assert starts == [(1, 8, 2), (2, 2, 0), (1, 2, 0), (1, 1, 0)]
