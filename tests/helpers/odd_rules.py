"""Rounds in which jobs that must run break rules, and the best plan beside them."""

from itertools import product

import numpy as np
from msgspec.structs import replace

import ronda
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.table import option
from ronda.instances.job import Allocation
from ronda.solvers.applied_rules import asked
from ronda.solvers.rules import rules
from tests.solvers.test_rules import tiny


def firm_round(seed):
    """Return a tiny round in which one job, mostly, runs and may not be stopped; and its rules."""
    round_, extra = tiny(seed)
    table, rng = ronda.option_table(round_), np.random.default_rng([seed, 73])
    running, waiting, left = [], [], round_.cluster.gpus
    for j, state in enumerate(round_.waiting):
        first, last = int(table.start[j]), int(table.start[j + 1])
        own = [k for k in range(first, last) if table.gpus[k] <= left]
        if not own or rng.random() < 0.5:
            waiting.append(state)
            continue
        chosen = option(table, int(rng.choice(own)))
        left -= chosen.gpus
        held = Allocation(option=chosen, placement=((0, chosen.gpus),))
        job = replace(state.job, preemptible=bool(rng.random() < 0.3))
        running.append(replace(state, job=job, allocation=held, started=True))
    return replace(round_, running=tuple(running), waiting=tuple(waiting)), extra


def best_beside_firm_jobs(round_, extra):
    """Return the greatest worth of a choice with all firm jobs; None if limits leave none together.

    By trying all. A limit that some choice of options would keep, but for firm jobs, is no lower
    than the least that any choice with them has of it; GPUs are left aside for that.
    """
    table = ronda.option_table(round_)
    limits, worth = asked(rules(extra), round_, table)
    worth = worth + values(round_, table)
    ways = [list(range(a, b)) for a, b in zip(table.start, table.start[1:], strict=False)]
    ways = [own if firm else [-1, *own] for own, firm in zip(ways, table.must_run, strict=True)]

    def least(r, free):
        return sum(
            min([limits.use[r, k] if k >= 0 else 0.0 for k in own] + [0.0] * free) for own in ways
        )

    capacity, hard = limits.capacity.copy(), np.isinf(limits.penalty)
    for r in np.flatnonzero(hard).tolist():
        if least(r, free=True) <= capacity[r] + 1e-9 < least(r, free=False):
            capacity[r] = least(r, free=False)
    top = None
    for choice in product(*ways):
        rows = np.array([k for k in choice if k >= 0], dtype=int)
        over = limits.use[:, rows].sum(axis=1) - capacity
        if table.gpus[rows].sum() > round_.cluster.gpus or (over[hard] > 1e-9).any():
            continue
        total = worth[rows].sum() - (limits.penalty[~hard] * np.maximum(over[~hard], 0)).sum()
        top = total if top is None else max(top, total)
    return top
