"""Lot sizing of sleep as Pyomo models, to which dynamic programming is compared."""

import numpy as np
import pyomo.environ as pyo


def build(least, most, price, before=None):
    """Return the model in Pyomo: `awake` (integer) and `wake` (binary) by step."""
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


def _waking(model, t, most, before):
    """A_t - A_{t-1} <= M_t wake_t: more nodes awake need a wake-up; M_t is what can be awake."""
    if t == 0 and before is None:
        return pyo.Constraint.Skip
    last = before if t == 0 else model.awake[t - 1]
    return model.awake[t] - last <= int(most[t]) * model.wake[t]


def build_two_stage(paths, part, price, low):
    """Return the model of one step in Pyomo: `now` and, by path (L, K), a lot sizing each."""
    most = max(low, int(paths.max(initial=0)))
    model = pyo.ConcreteModel(name="sleeping-two-stage")
    model.now = pyo.Var(domain=pyo.NonNegativeIntegers, bounds=(low, most))
    model.paths = pyo.RangeSet(0, len(paths) - 1)
    model.path = pyo.Block(model.paths, rule=lambda block, s: _path(block, paths[s], price, most))
    model.first = pyo.Constraint(model.paths, rule=lambda m, s: m.path[s].plan.awake[0] == m.now)
    later = sum(float(part[s]) * model.path[s].plan.cost_of for s in model.paths)
    model.cost = pyo.Objective(expr=model.now + later)
    return model


def _path(block, path, price, most):
    """State one path: its step 0 is now, whose cost is counted once."""
    least = np.concatenate([[0], np.maximum(path, 0)])
    block.plan = build(least, np.full(len(least), most), price)
    block.plan.cost.deactivate()
    block.plan.cost_of = block.plan.cost.expr - block.plan.awake[0]


def cost(plan, price, before=None):
    """Return the cost of a plan in node-steps awake."""
    first = plan[:1] if before is None else np.array([before])
    return float(plan.sum() + price * (np.diff(np.concatenate([first, plan])) > 0).sum())
