"""Snapshots of Slurm, from any of its commands' outputs that show nodes, jobs and limits."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from ronda.hosts.clusters.read import Text
from ronda.hosts.clusters.slurm.amounts import word, words
from ronda.hosts.clusters.slurm.documents import Fields, Sections, json_sections, moments
from ronda.hosts.clusters.slurm.jobs import seen_jobs
from ronda.hosts.clusters.slurm.limits import classes, groups, tenants
from ronda.hosts.clusters.slurm.nodes import seen_nodes, with_racks, with_reservations
from ronda.hosts.clusters.slurm.text import text_sections
from ronda.instances.errors import InputError
from ronda.instances.snapshots.snapshot import Noted, SeenJob, SeenNode, Snapshot
from ronda.instances.traces.hostlists import host_names
from ronda.instances.traces.slurm_cells import number

_OPEN = {"", "ALL", "NONE"}
_CLOSED = {"DOWN", "INACTIVE"}


def slurm_snapshot(files: Sequence[Text], now_s: float | None) -> Snapshot:
    """Return a cluster of Slurm, as files in any order show it (a `Dialect`).

    Without a time, it is the latest that the files name of what has happened already.
    """
    source = ", ".join(file.place for file in files)
    sections: Sections = {}
    latest = 0.0
    noted = Noted()
    for file in (_legible(file, noted) for file in files):
        read = json_sections if file.text.lstrip()[:1] in (b"{", b"[") else text_sections
        for kind, records, *document in read(file):
            if sections.get(kind) and records and kind not in ("racks", "shares"):
                raise InputError(file.place, f"{kind} once more", f"one file with {kind}")
            sections.setdefault(kind, []).extend(records)
            latest = max([latest, *moments([*records, *document])])
    nodes = list(seen_nodes(sections.get("nodes", ()), noted, source))
    partitions = sections.get("partitions", [])
    nodes = _in_partitions(nodes, partitions, source)
    has = {node.name: node.has for node in nodes}
    jobs, ended = seen_jobs(sections.get("jobs", ()), has, noted, source)
    if now_s is None:
        past = [max(job.submit_s, job.start_s or 0.0) for job in jobs]
        told = [number(job.get("read_at")) or 0.0 for job in sections.get("jobs", ())]
        now_s = max([latest, *past, *told])
        noted.add("time taken to be the latest that the files name", f"{now_s:.0f} s")
    nodes = with_racks(nodes, sections.get("racks", ()), source)
    reserved = sections.get("reservations", [])
    nodes = with_reservations(nodes, reserved, now_s, noted, source)
    known = {word(row.get("name")): row for row in reserved}
    jobs = [_placed(job, known, partitions, noted, source) for job in jobs]
    licences, taken = _licences(sections.get("licences", ()), jobs)
    jobs = [_known_licences(job, licences, noted) for job in jobs]
    return Snapshot(
        source=source,
        system="slurm",
        now_s=now_s,
        nodes=tuple(nodes),
        jobs=tuple(jobs),
        ended=tuple(ended),
        tenants=tenants(sections, noted),
        groups=tuple(groups(sections, noted)),
        classes=classes(sections, [job.priority for job in jobs if job.priority]),
        licences=licences,
        licences_taken=taken,
        noted=noted,
    )


def _legible(file: Text, noted: Noted) -> Text:
    """Return a file in UTF-8: Slurm prints names and comments as any bytes that users gave them."""
    text = file.text.decode(errors="replace").encode()
    if text != file.text:
        noted.add("file with bytes that are no UTF-8, read as \ufffd", file.place)
    return Text(file.place, text)


def _in_partitions(
    nodes: Sequence[SeenNode], partitions: Iterable[Fields], place: str
) -> list[SeenNode]:
    """Return nodes with the partitions that list them, if they do not say so themselves."""
    if any(node.partitions for node in nodes):
        return list(nodes)
    of: dict[str, list[str]] = {}
    for row in partitions:
        name = word(row.get("name"))
        for host in host_names(word(row.get("nodes")), f"{place}, partition {name}"):
            of.setdefault(host, []).append(name)
    return [replace(node, partitions=tuple(of.get(node.name, ()))) for node in nodes]


def _placed(
    job: SeenJob,
    reserved: dict[str, Fields],
    partitions: Iterable[Fields],
    noted: Noted,
    place: str,
) -> SeenJob:
    """Return a waiting job as its reservation and its partitions let it start."""
    if job.on:
        return job
    if job.reservation is not None and job.reservation in reserved:
        record = reserved[job.reservation]
        listed = host_names(word(record.get("node_list")), f"{place}, job {job.id}")
        nodes = tuple(name for name in listed if not job.nodes or name in job.nodes)
        begin_s = number(record.get("start_time")) or 0.0
        job = replace(job, nodes=nodes, eligible_s=max(job.eligible_s or job.submit_s, begin_s))
    elif job.reservation is not None:
        noted.add("job of a reservation that no file tells", f"job {job.id}")
    own = [row for row in partitions if word(row.get("name")) in job.partitions]
    closed = [row for row in own if _CLOSED & {s.upper() for s in words(row.get("state"))}]
    if closed and len(closed) == len(job.partitions) and job.blocked is None:
        state = word(closed[0].get("state"))
        job = replace(job, blocked=f"its partition {job.partitions[0]} is {state}")
    for row in own:
        rules = [*row.get("allowed", ()), *row.get("denied", ())]
        if any(word(rule).upper() not in _OPEN for rule in rules):
            noted.add("job in a partition for some accounts, groups or QOS", f"job {job.id}")
    return job


def _licences(
    records: Iterable[Fields], jobs: Iterable[SeenJob]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the licences, and those that are held by others than the running jobs."""
    total: dict[str, float] = {}
    taken: dict[str, float] = {}
    for row in records:
        name = word(row.get("LicenseName"))
        total[name] = number(row.get("Total")) or 0.0
        used = (number(row.get("Used")) or 0.0) + (number(row.get("Reserved")) or 0.0)
        own = sum(job.licences.get(name, 0.0) for job in jobs if job.on)
        if used > own:
            taken[name] = used - own
    return total, taken


def _known_licences(job: SeenJob, licences: dict[str, float], noted: Noted) -> SeenJob:
    for name in job.licences.keys() - licences.keys():
        noted.add("job with a licence that no file tells, left out", f"{name} of job {job.id}")
    return replace(job, licences={k: n for k, n in job.licences.items() if k in licences})
