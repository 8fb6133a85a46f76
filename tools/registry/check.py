"""Whether the registry holds: plans are checked and valued again, bounds lie above them."""

from math import isclose
from pathlib import Path

import numpy as np

from ronda.formulations.bounds.clairvoyant import bounds
from ronda.formulations.objectives.by_name import outlook_of, values_of
from ronda.formulations.options.build import build
from ronda.formulations.options.table import rows_of
from ronda.instances.check.checker import check
from ronda.instances.errors import InputError
from ronda.instances.files import json as files
from ronda.instances.files.packaged import load
from ronda.instances.instance import Instance
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.as_one import AsOne
from ronda.solvers.policies.optimising.prices import Prices
from tools.registry import models
from tools.registry.records import InstanceEntry, RoundEntry, plan_file

EXACT, SOLVED = 1e-9, 2 * models.GAP
"""Relative differences of the same numbers and their sums, and of optima of the same model."""


def worth(round: Round, plan: Plan) -> float:
    """Return the worth of a plan by the usual objective, whichever policy made it.

    That is the sum of the values of the options that jobs get: `rank` with its usual parameters,
    as `milp` and `prices` maximise it. Moves are not weighed. An array that runs counts as one job;
    a job that gets something that is no option of `rank` counts nothing.
    """
    usual, seen = Prices(), AsOne(round)
    table = build(seen.round, prune=False, mind_power=True)
    own = dict(usual.parameters)
    values = values_of(outlook_of(seen.round, table, usual.objective, own), usual.objective, own)
    return table.worth(values, rows_of(table, seen.shown(plan)))


def below(a: float, b: float, tolerance: float = EXACT) -> bool:
    """Return whether a number is below another one by more than a share of the larger one."""
    return a < b and not isclose(a, b, rel_tol=tolerance)


def packaged_round(name: str) -> Round:
    """Return a packaged round, or refuse an instance."""
    found = load(name)
    if not isinstance(found, Round):
        raise InputError(name, "an instance", "a round")
    return found


def wrong_with_round(
    name: str, entry: RoundEntry, folder: Path, mps: Path, *, every: bool = False
) -> list[str]:
    """Return the faults of an entry, in words.

    Its model is written into the folder `mps` if its optimum is known, or `every` one is.
    """
    round, found = packaged_round(name), []
    if files.fingerprint(round) != entry.fingerprint:
        return ["the packaged round is another one by now"]
    best, bound = entry.best, entry.bound
    if best is not None:
        plan = files.read(plan_file(folder, name))
        if not isinstance(plan, Plan):
            return [f"{plan_file(folder, name)} holds no plan"]
        found += [f"the plan breaks a rule: {v}" for v in check(round, plan)]
        value = worth(round, plan)
        if not isclose(value, best.objective, rel_tol=EXACT):
            found.append(f"the plan is worth {value:.9g}, not {best.objective:.9g}")
    if best is not None and bound is not None and below(bound.value, best.objective):
        found.append(f"the bound {bound.value:.9g} is below the plan, {best.objective:.9g}")
    return found + _wrong_with_model(round, entry, folder, mps, every=every)


def _wrong_with_model(
    round: Round, entry: RoundEntry, folder: Path, mps: Path, *, every: bool
) -> list[str]:
    """Return the faults of the model: its numbers, the packed file, its optimum, bounds and plans.

    A plan on nodes is a choice of the model as well, and a bound of counts one of its optimum.
    """
    model, best, bound = entry.model, entry.best, entry.bound
    if model is None or (model.optimum is None and not every):
        return []
    own = models.write_model(round, mps)
    same = (own.columns, own.rows) == (model.columns, model.rows)
    if not same or not isclose(own.content, model.content, rel_tol=EXACT):
        return ["its model is not that of the registry"]
    packed, path = folder / f"{round.name}.mps.gz", mps / f"{round.name}.mps"
    if packed.exists():
        known, now = models.numbers(packed), models.numbers(path)
        if len(known) != len(now) or not np.allclose(known, now, rtol=EXACT, atol=0.0):
            return [f"{packed.name} is not its model"]
    if model.optimum is None:
        return []
    optimum = models.optimum(path)
    if optimum is None or not isclose(optimum, model.optimum, rel_tol=SOLVED):
        return [f"HiGHS finds the optimum {optimum}, not {model.optimum:.9g}"]
    found = []
    if best is not None and below(optimum, best.objective, SOLVED):
        found.append(f"the plan is worth more than the optimum of its model, {optimum:.9g}")
    if bound is not None and bound.of == "counts" and below(bound.value, optimum, SOLVED):
        found.append(f"the bound {bound.value:.9g} is below the model's optimum, {optimum:.9g}")
    return found


def wrong_with_instance(name: str, entry: InstanceEntry) -> list[str]:
    """Return the faults of an entry, in words; runs are not made again."""
    instance = load(name)
    if not isinstance(instance, Instance) or files.fingerprint(instance) != entry.fingerprint:
        return ["the packaged instance is another one by now"]
    bound_s = bounds(instance).mean_jct_s
    found = []
    if not isclose(bound_s, entry.bound_mean_jct_s, rel_tol=EXACT):
        found.append(f"the bound is {bound_s:.9g} s, not {entry.bound_mean_jct_s:.9g}")
    for level, run in entry.best.items():
        if below(run.mean_jct_s, bound_s):
            found.append(f"{level}: {run.mean_jct_s:.9g} s is below the bound {bound_s:.9g}")
    return found
