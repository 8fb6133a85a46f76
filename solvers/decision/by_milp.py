"""Choosing every job's option by MILP, within a time limit and with a certified bound.

HiGHS starts from the greedy choice at the dual prices of GPUs and watts
(`ronda.formulations.allocation.greedy_fill`); the dual's bound D counts where HiGHS's own is
weaker. If time is short the MILP has only as many options as it can be built and started with in
time: those of least *loss*, by which any plan that uses them falls short of D. A plan outside it is
worth at most D less the least loss left out.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from ronda.formulations.allocation.candidates import option_losses
from ronda.formulations.allocation.case import Case, make_case
from ronda.formulations.allocation.conflicts import shortages, within
from ronda.formulations.allocation.greedy_fill import dual_bound, fill
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts.nodes import awake_for, by_pool
from ronda.instances.arrays import Floats, Rows
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.choice import Choice, named_prices
from ronda.solvers.decision.milp_search import PROOF, Search


def allocate(
    round: Round,
    table: OptionTable,
    values: Floats,
    *,
    deadline: Deadline,
    gap: float,
    seed: int,
    starts: Sequence[Rows] = (),
    reserve_s: float = 0.0,
) -> Choice:
    """Choose every job's option.

    Parameters
    ----------
    round, table, values
        The round, its options and (K,) what they are worth; not to run is worth 0.
    deadline
        By when to return.
    gap
        Relative gap between value and bound at which to stop.
    seed
        Of HiGHS.
    starts
        (J,) choices to start from, besides the greedy one.
    reserve_s
        Seconds that must be left on return.
    """
    case = make_case(round, table, values)
    conflicts = shortages(case)
    if conflicts:
        return Choice(
            chosen=np.full(len(table.jobs), -1, dtype=np.int64),
            stop=StopReason.INFEASIBLE,
            status=SolutionStatus.NONE,
            build_s=deadline.elapsed(),
            conflicts=tuple(conflicts),
        )
    _, named = dual_bound(round, table, values, sleeping=case.sleeps)
    losses, dual = option_losses(round, table, values, named, sleeping=case.sleeps)
    # A start may break what only the model knows (racks): then it proves nothing.
    greedy = [fill(round, table, values)]
    if case.sleeps:
        asleep = _likely_asleep(case, losses)
        greedy.append(fill(round, table, values, asleep=asleep))
    found, sure = _start(case, values, [*greedy, *starts])
    objective = float(values[found[found >= 0]].sum())
    first = Choice(
        chosen=found,
        objective=objective,
        bound=max(dual, objective),
        prices=named_prices(round, named),
        build_s=deadline.elapsed(),
        incumbents=((deadline.elapsed(), objective),) if sure else (),
        solver="prices",
        message="greedy choice at the dual prices",
    )
    if sure and first.closed(PROOF):
        return _judged(first, gap, sure=True)
    search = Search(case, values, losses[case.rows], dual, deadline, gap, seed, reserve_s, sure)
    best = search.run(first)
    return _judged(best, gap, sure=search.sure)


def _judged(choice: Choice, gap: float, *, sure: bool) -> Choice:
    """Return the choice with its final status."""
    if choice.stop is StopReason.INFEASIBLE:
        return replace(choice, status=SolutionStatus.NONE)
    if sure and (choice.stop is StopReason.COMPLETE or choice.closed(max(gap, PROOF))):
        exact = gap <= PROOF or choice.closed(PROOF)
        stop = StopReason.COMPLETE if exact else StopReason.GAP
        return replace(choice, stop=stop, status=SolutionStatus.OPTIMAL)
    return replace(choice, status=SolutionStatus.FEASIBLE)


def _start(case: Case, values: Floats, starts: Sequence[Rows]) -> tuple[Rows, bool]:
    """Return the best start that meets the constraints, and whether it surely meets them all.

    If none does, the greedy one (the first) loses jobs of least value per GPU until it does.
    """
    if case.racks:  # options that no rack could bear are not in the case
        starts = [np.where(np.isin(chosen, case.rows), chosen, -1) for chosen in starts]
    good = [chosen for chosen in starts if within(case, chosen)]
    if good:
        best = max(good, key=lambda chosen: float(values[chosen[chosen >= 0]].sum()))
        return best, not case.racks or not len(case.rows)
    thinned = _thinned(case, values, starts[0])
    return thinned, not case.racks and within(case, thinned)


def _likely_asleep(case: Case, losses: Floats) -> list[int]:
    """Return nodes that can sleep if every job takes the option that the prices suggest."""
    table, topology = case.table, case.round.cluster.topology
    rows = np.flatnonzero(losses <= 0)
    rows = rows[np.diff(table.job[rows], prepend=-1) > 0]  # one for each job
    gpus = np.bincount(table.pool[rows], table.gpus[rows], minlength=len(table.pools))
    counts = awake_for(case.classes, [int(n) for n in gpus.tolist()])
    busy = {n for s in case.round.running if s.allocation for n, _ in s.allocation.placement}
    asleep: list[int] = []
    for p, awake in enumerate(by_pool(case.classes, counts, len(table.pools))):
        own = np.flatnonzero(topology.node_pool == p).tolist()
        asleep += sorted(own, key=lambda node: node in busy)[: len(own) - awake]
    return asleep


def _thinned(case: Case, values: Floats, chosen: Rows) -> Rows:
    """Return the longest prefix, by value per GPU, of a choice that meets the constraints."""
    jobs = np.flatnonzero(chosen >= 0)
    worth = values[chosen[jobs]] / case.table.gpus[chosen[jobs]]
    ranked = jobs[np.lexsort((-worth, ~case.table.must_run[jobs]))]
    least, most = int(case.table.must_run.sum()), len(ranked)
    while least < most:  # more jobs never use less: bisection finds the last prefix that fits
        middle = (least + most + 1) // 2
        if within(case, _only(chosen, ranked[:middle])):
            least = middle
        else:
            most = middle - 1
    return _only(chosen, ranked[:least])


def _only(chosen: Rows, jobs: Rows) -> Rows:
    kept = np.full_like(chosen, -1)
    kept[jobs] = chosen[jobs]
    return kept
