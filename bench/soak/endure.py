"""Day after day in one process: plans are checked, fallbacks explained, memory is flat."""

import gc
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import psutil

import ronda
from ronda.bench.soak.mischief import Mischief, turns
from ronda.bench.soak.world import day
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.schedule import RoundRecord

LIMIT_S = 5.0
"""Seconds that a decision may take."""

WARM = 0.2
"""Share of all rounds after which memory must not grow: caches fill up to their bounds first."""

LEAST_DAYS = 4
"""Days after the warm-up below which growth is not judged."""

MOST_GROWTH = 1.05
"""Most growth that counts as none."""


@dataclass(frozen=True, slots=True)
class Lived:
    """What became of a day under a policy; `rss_mib` is the memory of the process after it.

    `unexplained` counts fallbacks without a reason, `unnoticed` misbehaviours that did not end in
    a fallback, `violations` what the checker finds in the schedule.
    """

    policy: str
    seed: int
    rounds: int = 0
    fallbacks: int = 0
    mischief: int = 0
    unexplained: int = 0
    unnoticed: int = 0
    violations: int = 0
    slowest_s: float = 0.0
    seconds: float = 0.0
    rss_mib: float = 0.0
    error: str = ""

    @property
    def failed(self) -> bool:
        """Whether anything is wrong."""
        return bool(self.unexplained or self.unnoticed or self.violations or self.error)


def endure(
    rounds: int, policies: Sequence[str], every: int, kinds: Sequence[str], seed: int = 0
) -> Iterator[Lived]:
    """Yield days, one policy after the other, until `rounds` rounds are decided.

    Every `every`-th decision is a misbehaviour, of `kinds` in turn.
    """
    turn, decided = turns(every, kinds), 0
    for k in count():
        lived = live(
            policies[k % len(policies)], seed + k, Mischief(policies[k % len(policies)], turn)
        )
        yield lived
        decided += max(1, lived.rounds)
        if decided >= rounds:
            return


def live(spec: str, seed: int, policy: Mischief) -> Lived:
    """Live one day."""
    began = time.perf_counter()
    instance, process = day(seed), psutil.Process()
    try:
        schedule = ronda.run(instance, policy, seed=seed, time_limit_s=LIMIT_S)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Lived(spec, seed, len(policy.done), error=f"{type(error).__name__}: {error}")
    records = schedule.rounds
    fell = {r.now_s for r in records if r.status is SolutionStatus.FALLBACK}
    fallbacks = [r for r in records if r.status is SolutionStatus.FALLBACK]
    gc.collect()
    return Lived(
        policy=spec,
        seed=seed,
        rounds=len(records),
        fallbacks=len(fallbacks),
        mischief=len(policy.done),
        unexplained=sum(not _reason(record) for record in fallbacks),
        unnoticed=sum(now_s not in fell for now_s, _ in policy.done),
        violations=len(ronda.check(instance, schedule)),
        slowest_s=max(record.solve_s for record in records),
        seconds=time.perf_counter() - began,
        rss_mib=process.memory_info().rss / 2**20,
    )


def _reason(record: RoundRecord) -> str:
    """Return why a round fell back; empty if nothing says so."""
    if record.violations:
        return record.violations[0]
    return "" if record.stop is StopReason.COMPLETE else str(record.stop)


def growth(days: Sequence[Lived]) -> float | None:
    """Return the memory of the last days over that of the first ones after the warm-up.

    That lasts until every policy has lived a day, as its libraries are loaded then. None: there
    are fewer than `LEAST_DAYS` after it.
    """
    total = sum(each.rounds for each in days)
    past = np.cumsum([each.rounds for each in days])
    policies = len({each.policy for each in days})
    late = zip(days[policies:], past[policies:], strict=True)
    warm = [each.rss_mib for each, n in late if n > WARM * total and each.rss_mib]
    if len(warm) < LEAST_DAYS:
        return None
    some = max(1, len(warm) // 8)
    return float(np.median(warm[-some:]) / np.median(warm[:some]))
