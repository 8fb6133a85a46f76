"""The priority boosts with which a queue of Kueue gets the order of a policy (Kueue's KEP-7990).

Kueue sorts a ClusterQueue by priority plus boost, then by time. A boost is an annotation of the
Workload. Boosts above 0, which the operator has to allow, may let a workload preempt others.
"""

import re
import shlex
from collections import defaultdict
from collections.abc import Sequence
from math import inf

from msgspec.structs import asdict, replace

from ronda.hosts.clusters.kubernetes.kueue import BOOST, boost_of
from ronda.hosts.clusters.kubernetes.objects import KUEUE, Objects
from ronda.hosts.clusters.read import Text
from ronda.instances.base import Record
from ronda.instances.errors import InputError
from ronda.instances.rules.problem import show
from ronda.instances.snapshots.snapshot import Noted, SeenJob, Snapshot
from ronda.instances.tables.table import Report, Table

_WORD = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_ID = re.compile(rf"(?=[^/]{{1,63}}/[^/]{{1,253}}$){_WORD}/{_WORD}(?:\.{_WORD})*")
_REASONS = {-1: "earlier tiers come first", 0: "it needs none", 1: "it comes before later tiers"}
_NO_ROOM = "the band, or the gap to the next class, is too small for its tier"


class Boost(Record, frozen=True, kw_only=True):
    """The boost of a workload `now` and `then`, by its priority without it and its tier (from 1).

    Those with a quota have no tier. Among equal priorities, Kueue goes by `since_s`.
    """

    workload: str
    queue: str | None
    priority: int
    since_s: float
    tier: int | None
    now: int
    then: int
    reason: str

    @property
    def command(self) -> str:
        """The command that gives the workload its boost, or removes that which it has."""
        change = [f"{BOOST}={self.then}", "--overwrite"] if self.then else [f"{BOOST}-"]
        kind = f"workloads.{KUEUE}"  # Kubernetes has Workloads of its own
        return shlex.join(["kubectl", "annotate", kind, "-n", *self.workload.split("/"), *change])


def boosts(
    files: Sequence[Text], seen: Snapshot, tiers: Sequence[Sequence[str]], low: int, high: int
) -> list[Boost]:
    """Return the boosts with which earlier tiers come first in each ClusterQueue and priority.

    Few change. A workload with a quota loses its boost. One that may not start, or whose boost is
    outside the band from `low` (at most 0) to `high` (at least 0), is left as it is, and counted in
    ``seen.noted``. A name that Kubernetes does not allow raises an `InputError`.
    """
    tier_of = {job: k for k, tier in enumerate(tiers, 1) for job in tier}
    jobs, known, found = defaultdict[str, list[SeenJob]](list), set[int](), list[Boost]()
    queues = defaultdict[tuple[str | None, int], list[Boost]](list)
    for job in seen.jobs:
        jobs[job.id.partition("#")[0]].append(job)
    for doc in Objects(files, Noted()).of("Workload", KUEUE):
        if not _ID.fullmatch(doc.id):
            raise InputError(doc.place, show(doc.id), "a namespace and a name as of RFC 1123")
        if doc.holds("Finished"):
            continue
        own, now, priority = jobs[doc.id], boost_of(doc), doc.whole("spec", "priority") or 0
        has_quota = doc.holds("QuotaReserved") or doc.get("status", "admission") is not None
        late = any(job.blocked or (job.eligible_s or 0.0) > seen.now_s for job in own)
        boost = Boost(
            workload=doc.id,
            queue=own[0].tenant if own else None,
            priority=priority,
            since_s=doc.time_s("metadata", "creationTimestamp") or 0.0,
            tier=max((tier_of[job.id] for job in own if job.id in tier_of), default=None),
            now=now,
            then=0,
            reason="it has its quota",
        )
        known.add(priority)
        if not low <= now <= high:
            seen.noted.add("workload with a boost outside the band, which it keeps", doc.id)
        elif has_quota:
            found.append(replace(boost, tier=None))
        elif late or boost.tier is None or boost.queue is None:
            seen.noted.add("workload that may not start or has no GPUs, not ordered", doc.id)
        else:
            queues[boost.queue, priority].append(boost)
    for (_, priority), waiting in queues.items():
        # Neighbouring classes share the gap between them, so that none crosses another.
        below = [(priority - other) // 2 for other in known if other < priority]
        above = [(other - priority - 1) // 2 for other in known if other > priority]
        found += _ordered(waiting, min([-low, *below]), min([high, *above]))
    return found


def _ordered(waiting: Sequence[Boost], down: int, up: int) -> list[Boost]:
    """Return the workloads of a queue and a priority, with later tiers lowered or earlier raised.

    Each changes by as little as possible, or not at all where its present boost will do.
    """
    tiers, ways = defaultdict[int, list[Boost]](list), list[list[Boost]]()
    for each in waiting:
        tiers[each.tier or 0].append(each)
    for sign, most, keep in ((-1, down, True), (-1, down, False), (1, up, True), (1, up, False)):
        found, last = list[Boost](), (0, -inf)
        for _, tier in sorted(tiers.items(), reverse=sign > 0):
            places = [last]
            for each in tier:
                kept = [sign * each.now] if keep and 0 < sign * each.now <= most else []
                steps = ((step, -sign * each.since_s) for step in (0, *kept, last[0], last[0] + 1))
                step, at_s = next(place for place in steps if place > last)
                reason = _REASONS[sign if step else 0] if step <= most else _NO_ROOM
                places.append((min(step, most), at_s))
                found.append(replace(each, then=sign * min(step, most), reason=reason))
            last = max(places)
        ways.append(found)

    def cost(found: list[Boost]) -> tuple[int, int, int]:
        changed = sum(each.now != each.then for each in found)
        return sum(b.reason == _NO_ROOM for b in found), changed, sum(b.then != 0 for b in found)

    return min(ways, key=cost)


def boosts_report(policy: str, tiers: Sequence[Sequence[str]], found: Sequence[Boost]) -> Report:
    """Return the report of the boosts for tiers of jobs by a policy, and commands that set them."""
    changed = [each for each in found if each.now != each.then]
    ordered = [each for each in found if each.tier is not None]
    short = sum(each.reason == _NO_ROOM for each in ordered)
    words = (
        f"Boosts that change: {len(changed)}. Workloads that wait: {len(ordered)} (ClusterQueues: "
        f"{len({each.queue for each in ordered})}; tiers by {policy}: {len(tiers)}), of which "
        f"{short} do not get to their tier's place, and {sum(b.then > 0 for b in ordered)} may "
        "preempt others."
    )
    rows = [{k: str(v) for k, v in asdict(each).items() if k != "since_s"} for each in changed]
    commands = [each.command for each in changed]
    fields = {"policy": policy, "tiers": tiers, "workloads": found, "commands": commands}
    return Report(fields, [words, *[Table.of("Boosts", rows, left=(0, 1, 6))] * bool(rows)])
