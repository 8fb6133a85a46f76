"""The price engine: certified near-optimal answers to separable rounds.

1. Solve the Lagrangian dual (`ronda.solvers.prices.dual`): prices and an upper bound D.
2. Let all jobs take their best option at these prices, except for a small core of jobs whose
   alternatives cost next to nothing; a MILP decides the core (`ronda.solvers.prices.core`).
3. Every plan outside the core falls short of D by at least the least loss that was left out. Widen
   the core until the best plan is within the gap that was asked for, or proven optimal
   (`ronda.solvers.prices.core_search`).
4. Where the dual takes half a block (half a node that may sleep), the numbers of blocks are
   branched on before that, with a dual for each part (`ronda.solvers.prices.blocks`).
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from ronda.formulations.allocation.separable import Separable, Units, normalise
from ronda.formulations.clock import OutOfTimeError, checkpoint
from ronda.instances.arrays import Floats, Ints
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.prices.answer import Answer
from ronda.solvers.prices.blocks import WholeBlocks
from ronda.solvers.prices.dual import Dual, bound_at, solve_dual
from ronda.solvers.prices.fill import fill, is_feasible
from ronda.solvers.prices.jobs import Jobs
from ronda.solvers.prices.search import Search


def solve_separable(problem: Separable, search: Search | None = None) -> Answer:
    """Solve a separable problem to a certified relative gap.

    Raises
    ------
    InputError
        If the problem makes no sense, or the gap is 0, which prices cannot promise.
    """
    search = search or Search()
    if not search.gap:
        raise InputError("gap", "0", "a share above 0 and below 1")
    own, units, jobs, dual = _priced(problem, search)
    tree = WholeBlocks(own, jobs, dual, search)
    try:
        stop = tree.run()
    except OutOfTimeError:
        stop = StopReason.TIME_LIMIT
    chosen, blocks = tree.chosen, tree.blocks
    if stop is StopReason.TIME_LIMIT:
        with suppress(OutOfTimeError):
            chosen, blocks = _best_of(own, (chosen, blocks), _filled(own, jobs, dual))
    found = Answer(
        chosen=chosen,
        blocks=blocks,
        objective=None,
        bound=tree.bound,
        dual=dual,
        stop=stop,
        search=tree.decided_by,
        cores=tree.cores,
        columns=tree.columns,
        nodes=tree.nodes,
    )
    return _in_units(found, problem, units)


def first_answer(problem: Separable, search: Search | None = None) -> Answer:
    """Fill a separable problem at the prices of its dual, and search no further."""
    search = search or Search()
    search = replace(search, deadline=search.deadline.sooner(search.reserve_s))
    own, units, jobs, dual = _priced(problem, search)
    chosen, blocks = _filled(own, jobs, dual)
    found = Answer(
        chosen=chosen,
        blocks=blocks,
        objective=None,
        bound=dual.bound,
        dual=dual,
        stop=StopReason.GAP,
    )
    return _in_units(found, problem, units)


def _priced(problem: Separable, search: Search) -> tuple[Separable, Units, Jobs, Dual]:
    """Return a problem in units of its own, these units, its jobs, and the dual."""
    checkpoint()
    problem.validate()
    own, units = normalise(problem)
    checkpoint()
    jobs = Jobs(own)
    start = None
    if any(search.start.get(name) for name in problem.names):
        named = np.array([search.start.get(name, np.nan) for name in problem.names])
        start = units.normalised_prices(named)
    return own, units, jobs, solve_dual(own, jobs, search, start=start)


Part = tuple[Ints | None, Floats | None]
"""A choice and counts of blocks, if there is one."""


def _filled(problem: Separable, jobs: Jobs, dual: Dual) -> Part:
    """Return the greedy fill at the dual's prices; nothing if that is not feasible."""
    chosen, blocks = fill(problem, jobs, dual.prices)
    return (chosen, blocks) if is_feasible(problem, chosen, blocks) else (None, None)


def _best_of(problem: Separable, *answers: Part) -> Part:
    """Return the answer of most value; the first of equals, nothing if all are nothing."""

    def worth(answer: Part) -> float:
        chosen, blocks = answer
        if chosen is None or blocks is None:
            return -np.inf
        return problem.objective(chosen, blocks)

    return max(answers, key=worth)


def _in_units(found: Answer, problem: Separable, units: Units) -> Answer:
    """Return an answer in the user's units; the dual's bound is computed again in them."""
    prices = units.prices(found.dual.prices)
    certified = bound_at(problem, prices)
    bound, objective = certified - (found.dual.bound - found.bound) * units.value, None
    if found.chosen is not None and found.blocks is not None:
        objective = problem.objective(found.chosen, found.blocks)
        bound = max(bound, objective)
    dual = replace(found.dual, prices=prices, bound=certified)
    return replace(found, objective=objective, bound=bound, dual=dual)
