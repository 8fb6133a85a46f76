"""Slurm's limits as tenants, groups and classes: associations, QOS and partitions.

What a level of accounts may hold in all (``Grp...``) is a tenant's; ``Max...`` are groups' limits.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from ronda.hosts.clusters.slurm.amounts import word
from ronda.hosts.clusters.slurm.documents import Fields, Sections
from ronda.instances.site import GPUS, LimitGroup, PriorityClass, Quota, Tenant
from ronda.instances.snapshots.snapshot import Noted
from ronda.instances.traces.slurm_cells import number

_UNREAD = ("GrpTRESMins", "MaxTRESMins", "MaxTRESPerNode", "GrpWall", "MinTRES")
_GROUP = ("GrpTRES", "GrpJobs", "GrpTRESRunMins")
_NO_RESOURCE = ("node", "billing", "energy", "vmem", "pages")


def tenants(sections: Sections, noted: Noted) -> tuple[Tenant, ...]:
    """Return the accounts."""
    told = dict(_parents([*sections.get("associations", ()), *sections.get("shares", ())]))
    parents = {name: above if above in told else None for name, above in told.items()}
    found: dict[str, Tenant] = {}
    for row in sections.get("associations", ()):
        name = word(row.get("Account"))
        if name and not word(row.get("User")) and name not in found:
            quotas = [Quota(of=of, limit=n) for of, n in _most(row.get("GrpTRES"), noted, name)]
            share = number(row.get("Share"))
            found[name] = Tenant(
                name=name,
                parent=parents[name],
                quotas=tuple(quotas),
                weight=1.0 if share is None else max(0.0, share),
                max_jobs=_whole(row.get("GrpJobs")),
                max_gpu_s=_gpu_s(row.get("GrpTRESRunMins")),
            )
            _unread(row, noted, f"account {name}")
    others = [Tenant(name=k, parent=above) for k, above in parents.items() if k not in found]
    return (*found.values(), *others)


def _parents(rows: Sequence[Fields]) -> Iterator[tuple[str, str | None]]:
    """Yield accounts and what is above them, as told or as their depth in the tree says."""
    above: list[tuple[int, str]] = []
    told: dict[str, str | None] = {}
    for row in rows:
        name, depth = word(row.get("Account")), int(row.get("depth", 0))
        if not name or word(row.get("User")):
            continue
        above = [(d, other) for d, other in above if d < depth]
        parent = word(row.get("ParentName")) or (above[-1][1] if above else None)
        above.append((depth, name))
        if told.get(name) is None:
            told[name] = parent
    yield from told.items()


def classes(sections: Sections, used: Sequence[str]) -> tuple[PriorityClass, ...]:
    """Return the QOS, ranked by their priority, and those that only jobs name."""
    ranks = {word(row.get("Name")): number(row.get("Priority")) for row in sections.get("qos", ())}
    names = [name for name in dict.fromkeys((*ranks, *used)) if name]
    return tuple(PriorityClass(name=name, rank=int(ranks.get(name) or 0)) for name in names)


def groups(sections: Sections, noted: Noted) -> Iterator[LimitGroup]:
    """Yield the limits of associations, of QOS by their jobs and their partitions, and MaxTime."""
    yield from _of_associations(sections.get("associations", ()), noted)
    partitions = {
        word(row.get("name")): word(row.get("qos")) for row in sections.get("partitions", ())
    }
    for row in sections.get("qos", ()):
        name = word(row.get("Name"))
        _unread(row, noted, f"QOS {name}")
        yield from _of_qos(row, f"QOS {name}", noted, classes=(name,))
        for partition, qos in partitions.items():
            if qos == name:
                label = f"partition {partition}, QOS {name}"
                yield from _of_qos(row, label, noted, partitions=(partition,))
    for row in sections.get("partitions", ()):
        name, limit = word(row.get("name")), number(row.get("max_time"))
        if limit:
            yield LimitGroup(name=f"partition {name}", partitions=(name,), max_limit_s=limit * 60)


def _of_associations(rows: Sequence[Fields], noted: Noted) -> Iterator[LimitGroup]:
    """Yield the limits of users in accounts; users of an account with equal limits are a group."""
    named = {word(row.get("Account")) for row in rows if word(row.get("User"))}
    alike: dict[bytes, tuple[LimitGroup, list[str]]] = {}
    for row in rows:
        account, user = word(row.get("Account")), word(row.get("User"))
        if not account or (not user and account in named):
            continue  # a user's row has what it inherits
        partition = word(row.get("Partition"))
        label = f"account {account}" + (f", partition {partition}" if partition else "")
        where = LimitGroup(
            name=label, tenants=(account,), partitions=(partition,) if partition else ()
        )
        shapes: list[Fields] = [
            {"name": f"{label}, each job", "per": "job", **_job_limits(row, noted, label)},
            {"name": f"{label}, each user", "per": "user", "max_jobs": _whole(row.get("MaxJobs"))},
        ]
        if user:
            in_all = _held_limits(row, noted, f"user {user}", *_GROUP)
            shapes.append({"name": f"{label}, in all", "per": "user", **in_all})
        for group in _limiting(where, shapes):
            alike.setdefault(msgspec.json.encode(group), (group, []))[1].append(user)
    times: Counter[str] = Counter()
    for group, users in alike.values():
        times[group.name] += 1
        nth = f" ({times[group.name]})" if times[group.name] > 1 else ""
        yield replace(group, name=group.name + nth, users=tuple(filter(None, users)))


def _held_limits(row: Fields, noted: Noted, owner: str, most: str, jobs: str, run: str) -> Fields:
    return {
        "most": dict(_most(row.get(most), noted, owner)),
        "max_jobs": _whole(row.get(jobs)),
        "max_gpu_s": _gpu_s(row.get(run)),
    }


def _of_qos(row: Fields, label: str, noted: Noted, **own: tuple[str, ...]) -> Iterator[LimitGroup]:
    whole = _held_limits(row, noted, label, *_GROUP)
    user = _held_limits(row, noted, label, "MaxTRESPU", "MaxJobsPU", "")
    account = _held_limits(row, noted, label, "MaxTRESPA", "MaxJobsPA", "")
    shapes: list[Fields] = [
        whole,
        {"name": f"{label}, each user", "per": "user", **user},
        {"name": f"{label}, each account", "per": "tenant", **account},
        {"name": f"{label}, each job", "per": "job", **_job_limits(row, noted, label)},
    ]
    yield from _limiting(replace(LimitGroup(name=label), **own), shapes)


def _job_limits(row: Fields, noted: Noted, label: str) -> Fields:
    wall = number(row.get("MaxWall"))
    most = dict(_most(row.get("MaxTRES"), noted, label))
    return {"most": most, "max_limit_s": wall * 60 if wall else None}


def _limiting(where: LimitGroup, shapes: Sequence[Fields]) -> Iterator[LimitGroup]:
    """Yield a group with each of some fields that limit anything."""
    for group in (replace(where, **shape) for shape in shapes):
        told = (group.max_jobs, group.max_gpu_s, group.max_limit_s)
        if group.most or any(limit is not None for limit in told):
            yield group


def _most(amounts: object, noted: Noted, owner: str) -> Iterator[tuple[str, float]]:
    """Yield the limits on resources of nodes, and count the others."""
    for of, amount in (amounts if isinstance(amounts, dict) else {}).items():
        if of in _NO_RESOURCE or "/" in of:
            noted.add(f"limit on {of}, left out", owner)
        else:
            yield of, amount


def _gpu_s(amounts: object) -> float | None:
    found = amounts.get(GPUS) if isinstance(amounts, dict) else None
    return None if found is None else found * 60


def _whole(value: object) -> int | None:
    found = number(value)
    return None if found is None or found < 0 else int(found)


def _unread(row: Fields, noted: Noted, owner: str) -> None:
    for column in _UNREAD:
        if row.get(column):
            noted.add(f"limit {column}, left out", owner)
