"""Public cases of jobs that wait, as snapshots, and how our answers compare with theirs.

``python -m tools.why_cases CASES.jsonl`` tells ours and, in brackets, theirs. Times are hours.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ronda.instances.job import After, Slices
from ronda.instances.site import LimitGroup, Quota, Tenant
from ronda.instances.snapshots.snapshot import SeenJob, SeenNode, Snapshot
from ronda.questions.why.answer import why

HOUR = 3600.0
NAMES = {"gpus": "gpus", "cpus": "cpu", "mem_gb": "memory_gib", "pods": "pods"}
WORDS, UNITS = {"gpu": "gpus", "cpu": "cpu", "mem": "memory_gib"}, (1.0, 1000.0, 1024.0)
"""The resource that a counter counts, by what stands in its name, and in which units it may."""
Case = Mapping[str, Any]


def _amounts(of: Case) -> dict[str, float]:
    return {NAMES[name]: float(amount) for name, amount in of.items() if name in NAMES and amount}


def snapshot_of_case(case: Case) -> Snapshot:
    """Return the cluster of a case; the job that is asked about is the first that waits."""
    state = case["state"]
    queues = {queue["name"]: queue for queue in state["queues"]}
    pods = {"pods": 1.0} if any("pods" in node for node in state["nodes"]) else {}
    jobs = [_running(one, pods) for one in state["running"]]
    jobs += [_waiting(one, queues, pods) for one in state["pending"]]
    first = len(state["running"])
    longest = {name: queue["max_time_h"] for name, queue in queues.items() if "max_time_h" in queue}
    groups = [LimitGroup(name=n, partitions=(n,), max_limit_s=h * HOUR) for n, h in longest.items()]
    for hard in state["limits"].get("hard", ()):
        if "MaxWall" in hard["what"]:
            groups.append(LimitGroup(name=hard["what"], max_limit_s=hard["max"] * HOUR))
        elif "MaxTime" not in hard["what"]:
            jobs[first] = replace(jobs[first], blocked=hard["what"])
    licences, taken = dict[str, float](), dict[str, float]()
    for counter in state["limits"].get("counters", ()):
        name, held = counter["name"], dict(counter["held"])
        asks = state["pending"][0].get("needs", {}).get(name, 0.0)
        found = _resource(counter, asks, jobs, first, state["nodes"])
        if found is not None:
            most = {found[0]: max(0.0, counter["limit"] - counter["other"]) / found[1]}
            groups.append(LimitGroup(name=name, users=(*held, jobs[first].id), most=most))
            continue
        licences[name], taken[name] = float(counter["limit"]), float(counter["other"])
        held |= {jobs[first].id: asks}
        for j, job in enumerate(jobs):
            if held.get(job.id):
                jobs[j] = replace(job, licences={**job.licences, name: float(held[job.id])})
    jobs = [replace(job, tenant=job.user, user=job.id) for job in jobs]
    tenants = _tenants(state["queues"], state["nodes"])
    if tenants:
        owners = {one["id"]: one.get("queue") for one in state["running"] + state["pending"]}
        used = [queue["name"] for queue in state["queues"] if queue.get("used")]
        sole = used[0] if len(used) == 1 else None
        jobs = [replace(job, tenant=owners[job.id] or sole) for job in jobs]
    return Snapshot(
        source=case["id"],
        system="slurm" if "slurm" in case["system"].lower() else "kueue",
        now_s=0.0,
        nodes=tuple(_node(node, queues) for node in state["nodes"]),
        jobs=tuple(jobs),
        groups=tuple(groups),
        tenants=tenants,
        licences=licences,
        licences_taken=taken,
    )


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
    up = node["state"] == "up"
    return SeenNode(
        name=node["name"],
        has=_amounts({**node, "gpus": node.get("configured_gpus", node["gpus"])}),
        gpu_type=node.get("gpu_type"),
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
    never = one.get("dependency") == "never"
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
        after=(After(job=one.get("depends_on", "its parent")),) if never else (),
        blocked="its dependency can never be satisfied" if never else None,
        slices=Slices(nodes=one["segment"], within="block") if "segment" in one else None,
    )


def _resource(
    counter: Case, asks: float, jobs: list[SeenJob], first: int, nodes: list[Case]
) -> tuple[str, float] | None:
    """Return the resource that a counter counts, and in which unit, if it counts one."""
    name, held = counter["name"].lower(), {job.id: Counter[str]() for job in jobs}
    for job in jobs:
        for amounts in job.held.values():
            held[job.id].update(amounts)
    for _, of in sorted(WORDS.items(), key=lambda each: each[0] not in name):
        asked = jobs[first].count * jobs[first].per.get(of, 0.0)
        if jobs[first].exclusive:
            asked = max(asked, min(_amounts(node).get(of, 0.0) for node in nodes))
        counts = [(asked, asks), *((held[j][of], a) for j, a in counter["held"].items())]
        for unit in UNITS if asks and "job" not in name else ():
            if all(abs(amount * unit - count) < 1e-6 for amount, count in counts):
                return of, unit
    return None


def told(case: Case) -> Iterator[str]:
    """Yield our answers to a case, with theirs in brackets."""
    seen = snapshot_of_case(case)
    found = why(seen, next(job.id for job in seen.jobs if job.start_s is None))
    yield f"{case['id']}: {found.reason.kind}: {found.reason.text}"
    by_rule = f"{found.replay.start_s / HOUR:g} ({case['replay_start']})"
    yield f"    earliest: {found.start_s / HOUR:g} ({case['earliest_start']}), by rule: {by_rule}"
    yield "    ({new_start}: {change})".format(**case["cheapest_change"])
    yield from (f"    user: {e.start_s / HOUR:g}, {e.cost:.3g}: {e.text}" for e in found.easings)
    yield from (f"    operator: {r.start_s / HOUR:g}: {r.text}" for r in found.remedies)


if __name__ == "__main__":
    for text in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines():
        print(*told(json.loads(text)), sep="\n")
