"""The recorded decisions that cost the most waiting, found by handing over to a rule.

Take the next jobs that the log started after some moment, all others at their true times. Let f(i)
be what they wait if the cluster decides as recorded before its i-th decision, and a rule that knows
no more than it did decides from then on, in proven space. Then f(i + 1) - f(i) is what the i-th
decision cost: a decision is what the log started at one moment, and that it started nothing until
the next. The costs of a stretch of decisions add up to the difference of f at its ends, so that
stretches are halved, the worst first, down to single decisions.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from operator import itemgetter

import numpy as np

from ronda.instances.base import Floats, Ints
from ronda.questions.judge.queue import HeldUse, JudgedJobs, Starts
from ronda.questions.judge.space import NodeUse

STRETCH, AHEAD = 100, 200
"""The number of decisions of a stretch, and of starts from its first on that are decided anew."""

HALVINGS = 6
"""The most halvings of stretches for each decision that is wanted."""

PASSES = 30
"""The most times that the rule is asked, each time with those held that it could not start."""

LEAST_S = 36.0
"""Decisions that cost less are not told."""

Space = Mapping[int, NodeUse]
Rule = Callable[[JudgedJobs, Space], Starts]
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

    Attributes
    ----------
    rule
        The rule that would have decided better.
    at_s, until_s
        When it was made, and when the next one was.
    decisions
        The number of decisions.
    cost_s
        Weighted seconds of waiting that are spared if the rule decides from then on and not only
        from the next decision on.
    started, instead
        The jobs that the log started then, and those that the rule starts before the next decision.
    regret
        Of a single decision, the least and the most that the worth of what was started is below the
        best for that moment, as shares; None if it was not certified.
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
    every = [_whole(jobs, space, name, rule, progress) for name, rule in rules.items()]
    parts = max(every, key=lambda own: sum(part[0].cost_s(*part[1:]) for part in own))
    for k in range(HALVINGS * most):
        parts.sort(key=lambda part: -part[0].cost_s(*part[1:]))
        chosen = next((part for part in parts[:most] if part[0].missing(*part[1:])), None)
        if chosen is None:
            break
        progress(f"decisions: {k:,} of at most {HALVINGS * most:,} looked at")
        stretch, low, high = chosen
        stretch.hand_over(middle := stretch.missing(low, high))
        if low < middle < high:
            parts.remove(chosen)
            parts += [(stretch, low, middle), (stretch, middle, high)]
    parts.sort(key=lambda part: -part[0].cost_s(*part[1:]))
    costly = (part for part in parts if part[0].cost_s(*part[1:]) > LEAST_S)
    told = (part[0].told(*part[1:]) for part in costly)
    return tuple(islice((each for each in told if each.late or each.early), most))


def _whole(
    jobs: JudgedJobs, space: Space, name: str, rule: Rule, progress: Callable[[str], None]
) -> list[Part]:
    """Return the stretches of all decisions, each as one part."""
    every_s, held = np.unique(jobs.start_s), uses_by_job(jobs)
    parts = list[Part]()
    for k in range(0, len(every_s), STRETCH):
        progress(f"{name}: {k:,} of {len(every_s):,} decisions looked at")
        stretch = _Stretch(jobs, held, space, name, rule, every_s[k : k + STRETCH + 1])
        stretch.hand_over(0)
        stretch.hand_over(stretch.decisions)
        parts.append((stretch, 0, stretch.decisions))
    return parts


def uses_by_job(jobs: JudgedJobs) -> list[tuple[HeldUse, ...]]:
    """Return what each job held of nodes."""
    uses = iter(jobs.judged)
    return [tuple(islice(uses, shape.nodes)) for shape in jobs.shapes]


class _Stretch:
    """Some decisions, each at one moment, and the jobs that are started from the first of them on.

    `times_s` are the moments of the decisions and, if there is one, that of the next.
    """

    def __init__(
        self,
        jobs: JudgedJobs,
        uses: Sequence[Sequence[HeldUse]],
        space: Space,
        name: str,
        rule: Rule,
        times_s: Floats,
    ) -> None:
        self.every, self.uses, self.space = jobs, uses, space
        self.name, self.rule = name, rule
        self.times_s = np.append(times_s, inf)
        self.decisions = min(STRETCH, len(times_s))
        self.first, last = np.searchsorted(jobs.start_s, self.times_s[[0, self.decisions]]).tolist()
        self.end = min(max(last, self.first + AHEAD), len(jobs.ids))
        self.jobs = _some(jobs, np.arange(self.first, self.end))
        self._held: Space | None = None
        self._known = dict[int, tuple[float, Starts]]()
        self.last_s = float(jobs.start_s[-1])

    def cost_s(self, low: int, high: int) -> float:
        """Return what the decisions from one to another cost, as far as is known."""
        return self._least_s(high) - self._least_s(low)

    def _least_s(self, k: int) -> float:
        """Return the least that the jobs wait if the rule takes over at the k-th decision or later.

        Whoever takes over later decides as recorded until then.
        """
        return min(waited_s for at, (waited_s, _) in self._known.items() if at >= k)

    def missing(self, low: int, high: int) -> int:
        """Return where to hand over next to know more of what some decisions cost, or 0.

        That is their middle; of a single decision, the next but one, in case the rule does badly
        from the next one on.
        """
        if high - low > 1:
            return (low + high) // 2
        return high + 1 if high < self.decisions and high + 1 not in self._known else 0

    def hand_over(self, k: int) -> None:
        """Find what the jobs wait if the rule decides from the k-th decision on.

        Jobs that it cannot start to their end in proven space start as recorded.
        """
        jobs, at_s = self.jobs, self.times_s[k]
        left = np.flatnonzero(jobs.start_s >= at_s)
        held = np.flatnonzero(jobs.start_s < at_s)
        room = {node: use.copy() for node, use in self._base().items()}
        start_s, starts, others = jobs.start_s.copy(), Starts(), list(jobs.others)
        for _ in range(PASSES):
            for one in held.tolist():
                _hold(room, self.uses[self.first + one])
            later = _some(jobs, left)
            others += [use for one in held.tolist() for use in self.uses[self.first + one]]
            ready_s = np.maximum(later.ready_s, at_s)
            later = replace(later, ready_s=ready_s, others=tuple(others))
            starts = {int(left[one]): start for one, start in self.rule(later, room).items()}
            placed = np.isin(left, [*starts])
            if placed.all():
                start_s[left] = [starts[one][0] for one in left.tolist()]
                break
            held, left = left[~placed], left[placed]
        found = jobs.cost(start_s), starts
        self._known[k] = min(found, (jobs.waited_s, {}), key=itemgetter(0))

    def told(self, low: int, high: int) -> CostlyDecision:
        """Return the decisions from one to another."""
        at_s, until_s = float(self.times_s[low]), float(min(self.times_s[high], self.last_s))
        taken = min((k for k in self._known if k >= low), key=lambda k: (self._known[k][0], k))
        starts = self._known[taken][1]
        begun = np.flatnonzero((self.jobs.start_s >= at_s) & (self.jobs.start_s < until_s))
        order = sorted((starts[one][0], one) for one in starts if starts[one][0] < until_s)
        return CostlyDecision(
            rule=self.name,
            at_s=at_s,
            until_s=until_s,
            decisions=high - low,
            cost_s=self.cost_s(low, high),
            started=tuple(self.jobs.ids[one] for one in begun),
            instead=tuple(
                Instead(
                    self.jobs.ids[one],
                    float(self.jobs.size[one]),
                    at,
                    starts[one][1],
                    float(self.jobs.start_s[one]) - at,
                )
                for at, one in order
            ),
        )

    def _base(self) -> Space:
        """Return the space of the stretch, in which all other jobs are at their true times."""
        if self._held is None:
            ends_s = self.every.start_s + self.every.lasts_s
            since_s, until_s = self.times_s[0], ends_s[self.first : self.end].max()
            until_s += self.jobs.lasts_s.max()  # another order may end later
            room = {node: _cut(use, since_s, until_s) for node, use in self.space.items()}
            others = (ends_s > since_s) & (self.every.start_s < until_s)
            others[self.first : self.end] = False
            for one in np.flatnonzero(others).tolist():
                _hold(room, self.uses[one], since_s, until_s)
            self._held = room
        return self._held


def _some(jobs: JudgedJobs, chosen: Ints) -> JudgedJobs:
    """Return some of the jobs, without the others."""
    arrays = ("ready_s", "start_s", "lasts_s", "limit_s", "weight", "size")
    order = np.argsort(np.array(jobs.rank)[chosen], kind="stable")
    own = chosen.tolist()
    return replace(
        jobs,
        ids=tuple(jobs.ids[one] for one in own),
        shapes=tuple(jobs.shapes[one] for one in own),
        rank=tuple(np.argsort(order).tolist()),
        judged=(),
        **{name: getattr(jobs, name)[chosen] for name in arrays},
    )


def _hold(
    room: Space, uses: Iterable[HeldUse], since_s: float = -inf, until_s: float = inf
) -> None:
    """Let runs hold what they held."""
    for use in uses:
        begin_s, end_s = max(use.since_s, since_s), min(use.until_s, until_s)
        if begin_s < end_s:
            room[use.node].add(begin_s, end_s, use.amounts)


def _cut(use: NodeUse, since_s: float, until_s: float) -> NodeUse:
    """Return the space of a node from one moment to another; nothing may run after it."""
    first = int(np.searchsorted(use.times_s, since_s, side="right")) - 1
    last = int(np.searchsorted(use.times_s, until_s))
    times_s = np.concatenate([[since_s], use.times_s[first + 1 : last], [until_s, inf]])
    used = np.concatenate([use.used[first:last], np.full((1, use.used.shape[1]), inf)])
    kept = use.ends_s > since_s
    return NodeUse(times_s, used, use.ends_s[kept], use.most[kept])
