"""Files of rules that are odd in some way, and rounds in which jobs that must run break rules."""

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

HEAD = "import sys\nimport numpy as np\nimport ronda\n\n\nclass Odd(BaseException):\n    pass\n\n\n"

ERRORS = (
    "raise ValueError('two\\nlines')",
    "raise Odd('own')",
    "raise GeneratorExit",
    "sys.exit(0)",
    "sys.exit('words')",
    "sys.exit()",
    "raise MemoryError",
    "raise RecursionError",
    "return round.nothing",
    "return table[0]",
    "return 1 / 0",
    "yield from ()\n    sys.exit(3)",
    "yield ronda.Limit(table.gpus, '<=', 4)\n    raise KeyError('late')",
    "return [ronda.Limit(table.gpus, '<=', 4), None]",
    "return 'rule'",
    "return {'a': 1}",
)
COLUMNS = (
    "table.gpus * 1j",
    "table.gpus.astype(str)",
    "table.gpus.astype(object)",
    "np.full(len(table), np.nan)",
    "table.gpus / 0.0",
    "table.gpus[:-1]",
    "table.gpus[None]",
    "1.0",
    "None",
    "[[1], [1, 2]]",
    "(x for x in table.gpus)",
    "np.ma.masked_array(table.gpus, table.gpus > 1)",
    "table.gpus.astype('datetime64[s]')",
)
LIMITS = ("'1'", "None", "1j", "float('nan')", "float('inf')", "[1]", "np.timedelta64(1)")
PENALTIES = (LIMITS[0], *LIMITS[2:], "0", "-1")
WRITES = ("rate", "gpus", "job", "start", "must_run", "current", "power_w", "extra_w", "pool")
SENSES = ("'<'", "None", "[]", "np.array(['<=', '=='])", "0")


def odd_file(seed):
    """Return the text of a file with one rule that is none, and maybe others that are."""
    rng = np.random.default_rng([seed, 71])
    column = str(rng.choice(COLUMNS))
    body = (
        str(rng.choice(ERRORS)),
        f"return ronda.Limit({column}, '<=', 4)",
        f"return ronda.Term({column})",
        f"return ronda.Limit(table.gpus, '<=', {rng.choice(LIMITS)})",
        f"return ronda.Limit(table.gpus, {rng.choice(SENSES)}, 4)",
        f"return ronda.Limit(table.gpus, '<=', 4, penalty={rng.choice(PENALTIES)})",
        f"table.{rng.choice(WRITES)}[:] = 0\n    return ronda.Limit(table.gpus, '<=', 4)",
    )[rng.integers(7)]
    good = "def fine(round, table):\n    return ronda.Limit(table.gpus, '<=', 1000)\n\n\n"
    return HEAD + good * int(rng.integers(2)) + f"def odd(round, table):\n    {body}\n"


def many_limits(seed):
    """Return a rule of up to thousands of limits."""

    def many(round, table):
        rng = np.random.default_rng([seed, 72])
        for _ in range(int(rng.choice([60, 300, 3000]))):
            some = rng.random(len(table.jobs)) < rng.uniform(0.2, 0.9)
            use = table.gpus * some[table.job] * float(rng.choice([1.0, rng.uniform(0.1, 9.0)]))
            soft = None if rng.random() < 0.9 else float(rng.uniform(0.01, 1.0))
            yield ronda.Limit(use, "<=", float(rng.uniform(0.0, 9.0)), penalty=soft)

    return many


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
