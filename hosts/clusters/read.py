"""Snapshots of a cluster from the files that its own tools write, whichever its scheduler is."""

from collections import Counter
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from ronda.instances.errors import InputError
from ronda.instances.files import storage
from ronda.instances.rules.cluster import tree_problems
from ronda.instances.rules.problem import as_error, one_of, show, too_many
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import Snapshot

_KUBERNETES = "ronda.hosts.clusters.kubernetes"

SYSTEMS = {
    "slurm": "ronda.hosts.clusters.slurm.snapshots:slurm_snapshot",
    "kueue": f"{_KUBERNETES}.kueue:read_kueue",
    "kai": f"{_KUBERNETES}.kai:read_kai",
    "kubernetes": f"{_KUBERNETES}.podgroups:read_kubernetes",
}
"""The reader of each scheduler's files, as ``module:function``; loaded when it is asked for."""

_SLACK = 1e-6


class Text(NamedTuple):
    """The text of a file, and the name that messages give to it."""

    place: str
    text: bytes


Dialect = Callable[[Sequence[Text], float | None], Snapshot]
"""A function that makes a snapshot of all files of one cluster, and of the time if it is told.

It recognises each file by its content, and refuses one that it does not know.
"""


def read_snapshot(system: str, files: Sequence[str | Path], now_s: float | None = None) -> Snapshot:
    """Return a cluster as it is now, as the tools of a scheduler in `SYSTEMS` show it.

    The files are their outputs in any order, plain or compressed; ``-`` means standard input.
    `now_s` is when they were written, if they do not say so themselves. An InputError is raised if
    a file is unknown, broken or of another cluster, or if the files contradict each other.
    """
    if system not in SYSTEMS:
        raise InputError("system", show(system), one_of(SYSTEMS, system))
    if not files:
        raise InputError(system, "no file", "the outputs of its tools")
    return read_texts(system, [text_of(path) for path in files], now_s)


def read_texts(system: str, texts: Sequence[Text], now_s: float | None) -> Snapshot:
    """Return a cluster as it is now, as `read_snapshot` does, from texts that were read already."""
    module, _, name = SYSTEMS[system].partition(":")
    dialect: Dialect = getattr(import_module(module), name)
    found = dialect(texts, now_s)
    _refuse_contradictions(found)
    return found


def text_of(path: str | Path) -> Text:
    """Return the text of a file, or of standard input if the path is ``-``."""
    if str(path) == "-":
        return Text("standard input", storage.unpack(storage.standard_input(), "standard input"))
    place = storage.label(path)
    return Text(place, storage.unpack(storage.read_bytes(Path(path)), place))


def _refuse_contradictions(seen: Snapshot) -> None:
    """Refuse what no cluster can be in, and count what is odd."""
    for kind, names in (
        ("node", [node.name for node in seen.nodes]),
        ("job", [job.id for job in seen.jobs]),
    ):
        _refuse_too_many(seen.source, f"{kind}s", len(names))
        name, count = Counter(names).most_common(1)[0] if names else ("", 0)
        if count > 1:
            found = f"{kind} {show(name)} twice"
            raise InputError(seen.source, found, f"each {kind} once, of one moment")
    _refuse_too_many(seen.source, "gpus", sum(int(node.has.get(GPUS, 0)) for node in seen.nodes))
    tree = list(tree_problems(seen.tenants, "tenants"))
    if tree:
        raise as_error(seen.source, tree)
    if not seen.nodes:
        raise InputError(seen.source, "no nodes", "the output that lists the cluster's nodes")
    has = {node.name: node.has for node in seen.nodes}
    held: dict[str, Counter[str]] = {name: Counter() for name in has}
    for job in seen.jobs:
        if max(job.submit_s, job.start_s or 0.0) > seen.now_s:
            found = f"job {show(job.id)}, submitted or started after now ({seen.now_s:.0f} s)"
            raise InputError(seen.source, found, "the time at which the files were written")
        for node in job.on:
            if node not in has:
                found = f"running job {show(job.id)} on node {show(node)}, which no file lists"
                raise InputError(seen.source, found, "the nodes of the whole cluster")
            held[node].update(job.holds(node))
    for node, amounts in held.items():
        for of, amount in amounts.items():
            if amount <= has[node].get(of, 0.0) + _SLACK:
                continue
            words = f"node {node}: {amount:g} {of} held of {has[node].get(of, 0.0):g}"
            if of == GPUS:
                expected = "jobs and nodes of one moment, and of one cluster"
                raise InputError(seen.source, f"{words} by running jobs", expected)
            seen.noted.add(f"node whose jobs hold more {of} than it has", words)


def _refuse_too_many(place: str, what: str, number: int) -> None:
    for problem in too_many(place, what, number):
        raise InputError(place, problem.found, problem.expected)
