"""The recorded decisions that cost the most waiting, found by handing over to a rule.

Take the next jobs that the log started after some moment, all others at their true times. Let f(i)
be what they wait if the cluster decides as recorded before its i-th decision, and a rule that knows
no more than it did decides from then on, in proven space. Then f(i + 1) - f(i) is what the i-th
decision cost: a decision is what the log started at one moment, and that it started nothing until
the next. The costs of a stretch of decisions add up to the difference of f at its ends, so that
stretches are halved, the worst first, down to single decisions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from math import inf
from operator import itemgetter

import numpy as np

from ronda.instances.base import Floats
from ronda.questions.judge.orders import with_recorded
from ronda.questions.judge.queue import JudgedJobs, Starts
from ronda.questions.judge.space import NodeUse, Space

STRETCH, AHEAD = 100, 200
"""The number of decisions of a stretch, and of starts from its first on that are decided anew."""

HALVINGS = 6
"""The most halvings of stretches for each decision that is wanted."""

LEAST_S = 36.0
"""Decisions that cost less are not told."""

Rule = Callable[[JudgedJobs, Space, Starts], Starts]
"""A rule returns starts of jobs in a space, of which some are fixed."""
Part = tuple["_Stretch", int, int]
"""A stretch, and the first and the last of some of its decisions."""


@dataclass(frozen=True, slots=True)
class Instead:
    """A start by the rule: the job, its devices, its start and nodes, and how late the log was."""

    job: str
    size: float
    start_s: float
    nodes: tuple[int, ...]
    late_s: float


@dataclass(frozen=True, slots=True)
class CostlyDecision:
    """A recorded decision that cost waiting, or several of which each cost about as little.

    It was made at `at_s`, and the next one at `until_s`. If the rule decides from then on, and not
    only from the next decision on, `cost_s` weighted seconds of waiting are spared. `instead` are
    its starts before the next decision. Of a single decision `regret` is the least and the most
    that the worth of what was started is below the best for that moment, as shares; None if it was
    not certified.
    """

    rule: str
    at_s: float
    until_s: float
    decisions: int
    cost_s: float
    started: tuple[str, ...]
    instead: tuple[Instead, ...]
    regret: tuple[float, float] | None = None

    @property
    def late(self) -> tuple[Instead, ...]:
        """The jobs that the rule starts before the log did."""
        return tuple(start for start in self.instead if start.late_s > 0)

    @property
    def early(self) -> tuple[str, ...]:
        """The jobs that the log started and the rule does not."""
        kept = {start.job for start in self.instead}
        return tuple(job for job in self.started if job not in kept)


def costly_decisions(
    jobs: JudgedJobs,
    space: Space,
    rules: Mapping[str, Rule],
    most: int,
    progress: Callable[[str], None] = lambda words: None,
) -> tuple[CostlyDecision, ...]:
    """Return at most `most` recorded decisions that cost any waiting, the worst first.

    Of several rules, that one counts by which the jobs of all stretches wait the least.
    """
    if not most:
        return ()
    times_s, every = np.unique(jobs.start_s), list[list[Part]]()
    for name, rule in rules.items():
        every.append([])
        for k in range(0, len(times_s), STRETCH):
            progress(f"{name}: {k:,} of {len(times_s):,} decisions looked at")
            stretch = _Stretch(jobs, space, name, rule, times_s[k : k + STRETCH + 1])
            every[-1].append((stretch, 0, stretch.decisions))
    parts = max(every, key=lambda own: sum(map(_cost_s, own)))
    for k in range(HALVINGS * most):
        parts.sort(key=_cost_s, reverse=True)
        chosen = next((part for part in parts[:most] if part[0].missing(*part[1:])), None)
        if chosen is None:
            break
        progress(f"decisions: {k:,} of at most {HALVINGS * most:,} looked at")
        stretch, low, high = chosen
        stretch.hand_over(middle := stretch.missing(low, high))
        if low < middle < high:
            parts.remove(chosen)
            parts += [(stretch, low, middle), (stretch, middle, high)]
    parts.sort(key=_cost_s, reverse=True)
    told = (part[0].told(*part[1:]) for part in parts if _cost_s(part) > LEAST_S)
    return tuple(islice((each for each in told if each.late or each.early), most))


def _cost_s(part: Part) -> float:
    stretch, low, high = part
    return stretch.least(high)[0] - stretch.least(low)[0]


class _Stretch:
    """Some decisions, each at one moment, and the jobs that are started from the first of them on.

    `times_s` are the moments of the decisions and, if there is one, that of the next.
    """

    def __init__(
        self, jobs: JudgedJobs, space: Space, name: str, rule: Rule, times_s: Floats
    ) -> None:
        self.name, self.rule, self.times_s = name, rule, np.append(times_s, inf)
        self.decisions, self.last_s = min(STRETCH, len(times_s)), float(jobs.start_s[-1])
        first, last = np.searchsorted(jobs.start_s, self.times_s[[0, self.decisions]]).tolist()
        own = slice(first, min(max(last, first + AHEAD), len(jobs.ids)))
        arrays = ("ready_s", "start_s", "lasts_s", "limit_s", "weight", "size")
        self.jobs = replace(
            jobs,
            ids=jobs.ids[own],
            shapes=jobs.shapes[own],
            where=jobs.where[own],
            rank=tuple(np.argsort(np.argsort(jobs.rank[own])).tolist()),
            judged=jobs.judged[own],
            **{name: getattr(jobs, name)[own] for name in arrays},
        )
        begin_s = float(self.times_s[0])
        end_s = float((self.jobs.start_s + self.jobs.lasts_s).max() + self.jobs.lasts_s.max())
        self.space = {node: _cut(use, begin_s, end_s) for node, use in space.items()}
        for use in chain(*jobs.judged[:first], *jobs.judged[own.stop :]):
            if use.until_s > begin_s and use.since_s < end_s:
                since_s, until_s = max(use.since_s, begin_s), min(use.until_s, end_s)
                self.space[use.node].add(since_s, until_s, use.amounts)
        self._known = dict[int, tuple[float, Starts]]()
        self.hand_over(0)
        self.hand_over(self.decisions)

    def hand_over(self, k: int) -> None:
        """Find what the jobs wait if the rule decides from the k-th decision on."""
        jobs, at_s = self.jobs, self.times_s[k]
        before = {one: start for one, start in jobs.happened.items() if start[0] < at_s}
        ready_s = np.where(jobs.start_s < at_s, jobs.ready_s, np.maximum(jobs.ready_s, at_s))
        later = replace(jobs, ready_s=ready_s)
        starts = with_recorded(later, lambda fixed: self.rule(later, self.space, before | fixed))
        found = (jobs.waited_s, jobs.happened), (jobs.wait_of(starts), starts)
        self._known[k] = min(found, key=itemgetter(0))

    def least(self, k: int) -> tuple[float, Starts]:
        """Return the least that jobs wait if the rule takes over then or later, and their starts.

        Whoever takes over later decides as recorded until then.
        """
        return min((own for at, own in self._known.items() if at >= k), key=itemgetter(0))

    def missing(self, low: int, high: int) -> int:
        """Return where to hand over next to know more of what some decisions cost, or 0.

        That is their middle; of a single decision, the next but one, in case the rule does badly
        from the next one on.
        """
        if high - low > 1:
            return (low + high) // 2
        return high + 1 if high < self.decisions and high + 1 not in self._known else 0

    def told(self, low: int, high: int) -> CostlyDecision:
        jobs = self.jobs
        at_s, until_s = float(self.times_s[low]), float(min(self.times_s[high], self.last_s))
        begun = np.flatnonzero((jobs.start_s >= at_s) & (jobs.start_s < until_s)).tolist()
        starts = self.least(low)[1].items()
        order = sorted((own[0], one, own[1]) for one, own in starts if at_s <= own[0] < until_s)
        recorded = jobs.start_s.tolist()
        return CostlyDecision(
            rule=self.name,
            at_s=at_s,
            until_s=until_s,
            decisions=high - low,
            cost_s=_cost_s((self, low, high)),
            started=tuple(jobs.ids[one] for one in begun),
            instead=tuple(
                Instead(jobs.ids[one], float(jobs.size[one]), new_s, nodes, recorded[one] - new_s)
                for new_s, one, nodes in order
            ),
        )


def _cut(use: NodeUse, since_s: float, until_s: float) -> NodeUse:
    """Return the space of a node from one moment to another; nothing may run after it."""
    first = int(np.searchsorted(use.times_s, since_s, side="right")) - 1
    last = int(np.searchsorted(use.times_s, until_s))
    times_s = np.concatenate([[since_s], use.times_s[first + 1 : last], [until_s, inf]])
    used = np.concatenate([use.used[first:last], np.full((1, use.used.shape[1]), inf)])
    kept = use.ends_s > since_s
    return NodeUse(times_s, used, use.ends_s[kept], use.most[kept])
