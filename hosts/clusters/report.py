"""The report of a snapshot: what was read of a cluster, what runs and waits, and what was noted."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import Noted, SeenJob, Snapshot
from ronda.instances.tables.table import Report, Table


def snapshot_report(seen: Snapshot, *more: Noted) -> Report:
    """Return the report of a snapshot; `more` is what else was noted on the way to a round."""
    types = _types(seen)
    runs = [job for job in seen.jobs if job.on]
    waits = [job for job in seen.jobs if not job.on]
    blocked = sum(job.blocked is not None for job in waits)
    total = sum(row["gpus"] for row in types)
    held = sum(row["held"] for row in types)
    limits = len(seen.groups) + sum(bool(tenant.quotas) for tenant in seen.tenants)
    noted = [line for each in (seen.noted, *more) for line in each.lines()]
    out = sum(node.out is not None for node in seen.nodes)
    fields: dict[str, Any] = {
        "system": seen.system,
        "now_s": seen.now_s,
        "nodes": len(seen.nodes),
        "nodes_out": out,
        "gpus": total,
        "gpus_held": held,
        "gpu_types": types,
        "running": len(runs),
        "waiting": len(waits),
        "blocked": blocked,
        "tenants": len(seen.tenants),
        "limits": limits,
        "licences": dict(seen.licences),
        "policy": seen.policy,
        "noted": noted,
    }
    when = datetime.fromtimestamp(seen.now_s, UTC).strftime("%Y-%m-%d %H:%M:%S")
    barred = f", {blocked} of which may not start yet" if blocked else ""
    words = [
        f"{seen.system} at {when} (UTC): {_many(len(seen.nodes), 'node')}, {out} of them out of "
        f"service; {total:g} GPUs, {held:g} of them held.",
        f"{_many(len(runs), 'job')} run, and {len(waits)} wait{barred}; "
        f"{_many(len(seen.tenants), 'tenant')}, {_many(limits, 'limit')}, "
        f"{_many(len(seen.licences), 'licence')}.",
    ]
    if seen.policy is not None:
        words.append(f"The policy nearest to its rules is {seen.policy}.")
    shown = Table.of("GPUs", [{key: _cell(value) for key, value in row.items()} for row in types])
    jobs = Table.of("Jobs", [_row("running", runs), _row("waiting", waits)])
    return Report(fields, [*words, *([shown] if types else []), jobs], noted)


def _types(seen: Snapshot) -> list[dict[str, Any]]:
    """Return the nodes and GPUs of each type: held, out of service, and free."""
    held = defaultdict[str, float](float)
    for job in seen.jobs:
        for name in job.on:
            held[name] += job.holds(name).get(GPUS, 0.0)
    rows: dict[str, dict[str, Any]] = {}
    for node in seen.nodes:
        gpus = node.has.get(GPUS, 0.0)
        if not gpus:
            continue
        model = node.gpu_type or "unknown"
        empty = {"type": model, "nodes": 0, "gpus": 0.0, "held": 0.0, "free": 0.0, "out": 0.0}
        row = rows.setdefault(model, empty)
        away = node.leaves_s is not None and node.leaves_s <= seen.now_s
        row["nodes"] += 1
        row["gpus"] += gpus
        row["held"] += held[node.name]
        row["out" if away or node.out is not None else "free"] += gpus - held[node.name]
    return list(rows.values())


def _row(state: str, jobs: Iterable[SeenJob]) -> Mapping[str, str]:
    jobs = list(jobs)
    gpus = sum(job.gpus for job in jobs)
    users = len({job.user for job in jobs})
    with_gpus = sum(job.has_gpus for job in jobs)
    return {
        "state": state,
        "jobs": str(len(jobs)),
        "with GPUs": str(with_gpus),
        "GPUs": f"{gpus:g}",
        "users": str(users),
    }


def _cell(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
