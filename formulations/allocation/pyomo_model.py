"""The allocation MILP of a round, in Pyomo: which option every job gets.

The page ``docs/formulations.md`` lists every constraint with its name; here each family is one
function whose docstring is the sentence of mathematics that it adds. Symbols: x_k is 1 if option
(row of the `OptionTable`) k is chosen, a_c the number of nodes of class c that are awake, y_pr the
kilowatts that jobs of pool p add in rack r.

Powers are in kilowatts and values are divided by the largest of them, so that all coefficients
are of the order of one; `ronda.formulations.allocation.conflicts` reads solutions and prices back
in watts, joules and the objective's unit.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyomo.environ as pyo
from pyomo.common.gc_manager import PauseGC
from pyomo.core.expr.numeric_expr import LinearExpression

from ronda.formulations.allocation.case import Case, make_case, most_extra_w
from ronda.formulations.options.table import OptionTable
from ronda.formulations.watts.nodes import NodeClass
from ronda.instances.arrays import Floats
from ronda.instances.round import Round

KILO = 1e3
"""Watts in the model's unit of power."""


def build(round: Round, table: OptionTable, values: Floats) -> Any:
    """Return the Pyomo model of a round: the most valuable choice of options that the limits allow.

    Parameters
    ----------
    round, table
        What is to be decided.
    values
        (K,) what each option is worth; not to run is worth 0.

    Returns
    -------
    pyomo.environ.ConcreteModel
        With the `Case` as attribute ``case``.
    """
    return build_case(make_case(round, table, values))


def build_case(case: Case) -> Any:
    """Return the Pyomo model of a case."""
    # The garbage collector would walk all new expressions again and again: 5 to 15 times slower.
    with PauseGC():
        model = pyo.ConcreteModel("allocation")
        model.case = case
        variables(model, case)
        objective(model, case)
        for family in (
            one_option,
            gpus,
            ready_gpus,
            whole_nodes,
            power_cap,
            energy_window,
            rack_share,
            rack_power,
        ):
            family(model, case)
    return model


def variables(model: Any, case: Case) -> None:
    """x_k ∈ {0, 1}; a_c ∈ {0, …, nodes of class c}; 0 ≤ y_pr ≤ what the rack's GPUs can add."""
    keys = case.rows
    if case.waking is not None:  # K more for the same option after waking
        keys = keys + case.waking.late * len(case.table)
    model.x = pyo.Var(keys.tolist(), domain=pyo.Binary)
    if case.sleeps:
        model.awake = pyo.Var([c.name for c in case.classes], domain=pyo.NonNegativeIntegers)
        for kind, variable in zip(case.classes, model.awake.values(), strict=True):
            variable.setub(kind.count)
    if case.racks:
        most = {pair: watts / KILO for pair, watts in most_extra_w(case).items()}
        model.rack_kw = pyo.Var(list(most), domain=pyo.NonNegativeReals)
        for pair, variable in model.rack_kw.items():
            variable.setub(most[pair])


def objective(model: Any, case: Case) -> None:
    """Max Σ_k v_k x_k / max v."""
    model.value = pyo.Objective(
        expr=_linear(case.value / case.scale, list(model.x.values())), sense=pyo.maximize
    )


def one_option(model: Any, case: Case) -> None:
    """Σ_{k of job j} x_k ≤ 1; = 1 if the job must run."""
    x = list(model.x.values())
    jobs, first = np.unique(case.job, return_index=True)
    end = np.append(first, len(x))[1:].tolist()
    begin, must = first.tolist(), case.table.must_run[jobs].tolist()
    states = case.table.jobs
    spans = {
        states[j].job.id: (b, e, m)
        for j, b, e, m in zip(jobs.tolist(), begin, end, must, strict=True)
        if m or e - b > 1
    }

    def rule(_: Any, job: str) -> Any:
        b, e, m = spans[job]
        return (1 if m else None, _sum(x[b:e]), 1)

    model.one_option = pyo.Constraint(list(spans), rule=rule)


def gpus(model: Any, case: Case) -> None:
    """Σ_{k in p} GPUs_k x_k ≤ Σ_{c in p} GPUs_c a_c, where a_c = nodes of c if none may sleep."""
    x = list(model.x.values())
    used = {p: np.flatnonzero(case.pool == p) for p in range(len(case.table.pools))}
    names = {case.table.pools[p].name: p for p, rows in used.items() if len(rows)}

    def rule(_: Any, name: str) -> Any:
        p = names[name]
        terms, there = _capacity(model, case, p, [c.gpus_per_node for c in case.classes])
        rows = used[p]
        return (None, _linear(case.gpus[rows], [x[i] for i in rows.tolist()], *terms), there)

    model.gpus = pyo.Constraint(list(names), rule=rule)


def ready_gpus(model: Any, case: Case) -> None:
    """Σ_{k in p} ready_k x_k ≤ GPUs of p that are ready; ready_k = 0 for what waits for nodes."""
    if case.waking is None:
        return
    x, use = list(model.x.values()), case.waking.use
    limits = case.waking.gpus.tolist()
    names = {case.table.pools[p].name: p for p, most in enumerate(limits) if np.isfinite(most)}

    def rule(_: Any, name: str) -> Any:
        p = names[name]
        rows = np.flatnonzero((case.pool == p) & (use > 0))
        if not len(rows):
            return pyo.Constraint.Skip
        return (None, _linear(use[rows], [x[i] for i in rows.tolist()]), limits[p])

    model.ready_gpus = pyo.Constraint(list(names), rule=rule)


def whole_nodes(model: Any, case: Case) -> None:
    """Σ_{k in p} (⌊n_k/G⌋ + f_i((n_k mod G)/G)) x_k ≤ Σ_{c in p} a_c for n GPUs on nodes of G.

    f_i are dual feasible functions of bin packing (`dual_functions`). Only in pools of equal nodes,
    and only those f_i that say more than the count of GPUs does (none for powers of two).
    """
    x = list(model.x.values())
    rows: dict[tuple[str, int], tuple[int, Floats, list[Any]]] = {}
    for p, pool in enumerate(case.table.pools):
        own = np.flatnonzero(case.pool == p)
        for k, shares in case.node_shares(p, case.gpus[own]).items():
            used = np.flatnonzero(shares)
            rows[pool.name, k] = (p, shares[used], [x[i] for i in own[used].tolist()])

    def rule(_: Any, name: str, k: int) -> Any:
        p, shares, chosen = rows[name, k]
        terms, there = _capacity(model, case, p, [1] * len(case.classes))
        return (None, _linear(shares, chosen, *terms), there)

    model.whole_nodes = pyo.Constraint(list(rows), rule=rule)


def power_cap(model: Any, case: Case) -> None:
    """Σ_k extra_k x_k + Σ_c (awake_c − asleep_c) a_c ≤ cap − Σ_c asleep_c nodes_c, in kW."""
    if case.round.power_cap_w is not None:
        model.power_cap = pyo.Constraint(expr=_draw(model, case, case.round.power_cap_w, 1.0))


def energy_window(model: Any, case: Case) -> None:
    """Window × (the power of `power_cap`) ≤ the energy that is left for the window, in kWh."""
    if case.round.energy_j is not None:
        window_s = case.round.window_s
        watts = case.round.energy_j / window_s
        model.energy_window = pyo.Constraint(expr=_draw(model, case, watts, window_s / 3600))


def rack_share(model: Any, case: Case) -> None:
    """Σ_{k in p} extra_k x_k ≤ Σ_r y_pr: jobs draw their power in the racks of their pool."""
    if not case.racks:
        return
    x = list(model.x.values())
    pools = {case.table.pools[p].name: p for p in np.unique(case.pool).tolist()}

    def rule(_: Any, name: str) -> Any:
        rows = np.flatnonzero(case.pool == pools[name])
        shares = [v for (pool, _), v in model.rack_kw.items() if pool == name]
        terms = ([-1.0] * len(shares), shares)
        watts = case.extra_w[rows] / KILO
        return (None, _linear(watts, [x[i] for i in rows.tolist()], *terms), 0)

    model.rack_share = pyo.Constraint(list(pools), rule=rule)


def rack_power(model: Any, case: Case) -> None:
    """Σ_{p, r below R} y_pr + Σ_{c below R} (power of nodes) ≤ cap of R, for each capped rack R.

    Necessary only: a job is not tied to the racks that its power is counted in. Placement decides.
    """
    if not case.racks:
        return
    caps = {cap.name: cap for cap in case.racks}
    names = case.round.cluster.topology.racks

    def rule(_: Any, name: str) -> Any:
        cap = caps[name]
        below = {names[r] for r in cap.racks}
        shares = [v for (_, rack), v in model.rack_kw.items() if rack in below]
        kinds = [c for c in case.classes if c.rack in cap.racks]
        return _within(model, case, kinds, cap.cap_w, shares, np.ones(len(shares)), 1.0)

    model.rack_power = pyo.Constraint(list(caps), rule=rule)


def _draw(model: Any, case: Case, watts: float, hours: float) -> Any:
    """Return the constraint that cluster power stays within `watts`, for so many hours."""
    drawing = np.flatnonzero(case.extra_w)
    x = list(model.x.values())
    chosen = [x[i] for i in drawing.tolist()]
    extra = case.extra_w[drawing] / KILO
    return _within(model, case, case.classes, watts, chosen, extra, hours)


def _within(
    model: Any,
    case: Case,
    kinds: Sequence[NodeClass],
    watts: float,
    chosen: list[Any],
    extra_kw: Floats,
    hours: float,
) -> Any:
    """Return: jobs' extra power + power of nodes, awake or asleep, ≤ `watts`, times hours."""
    terms: tuple[list[float], list[Any]] = ([], [])
    if case.sleeps:
        terms = (
            [hours * c.saves_w / KILO for c in kinds],
            [model.awake[c.name] for c in kinds],
        )
    base_w = sum(c.count * (c.sleep_w if case.sleeps else c.awake_w) for c in kinds)
    body = _linear(hours * extra_kw, chosen, *terms)
    if not body.nargs():
        # Nothing to decide: the row stays in the model, so that `explain` finds it.
        model.nothing = pyo.Var(bounds=(0, 0))
        body = _linear(np.ones(1), [model.nothing])
    return (None, body, hours * (watts - base_w) / KILO)


def _capacity(
    model: Any, case: Case, pool: int, weights: list[int]
) -> tuple[tuple[list[float], list[Any]], float]:
    """Return −Σ w_c a_c over a pool's classes, as terms if nodes may sleep, else as a limit."""
    own = [(c, w) for c, w in zip(case.classes, weights, strict=True) if c.pool == pool]
    if not case.sleeps:
        return ([], []), float(sum(w * c.count for c, w in own))
    return ([-float(w) for _, w in own], [model.awake[c.name] for c, _ in own]), 0.0


def _linear(
    coefficients: Any, variables: list[Any], more: Sequence[float] = (), others: Sequence[Any] = ()
) -> Any:
    """Return Σ coefficient × variable."""
    numbers = np.asarray(coefficients, dtype=float).tolist()
    return LinearExpression(linear_coefs=[*numbers, *more], linear_vars=[*variables, *others])


def _sum(variables: list[Any]) -> Any:
    return LinearExpression(linear_coefs=[1.0] * len(variables), linear_vars=variables)
