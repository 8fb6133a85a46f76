"""Public cases of jobs that wait, as snapshots, and how answers compare with what was found there.

``python -m tools.why_cases CASES.jsonl`` prints a line for each case. Times in cases are hours.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from math import inf
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ronda.instances.job import After, Slices
from ronda.instances.site import LimitGroup, Quota, Tenant
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.why.earliest import WaitingJob
from ronda.questions.why.help.actions import remedies
from ronda.questions.why.help.changes import easings
from ronda.questions.why.outlook import FreeRoom

HOUR = 3600.0
NAMES = {"gpus": "gpus", "cpus": "cpu", "mem_gb": "memory_gib"}
WORDS = {"gpu": "gpus", "cpu": "cpu", "mem": "memory_gib"}
"""What stands in the name of a counter of a resource."""
FACTORS = (1.0, 1000.0, 1024.0)
"""Units in which counters count what jobs ask for."""


def _per(amounts: Mapping[str, float]) -> dict[str, float]:
    return {NAMES[of]: float(amount) for of, amount in amounts.items() if of in NAMES}


def snapshot_of_case(case: Mapping[str, Any]) -> Snapshot:
    """Return the cluster of a case; the job that is asked about is the first that waits."""
    state = case["state"]
    queues, limits = state["queues"], state["limits"]
    jobs = [*map(_running, state["running"])]
    taken = {job.id for job in jobs}
    parts = {queue["name"] for queue in queues if "nodes" in queue or "max_time_h" in queue}
    jobs.extend(_waiting(one, parts, queues, taken) for one in state["pending"])
    groups = [
        LimitGroup(name=q["name"], partitions=(q["name"],), max_limit_s=q["max_time_h"] * HOUR)
        for q in queues
        if "max_time_h" in q
    ]
    first = len(state["running"])
    for hard in limits.get("hard", ()):
        if "MaxWall" in hard["what"]:
            groups.append(LimitGroup(name=hard["what"], max_limit_s=hard["max"] * HOUR))
        elif "MaxTime" not in hard["what"]:
            jobs[first] = replace(jobs[first], blocked=hard["what"])
    licences, elsewhere = {}, {}
    for counter in limits.get("counters", ()):
        name, asks = counter["name"], state["pending"][0].get("needs", {}).get(counter["name"])
        found = None if asks is None else _resource(counter, asks, jobs, first, state["nodes"])
        if found is not None:
            of, factor = found
            most = (counter["limit"] - counter["other"]) / factor
            users = tuple(
                job.id for job in jobs if counter["held"].get(job.id) or job is jobs[first]
            )
            groups.append(LimitGroup(name=name, users=users, most={of: max(0.0, most)}))
            continue
        licences[name], elsewhere[name] = float(counter["limit"]), float(counter["other"])
        for j, job in enumerate(jobs):
            amount = asks if j == first else counter["held"].get(job.id)
            if amount:
                jobs[j] = replace(job, licences={**job.licences, name: float(amount)})
    pods = {"pods": 1.0} if any("pods" in node for node in state["nodes"]) else {}
    jobs = [_with_pods(replace(job, tenant=job.user, user=job.id), pods) for job in jobs]
    owners = {one["id"]: one.get("queue") for one in state["running"] + state["pending"]}
    tenants = _tenants(queues, state["nodes"])
    if tenants:
        used = [queue["name"] for queue in queues if queue.get("used")]
        sole = used[0] if len(used) == 1 else None
        jobs = [replace(job, tenant=owners.get(job.id) or sole) for job in jobs]
    return Snapshot(
        source=case["id"],
        system="slurm" if "slurm" in case["system"].lower() else "kueue",
        now_s=0.0,
        nodes=tuple(_node(node, queues) for node in state["nodes"]),
        jobs=tuple(jobs),
        groups=tuple(groups),
        tenants=tenants,
        licences=licences,
        licences_taken=elsewhere,
    )


def _tenants(queues: list[dict[str, Any]], nodes: list[dict[str, Any]]) -> tuple[Tenant, ...]:
    """Return queues that deserve a share as tenants below one that owns the rest."""
    shares = [queue for queue in queues if "deserved" in queue]
    of = "gpus" if any(node["gpus"] for node in nodes) else "cpu"
    total = sum(_per(node)[of] for node in nodes)
    rest = max(0.0, total - sum(queue["deserved"] for queue in shares))
    top = Tenant(name="(all)", quotas=(Quota(of=of, guaranteed=rest),))
    own = [
        Tenant(name=q["name"], parent="(all)", quotas=(Quota(of=of, guaranteed=q["deserved"]),))
        for q in shares
    ]
    return (top, *own) if own else ()


def _node(node: Mapping[str, Any], queues: list[dict[str, Any]]) -> SeenNode:
    partitions = [queue["name"] for queue in queues if node["name"] in queue.get("nodes", ())]
    if "queue" in node and node["queue"] not in partitions:
        partitions.append(node["queue"])
    pods = {"pods": float(node["pods"])} if "pods" in node else {}
    up = node["state"] == "up"
    return SeenNode(
        name=node["name"],
        has=_per({**node, "gpus": node.get("configured_gpus", node["gpus"])}) | pods,
        gpu_type=node.get("gpu_type"),
        partitions=tuple(partitions),
        racks=(("block", node["block"]),) if "block" in node else (),
        out=None if up else node.get("reason", node["state"]),
        back_s=node["back_h"] * HOUR if not up and "back_h" in node else None,
    )


def _with_pods(job: SeenJob, pods: dict[str, float]) -> SeenJob:
    held = {node: pods | amounts for node, amounts in job.held.items()}
    return replace(job, per=job.per | pods, held=held)


def _running(one: Mapping[str, Any]) -> SeenJob:
    left = one["left_h"]
    return SeenJob(
        id=one["id"],
        user=one.get("user"),
        start_s=0.0,
        limit_s=None if left is None else left * HOUR,
        on=dict.fromkeys(one["alloc"], 1),
        held={node: _per(amounts) for node, amounts in one["alloc"].items()},
        rank=one.get("prio"),
    )


def _waiting(
    one: Mapping[str, Any], parts: set[str], queues: list[dict[str, Any]], taken: set[str]
) -> SeenJob:
    own = next((queue for queue in queues if queue["name"] == one.get("queue")), {})
    only = tuple(one.get("only", ()))
    after: tuple[After, ...] = ()
    if one.get("dependency") == "never":
        when, _, parent = one.get("depends_on", "afterok:-").partition(":")
        after = (After(job=parent.split()[0], when="ok" if when == "afterok" else "any"),)
    name = one["id"] if one["id"] not in taken else f"{one['id']}'"
    taken.add(name)
    return SeenJob(
        id=name,
        user=one.get("user"),
        partitions=(own["name"],) if own.get("name") in parts else (),
        rank=one.get("prio"),
        limit_s=None if one["limit_h"] is None else one["limit_h"] * HOUR,
        count=one["n"],
        per={of: amount for of, amount in _per(one["per"]).items() if amount},
        own_nodes=bool(one.get("distinct")),
        exclusive=bool(one.get("exclusive")),
        gpu_types=(one["type"],) if "type" in one else (),
        nodes=() if set(only) == set(own.get("nodes", ())) else only,
        after=after,
        blocked="its dependency can never be satisfied" if after else None,
        slices=Slices(nodes=one["segment"], within="block") if "segment" in one else None,
    )


def _resource(
    counter: Mapping[str, Any], asks: float, jobs: list[SeenJob], first: int, nodes: Any
) -> tuple[str, float] | None:
    """Return the resource that a counter counts, and in which unit, if it counts one."""
    job, name = jobs[first], counter["name"].lower()
    if "job" in name:
        return None
    held = {one.id: Counter[str]() for one in jobs}
    for one in jobs:
        for amounts in one.held.values():
            held[one.id].update(amounts)
    for _, of in sorted(WORDS.items(), key=lambda pair: pair[0] not in name):
        charged = job.count * job.per.get(of, 0.0)
        if job.exclusive:
            charged = max(charged, job.count * min(_per(node)[of] for node in nodes))
        for factor in FACTORS:
            same = all(abs(held[j][of] * factor - a) < 1e-6 for j, a in counter["held"].items())
            if same and asks and abs(charged * factor - asks) < 1e-6:
                return of, factor
    return None


def told(case: Mapping[str, Any]) -> Iterator[str]:
    """Yield the cheapest change of a case, and ours."""
    seen = snapshot_of_case(case)
    waiting = WaitingJob(FreeRoom(seen), next(job for job in seen.jobs if job.start_s is None))
    theirs = case["cheapest_change"]
    start_s = waiting.start()
    found = easings(waiting, waiting.job.limit_s)
    yield f"{case['id']}: start {_h(start_s)} (theirs {case['earliest_start']})"
    yield f"    theirs: {theirs['new_start']} h: {theirs['change']}"
    for one in found[:5]:
        yield f"    user: {_h(one.start_s)} h, cost {one.cost:.3g}: {one.text}"
    for act in remedies(waiting):
        yield f"    operator: {_h(act.start_s)} h: {act.text}"


def _h(start_s: float) -> str:
    return "never" if start_s == inf else f"{start_s / HOUR:g}"


if __name__ == "__main__":
    for text in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        print(*told(json.loads(text)), sep="\n")
