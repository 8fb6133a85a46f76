r"""How many nodes stay awake, as lot sizing: nodes awake against wake-ups.

    min  sum_t  A_t + price [A_t > A_{t-1}]     with  least_t <= A_t <= most_t

A wake-up is a set-up, of any number of nodes; a node awake for a step costs 1, so the price is in
node-steps. With what is really needed as `least` it is the bound that no controller can beat
(perfect foresight). With the quantile q_t of a forecast at level 1 - eps, `least` is the
deterministic equivalent of the chance constraint P(A_t >= needed_t) >= 1 - eps (Charnes and Cooper,
*Chance-constrained programming*, Management Science 1959): it holds for each step by itself.

`least_cost` solves it exactly by dynamic programming over the nodes awake; `build` is the same
model in Pyomo.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from ronda.instances.arrays import Floats, Ints
from ronda.instances.errors import InputError

if TYPE_CHECKING:
    import pyomo.environ as pyo


def least_cost(least: Ints, most: Ints, price: float, before: int | None = None) -> Ints:
    """Return the (T,) nodes awake of least cost.

    Of step t with a nodes awake, V_t(a) = a + min(min_{b >= a} V_{t-1}(b), price + min V_{t-1}).

    Parameters
    ----------
    least, most
        (T,) what must, and what can, be awake.
    price
        What a wake-up costs, in nodes awake for a step.
    before
        Nodes awake before the first step; None: any number, so that starting is no wake-up.
    """
    _check(least, most, price)
    nodes = np.arange(max(before or 0, int(most.max())) + 1)
    value = np.zeros(len(nodes)) if before is None else np.where(nodes == before, 0.0, np.inf)
    values = np.empty((len(least) + 1, len(nodes)))
    for t, (low, high) in enumerate(zip(least.tolist(), most.tolist(), strict=True)):
        values[t] = value
        value = nodes + np.minimum(_sleeping(value), value.min() + price)
        value[:low] = np.inf
        value[high + 1 :] = np.inf
    values[-1] = value
    return _way_back(values, price)


def _sleeping(value: Floats) -> Floats:
    """Return, for each number of nodes, the least value of as many or more."""
    return np.minimum.accumulate(value[::-1])[::-1]


def _way_back(values: Floats, price: float) -> Ints:
    """Follow the values (T + 1, nodes) from the last step to the first."""
    plan = np.empty(len(values) - 1, dtype=np.int64)
    now = int(values[-1].argmin()) if len(plan) else 0
    for t in range(len(plan) - 1, -1, -1):
        plan[t] = now
        stay = now + int(values[t][now:].argmin())
        now = stay if values[t][stay] <= values[t].min() + price else int(values[t].argmin())
    return plan


def cost(plan: Ints, price: float, before: int | None = None) -> float:
    """Return what a plan costs, in nodes awake for a step."""
    first = plan[:1] if before is None else np.array([before])
    return float(plan.sum() + price * (np.diff(np.concatenate([first, plan])) > 0).sum())


def build(least: Ints, most: Ints, price: float, before: int | None = None) -> "pyo.ConcreteModel":
    """Return the model in Pyomo: `awake` (integer) and `wake` (binary) by step."""
    import pyomo.environ as pyo

    _check(least, most, price)
    model = pyo.ConcreteModel(name="sleeping")
    model.steps = pyo.RangeSet(0, len(least) - 1)
    model.awake = pyo.Var(
        model.steps,
        domain=pyo.NonNegativeIntegers,
        bounds=lambda _, t: (int(least[t]), int(most[t])),
    )
    model.wake = pyo.Var(model.steps, domain=pyo.Binary)
    model.cost = pyo.Objective(
        expr=sum(model.awake[t] + price * model.wake[t] for t in model.steps)
    )
    model.waking = pyo.Constraint(model.steps, rule=lambda m, t: _waking(m, t, most, before))
    return model


def _waking(model: Any, t: int, most: Ints, before: int | None) -> Any:
    """A_t - A_{t-1} <= M_t wake_t: more nodes awake need a wake-up; M_t is what can be awake."""
    import pyomo.environ as pyo

    if t == 0 and before is None:
        return pyo.Constraint.Skip
    last = before if t == 0 else model.awake[t - 1]
    return model.awake[t] - last <= int(most[t]) * model.wake[t]


def _check(least: Ints, most: Ints, price: float) -> None:
    """Refuse what has no solution."""
    if len(least) != len(most) or not len(least):
        raise InputError("lot sizing", f"{len(least)} and {len(most)} steps", "as many, and one")
    if (least > most).any():
        t = int((least > most).argmax())
        raise InputError(f"least[{t}]", str(least[t]), f"at most the {most[t]} nodes there are")
    if not 0 <= price < np.inf:
        raise InputError("price", f"{price:g}", "0 or more")
