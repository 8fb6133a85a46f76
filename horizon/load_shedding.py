"""The plan when a policy has none: running jobs continue, and load is shed until limits hold."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np

from ronda.formulations.allocation.non_preemptible import FEW, firm_jobs, given_way, kind_and_names
from ronda.formulations.objectives.switching_cost import horizon_s
from ronda.formulations.options.application import application_of
from ronda.formulations.options.stated_rows import RULE
from ronda.formulations.sleeping import unused
from ronda.formulations.watts import rack_caps
from ronda.instances.errors import RondaError
from ronda.instances.job import Allocation, JobState, Option
from ronda.instances.models.sharing import any_array, may_stop, narrowed, together
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.instances.violation import Violation

Steps = Sequence[tuple[str, Allocation]]
Jobs = tuple[JobState, ...]
"""Jobs that are stopped together: a single job, or the jobs of an array."""

Item = TypeVar("Item", str, Jobs)

LIMITS = ("power", "energy", "rack-power")
"""The rules that lower clocks can satisfy."""

MOST_SPARED = 256
"""The most jobs that `relief` tries to spare; with a thousand jobs, a try takes milliseconds."""


class NoPlanError(RondaError):
    """An error that no plan exists (if the reason `stop` is infeasible), or that none was found."""

    def __init__(self, words: str, stop: StopReason) -> None:
        super().__init__(words)
        self.stop = stop


class Checker(Protocol):
    """A checker of plans: a `Ledger`, or a checker with more rules."""

    def check(self, round: Round, plan: Plan) -> list[Violation]:
        """Return every rule that a plan breaks."""
        ...


class Cleared(NamedTuple):
    """A plan that may be carried out, and the changes that it needed."""

    plan: Plan
    slowed: tuple[str, ...] = ()  # jobs that run at a lower clock
    stopped: tuple[str, ...] = ()
    restored: tuple[str, ...] = ()  # jobs whose clock was restored
    faults: tuple[str, ...] = ()  # faults of the policy's plan, and rules that no plan can keep
    unmet: Collection[str] = ()  # rules that stay broken
    solve_s: float = 0.0  # seconds until the policy had answered
    replaced: bool = False  # whether another plan took the place of the policy's own


def fallback(round: Round, ledger: Checker, rejected: Plan, *, may_sleep: bool) -> Cleared:
    """Return a plan within all limits that starts nothing, with the record of the rejected plan.

    Running jobs keep their allocations if these break no limit. Otherwise (a power cap dropped, or
    a budget is spent) the plan puts nodes without jobs to sleep if the policy `may_sleep`, then
    slows jobs down, then stops jobs, until the limits hold. Clocks are lowered in order of the GPU
    time lost per watt (see `slowings`). The first jobs to stop are those that lose the least GPU
    time since they began to run here. No job is slowed or stopped, and no node sleeps, if the other
    measures are enough. Arrays are stopped whole, because a GPU draws no less for a part of its
    jobs. As a last resort, nodes sleep even if the policy puts none to sleep; the faults then say
    that no plan keeps the limits with all nodes awake. Jobs that may not be stopped continue, and
    rules that no plan keeps with them stay broken.

    Raises
    ------
    NoPlanError
        If stopping every running job that may be stopped does not help.
    """
    shed = _Shed(round, ledger, rejected)
    broken = shed.violations((), ())
    if not broken:
        return Cleared(shed.plan((), ()))
    nodes = shed.concerned = _concerned(round, broken)
    running = [jobs for jobs in together(round.running) if nodes.intersection(_nodes(jobs))]
    soft = [jobs for jobs in running if may_stop(jobs)]
    soft.sort(key=partial(_loss, round))
    slowing_helps, able = all(v.code in LIMITS for v in broken), set(_ids(soft))
    slower = slowings(round) if slowing_helps else []
    steps = [
        (job, msgspec.structs.replace(shed.held[job], option=option))
        for job, option in slower
        if job in able
    ]
    for shed.sleeping in (may_sleep, True):
        stopped = shed.fewest_stopped(steps, soft)
        if stopped is not None:
            return shed.relief(steps, stopped, broken, may_sleep=may_sleep)
        broken = shed.violations(steps, _ids(soft))
        if shed.firm:
            shed.unmet = {v.where: v.message for v in broken if v.code == RULE}
    first, said, words = broken[0], rejected.details.conflicts, "was found"
    why, stop = f"{first.where} has {first.message}", rejected.stop
    if first.code != RULE:
        words, why, stop = "is valid, not even an empty one", first.message, StopReason.INFEASIBLE
    elif stop is StopReason.INFEASIBLE and said:
        words = "is valid"
        why = "; ".join(f"{', '.join(each.constraints)}: {each.message}" for each in said[:FEW])
    raise NoPlanError(f"at {round.now_s:g} s no plan {words}: {why}", stop)


def restore(
    round: Round, ledger: Checker, cleared: Cleared, clocks: Mapping[str, float]
) -> Cleared:
    """Restore the clocks of jobs that were slowed down, as far as the limits allow.

    Jobs that the (valid) plan stops or changes are left alone.
    """
    plan, restored = cleared.plan, []
    for state in round.running:
        clock, held = clocks.get(state.job.id), state.allocation
        if clock is None or held is None or plan.allocations.get(state.job.id) != held:
            continue
        faster = msgspec.structs.replace(held, option=at_clock(round, state, clock))
        trial = msgspec.structs.replace(
            plan, allocations={**plan.allocations, state.job.id: faster}
        )
        if not ledger.check(round, trial):
            plan = trial
            restored.append(state.job.id)
    return cleared._replace(plan=plan, restored=tuple(restored))


class _Shed:
    """Plans that keep the running jobs, except for jobs that are slowed or stopped.

    If `sleeping` is set, the `concerned` nodes without a job sleep.
    """

    def __init__(self, round: Round, ledger: Checker, rejected: Plan) -> None:
        self.round, self.ledger, self.rejected = round, ledger, rejected
        self.held, self.any_array = round.held, any_array(round.running)
        self.jobs = {state.job.id: state.job for state in round.running}
        self.sleeping = False
        self.concerned: set[int] = set()
        self.firm = firm_jobs(round)
        self.unmet: dict[str, str] = {}  # rules that no plan keeps with the firm jobs, and why

    def plan(self, steps: Steps, stopped: Sequence[str]) -> Plan:
        """Return the plan in which `steps` slow jobs and the `stopped` ones do not run."""
        kept = dict(self.held)
        kept.update(steps)
        for job in stopped:
            del kept[job]
        if self.any_array:
            kept |= narrowed(kept, self.jobs, self.round.profiles, self.round.cluster)
        plan = Plan(
            policy=self.rejected.policy,
            allocations=kept,
            stop=self.rejected.stop,
            status=SolutionStatus.FALLBACK,
            record=self.rejected.record,
            memory=self.rejected.memory,
            details=self.rejected.details,
        )
        if not self.sleeping:
            return plan
        able = self.concerned.union(self.round.asleep)
        asleep = tuple(node for node in unused(self.round, plan) if node in able)
        return msgspec.structs.replace(plan, asleep=asleep)

    def violations(self, steps: Steps, stopped: Sequence[str]) -> list[Violation]:
        """Return the rules that the plan breaks, except for those that no plan keeps."""
        found = self.ledger.check(self.round, self.plan(steps, stopped))
        return [v for v in found if v.where not in self.unmet]

    def fewest_stopped(self, steps: Steps, candidates: Sequence[Jobs]) -> Sequence[Jobs] | None:
        """Return the fewest first candidates to stop in addition to all steps; None: too few."""
        count = _fewest(len(candidates), lambda n: not self.violations(steps, _ids(candidates[:n])))
        return None if count is None else candidates[:count]

    def relief(
        self, steps: Steps, jobs: Sequence[Jobs], unmet: Sequence[Violation], *, may_sleep: bool
    ) -> Cleared:
        """Return the plan without unnecessary slowing, stopping or sleep."""
        stopped = _ids(self._needed(jobs, lambda some: (steps, _ids(some))))
        most = _fewest(len(steps), lambda n: not self.violations(steps[:n], stopped))
        steps = steps[:most]
        slowed = self._needed(
            [job for job in dict.fromkeys(job for job, _ in steps) if job not in stopped],
            lambda some: ([step for step in steps if step[0] in some], stopped),
        )
        steps = [step for step in steps if step[0] in slowed]
        if self.sleeping:
            self.sleeping = False
            self.sleeping = bool(self.violations(steps, stopped))
        plan = self.plan(steps, stopped)
        broken, limits = [], " and ".join(_limit(self.round, v) for v in unmet)
        new = sorted({*(plan.asleep or ())} - {*self.round.asleep})
        if new and not may_sleep:
            which = kind_and_names("node", new) if len(new) < FEW else f"{len(new)} nodes"
            broken.append(f"no plan keeps {limits} and all nodes awake: {which} put to sleep")
        for rule, why in self.unmet.items():
            broken.append(given_way(rule, rule, self.firm, f"it has {why}").message)
        return Cleared(
            plan, tuple(slowed), tuple(stopped), faults=tuple(broken), unmet=tuple(self.unmet)
        )

    def _needed(
        self, jobs: Sequence[Item], of: Callable[[Sequence[Item]], tuple[Steps, Sequence[str]]]
    ) -> list[Item]:
        """Return those of the jobs that must be slowed or stopped; the last jobs are spared first.

        `of` returns the steps and the stops for a subset of the jobs. If there are many jobs, only
        the last ones are tried.
        """
        needed = list(jobs)
        for job in reversed(jobs[-MOST_SPARED:]):
            fewer = [other for other in needed if other != job]
            if not self.violations(*of(fewer)):
                needed = fewer
        return needed


def _ids(groups: Sequence[Jobs]) -> list[str]:
    return [state.job.id for jobs in groups for state in jobs]


def _loss(round: Round, jobs: Jobs) -> float:
    """Return the GPU time of jobs since they began to run here; the least is stopped first."""
    held = ((s.allocation, round.now_s - s.held_s) for s in jobs)
    return sum(a.option.own_gpus * time_s for a, time_s in held if a is not None)


def _nodes(jobs: Jobs) -> set[int]:
    held = (state.allocation for state in jobs)
    return {node for each in held if each is not None for node, _ in each.placement}


def _concerned(round: Round, broken: Sequence[Violation]) -> set[int]:
    """Return the nodes whose jobs break a limit: only those of racks if nothing else is broken."""
    topology = round.cluster.topology
    if any(v.code != "rack-power" for v in broken):
        return set(range(len(topology.node_gpus)))
    racks = {v.where for v in broken}
    inside = [cap.racks for cap in rack_caps(round.cluster) if f"rack {cap.name}" in racks]
    return set(np.flatnonzero(np.isin(topology.node_rack, [*chain(*inside)])).tolist())


def _limit(round: Round, violation: Violation) -> str:
    """Return a description of the limit that a plan breaks."""
    caps = {f"rack {cap.name}": cap.cap_w for cap in rack_caps(round.cluster)}
    match violation.code:
        case "power":
            return f"{round.power_cap_w:.6g} W"
        case "energy":
            return f"{round.energy_j:.6g} J in {round.window_s:g} s"
        case "rack-power":
            return f"{caps[violation.where]:.6g} W in {violation.where}"
    return f"{violation.where} ({violation.message})"


def _fewest(most: int, enough: Callable[[int], bool]) -> int | None:
    """Return the least n in 0..`most` that is enough, or None; `enough` must be monotone in n."""
    return bisect_left(range(most), True, key=enough) if enough(most) else None


def slowings(round: Round) -> list[tuple[str, Option]]:
    """Return steps down in clock for the running jobs, those with the least loss per watt first.

    A change of clock is a restart like any other change. Over the time H that it is expected to
    last (`ronda.formulations.objectives.switching_cost.horizon_s`), it loses the pause and the
    reduction in progress, in seconds of the job's GPUs at the current clock::

        loss(s) = gpus (pause + (H - pause) (1 - rate(s) / rate))

    From each clock, a job's next step is the one with the least loss per watt saved. So a job's
    steps follow its lower convex hull, and the order of all steps is that of a greedy fractional
    knapsack. A later step of a job replaces its earlier ones. Jobs that must not be changed, rigid
    jobs, and jobs that share a GPU have no steps.
    """
    found: list[tuple[float, str, Option]] = []
    for state in round.running:
        held = state.allocation
        alone = held is not None and held.array is None and held.option.share is None
        if alone and state.job.preemptible:
            found += [(ratio, state.job.id, option) for ratio, option in _steps(round, state)]
    found.sort(key=lambda step: step[0])
    return [(job, option) for _, job, option in found]


def at_clock(round: Round, state: JobState, clock: float) -> Option:
    """Return the option of a running job that is not rigid, at another clock."""
    if state.allocation is None:
        raise ValueError(f"job {state.job.id!r} does not run")
    held = state.allocation.option
    of = application_of(round, state, held.pool)
    assert of is not None, "the profile of a running job that may be slowed knows its GPUs"
    gpus, batch, noise, alone = held.computing, held.batch, state.noise, held.asked is not None
    slower = of.option(gpus, batch, noise, clock=clock, span=held.span, exclusive=alone)
    if slower is None:
        return held
    return msgspec.structs.replace(held, clock=clock, rate=slower.rate, power_w=slower.power_w)


def _steps(round: Round, state: JobState) -> list[tuple[float, Option]]:
    """Return a job's steps with their loss in GPU-seconds per watt saved, in ascending order."""
    assert state.allocation is not None
    held = state.allocation.option
    of = application_of(round, state, held.pool)
    if of is None or of.rigid:
        return []
    full = at_clock(round, state, held.clock)
    pause_s = (state.job.costs or round.costs).pause(held.gpus, running=True)
    lasts_s = max(horizon_s(round), pause_s)
    left = []
    for clock in of.shape.pool.gpu_type.clocks:
        if clock < held.clock:
            option = at_clock(round, state, clock)
            slower = max(0.0, 1.0 - option.rate / full.rate)
            lost = held.gpus * (pause_s + (lasts_s - pause_s) * slower)
            left.append((held.power_w - option.power_w, lost, option))
    steps = []
    saved_w = lost_s = 0.0
    while left := [row for row in left if row[0] > saved_w]:
        ratio, best = min(
            (((row[1] - lost_s) / (row[0] - saved_w), row) for row in left), key=lambda x: x[0]
        )
        saved_w, lost_s, option = best
        steps.append((ratio, option))
    return steps
