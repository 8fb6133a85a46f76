"""Migrations that empty most nodes or save most watts, with a bound on any possible saving."""

import dataclasses
import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from ronda.formulations.sleeping import unused
from ronda.horizon.solve import ROUND
from ronda.instances.arguments import checked
from ronda.instances.base import Index, NonNegative, Positive, Record
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline, OutOfTimeError, ending
from ronda.instances.cluster import Topology
from ronda.instances.errors import InputError
from ronda.instances.job import same_nodes, used_nodes
from ronda.instances.plan import (
    Plan,
    SolutionStatus,
    SolveRecord,
    StopReason,
    closes,
    trusted_bound,
)
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.questions.consolidate.holdings import (
    Placement,
    Saving,
    holdings,
    lost_s,
    rack_worth,
    worth_of,
)
from ronda.questions.consolidate.one_by_one import one_by_one
from ronda.solvers.as_one import AsOne
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort
from ronda.solvers.versions import versions

Gap = Annotated[float, msgspec.Meta(ge=0, le=1)]


class Migration(Record, frozen=True, kw_only=True):
    """A move of a job, or of the jobs of an array, to other nodes with the same option.

    Attributes
    ----------
    jobs, gpus
        The moved job, or all jobs of the moved array, and its number of GPUs.
    source, target
        Pairs (node, GPUs there) before and after the move.
    pause_s, first
        Seconds of progress lost by the move, and whether the job must stop before others move,
        because they need its GPUs.
    """

    jobs: tuple[str, ...]
    gpus: int
    source: Placement
    target: Placement
    pause_s: float
    first: bool = False

    @property
    def lost_gpu_s(self) -> float:
        """The GPU-seconds without progress."""
        return self.gpus * self.pause_s


class Consolidation(Record, frozen=True, kw_only=True):
    """The plan that carries out a set of moves, with its savings and losses.

    Attributes
    ----------
    plan
        Plan with all running jobs, moved jobs on their new nodes; `check` accepts it. Its
        ``objective`` is the saving in nodes or watts, and no plan of such moves saves more than its
        ``bound``.
    moves
        Moves, in an order in which each finds its GPUs free.
    emptied, filled, emptied_racks, filled_racks
        Nodes that have jobs only before the moves, and only after them; likewise racks, in a
        cluster of several.
    saved_w
        Watts saved if nodes without jobs sleep, compared with before.
    lost_gpu_s, lost_j
        GPU-seconds without progress in the pauses of moves, and energy that the GPUs use in them.
    """

    plan: Plan
    moves: tuple[Migration, ...]
    emptied: tuple[int, ...]
    filled: tuple[int, ...]
    emptied_racks: tuple[str, ...]
    filled_racks: tuple[str, ...]
    saved_w: float
    lost_gpu_s: float
    lost_j: float


@checked
def consolidate(
    round: Annotated[Round, ROUND],
    *,
    save: Saving = "nodes",
    moves: Index | None = None,
    lost_gpu_s: NonNegative | None = None,
    gap: Gap = 1e-4,
    deadline: Deadline | Positive | None = None,
    seed: Index = 0,
) -> Consolidation:
    """Return the moves of running jobs that save most, with few moves among equally good plans.

    Jobs keep their options, jobs that may not be preempted stay, an array moves as one job, and no
    sleeping node wakes. A moved job takes whole nodes and one block, as everywhere in ronda. The
    same round and seed give the same moves unless the deadline ends the search.

    Parameters
    ----------
    save
        What to save: ``nodes`` with jobs, or the ``watts`` that nodes without jobs save asleep.
        With ``watts`` the plan puts these nodes to sleep. With ``racks`` nodes come first, and of
        plans that empty as many of them the one that empties most racks.
    moves
        Largest number of jobs to move; by default any number.
    lost_gpu_s
        Limit on the GPU-seconds without progress in the pauses of moves; by default none.
    gap
        Relative gap between the saving and its bound at which the search stops.
    deadline
        Time limit in seconds, or a `Deadline` that has begun; None means no limit.

    Raises
    ------
    InputError
        If the round is invalid, or its running jobs already break a rule.
    """
    until, round = Deadline.of(deadline), validate(round)  # validation counts towards the deadline
    if broken := check(round, Plan(allocations=round.held)):
        raise InputError("what runs", str(broken[0]), "jobs that keep every rule: see ronda solve")
    seen = AsOne(round)
    effort = Effort(deadline=until, gap=gap, seed=seed)
    if (budget := round.site.disruption.jobs) is not None:
        moves = budget if moves is None else min(moves, budget)
    found = _search(seen.round, save, moves, lost_gpu_s, effort)
    answers = [_answer(round, seen, save, gap, found, at) for at in found.at]
    answers.sort(
        key=lambda a: (a.plan.objective or 0.0, -len(a.moves), -a.lost_gpu_s), reverse=True
    )
    for answer in answers:
        broken = check(round, answer.plan) if answer.moves or answer.plan.asleep else []
        if not broken:
            break
    else:
        failed = replace(found.record, message=f"nothing moves, as its plan breaks {broken[0]}")
        found = found._replace(stop=StopReason.ERROR, record=failed)
        answer = _answer(round, seen, save, gap, found, {})
    record = replace(answer.plan.record, total_s=until.elapsed())
    return replace(answer, plan=replace(answer.plan, record=record))


class _Found(NamedTuple):
    """The solutions of a search with their bounds, the reason for its end, and its cost."""

    at: tuple[Mapping[str, Placement], ...]
    safe: float  # bound by counting
    told: float  # bound by the search; infinite if it found none
    stop: StopReason
    record: SolveRecord


def _search(
    round: Round, save: Saving, moves: int | None, lost_gpu_s: float | None, effort: Effort
) -> _Found:
    """Search a round without arrays for the moves that save most, then for fewer such moves."""
    from ronda.questions.consolidate.by_patterns import moves_by_patterns
    from ronda.questions.consolidate.model import build, fewest_moves
    from ronda.questions.consolidate.read import placements

    safe, deadline, quick = most_saved(round, save), effort.deadline, dict[str, Placement]()
    began_s = deadline.elapsed()
    try:
        with ending(deadline.sooner(began_s / 2).end):  # the answer is checked like what runs
            held = holdings(round, save)
            quick = one_by_one(held, moves=moves, lost_gpu_s=lost_gpu_s)
            hosts, limited = len(held.free) > 1, (moves, lost_gpu_s) != (None, None)
            model = None
            if limited or not hosts:
                model = build(held, moves=moves, lost_gpu_s=lost_gpu_s)
    except OutOfTimeError:
        record = SolveRecord(seed=effort.seed, message="no time to build the model")
        return _Found((quick,), safe, math.inf, StopReason.TIME_LIMIT, record)
    built_s, known = deadline.elapsed(), versions()
    if hosts:
        # Checking the answer takes no longer than reading and checking the round.
        effort, told = dataclasses.replace(effort, reserve_s=began_s), math.inf
        if model is not None:  # without hosts more can be saved
            relaxed = solve(model, dataclasses.replace(effort, deadline=deadline.share(0.25)))
            told = math.inf if relaxed.bound is None else relaxed.bound
        by = moves_by_patterns(held, quick, effort)
        lost_s = sum(mover.lost_gpu_s for mover in held.movers if mover.job in by.placed)
        most = [math.inf if limit is None else limit for limit in (moves, lost_gpu_s)]
        kept = len(by.placed) <= most[0] and lost_s <= most[1]
        record = SolveRecord(
            seed=effort.seed,
            build_s=built_s - began_s,
            solve_s=deadline.elapsed() - built_s,
            variables=by.columns,
            solver="patterns",
            versions={package: known[package] for package in ("ronda", "highspy")},
        )
        stop = StopReason.TIME_LIMIT if deadline.over() else StopReason.STAGNATION
        ways = [quick, by.placed] if kept else [quick]
        return _Found(tuple(ways), safe, min(told, by.bound), stop, record)
    # Reading and checking the answer takes no longer than building the model.
    effort = dataclasses.replace(effort, reserve_s=built_s - began_s)
    outcome, ways = solve(model, effort), [quick]
    told = math.inf if outcome.bound is None else outcome.bound
    if outcome.x is not None:
        if effort.left_s > 0:
            fewest_moves(model)
            solve(model, effort)
        ways.append(placements(model))
    record = SolveRecord(
        seed=effort.seed,
        build_s=built_s - began_s,
        solve_s=deadline.elapsed() - built_s,
        nodes=outcome.nodes,
        variables=outcome.variables,
        constraints=outcome.constraints,
        incumbents=outcome.incumbents,
        solver="highs",
        versions={package: known[package] for package in ("ronda", "highspy", "pyomo")},
        message=outcome.message,
    )
    return _Found(tuple(ways), safe, told, outcome.stop, record)


def _answer(
    round: Round,
    seen: AsOne,
    save: Saving,
    gap: float,
    found: _Found,
    to: Mapping[str, Placement],
) -> Consolidation:
    topology = round.cluster.topology
    held, idle_w = seen.round.held, [p.gpu_type.idle_w for p in topology.pools]
    at = {job: on for job, on in to.items() if not same_nodes(on, held[job].placement)}
    moved = {job: replace(held[job], placement=on) for job, on in at.items()}
    told = seen.told(Plan(allocations=held | moved))
    before, after = used_nodes(held.values()), used_nodes(told.allocations.values())
    emptied, filled = sorted(before - after), sorted(after - before)
    worth, watts = worth_of(round, save), worth_of(round, "watts")
    saved = float(worth[emptied].sum() - worth[filled].sum())
    racks = [{int(r) for r in topology.node_rack[[*nodes]]} for nodes in (before, after)]
    saved += rack_worth(round, save) * (len(racks[0]) - len(racks[1]))
    bound = trusted_bound(found.told, found.safe, saved)
    bound = max(float(math.floor(bound + 1e-6)), saved) if save == "nodes" else bound
    stop, status = found.stop, SolutionStatus.FEASIBLE
    if stop is StopReason.ERROR:
        status = SolutionStatus.FALLBACK
    elif closes(bound, saved, gap):
        stop = StopReason.COMPLETE if closes(bound, saved, 0.0) else StopReason.GAP
        status = SolutionStatus.OPTIMAL
    moves = _in_turn(seen, round, at)
    lost_j = [m.lost_gpu_s * idle_w[held[seen.stands_for(m.jobs[0])].option.pool] for m in moves]
    return Consolidation(
        plan=Plan(
            policy="consolidate",
            allocations=told.allocations,
            asleep=unused(round, told) if save == "watts" else None,
            objective=saved,
            bound=bound,
            stop=stop,
            status=status,
            record=found.record,
        ),
        moves=moves,
        emptied=tuple(emptied),
        filled=tuple(filled),
        emptied_racks=_names(topology, racks[0] - racks[1]),
        filled_racks=_names(topology, racks[1] - racks[0]),
        saved_w=float(watts[emptied].sum() - watts[filled].sum()),
        lost_gpu_s=sum(move.lost_gpu_s for move in moves),
        lost_j=sum(lost_j),
    )


def _names(topology: Topology, racks: set[int]) -> tuple[str, ...]:
    return tuple(topology.racks[r] for r in sorted(racks)) if len(topology.racks) > 1 else ()


def _in_turn(seen: AsOne, round: Round, at: Mapping[str, Placement]) -> tuple[Migration, ...]:
    """Return moves in an order in which each finds its GPUs free; some jobs may stop first."""
    states = {state.job.id: state for state in seen.round.running}
    held, free = seen.round.held, round.cluster.topology.node_gpus.tolist()
    for allocation in held.values():
        _give(free, allocation.placement, -1)
    order, first, waiting = list[str](), set[str](), list(at)
    while waiting:
        late = []
        for job in waiting:
            own = () if job in first else held[job].placement
            _give(free, own, 1)
            if all(free[node] >= gpus for node, gpus in at[job]):
                _give(free, at[job], -1)
                order.append(job)
            else:
                _give(free, own, -1)
                late.append(job)
        if len(late) == len(waiting):
            stopped = next((job for job in late if job not in first), None)
            if stopped is None:  # too many on a node: the check refuses the plan
                break
            first.add(stopped)
            _give(free, held[stopped].placement, 1)
        waiting = late
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for job in round.held:
        alike[seen.stands_for(job)].append(job)
    return tuple(
        Migration(
            jobs=tuple(alike[job]),
            gpus=held[job].option.gpus,
            source=held[job].placement,
            target=at[job],
            pause_s=lost_s(seen.round, states[job]),
            first=job in first,
        )
        for job in order
    )


def _give(free: list[int], placement: Placement, times: int) -> None:
    for node, gpus in placement:
        free[node] += times * gpus


def most_saved(round: Round, saving: Saving) -> float:
    """Return an upper bound on the saving by moves in a round without arrays.

    In each pool, the nodes in use are worth at least min Σ_n w_n a_n with Σ_n size_n a_n ≥ GPUs
    held and 0 ≤ a_n ≤ 1. The minimum fills the nodes of least w per GPU first.
    """
    topology, worth = round.cluster.topology, worth_of(round, saving)
    held = np.zeros(len(worth))
    for allocation in round.held.values():
        for node, gpus in allocation.placement:
            held[node] += allocation.option.share or gpus
    saved = float(worth[held > 0].sum())
    for pool in range(len(topology.pools)):
        nodes = np.flatnonzero(topology.in_service(pool))
        size, each = topology.node_gpus[nodes], worth[nodes] / topology.node_gpus[nodes]
        order = np.argsort(each, kind="stable")
        filled = np.minimum(size[order].cumsum(), held[nodes].sum())
        saved -= float(np.diff(filled, prepend=0.0) @ each[order])
    if saving == "watts":
        return saved
    racks = len({int(r) for r in topology.node_rack[held > 0]})
    return float(np.floor(saved + 1e-6)) + rack_worth(round, saving) * racks
