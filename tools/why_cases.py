"""Public cases of jobs that wait, as snapshots, and how our answers compare with theirs.

``python -m tools.why_cases CASES.jsonl`` tells ours and, in brackets, theirs. Times are hours.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ronda.instances.job import After, Slices
from ronda.instances.site import LimitGroup, Quota, Tenant
from ronda.instances.snapshots.snapshot import Noted, SeenJob, SeenNode, Snapshot
from ronda.questions.why.answer import why
from ronda.questions.why.words import WATTS

HOUR = 3600.0
NAMES = {"gpus": "gpus", "cpus": "cpu", "mem_gb": "memory_gib", "pods": "pods"}
WORDS, UNITS = {"gpu": "gpus", "cpu": "cpu", "mem": "memory_gib"}, (1.0, 1000.0, 1024.0)
"""The resource that a counter counts, by what stands in its name, and in which units it may."""

COUNTS = ("job", "task", "lic", "run", "app", "slot")
"""Words in the names of counters that count no resource of nodes."""

PER_PIECE = {"watt": WATTS, "node": "nodes"}
"""The resources that counters count and nodes do not lack, by what stands in their names."""

UP = {"up", "idle", "mixed", "allocated", "ready"}
"""The states of nodes that take jobs."""

READ = {
    "state": "nodes queues running pending limits",
    "nodes": "name cpus mem_gb gpus pods state configured_gpus gpu_type queue block reason back_h "
    "features",
    "queues": "name nodes max_time_h deserved used nominal",
    "running": "id left_h alloc user queue prio",
    "pending": "id n per limit_h user queue prio needs only type distinct exclusive segment "
    "dependency depends_on begin_h exclude features",
    "limits": "counters windows hard policy note",
    "windows": "name nodes queue jobs users from_h to_h start_h end_h",
    "counters": "name limit held other",
    "hard": "what asked max",
}
"""The fields of a case's state that are read; others are noted."""

Case = Mapping[str, Any]


def _amounts(of: Case) -> dict[str, float]:
    return {NAMES[name]: float(amount) for name, amount in of.items() if name in NAMES and amount}


def snapshot_of_case(case: Case) -> Snapshot:
    """Return the cluster of a case; the job that is asked about is the first that waits."""
    state, noted = case["state"], Noted()
    queues = {queue["name"]: queue for queue in state["queues"]}
    pods = {"pods": 1.0} if any("pods" in node for node in state["nodes"]) else {}
    jobs = [_running(one, pods) for one in state["running"]]
    for node in state["nodes"]:
        if node.get("queue") in queues:
            queues[node["queue"]] = {"nodes": (), **queues[node["queue"]]}
    pending = [_waiting(one, queues, pods) for one in state["pending"]]
    jobs += [replace(job, submit_s=float(k - len(pending))) for k, job in enumerate(pending)]
    nodes = [_node(node, queues) for node in state["nodes"]]
    first = len(state["running"])
    longest = {name: queue["max_time_h"] for name, queue in queues.items() if "max_time_h" in queue}
    groups = [LimitGroup(name=n, partitions=(n,), max_limit_s=h * HOUR) for n, h in longest.items()]
    for hard in state["limits"].get("hard", ()):
        if "MaxWall" in hard["what"]:
            name = hard["what"].removesuffix(" h").removesuffix(" MaxWall")
            groups.append(LimitGroup(name=name, max_limit_s=hard["max"] * HOUR))
        elif "MaxTime" not in hard["what"]:
            jobs[first] = replace(jobs[first], blocked=hard["what"])
    licences, taken = dict[str, float](), dict[str, float]()
    for counter in state["limits"].get("counters", ()):
        name, asked = counter["name"], _asked(counter, state)
        left = max(0.0, counter["limit"] - counter["other"])
        of = next((of for word, of in PER_PIECE.items() if word in name.lower()), None)
        if of is not None:
            jobs = [_with(job, of, asked.get(job.id, 0.0)) for job in jobs]
            nodes = [replace(node, has=node.has | {of: inf}) for node in nodes]
            groups.append(LimitGroup(name=name, users=tuple(asked), most={of: left}))
        elif _is_gpu_time(counter, asked, jobs):
            groups.append(LimitGroup(name=name, users=tuple(asked), max_gpu_s=left * HOUR))
        elif (found := _resource(name, asked, jobs, state["nodes"])) is not None:
            most = {found[0]: left / found[1]}
            groups.append(LimitGroup(name=name, users=tuple(asked), most=most))
        else:
            licences[name], taken[name] = float(counter["limit"]), float(counter["other"])
            for j, job in enumerate(jobs):
                if asked.get(job.id):
                    jobs[j] = replace(job, licences={**job.licences, name: float(asked[job.id])})
    jobs = [replace(job, tenant=job.user, user=job.id) for job in jobs]
    tenants = _tenants(state["queues"], state["nodes"])
    if tenants:
        owners = {one["id"]: one.get("queue") for one in state["running"] + state["pending"]}
        used = [queue["name"] for queue in state["queues"] if queue.get("used")]
        sole = used[0] if len(used) == 1 else None
        jobs = [replace(job, tenant=owners[job.id] or sole) for job in jobs]
    for window in state["limits"].get("windows", ()):
        nodes = [_closed(node, window, noted) for node in nodes]
        its = {*window.get("jobs", ()), *window.get("users", ())}
        inside = [one["id"] for one in state["pending"] if {one["id"], one.get("user")} & its]
        jobs = [replace(j, reservation=window["name"]) if j.id in inside else j for j in jobs]
    _note_unread(state, noted)
    return Snapshot(
        source=case["id"],
        system="slurm" if "slurm" in case["system"].lower() else "kueue",
        now_s=0.0,
        nodes=tuple(nodes),
        jobs=tuple(jobs),
        groups=tuple(groups),
        tenants=tenants,
        licences=licences,
        licences_taken=taken,
        noted=noted,
    )


def _asked(counter: Case, state: Case) -> dict[str, float]:
    """Return what each job holds of a counter, or asks for; also of none, if it is the first."""
    needs = {one["id"]: one.get("needs", {}).get(counter["name"]) for one in state["pending"]}
    first = state["pending"][0]["id"]
    asked = {name: need for name, need in needs.items() if need is not None or name == first}
    return dict(counter["held"]) | {name: need or 0.0 for name, need in asked.items()}


def _with(job: SeenJob, of: str, amount: float) -> SeenJob:
    """Return a job that holds an amount of a resource in equal shares of its pieces."""
    if job.held:
        share = {of: amount / len(job.held)}
        return replace(job, held={node: has | share for node, has in job.held.items()})
    return replace(job, per=job.per | ({of: amount / job.count} if amount else {}))


def _closed(node: SeenNode, window: Case, noted: Noted) -> SeenNode:
    """Return a node that a reservation closes; a second reservation is noted."""
    if node.name not in window.get("nodes", (node.name,)):
        return node
    if "queue" in window and window["queue"] not in node.partitions:
        return node
    if node.leaves_s is not None:
        noted.add("second window of a node, which is left out", f"{window['name']} of {node.name}")
        return node
    begin, end = (
        window.get(a, window.get(b)) for a, b in (("from_h", "start_h"), ("to_h", "end_h"))
    )
    return replace(
        node,
        leaves_s=0.0 if begin is None else begin * HOUR,
        back_s=None if end is None else end * HOUR,
        reserved=window.get("name"),
    )


def _note_unread(state: Case, noted: Noted) -> None:
    """Note the fields of a state that are not read."""
    parts = {key: state.get(key, ()) for key in ("nodes", "queues", "running", "pending")}
    parts |= {key: state["limits"].get(key, ()) for key in ("windows", "counters", "hard")}
    parts |= {"state": [state], "limits": [state["limits"]]}
    for part, records in parts.items():
        for record in records:
            for field in sorted(set(record) - set(READ[part].split())):
                noted.add(f"{field} in {part}, which is not read", str(record[field]))


def _tenants(queues: list[Case], nodes: list[Case]) -> tuple[Tenant, ...]:
    """Return queues that deserve a share as tenants below one that owns the rest."""
    shares = {queue["name"]: queue["deserved"] for queue in queues if "deserved" in queue}
    of = "gpus" if any(node["gpus"] for node in nodes) else "cpu"
    rest = sum(_amounts(node).get(of, 0.0) for node in nodes) - sum(shares.values())
    own = [
        Tenant(name=name, parent="(all)", quotas=(Quota(of=of, guaranteed=share),))
        for name, share in shares.items()
    ]
    top = Tenant(name="(all)", quotas=(Quota(of=of, guaranteed=max(0.0, rest)),))
    return (top, *own) if own else ()


def _node(node: Case, queues: Case) -> SeenNode:
    inside = [name for name, queue in queues.items() if node["name"] in queue.get("nodes", ())]
    up = node["state"] in UP
    return SeenNode(
        name=node["name"],
        has=_amounts({**node, "gpus": node.get("configured_gpus", node["gpus"])}),
        gpu_type=node.get("gpu_type"),
        features=tuple(node.get("features", ())),
        partitions=tuple(dict.fromkeys([*inside, *filter(None, [node.get("queue")])])),
        racks=(("block", node["block"]),) if "block" in node else (),
        out=None if up else node.get("reason", node["state"]),
        back_s=None if up or "back_h" not in node else node["back_h"] * HOUR,
    )


def _running(one: Case, pods: dict[str, float]) -> SeenJob:
    return SeenJob(
        id=one["id"],
        user=one.get("user"),
        start_s=0.0,
        limit_s=one["left_h"] and one["left_h"] * HOUR,
        on=dict.fromkeys(one["alloc"], 1),
        held={node: pods | _amounts(of) for node, of in one["alloc"].items()},
    )


def _waiting(one: Case, queues: Case, pods: dict[str, float]) -> SeenJob:
    own, only = queues.get(one.get("queue", ""), {}), tuple(one.get("only", ()))
    dependency = one.get("dependency") or ""
    never = dependency == "never"
    first = [one.get("depends_on", "its parent")] if never else dependency.split(",")
    after = tuple(After(job=name if never else name.rpartition(":")[2]) for name in first if name)
    return SeenJob(
        id=one["id"],
        user=one.get("user"),
        partitions=(own["name"],) if "nodes" in own or "max_time_h" in own else (),
        rank=one.get("prio"),
        limit_s=one["limit_h"] and one["limit_h"] * HOUR,
        count=one["n"],
        per=pods | _amounts(one["per"]),
        own_nodes=bool(one.get("distinct")),
        exclusive=bool(one.get("exclusive")),
        gpu_types=(one["type"],) if "type" in one else (),
        nodes=() if set(only) == set(own.get("nodes", ())) else only,
        after=after,
        eligible_s=one["begin_h"] * HOUR if "begin_h" in one else None,
        not_nodes=tuple(one.get("exclude", ())),
        features=tuple(one.get("features", ())),
        blocked="its dependency can never be satisfied" if never else None,
        slices=Slices(nodes=one["segment"], within="block") if "segment" in one else None,
    )


def _held(jobs: list[SeenJob]) -> dict[str, dict[str, float]]:
    """Return what each job holds or asks for in all, by resource."""
    held = dict[str, dict[str, float]]()
    for job in jobs:
        own = held.setdefault(job.id, dict.fromkeys(WORDS.values(), 0.0))
        asked = {of: amount * job.count for of, amount in job.per.items()}
        for amounts in (asked, *job.held.values()):
            for of, amount in amounts.items():
                own[of] = own.get(of, 0.0) + amount
    return held


def _resource(
    name: str, asked: Mapping[str, float], jobs: list[SeenJob], nodes: list[Case]
) -> tuple[str, float] | None:
    """Return the resource that a counter counts, and in which unit, if it counts one."""
    name, held = name.lower(), _held(jobs)
    whole = [job.id for job in jobs if job.exclusive]
    for _, of in sorted(WORDS.items(), key=lambda each: each[0] not in name):
        for own in whole:
            held[own][of] = max(held[own][of], min(_amounts(n).get(of, 0.0) for n in nodes))
        counts = [(held[j][of], amount) for j, amount in asked.items() if j in held]
        for unit in () if any(word in name for word in COUNTS) else UNITS:
            if any(asked.values()) and all(abs(count * unit - a) < 1e-6 for count, a in counts):
                return of, unit
    return None


def _is_gpu_time(counter: Case, asked: Mapping[str, float], jobs: list[SeenJob]) -> bool:
    """Return whether a counter counts the GPU hours that jobs may still hold."""
    held = _held(jobs)
    hours = {j.id: held[j.id]["gpus"] * (j.limit_s or inf) / HOUR for j in jobs if j.id in asked}
    return "hour" in counter["name"] and all(asked[j] == amount for j, amount in hours.items())


def told(case: Case) -> Iterator[str]:
    """Yield our answers to a case, with theirs in brackets."""
    seen = snapshot_of_case(case)
    found = why(seen, next(job.id for job in seen.jobs if job.start_s is None))
    yield f"{case['id']}: {found.reason.kind}: {found.reason.text}"
    printed = case.get("printed_reason", {})
    misleads = printed.get("misleads", "-")
    yield f"    the scheduler prints {printed.get('code', '-')} (misleads: {misleads})"
    by_rule = f"{found.replay.start_s / HOUR:g} ({case['replay_start']})"
    yield f"    earliest: {found.start_s / HOUR:g} ({case['earliest_start']}), by rule: {by_rule}"
    yield "    ({new_start}: {change})".format(**case["cheapest_change"])
    yield from (f"    user: {e.start_s / HOUR:g}, {e.cost:.3g}: {e.text}" for e in found.easings)
    yield from (f"    operator: {r.start_s / HOUR:g}: {r.text}" for r in found.remedies)
    yield from (f"    noted: {line}" for line in seen.noted.lines())


if __name__ == "__main__":
    for text in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        print(*told(json.loads(text)), sep="\n")
