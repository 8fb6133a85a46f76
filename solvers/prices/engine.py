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

from collections.abc import Callable
from dataclasses import replace

from ronda.formulations.allocation.separable import Separable
from ronda.formulations.allocation.units import Units, normalise
from ronda.instances.arrays import Floats
from ronda.instances.errors import InputError
from ronda.instances.plan import StopReason
from ronda.solvers.contract import Deadline
from ronda.solvers.prices.answer import Answer
from ronda.solvers.prices.blocks import WholeBlocks
from ronda.solvers.prices.dual import Dual, bound_at, solve_dual
from ronda.solvers.prices.jobs import Jobs, LocalJobs

DUAL_TOLERANCE = 1e-8
"""Relative precision of the prices: the finer they are, the fewer jobs they leave undecided, and a
further evaluation costs much less than a wider core."""


def solve_separable(
    problem: Separable,
    *,
    gap: float = 1e-4,
    deadline: Deadline | None = None,
    seed: int = 0,
    start: Floats | None = None,
    within: float = 0.0,
    jobs: Callable[[Separable], Jobs] = LocalJobs,
) -> Answer:
    """Solve a separable problem to a certified relative gap.

    Parameters
    ----------
    problem
        The problem; validated first.
    gap
        Relative gap between objective and bound at which to stop.
    deadline
        By when to return the best answer so far, with its true bound.
    seed
        Of the core's search.
    start
        (R,) prices of an earlier, similar problem; NaN for resources that it did not have.
    within
        By how much the answer to that problem fell short of its dual bound, relative: answers so
        near are looked for first. Like `start`, it may lead to another answer within the gap.
    jobs
        Makes whoever answers for the jobs of the (normalised) problem; by default this process.

    Raises
    ------
    InputError
        If the gap or the problem makes no sense.
    """
    if not 0 < gap < 1:
        raise InputError("gap", f"{gap:g}", "a share above 0 and below 1")
    problem.validate()
    deadline = deadline or Deadline()
    own, units = normalise(problem)
    asked = jobs(own)
    dual = solve_dual(
        own,
        asked,
        tolerance=DUAL_TOLERANCE,
        deadline=deadline,
        start=None if start is None else units.normalised_prices(start),
    )
    search = WholeBlocks(
        own,
        asked,
        dual,
        tolerance=DUAL_TOLERANCE,
        gap=gap,
        deadline=deadline,
        seed=seed,
        within=within,
    )
    stop = search.run()
    return _answer(problem, units, dual, search, stop)


def _answer(
    problem: Separable, units: Units, dual: Dual, search: WholeBlocks, stop: StopReason
) -> Answer:
    """Return the answer in the user's units; the dual's bound is computed anew in them."""
    prices = units.prices(dual.prices)
    certified = bound_at(problem, prices)
    bound = certified - (dual.bound - search.bound) * units.value
    chosen = blocks = objective = None
    if search.found is not None:
        chosen, blocks = search.found.chosen, search.found.blocks
        objective = problem.objective(chosen, blocks)
        bound = max(bound, objective)
    dual = replace(dual, prices=prices, bound=certified)
    return Answer(
        chosen,
        blocks,
        objective,
        bound,
        dual,
        stop,
        search.search,
        search.cores,
        search.columns,
        search.nodes,
    )
