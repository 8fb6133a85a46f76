"""A cluster that lives: nodes fail, are drained, back and new, users resize and cancel their jobs.

The host of this case has a truth of its own, of which the façade is told what a host knows.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor
from time import process_time
from typing import Any

import numpy as np
import psutil

from lab.speed.cases import case
from ronda.hosts.embedding.changes import Changes
from ronda.hosts.embedding.embedded import Embedded
from ronda.hosts.embedding.reader import Refusal
from ronda.instances.check.checker import check
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.job import Costs
from ronda.instances.plan import SolutionStatus

ROUND_S = 60.0
NODES, GPUS, MOST_NODES = 16, 8, 20
COUNTS = (1, 2, 4, 8, 16, 32)
COSTS = Costs(start_s=10.0, restart_s=30.0, checkpoint_s=300.0)
LOST, DRAINED, NEW, RESIZED, CANCELLED, WRONG = 0.05, 0.04, 0.01, 0.3, 0.1, 0.05
"""How often in a round, each; a node is back after 5 to 40 rounds."""


@dataclass
class Work:
    """A job as it really is."""

    size: float
    elasticity: float
    done: float = 0.0
    place: dict[str, int] = field(default_factory=dict)
    since_s: float = 0.0  # from when on it progresses
    began: float = 0.0  # what it had done then

    @property
    def rate(self) -> float:
        """Work per second on what it has."""
        return float(sum(self.place.values())) ** self.elasticity if self.place else 0.0

    def fail(self, now_s: float) -> None:
        """Go back to the last checkpoint."""
        seconds = max(0.0, now_s - self.since_s)
        kept_s = floor(seconds / COSTS.checkpoint_s) * COSTS.checkpoint_s
        self.done, self.place = self.began + self.rate * kept_s, {}


class LivingHost:
    """A host of `jobs` jobs, and the façade that is told of what happens there.

    `wrong` counts what must not be: plans that were refused or break a rule, items that were
    refused, or not, against expectation, starts on nodes out of service, histories that were lost.
    """

    def __init__(self, jobs: int, policy: str = "prices", seed: int = 0) -> None:
        cluster = uniform_cluster(GpuType(name="A100", memory_gib=40), NODES, GPUS)
        self.rng, self.jobs, self.now_s, self.count = np.random.default_rng(seed), jobs, 0.0, 0
        self.facade = Embedded(policy, cluster, costs=COSTS, length_s=ROUND_S, seed=seed)
        self.nodes = [f"nodes-{k}" for k in range(NODES)]
        self.out: dict[str, float] = {}  # nodes that are out of service: when they are back
        self.live: dict[str, Work] = {}
        self.known: dict[str, tuple[float, int]] = {}  # GPU-seconds and restarts, as believed
        self.happened, self.wrong = Counter[str](), Counter[str]()
        self.seconds = list[float]()

    def rounds(self, number: int, deadline_s: float | None = None) -> Iterator[Changes]:
        """Live some rounds: what happens is told, and decisions are carried out."""
        for _ in range(number):
            self.now_s += ROUND_S
            told = self._happen()
            began = process_time()
            refused = self.facade.update(now_s=self.now_s, **told, errors="return")
            update_s = process_time() - began
            before = self.facade.round()
            self._remember(refused)
            began = process_time()
            changes = self.facade.decide(deadline_s)
            self.seconds.append(update_s + process_time() - began)
            plan = changes.plan
            refused_plan = "refused:" in plan.record.message or plan.status is SolutionStatus.NONE
            self.wrong["refused plans"] += refused_plan
            self.happened["cut short"] += (
                plan.status is SolutionStatus.FALLBACK and not refused_plan
            )
            self.wrong["violations"] += len(check(before, plan))
            self._carry_out(changes)
            yield changes

    def _happen(self) -> dict[str, Any]:
        """Let a round pass; return what the façade is told of it."""
        rng, live, last_s = self.rng, self.live, self.now_s - ROUND_S
        for work in live.values():
            work.done += work.rate * max(0.0, self.now_s - max(last_s, work.since_s))
        completed = {job: work.size for job, work in live.items() if work.done >= work.size}
        cancelled = [job for job in live if job not in completed][: rng.random() < CANCELLED]
        for job in (*completed, *cancelled):
            del live[job]
        nodes = self._nodes()
        new: dict[str, str] = {}
        if rng.random() < NEW and len(self.nodes) < MOST_NODES:
            new = {f"nodes-{len(self.nodes)}": "nodes"}
            self.nodes += new
        changed = []
        if live and rng.random() < RESIZED:
            row = {"id": str(rng.choice([*live])), "weight": float(rng.integers(1, 4))}
            most = int(rng.choice(COUNTS[2:]))
            row |= {"max_gpus": most, "gpus": int(rng.choice([n for n in COUNTS if n <= most]))}
            changed = [row | {"deadline_s": self.now_s + 3600.0}]
        added = [self._job() for _ in range(self.jobs - len(live))]
        progress = {job: work.done for job, work in live.items()}
        self.happened.update(nodes.values())
        self.happened["submitted"] += len(added)
        self.happened["completed"] += len(completed)
        self.happened["cancelled"] += len(cancelled)
        self.happened["resized"] += len(changed)
        self.happened["new nodes"] += len(new)
        if rng.random() < WRONG:
            nodes, progress = nodes | {"never told": "lost"}, progress | {"nobody": 1.0}
        return {
            "added": added,
            "completed": completed,
            "removed": cancelled,
            "nodes": nodes,
            "nodes_added": new,
            "changed": changed,
            "progress": progress,
        }

    def _nodes(self) -> dict[str, str]:
        """Let nodes be back, then perhaps one be lost and one drained; return what has happened."""
        rng, found = self.rng, {n: "back" for n, at in self.out.items() if at <= self.now_s}
        for node in found:
            del self.out[node]
        for word, often in (("lost", LOST), ("drained", DRAINED)):
            up = [n for n in self.nodes if n not in self.out and n not in found]
            if rng.random() < often and len(up) > NODES // 2:
                node = str(rng.choice(up))
                found[node], self.out[node] = word, self.now_s + ROUND_S * rng.integers(5, 40)
                for work in self.live.values() if word == "lost" else ():
                    if node in work.place:
                        work.fail(self.now_s)
        return found

    def _job(self) -> dict[str, Any]:
        """Return the row of a new job; of every third one nobody tells the size."""
        name, self.count = f"j{self.count}", self.count + 1
        work = Work(float(self.rng.lognormal(8.5, 1.0)), float(self.rng.uniform(0.4, 0.95)))
        self.live[name] = work
        rate = [n**work.elasticity for n in COUNTS]
        row = {"id": name, "gpus": int(self.rng.choice(COUNTS[:4])), "application": "net"}
        row["rates"] = {"gpus": list(COUNTS), "rate": rate}
        return row if self.count % 3 == 0 else row | {"work": work.size}

    def _remember(self, refused: tuple[Refusal, ...]) -> None:
        """Count what was refused, and histories that were lost."""
        odd = {each.item for each in refused} - {"never told", "nobody"}
        self.wrong["refused items"] += len(odd)
        self.happened["refused"] += len(refused)
        known = {}
        for state in self.facade.round().jobs:
            job = state.job.id
            now = known[job] = state.gpu_s_at(self.now_s), state.restarts
            before = self.known.get(job, (0.0, 0))
            kept = now[0] >= before[0] - 1e-6 and now[1] >= before[1]
            kept &= abs(state.done_at(self.now_s) - self.live[job].done) <= 1e-6
            self.wrong["histories"] += not kept
        self.known = known

    def _carry_out(self, changes: Changes) -> None:
        """Start, stop and move jobs as was decided."""
        for job in changes.stop:
            self.live[job].place = {}
        for job, place in (changes.start | changes.resize | changes.retune).items():
            work = self.live[job]
            again = work.done > 0 or bool(work.place)
            self.wrong["starts on nodes out of service"] += bool(self.out.keys() & place.placement)
            work.place, work.began = dict(place.placement), work.done
            work.since_s = self.now_s + (COSTS.restart_s if again else COSTS.start_s)
        used = Counter[str]()
        for work in self.live.values():
            used.update(work.place)
        self.wrong["full nodes"] += any(gpus > GPUS for gpus in used.values())


@case("32,128")
def measure_living(
    jobs: int, policy: str = "prices", decisions: int = 2000, limit_s: float = 0.2, seed: int = 0
) -> dict[str, Any]:
    """Let a cluster live for thousands of decisions: nodes come and go, users change their jobs.

    Processor time of an update and its decision, median, p95 and most; rss_mib after a tenth of the
    decisions and after all; what has happened (cut short: decisions that had time for no more than
    what runs and what fits), and what must not (wrong: 0 of each).
    """
    host, early_mib = LivingHost(jobs, policy, seed), 0.0
    for k, _ in enumerate(host.rounds(decisions, limit_s)):
        if k == decisions // 10:
            early_mib = _rss_mib()
    return {
        "gpus": len(host.nodes) * GPUS,
        "total_s": sum(host.seconds),
        "median_s": float(np.median(host.seconds)),
        "p95_s": float(np.quantile(host.seconds, 0.95)),
        "most_s": max(host.seconds),
        "rss_mib": early_mib,
        "rss_end_mib": _rss_mib(),
        "happened": dict(host.happened),
        "wrong": dict(host.wrong),
    }


def _rss_mib() -> float:
    return round(float(psutil.Process().memory_info().rss) / 2**20, 1)
