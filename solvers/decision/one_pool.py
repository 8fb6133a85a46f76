"""Small rounds in which jobs share nothing but the GPUs of one pool, decided in plain numbers.

Most rounds of a small cluster are of this kind. The model is that of
`ronda.formulations.allocation.rows`, with a single row; to gather its arrays and to measure them in
units of their own would take longer than to solve it (`ronda.solvers.prices.knapsack`).
"""

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ronda.formulations.allocation.dual_functions import tightening
from ronda.formulations.allocation.units import kept
from ronda.formulations.options.columns import RACK
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts.nodes import rack_caps
from ronda.instances.arrays import Floats
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.round import Round
from ronda.solvers.contract import Deadline
from ronda.solvers.decision.choice import Choice
from ronda.solvers.prices.answer import DUAL_GAP, relative_gap
from ronda.solvers.prices.knapsack import Offer, Option, best_answer, least_bound

MOST_OPTIONS, MOST_JOBS = 400, 64
"""Options and jobs up to which this is the fastest way: about a millisecond."""


class Plain(NamedTuple):
    """Options in plain numbers.

    Attributes
    ----------
    gpus
        Of each option.
    start
        As in the table.
    """

    gpus: list[int]
    start: list[int]


def allocate_in_one_pool(
    round: Round, table: OptionTable, values: Floats, deadline: Deadline
) -> Choice | None:
    """Choose every job's option in a small round with one pool and no limit on power.

    Parameters
    ----------
    round, table, values
        The round, its options and (K,) what they are worth; not to run is worth 0.
    deadline
        Whose clock tells how long it took.

    Returns
    -------
    Choice or None
        A best choice. None if the round is of another kind, has no solution or values that are not
        finite, or takes too long this way: it is then for the general method.
    """
    if len(table.pools) != 1 or round.watts is not None or rack_caps(round.cluster):
        return None
    if len(table.jobs) > MOST_JOBS or len(table) > MOST_OPTIONS:
        return None
    plain = _plain(table)
    worth: list[float] = values.tolist()
    if plain is None or not math.isfinite(sum(worth)):
        return None
    unit = max(map(abs, worth), default=0.0) or 1.0
    own: list[float] = kept(values / unit).tolist()
    offers = _offers(plain, table.must_run.tolist(), own)
    build_s, pool = deadline.elapsed(), table.pools[0]
    if offers is None:
        return None
    priced = least_bound(offers, pool.gpus)
    if priced is None:
        return None
    best = best_answer(offers, pool.gpus, priced)
    if best is None or best.chosen is None:
        return None
    rows = [k for k in best.chosen if k >= 0]
    objective, price = sum([worth[k] for k in rows]), priced.price * unit
    columns = sum([len(options) for options, _ in offers])
    solved_s = deadline.elapsed()
    return Choice(
        chosen=np.array(best.chosen, dtype=np.int64),
        objective=objective,
        bound=objective,
        prices={f"gpus[{pool.name}]": price},
        stop=StopReason.COMPLETE,
        status=SolutionStatus.OPTIMAL,
        build_s=build_s,
        solve_s=solved_s - build_s,
        variables=columns,
        constraints=1,
        nodes=best.labels,
        incumbents=((solved_s, objective),),
        solver="prices",
        message=f"exact prices; dynamic programme of at most {columns} options",
        details={DUAL_GAP: relative_gap(priced.bound, sum([own[k] for k in rows]))},
        regret=partial(_regrets, offers, worth, price),
    )


def _plain(table: OptionTable) -> Plain | None:
    """Return the options in plain numbers; None if it is not GPUs alone that must suffice."""
    pool, gpus = table.pools[0], table.gpus.tolist()
    size = pool.gpus_per_node
    equal = pool.nodes * size <= pool.gpus  # if not: see `Case.node_shares`
    if np.count_nonzero(table.span == RACK) or (equal and _fragments(frozenset(gpus), size)):
        return None
    return Plain(gpus, table.start.tolist())


@lru_cache(maxsize=1024)
def _fragments(counts: frozenset[int], size: int) -> bool:
    """Tell whether jobs of such GPUs may not fit in nodes of a size when their GPUs suffice."""
    return bool(tightening({n % size for n in counts} - {0}, size))


def _offers(plain: Plain, must_run: list[bool], values: list[float]) -> list[Offer] | None:
    """Return the options that can be in a best choice, by job; None if there is none.

    They are those of `ronda.formulations.allocation.case.make_case`. None, too, if a job that must
    run has no option, which is for the general method to refuse.
    """
    gpus, start = plain
    offers: list[Offer] = []
    for begin, end, must in zip(start, start[1:], must_run, strict=False):
        options: list[Option] = []
        most = -math.inf if must else 0.0
        for k in sorted(range(begin, end), key=gpus.__getitem__):
            v, n = values[k], gpus[k]
            if v > most:
                most = v
                if options and options[-1][1] == n:
                    options.pop()
                options.append((v, n, k))
        if must and not options:
            return None
        offers.append((options, must))
    return offers if any(options for options, _ in offers) else None


def _regrets(
    offers: list[Offer], values: list[float], price: float, got: NDArray[np.int64]
) -> list[float]:
    """Return (J,) the regret of jobs that got some rows: see `formulations.allocation.regret`."""
    found = []
    for (options, must), row in zip(offers, got.tolist(), strict=True):
        idle = -math.inf if must else 0.0  # the surplus of not to run
        own, best = (idle, -math.inf) if row < 0 else (-math.inf, idle)
        for _, n, k in options:
            surplus = values[k] - price * n
            if k == row:
                own = surplus
            elif surplus > best:
                best = surplus
        found.append(own - best if best > -math.inf else math.inf)
    return found
