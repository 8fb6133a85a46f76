"""Tiny clusters in use, and the least harm that makes room in them by trying everything.

Written apart from the model: all ways to let jobs stay, stop or move, from the least harm on, and
all placements of those that move and of the job that waits.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace as replace_fields
from itertools import combinations, product

import numpy as np
from msgspec.structs import replace

from ronda.instances.job import Slices
from ronda.instances.site import Disruption, LimitGroup, PriorityClass, Quota, Tenant
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.makeroom.loose import RoomTerms
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.outlook import FreeRoom

HOUR = 3600.0


def crowded(seed: int) -> tuple[Snapshot, RoomTerms]:
    """Return a random cluster of 2 to 4 nodes with up to 5 running jobs and job J, which waits.

    In every other one there is room to move jobs, and little else that keeps them where they are.
    """
    rng, roomy = np.random.default_rng([seed, 71]), seed % 2 == 1

    def some(share: float) -> bool:
        return bool(rng.random() < share * (0.3 if roomy and share < 0.5 else 1.0))

    nodes = tuple(
        SeenNode(
            name=f"n{k}",
            has={
                "gpus": 4.0 if roomy else float(rng.choice([2, 4, 4])),
                "cpu": 12.0 if roomy else float(rng.choice([4, 8, 8])),
            },
            gpu_type="A" if some(0.85) else "B",
            partitions=("p", "q") if some(0.7) else ("p",),
            racks=(("rack", f"r{k % 2}"), ("row", f"o{k % 2 if some(0.5) else 0}")),
            out="drained" if some(0.05) else None,
            leaves_s=3 * HOUR if some(0.1) else None,
        )
        for k in range(int(rng.integers(2, 5)))
    )
    free = {node.name: dict(node.has) for node in nodes}
    if some(0.1):
        free["n0"]["cpu"] += 2.0  # its jobs may hold more than it has
    jobs = []
    for k in range(int(rng.integers(2, 6))):
        job = _job(rng, f"j{k}", some)
        at = [n for n in free if all(free[n][r] >= a for r, a in job.per.items())]
        at = [n for n in at if not job.exclusive or free[n] == dict(nodes[int(n[1:])].has)]
        on: dict[str, int] = {}
        for _ in range(job.count):
            able = [n for n in at if not (job.own_nodes or job.exclusive) or n not in on]
            able = [n for n in able if all(free[n][r] >= a for r, a in job.per.items())]
            if able and (not job.one_node or not on or next(iter(on)) in able):
                n = next(iter(on)) if job.one_node and on else str(rng.choice(able))
                on[n] = on.get(n, 0) + 1
                for r, a in job.per.items():
                    free[n][r] -= free[n][r] if job.exclusive else a
        if not on:
            continue
        held = {}
        if some(0.15) and not job.exclusive:
            held = {n: {r: a * count for r, a in job.per.items()} for n, count in on.items()}
        start_s = -float(rng.integers(0, 5)) * HOUR
        job = replace(job, on=on, count=sum(on.values()), start_s=start_s, held=held)
        jobs.append(replace(job, preemptible=some(0.92), limit_s=start_s * -1 + 4 * HOUR))
    waits = _job(rng, "J", some)
    count, gpus = ((1, 4.0), (1, 2.0), (2, 2.0), (3, 1.0))[0 if roomy else int(rng.integers(4))]
    waits = replace(waits, count=count, per={**waits.per, "gpus": gpus}, limit_s=2 * HOUR, rank=3.0)
    if some(0.2):
        kinds = [Slices(nodes=2), Slices(nodes=1, spread=True), Slices(balanced=True)]
        slices = kinds[int(rng.integers(3))]
        slices = replace(slices, together="row") if some(0.4) else slices
        waits = replace(
            waits, slices=slices, own_nodes=True, one_node=False, exclusive=False, partitions=()
        )
        waits = replace(waits, count=2 if slices.nodes == 2 else waits.count)
    snapshot = Snapshot(
        source="tiny",
        system="slurm",
        now_s=0.0,
        nodes=nodes,
        jobs=(*jobs, waits),
        **_limits(rng, some),
    )
    terms = RoomTerms(
        least=str(rng.choice(["lost", "jobs", "users", "stopped"])),
        most_jobs=int(rng.integers(1, 4)) if some(0.15) else None,
        most_gpus=float(rng.integers(2, 9)) if some(0.2) else None,
        only_below=str(rng.choice(["rank", "class", "quota"])) if some(0.3) else None,
        moves_only=some(0.25),
        checkpoint_s=1.5 * HOUR if some(0.3) else None,
    )
    return snapshot, terms


def _job(rng: np.random.Generator, name: str, some) -> SeenJob:
    shape = rng.choice(["", "own_nodes", "one_node", "exclusive"], p=[0.5, 0.2, 0.15, 0.15])
    return SeenJob(
        id=name,
        user=str(rng.choice(["u", "v", "w"])) if some(0.9) else None,
        tenant=str(rng.choice(["a", "b"])) if some(0.9) else None,
        partitions=(("p",), ("q",), ("q", "p"))[int(rng.integers(3))] if some(0.5) else (),
        priority=str(rng.choice(["low", "high"])),
        rank=float(rng.integers(1, 6)),
        count=int(rng.choice([1, 1, 2])),
        per={"gpus": float(rng.choice([1, 1, 2])), "cpu": float(rng.choice([1, 2, 3]))},
        gpu_types=("A",) if some(0.1) else (),
        licences={"l": 1.0} if some(0.3) else {},
        **({shape: True} if shape else {}),
    )


def _limits(rng: np.random.Generator, some) -> dict[str, object]:
    guaranteed = [float(g) for g in rng.integers(1, 5, 2)]
    lend = float(rng.integers(0, 3)) if some(0.3) else None
    quotas = [
        Quota(guaranteed=g, borrow=float(rng.integers(0, 4)) if some(0.5) else None, lend=lend)
        for g in guaranteed
    ]
    tenants = (
        Tenant(name="all", disruption=Disruption(jobs=2) if some(0.1) else Disruption()),
        Tenant(name="a", parent="all", quotas=(quotas[0],), max_jobs=2 if some(0.2) else None),
        Tenant(name="b", parent="all", quotas=(quotas[1],), min_run_s=HOUR if some(0.2) else 0.0),
    )
    groups = (
        LimitGroup(name="g", per="user", most={"gpus": float(rng.integers(2, 6))}),
        LimitGroup(name="h", partitions=("p",), most={"cpu": float(rng.integers(4, 12))}),
        LimitGroup(name="t", max_gpu_s=float(rng.integers(10, 40)) * HOUR),
        LimitGroup(name="A", most={"A": float(rng.integers(2, 6))}),
    )
    return {
        "tenants": tenants if some(0.6) else (Tenant(name="a"), Tenant(name="b")),
        "groups": tuple(group for group in groups if some(0.2)),
        "classes": (PriorityClass(name="low", rank=0), PriorityClass(name="high", rank=1)),
        "licences": {"l": float(rng.integers(1, 3))},
    }


def least_by_trying(snapshot: Snapshot, terms: RoomTerms) -> tuple[float, ...] | None:
    """Return the least harm, in the order of the terms, by which J may start now, or None."""
    order = ["lost", "jobs", "users", "stopped"]
    order = [terms.least, *(name for name in order if name != terms.least)]
    running = [job for job in snapshot.jobs if job.start_s is not None]
    choices = [("stay", "move", "stop") if _may(job, snapshot, terms) else ("stay",)
               for job in running]  # fmt: skip
    found = []
    for choice in product(*choices):
        gone = [job for job, what in zip(running, choice, strict=True) if what != "stay"]
        stopped = [job for job, what in zip(running, choice, strict=True) if what == "stop"]
        if _within_terms(snapshot, terms, running, gone, stopped):
            harm = {
                "lost": sum(_gpus(snapshot, job) * _lost_s(job, terms) for job in gone),
                "jobs": len(gone),
                "users": len({job.user or job.tenant for job in gone} - {None}),
                "stopped": len(stopped),
            }
            found.append((tuple(harm[name] for name in order), choice))
    for harm, choice in sorted(found):
        pairs = list(zip(running, choice, strict=True))
        moved = [job for job, what in pairs if what == "move"]
        stay = [job for job, what in pairs if what == "stay"]
        if _possible(snapshot, stay, moved):
            return harm
    return None


def _lost_s(job: SeenJob, terms: RoomTerms) -> float:
    return min(-job.start_s, terms.checkpoint_s or np.inf)


def _holds(job: SeenJob, node: SeenNode) -> dict[str, float]:
    if job.exclusive:
        return node.has
    return {r: a * job.on[node.name] for r, a in job.per.items()}


def _gpus(snapshot: Snapshot, job: SeenJob) -> float:
    return sum(_holds(job, node)["gpus"] for node in snapshot.nodes if node.name in job.on)


def _may(job: SeenJob, snapshot: Snapshot, terms: RoomTerms) -> bool:
    waits, rank = snapshot.jobs[-1], {"low": 0, "high": 1}
    if not job.preemptible:
        return False
    if any(t.name == job.tenant and -job.start_s < t.min_run_s for t in snapshot.tenants):
        return False
    if terms.only_below == "rank":
        return job.rank < waits.rank
    if terms.only_below == "class":
        return rank[job.priority] < rank[waits.priority]
    return terms.only_below is None or job.tenant is not None


def _within_terms(snapshot, terms, running, gone, stopped) -> bool:
    gpus = sum(_gpus(snapshot, job) for job in gone)
    for tenant in snapshot.tenants:
        own = [j for j in gone if j.tenant is not None and tenant.name in (j.tenant, "all")]
        if tenant.disruption.jobs is not None and len(own) > tenant.disruption.jobs:
            return False
        for quota in tenant.quotas if terms.only_below == "quota" else ():
            held = sum(_gpus(snapshot, j) for j in running if j.tenant == tenant.name)
            if sum(_gpus(snapshot, j) for j in own) > max(0.0, held - quota.guaranteed):
                return False
    return (
        (terms.most_jobs is None or len(gone) <= terms.most_jobs)
        and (terms.most_gpus is None or gpus <= terms.most_gpus)
        and not (terms.moves_only and stopped)
    )


def _possible(snapshot: Snapshot, stay: list[SeenJob], moved: list[SeenJob]) -> bool:
    """Return whether J can start when some jobs stay and others are put anywhere."""
    waits = snapshot.jobs[-1]
    kept = Snapshot(
        **{**_fields(snapshot), "jobs": (*stay, *moved, waits)},
    )
    waiting = WaitingJob(FreeRoom(kept), waits)
    for asked in waiting.asked():
        if not waiting.allowed(asked, 0.0):
            continue
        may = {node.name for node, own in zip(snapshot.nodes, asked.nodes, strict=True) if own}

        def limited(on, asked=asked) -> bool:
            if not waits.exclusive:
                return True
            has = [node.has for node in snapshot.nodes if node.name in on]
            charged = {r: sum(each[r] for each in has) for r in has[0]}
            limits = waiting.outlook.limits.met_by(waits, asked.way, charged)
            return waiting.allowed(replace_fields(asked, limits=list(limits)), 0.0)

        if _fit(snapshot, [(job, False) for job in stay], [*moved, waits], may, limited):
            return True
    return False


def _fields(snapshot: Snapshot) -> dict[str, object]:
    return {name: getattr(snapshot, name) for name in snapshot.__dataclass_fields__}


def _fit(snapshot, placed, left, may, limited) -> bool:
    """Return whether jobs find room one after another, the last of them on nodes it may use."""
    if not left:
        return True
    job, *rest = left
    for on in _placements(snapshot, job, may if not rest else None):
        here = [(replace(job, on=on), True)]
        if not _room(snapshot, [*placed, *here]) or (not rest and not limited(on)):
            continue
        if _fit(snapshot, [*placed, *here], rest, may, limited):
            return True
    return False


def _placements(snapshot, job, may) -> Iterator[dict[str, int]]:
    kinds = {node.gpu_type for node in snapshot.nodes if node.name in job.on}
    if len(kinds) > 1:
        return
    able = []
    for node in snapshot.nodes:
        end_s = job.start_s + job.limit_s if job.on else job.limit_s
        closed = node.out is not None or (node.leaves_s is not None and node.leaves_s < end_s)
        if job.on:
            inside = not job.partitions or job.partitions[0] in node.partitions
            inside &= node.gpu_type in kinds and (not job.gpu_types or node.gpu_type == "A")
        else:
            inside = node.name in may
        if inside and not closed:
            able.append(node)
    if job.exclusive and job.on:  # as many pieces on each of as many nodes
        pieces = sorted(job.on.values())
        for nodes in combinations(able, len(pieces)):
            for order in {*_orders(pieces)}:
                yield {node.name: count for node, count in zip(nodes, order, strict=True)}
        return
    if job.held:  # what it has on each node stays together
        pieces = list(job.on.values())
        for nodes in product(able, repeat=len(pieces)):
            if not job.own_nodes or len({n.name for n in nodes}) == len(nodes):
                on = Counter()
                for node, count in zip(nodes, pieces, strict=True):
                    on[node.name] += count
                yield dict(on)
        return
    for counts in product(range(job.count + 1), repeat=len(able)):
        if sum(counts) != job.count or (job.own_nodes and max(counts, default=0) > 1):
            continue
        on = {node.name: count for node, count in zip(able, counts, strict=True) if count}
        if (not job.one_node or len(on) == 1) and (job.slices is None or _sliced(job, on, able)):
            yield on


def _orders(pieces):
    return {tuple(pieces), tuple(reversed(pieces))}


def _sliced(job, on, able) -> bool:
    racks = {node.name: dict(node.racks) for node in able}
    each = Counter(racks[name]["rack"] for name in on)
    if job.slices.together is not None and len({racks[name]["row"] for name in on}) > 1:
        return False
    if job.slices.balanced:
        return max(each.values()) - min(each.values()) <= 1
    if job.slices.spread:
        return max(each.values()) == 1
    return all(count % job.slices.nodes == 0 for count in each.values())


def _room(snapshot, placed) -> bool:
    """Return whether what has come finds room beside what stays."""
    for node in snapshot.nodes:
        here = [(job, new) for job, new in placed if node.name in job.on]
        if not any(new for _, new in here):
            continue
        if len(here) > 1 and any(job.exclusive for job, _ in here):
            return False
        for r, has in node.has.items():
            asked = [job.per[r] * job.on[node.name] for job, new in here if new]
            held = [_holds(job, node)[r] for job, new in here if not new]
            if sum(asked) + sum(held) > has + 1e-9:
                return False
    return True
