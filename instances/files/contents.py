"""The contents of an instance, a round or a demand series as a report."""

from collections import Counter
from typing import Any

from ronda.instances.cluster import Cluster
from ronda.instances.demand import Demand
from ronda.instances.files.json import fingerprint
from ronda.instances.instance import Instance
from ronda.instances.round import Round
from ronda.instances.tables.table import Report, Table

ORIGIN = ("description", "source", "licence", "citation", "reference", "made")


def document_report(found: Instance | Round | Demand) -> Report:
    """Return a report on the contents of a document."""
    fields: dict[str, Any] = {"name": found.name, "fingerprint": fingerprint(found)}
    if isinstance(found, Demand):
        fields |= _demand(found)
    else:
        fields |= _cluster(found.cluster)
        fields |= _instance(found) if isinstance(found, Instance) else _round(found)
    return fields_report(fields)


def fields_report(fields: dict[str, Any]) -> Report:
    """Return a report on fields; mappings take a line per entry."""
    rows: list[tuple[str, str]] = []
    for name, value in fields.items():
        if value not in ("", None, {}):
            lines = _lines(value)
            rows += zip([name.replace("_", " "), *[""] * len(lines)], lines, strict=False)
    return Report(fields, [Table("", ("", ""), tuple(rows), left=(0, 1))])


def _cluster(cluster: Cluster) -> dict[str, Any]:
    return {
        "nodes": sum(group.count for group in cluster.node_groups),
        "gpus": cluster.gpus,
        "pools": {
            pool.name: f"{pool.nodes} nodes, {pool.gpus} GPUs" for pool in cluster.topology.pools
        },
    }


def _instance(found: Instance) -> dict[str, Any]:
    budget = found.budget
    sizes = Counter(job.gpus for job in found.jobs)
    return {
        "kind": "instance",
        "jobs": len(found.jobs),
        "submitted_s": [found.jobs[0].submit_s, found.jobs[-1].submit_s],
        "jobs_by_gpus": {str(size): number for size, number in sorted(sizes.items())},
        "profiles": {
            profile.name: ", ".join(
                f"{kind}: {type(speed).__name__.lower()}"
                for kind, speed in profile.throughput.items()
            )
            for profile in found.profiles.values()
        },
        "period_s": found.cadence.period_s,
        "decides_on_events": found.cadence.on_event,
        "power_cap_w": None if budget.power_cap_w is None else max(budget.power_cap_w.values),
        "energy_budget_j": None if budget.energy is None else budget.energy.joules,
    } | {name: getattr(found, name) for name in ORIGIN}


def _round(found: Round) -> dict[str, Any]:
    return {
        "kind": "round",
        "now_s": found.now_s,
        "length_s": found.length_s,
        "running": len(found.running),
        "waiting": len(found.waiting),
        "power_cap_w": found.power_cap_w,
        "energy_j": found.energy_j,
        "window_s": None if found.energy_j is None else found.window_s,
        "asleep": len(found.asleep),
        "source": found.source,
    }


def _demand(found: Demand) -> dict[str, Any]:
    columns = {"needed": found.needed, "total": found.total, "active": found.active}
    return {
        "kind": "demand",
        "start": found.start,
        "days": found.days,
        "steps": len(found.needed),
        "step_s": found.step_s,
        "nodes": {
            name: f"{min(nodes)} to {max(nodes)}, mean {sum(nodes) / len(nodes):.1f}"
            for name, nodes in columns.items()
            if nodes
        },
        "published_forecast": bool(found.forecast),
    } | {name: getattr(found, name) for name in ORIGIN}


def _lines(value: Any) -> list[str]:
    """Return the lines of a value, one per entry of a mapping that holds texts or mappings."""
    if not isinstance(value, dict):
        return [_inner(value)]
    pairs = [f"{name}: {_inner(inner)}" for name, inner in value.items()]
    short = not any(isinstance(inner, str | dict) for inner in value.values())
    return [", ".join(pairs)] if short else pairs


def _inner(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_inner(inner)}" for name, inner in value.items())
    if isinstance(value, list):
        words = any(isinstance(inner, str) for inner in value)
        return ("; " if words else " to ").join(map(_inner, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, float | int) else str(value)
