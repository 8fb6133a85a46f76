"""Every single change of a request, with what it gives up, written out value by value."""

from math import ceil, log2

from msgspec.structs import replace

MIB = 1 / 1024
CHOICES = {"exclusive": False, "own_nodes": False, "one_node": False, "not_nodes": ()}


def every_change(job, seen):
    """Yield the cost and the job of each single change, but for its time limit.

    Memory is asked for in whole MiB; it matters only where pieces fill whole GiB.
    """
    gpus, slices = job.per["gpus"], job.slices
    step = slices.nodes if slices is not None and job.count % slices.nodes == 0 else 1
    for count in range(step, job.count, step):
        yield 1 - count / job.count, replace(job, count=count)
    for left in range(1, int(gpus)):
        yield 1 - left / gpus, replace(job, per=job.per | {"gpus": float(left)})
    for left in range(1, int(job.per["cpu"])):
        yield (1 - left / job.per["cpu"]) / 2, replace(job, per=job.per | {"cpu": float(left)})
    asked = job.per.get("memory_gib", 0.0)
    for left in {MIB, *(int(1024 * n / k) * MIB for n in range(1, 17) for k in range(1, 5))}:
        if left < asked:
            yield (1 - left / asked) / 2, replace(job, per=job.per | {"memory_gib": left})
    yield from _others(job, seen)


def _others(job, seen):
    for field, none in CHOICES.items():
        if getattr(job, field) != none:
            cost = 0.15 if field == "one_node" else 0.1
            yield cost, replace(job, **{field: none})
    if job.features:
        yield 0.15, replace(job, features=())
    if job.gpu_types:
        for types in ((), ("A",), ("B",)):
            if types != job.gpu_types and (
                not types or any(n.gpu_type in types for n in seen.nodes)
            ):
                yield 0.2, replace(job, gpu_types=types)
    named = {part for node in seen.nodes for part in node.partitions}
    named |= {part for group in seen.groups for part in group.partitions}
    for part in named if job.partitions else ():
        if part not in job.partitions:
            yield 0.1, replace(job, partitions=(part,))
    if job.slices is None:
        total = job.count * int(job.per["gpus"])
        for count in range(1, total + 1):
            if total % count == 0 and count != job.count:
                per = {of: job.count * amount / count for of, amount in job.per.items()}
                per["cpu"] = float(ceil(per["cpu"]))
                yield abs(log2(count / job.count)) / 10, replace(job, count=count, per=per)
        return
    yield 0.4, replace(job, slices=None)
    for size in range(1, job.slices.nodes):
        if job.count % size == 0:
            slices = replace(job.slices, nodes=size)
            yield log2(job.slices.nodes / size) / 10, replace(job, slices=slices)
    if job.slices.spread:
        yield 0.1, replace(job, slices=replace(job.slices, spread=False))
