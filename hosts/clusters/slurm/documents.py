"""Slurm's JSON, of 22.05 (openapi v0.0.38) to 25.11 (data_parser v0.0.44), in sections of records.

Sections are ``jobs``, ``nodes``, ``partitions``, ``reservations``, ``licences``, ``racks``,
``associations``, ``qos`` and ``shares``. Their records have the fields of newer JSON, or those of
``sacctmgr`` for limits, whatever they were read from.
"""

from collections.abc import Callable, Iterator
from typing import Any

from ronda.hosts.clusters.read import Text
from ronda.hosts.clusters.slurm.amounts import tres, word
from ronda.instances.errors import InputError, short
from ronda.instances.files.json import parse
from ronda.instances.rules.problem import show
from ronda.instances.traces.hostlists import host_names
from ronda.instances.traces.slurm_cells import number

Fields = dict[str, Any]
"""A record of Slurm, by name of field."""

Sections = dict[str, list[Fields]]
"""Records of one kind, by kind."""

_MOMENTS = (
    *("last_sched_evaluation", "last_busy", "slurmd_start_time", "reason_changed_at"),
    *("last_update", "last_backfill"),  # of whole documents
)


def json_sections(file: Text) -> Iterator[tuple[str, list[Fields], Fields]]:
    """Yield each section of a JSON document with the document's own fields.

    An InputError is raised if it is no JSON, or has no section that is known.
    """
    found = parse(file.text, file.place, object)
    if isinstance(found, list):  # the records alone
        first = found[0] if found and isinstance(found[0], dict) else {}
        found = {"jobs" if "job_id" in first else "nodes": found}
    document: Fields = dict(found) if isinstance(found, dict) else {}
    document["shares"] = at(document, "shares/shares")
    known = [kind for kind in _KINDS if isinstance(document.get(kind), list)]
    if not known:
        fields = f"fields {', '.join(map(str, found))}" if isinstance(found, dict) else show(found)
        expected = f"the output of a Slurm command with a list {', '.join(_KINDS)}"
        raise InputError(file.place, f"JSON with {short(fields, 200)}", expected)
    for kind in known:
        section, make = _KINDS[kind]
        entries = document[kind]
        if kind == "topology":  # the lines of scontrol show topology
            entries = [dict(part.partition("=")[::2] for part in str(e).split()) for e in entries]
        for k, entry in enumerate(entries):
            if not isinstance(entry, dict):
                raise InputError(f"{file.place}, {kind}[{k}]", show(entry), "an object")
        yield section, [made for entry in entries for made in make(entry)], document


def moments(records: list[Fields]) -> Iterator[float]:
    """Yield times at or before which Slurm wrote records, or a document."""
    for record in records:
        for key in _MOMENTS:
            yield number(record.get(key)) or 0.0


def at(record: Fields, path: str) -> Any:
    """Return the value at a path of keys with slashes, or None."""
    value: Any = record
    for key in path.split("/"):
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _same(record: Fields) -> Iterator[Fields]:
    yield record


def _sinfo(record: Fields) -> Iterator[Fields]:
    """Yield the nodes of one line of ``sinfo --json`` since 23.11, which has equal nodes."""
    listed = at(record, "nodes/nodes")
    names = listed if isinstance(listed, list) else [str(listed or "")]
    partition = at(record, "partition/name") or record.get("partition")
    for name in names:
        for host in host_names(str(name), "nodes/nodes") if name else ():
            yield {
                "name": host,
                "state": at(record, "node/state"),
                "cpus": at(record, "cpus/maximum"),
                "real_memory": at(record, "memory/maximum"),
                "specialized_memory": at(record, "resource_spec/memory"),
                "gres": at(record, "gres/total"),
                "features": at(record, "features/active"),
                "reason": at(record, "reason/description"),
                "partitions": [word(partition).rstrip("*")] if word(partition) else [],
            }


def _share(record: Fields) -> Iterator[Fields]:
    if "USER" not in str(record.get("type")):
        yield {"Account": word(record.get("name")), "ParentName": word(record.get("parent"))}


def _partition(record: Fields) -> Iterator[Fields]:
    yield {
        "name": record.get("name"),
        "nodes": at(record, "nodes/configured"),
        "max_time": number(at(record, "maximums/time")),
        "max_nodes": number(at(record, "maximums/nodes")),
        "qos": at(record, "qos/assigned"),
        "state": at(record, "partition/state"),
        "allowed": [at(record, f"{of}/allowed") for of in ("accounts", "groups", "qos")],
        "denied": [at(record, f"{of}/deny") for of in ("accounts", "qos")],
    }


def _limits(record: Fields, paths: dict[str, str]) -> Fields:
    found: Fields = {}
    for column, path in paths.items():
        value = at(record, path)
        found[column] = tres(value) if isinstance(value, list) else number(value)
    return found


def _association(record: Fields) -> Iterator[Fields]:
    paths = {
        "GrpTRES": "max/tres/total",
        "GrpTRESRunMins": "max/tres/group/active",
        "GrpJobs": "max/jobs/per/count",
        "MaxJobs": "max/jobs/active",
        "MaxTRES": "max/tres/per/job",
        "MaxTRESPerNode": "max/tres/per/node",
        "GrpTRESMins": "max/tres/group/minutes",
        "MaxWall": "max/jobs/per/wall_clock",
        "Share": "shares_raw",
    }
    names = ("account", "user", "partition")
    yield {
        **{name.capitalize(): word(record.get(name)) for name in names},
        "ParentName": word(record.get("parent_account")),
        **_limits(record, paths),
    }


def _qos(record: Fields) -> Iterator[Fields]:
    top = "limits/max"
    paths = {
        "GrpTRES": f"{top}/tres/total",
        "GrpTRESRunMins": f"{top}/tres/minutes/per/qos",
        "GrpTRESMins": f"{top}/tres/minutes/total",
        "GrpJobs": f"{top}/active_jobs/count",
        "MaxTRES": f"{top}/tres/per/job",
        "MaxTRESPerNode": f"{top}/tres/per/node",
        "MaxTRESPU": f"{top}/tres/per/user",
        "MaxTRESPA": f"{top}/tres/per/account",
        "MaxJobsPU": f"{top}/jobs/active_jobs/per/user",
        "MaxJobsPA": f"{top}/jobs/active_jobs/per/account",
        "MaxWall": f"{top}/wall_clock/per/job",
        "Priority": "priority",
    }
    yield {"Name": word(record.get("name")), **_limits(record, paths)}


_KINDS: dict[str, tuple[str, Callable[[Fields], Iterator[Fields]]]] = {
    "jobs": ("jobs", _same),
    "nodes": ("nodes", _same),
    "sinfo": ("nodes", _sinfo),
    "partitions": ("partitions", _partition),
    "reservations": ("reservations", _same),
    "associations": ("associations", _association),
    "qos": ("qos", _qos),
    "QOS": ("qos", _qos),
    "shares": ("shares", _share),
    "licenses": ("licences", _same),
    "topology": ("racks", _same),
}
"""The section of each list of a document, and what makes its records."""
