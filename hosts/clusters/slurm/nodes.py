"""Nodes of Slurm as nodes of a snapshot, with what takes them out of service and for how long."""

from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec.structs import replace

from ronda.hosts.clusters.slurm.amounts import word, words
from ronda.hosts.clusters.slurm.documents import Fields
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import show
from ronda.instances.site import GPUS
from ronda.instances.snapshots.snapshot import CPU, MEMORY, Noted, SeenNode
from ronda.instances.traces.hostlists import host_names
from ronda.instances.traces.slurm_cells import gpus_of, gres, number

_MARKS = {
    "*": "NOT_RESPONDING",
    "$": "MAINTENANCE",
    "@": "REBOOT_REQUESTED",
    "^": "REBOOT_ISSUED",
    "~": "POWERED_DOWN",
    "#": "POWERING_UP",
    "%": "POWERING_DOWN",
    "!": "POWER_DOWN",
    "-": "PLANNED",
}
"""Marks behind a state, and the flags that they stand for (sinfo(1))."""

_FLAGS = {"NO_RESPOND": "NOT_RESPONDING", "MAINT": "MAINTENANCE", "DRAINED": "DRAIN"}
_FLAGS |= {"DRAINING": "DRAIN", "FAILING": "FAIL", "RES": "RESERVED"}

_OUT = {
    "DOWN": "down",
    "ERROR": "in error",
    "UNKNOWN": "in an unknown state",
    "FAIL": "failing",
    "DRAIN": "drained",
    "NOT_RESPONDING": "not answering",
    "REBOOT_ISSUED": "rebooting",
    "INVALID_REG": "registered with other resources than configured",
    "BLOCKED": "blocked by a job that has its topology alone",
}
_Power = Literal["on", "going down", "down", "waking"]
_POWER: dict[str, _Power] = {
    "POWER_UP": "waking",
    "POWERING_UP": "waking",
    "POWERING_DOWN": "going down",
    "POWERED_DOWN": "down",
    "POWER_DOWN": "going down",
}
_BASE = {"IDLE", "ALLOCATED", "MIXED", "DOWN", "ERROR", "UNKNOWN", "FUTURE"}
_KEPT = {"RESERVED": "reserved", "MAINTENANCE": "in maintenance"}


def seen_nodes(records: Sequence[Fields], noted: Noted, place: str) -> Iterator[SeenNode]:
    """Yield the nodes of some records; one that is listed for each partition is one node."""
    merged: dict[str, Fields] = {}
    for record in records:
        name = word(record.get("name"))
        if not name:
            raise InputError(place, f"a node without a name: {show(record)}", "its name")
        other = merged.setdefault(name, record)
        if other is not record:
            differ = [key for key in ("state", "cpus", "gres") if other.get(key) != record.get(key)]
            if differ or words(other.get("partitions")) == words(record.get("partitions")):
                how = f" with another {differ[0]}" if differ else ""
                expected = "each node once, or once for each of its partitions"
                raise InputError(place, f"node {show(name)} twice{how}", expected)
            both = [*words(other.get("partitions")), *words(record.get("partitions"))]
            merged[name] = other | {"partitions": both}
    for name, record in merged.items():
        found = set[str]()  # in words of newer JSON
        for text in [*words(record.get("state")), *words(record.get("state_flags"))]:
            for part in text.upper().split("+"):
                bare = part.rstrip("".join(_MARKS))
                found |= {_MARKS[mark] for mark in part[len(bare) :]} | {_FLAGS.get(bare, bare)}
        found.discard("")
        base = found & _BASE
        if len(base) > 1 or not found:
            raise InputError(
                f"{place}, node {name}, state",
                show(sorted(found)),
                "one state such as IDLE, and flags of it",
            )
        states = found
        if "FUTURE" in states:
            noted.add("node that does not exist yet (FUTURE), left out", name)
        else:
            yield _node(name, record, states, noted)


def _node(name: str, record: Fields, states: set[str], noted: Noted) -> SeenNode:
    cores = number(record.get("effective_cpus")) or number(record.get("cpus")) or 0.0
    real, special = number(record.get("real_memory")), number(record.get("specialized_memory"))
    gpus = gpus_of(record.get("gres"))
    total = sum(gpus.values())
    has = {GPUS: total, CPU: cores, MEMORY: ((real or 0.0) - (special or 0.0)) / 1024}
    has |= {of: n for of, _, n in gres(word(record.get("gres"))) if of != "gpu"}
    model = max(gpus, key=lambda kind: gpus[kind]) if gpus else None
    if len(gpus) > 1:
        noted.add("node with GPUs of several types, taken as all of the most frequent", name)
    elif total and model is None:
        noted.add("node whose GPUs have no type", name)
    # A node with jobs goes down only after they have ended.
    asked = {"POWER_DOWN"} if states & {"ALLOCATED", "MIXED"} else set[str]()
    power: _Power = next((word for flag, word in _POWER.items() if flag in states - asked), "on")
    if power != "on":
        noted.add(f"node that is {power}, in service as Slurm wakes nodes for jobs", name)
        states = states - {"NOT_RESPONDING"}
    why = [text for state, text in _OUT.items() if state in states]
    if record.get("partitions") is not None and not words(record.get("partitions")):
        why.append("in no partition")
    reason = word(record.get("reason"))
    return SeenNode(
        name=name,
        has={of: amount for of, amount in has.items() if amount > 0},
        gpu_type=model,
        partitions=tuple(dict.fromkeys(words(record.get("partitions")))),
        features=tuple(words(record.get("active_features") or record.get("features"))),
        out=", ".join(why) + (f": {reason}" if reason else "") if why else None,
        back_s=number(record.get("resume_after")) or None if why else None,
        reserved=next((text for state, text in _KEPT.items() if state in states), None),
        power=power,
    )


def with_reservations(
    nodes: Sequence[SeenNode], records: Sequence[Fields], now_s: float, noted: Noted, place: str
) -> list[SeenNode]:
    """Return nodes with the next reservation that takes each of them.

    Without the reservations, a node that is reserved now is out of service.
    """
    next_: dict[str, tuple[float, float, str]] = {}
    for record in records:
        name = word(record.get("name"))
        start_s, end_s = number(record.get("start_time")), number(record.get("end_time"))
        if start_s is None or end_s is None or end_s <= start_s:
            found = f"reservation {show(name)} from {start_s} to {end_s}"
            raise InputError(place, found, "a start before its end")
        if not word(record.get("node_list")):
            noted.add("reservation of no whole nodes, left out", name)
        for host in host_names(word(record.get("node_list")), f"{place}, reservation {name}"):
            if end_s <= now_s:
                continue
            if host in next_:
                noted.add("later reservation of a node, left out", f"{name} on {host}")
            next_[host] = min(next_.get(host, (start_s, end_s, name)), (start_s, end_s, name))
    found_nodes = []
    for node in nodes:
        start, kept = next_.get(node.name), node.reserved
        if start is not None:
            begin_s, end_s, name = start
            leaves_s = begin_s if node.out is None else None
            back_s = max(end_s, node.back_s or 0.0) if node.out is None else node.back_s
            node = replace(node, leaves_s=leaves_s, back_s=back_s, reserved=name)
        elif kept is not None:
            noted.add("reserved node whose reservation no file tells", node.name)
            node = replace(node, out=node.out or kept, reserved=None)
        found_nodes.append(node)
    return found_nodes


def with_racks(nodes: Sequence[SeenNode], records: Sequence[Fields], place: str) -> list[SeenNode]:
    """Return nodes with their switches or blocks, from the outermost."""
    paths: dict[str, list[tuple[int, str, str]]] = {}
    for record in records:
        switch, block = word(record.get("SwitchName")), word(record.get("BlockName"))
        level = int(number(record.get("Level")) or 0)
        label = "block" if block else f"switch{level}" if level else "switch"
        for host in host_names(word(record.get("Nodes")), f"{place}, {switch or block}"):
            paths.setdefault(host, []).append((-level, label, switch or block))
    racks = {name: tuple(pair[1:] for pair in sorted(path)) for name, path in paths.items()}
    return [replace(node, racks=racks.get(node.name, ())) for node in nodes]
