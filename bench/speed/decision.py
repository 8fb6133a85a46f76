"""Speed of whole decisions: `prices` beside `milp` on the very same rounds of a horizon."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from ronda.bench.speed.cases import tell
from ronda.instances.errors import InputError
from ronda.instances.files.catalogue import load
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability, Deadline
from ronda.solvers.horizon.driver import run
from ronda.solvers.policies.optimising.milp import Milp
from ronda.solvers.policies.optimising.prices import Prices

BLOCK = 50
"""Rounds after which the policies take turns."""


class Seconds(NamedTuple):
    """Of one decision: by the clock, and of this process."""

    wall: float
    cpu: float


def _timed(
    policy: Prices | Milp, round_: Round, limit_s: float | None, seed: int, initial: Plan | None
) -> tuple[Plan, Seconds]:
    """Decide a round and time it."""
    cpu_s, clock = time.process_time(), Deadline(limit_s)
    made = policy.plan(round_, deadline=clock, seed=seed, initial=initial)
    return made, Seconds(clock.elapsed(), time.process_time() - cpu_s)


@dataclass
class Both:
    """Let `prices` decide a horizon, and `milp` the same rounds as well, in turns.

    Both see the same rounds and the same last plans. They take turns every `BLOCK` rounds: what
    else runs on the machine slows both down, and each finds the processor's caches as it leaves
    them itself, as in a run of its own.

    Parameters
    ----------
    gap
        Of both.
    """

    gap: float = 1e-4
    name: str = field(default=Prices.name, init=False)
    capabilities: Capability = field(default=Prices.capabilities, init=False)
    prices_s: list[Seconds] = field(default_factory=list, init=False)
    milp_s: list[Seconds] = field(default_factory=list, init=False)
    jobs: list[int] = field(default_factory=list, init=False)
    waiting: list[tuple[Round, float | None, int, Plan | None]] = field(
        default_factory=list, init=False
    )

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide by prices; from time to time let `milp` catch up."""
        made, seconds = _timed(Prices(gap=self.gap), round, deadline.limit_s, seed, initial)
        self.prices_s.append(seconds)
        self.jobs.append(len(round.jobs))
        self.waiting.append((round, deadline.limit_s, seed, initial))
        if len(self.waiting) >= BLOCK:
            self.catch_up()
        return made

    def catch_up(self) -> None:
        """Let `milp` decide the rounds that it has not seen yet."""
        for asked in self.waiting:
            self.milp_s.append(_timed(Milp(gap=self.gap), *asked)[1])
        self.waiting.clear()


def measure_decision(
    jobs: int, instance: str, gap: float, limit_s: float, seed: int
) -> dict[str, Any]:
    """Time the decisions over the first jobs of a packaged horizon."""
    whole = load(instance)
    if isinstance(whole, Round):
        raise InputError("--instance", f"{whole.name!r}, a round", "a horizon")
    first = msgspec.structs.replace(whole, jobs=whole.jobs[:jobs])
    both = Both(gap=gap)
    tell(f"decision: {first.name}: {len(first.jobs):,} jobs ...")
    run(first, both, seed=seed, time_limit_s=limit_s)
    both.catch_up()
    return {
        "jobs": len(first.jobs),
        "gpus": first.cluster.gpus,
        "gap_asked": gap,
        "seed": seed,
        "instance": first.name,
        "rounds": len(both.jobs),
        "live_jobs": statistics.median(both.jobs),
        **_summary("", both.prices_s, "total_s"),
        **_summary("baseline_", both.milp_s, "baseline_s"),
    }


def _summary(prefix: str, seconds: Sequence[Seconds], median: str) -> dict[str, float]:
    """Return the median, by the clock and of the process, the mean and the 99th percentile."""
    wall = sorted(s.wall for s in seconds)
    return {
        median: statistics.median(wall),
        f"{prefix}cpu_s": statistics.median(s.cpu for s in seconds),
        f"{prefix}mean_s": statistics.fmean(wall),
        f"{prefix}p99_s": wall[int(0.99 * (len(wall) - 1))],
    }
