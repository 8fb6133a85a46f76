"""Tiny rounds whose numbers are of very different size, and what is claimed of them."""

import numpy as np
from msgspec.structs import replace

import ronda
from brute_positions import tiny
from every_plan import best_plan
from limited_rounds import limited_round
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.instances.plan import SolutionStatus
from ronda.instances.rules.validate import validate

ORDERS = 10
OBJECTIVES = ("rank", "weighted-goodput", "density")
POLICIES = ("prices", "milp", "cp-sat")


def scaled_round(seed):
    """Return a random round in which the weights of jobs differ by up to ten orders of magnitude.

    And their sizes by up to three. It has limits (`limited_round`), or nodes in several racks
    (`tiny`).
    """
    rng = np.random.default_rng([seed, 31])
    round_ = (tiny if seed % 4 == 3 else limited_round)(seed)

    def scaled(state):
        job, size = state.job, 10.0 ** rng.uniform(-1.5, 1.5)
        weight = job.weight * 10.0 ** rng.uniform(-ORDERS / 2, ORDERS / 2)
        if job.estimate is not None:
            job = replace(job, estimate=replace(job.estimate, work=job.estimate.work * size))
        return replace(state, job=replace(job, weight=weight))

    running, waiting = (tuple(map(scaled, each)) for each in (round_.running, round_.waiting))
    return validate(replace(round_, running=running, waiting=waiting))


def false_claims(seed, policies=POLICIES):
    """Return what policies claim of a scaled round and all its plans refute, in words."""
    round_, objective = scaled_round(seed), OBJECTIVES[seed % len(OBJECTIVES)]
    table = build(round_)
    found, best = list[str](), best_plan(round_, table, values(round_, table, objective))
    for policy in policies:
        plan = ronda.solve(round_, f"{policy}(objective={objective})", deadline=60)
        if best is None or plan.objective is None:
            if best is not None or plan.status is not SolutionStatus.FALLBACK:
                found.append(f"{policy}: {plan.status}, the best is {best and best[0]}")
            continue
        most, rounding = best[0], 1e-9 * abs(best[0])
        bounds = {"bound": plan.bound, "dual bound": plan.details.dual_bound}
        found += [f"{policy}: {k} {b} < {most}" for k, b in bounds.items() if b < most - rounding]
        if plan.objective > most + rounding:
            found.append(f"{policy}: {plan.objective} > {most}")
        optimal = plan.status is SolutionStatus.OPTIMAL
        if optimal and most - plan.objective > 1.001e-4 * abs(most):
            found.append(f"{policy}: optimal {plan.objective} < {most}")
        if optimal != bool(plan.details.proven_by):
            found.append(f"{policy}: {plan.status} by {plan.details.proven_by!r}")
    return found
