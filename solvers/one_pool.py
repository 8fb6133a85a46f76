"""Small rounds in which jobs share nothing but the GPUs of one pool, decided in plain numbers.

Most rounds of a small cluster are of this kind. The model is that of
`ronda.formulations.separable_round`, with a single row; to gather its arrays and to measure them in
units of their own would take longer than to solve it (`ronda.solvers.knapsack`).
"""

import math

import numpy as np

from ronda.formulations.awake import rack_caps
from ronda.formulations.dual_functions import tightening
from ronda.formulations.menu import RACK
from ronda.formulations.normalised import kept
from ronda.formulations.options import OptionTable
from ronda.formulations.separable import Floats
from ronda.instances.instance import Round
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.solvers.answer import DUAL_GAP, relative_gap
from ronda.solvers.choice import Choice
from ronda.solvers.contract import Deadline
from ronda.solvers.knapsack import Demand, Offer, Option

MOST_OPTIONS, MOST_JOBS = 400, 64
"""Options and jobs up to which this is the fastest way: about a millisecond."""


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
        A best choice. None if the round is of another kind, has no solution, or takes too long
        this way: it is then for the general method.
    """
    if not _of_this_kind(round, table):
        return None
    offers = _offers(table, values)
    if offers is None:
        return None
    build_s, pool = deadline.elapsed(), table.pools[0]
    unit = max([abs(v) for options, _ in offers for v, _, _ in options]) or 1.0
    own = [([(kept(v / unit), n, k) for v, n, k in options], must) for options, must in offers]
    demand = Demand(own, pool.gpus)
    priced = demand.least()
    best = demand.best(priced)
    if best is None or best.chosen is None:
        return None
    chosen, price = np.array(best.chosen, dtype=np.int64), priced.price * unit
    objective = float(values[chosen[chosen >= 0]].sum())
    bound, _ = Demand(offers, pool.gpus).at(price)
    columns = sum([len(options) for options, _ in offers])
    solved_s = deadline.elapsed()
    return Choice(
        chosen=chosen,
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
        message=f"exact prices; {priced.evaluations} evaluations; "
        f"dynamic programme of at most {columns} options",
        details={DUAL_GAP: relative_gap(bound, objective)},
        surplus=_surplus(offers, price, len(table)),
    )


def _of_this_kind(round: Round, table: OptionTable) -> bool:
    """Tell whether a round is small, and GPUs of one pool are all that counts in it."""
    if len(table.pools) != 1 or round.watts is not None or rack_caps(round.cluster):
        return False
    if len(table.jobs) > MOST_JOBS or len(table) > MOST_OPTIONS:
        return False
    if np.count_nonzero(table.span == RACK):
        return False
    pool = table.pools[0]
    size = pool.gpus_per_node
    if pool.nodes * size > pool.gpus:  # unequal nodes: see `Case.node_shares`
        return True
    return not tightening({n % size for n in set(table.gpus.tolist())} - {0}, size)


def _offers(table: OptionTable, values: Floats) -> list[Offer] | None:
    """Return the options that can be in a best choice, by job; None if there is none.

    They are those of `ronda.formulations.allocation_case.make_case`. None, too, if a job that must
    run has no option of finite value, which is for the general method to refuse.
    """
    minus, gpus, start = (-values).tolist(), table.gpus.tolist(), table.start.tolist()
    offers: list[Offer] = []
    for begin, end, must in zip(start, start[1:], table.must_run.tolist(), strict=False):
        rows = zip(gpus[begin:end], minus[begin:end], range(begin, end), strict=True)
        options = [(-less, n, k) for n, less, k in rows] if must else _unbeaten(sorted(rows))
        if must and not (options and all(math.isfinite(v) for v, _, _ in options)):
            return None
        offers.append((options, must))
    return offers if any(options for options, _ in offers) else None


def _unbeaten(rows: list[tuple[int, float, int]]) -> list[Option]:
    """Return the options that are worth more than all that take no more GPUs, and than none.

    Rows are given as GPUs, value with the other sign and name, sorted.
    """
    most, unbeaten = 0.0, []
    for n, less, k in rows:
        if most < -less < math.inf:
            most = -less
            unbeaten.append((most, n, k))
    return unbeaten


def _surplus(offers: list[Offer], price: float, rows: int) -> Floats:
    """Return (K,) what options are worth less their price, -inf for those left out as beaten."""
    surplus = [-math.inf] * rows
    for options, _ in offers:
        for v, n, k in options:
            surplus[k] = v - price * n
    return np.array(surplus)
