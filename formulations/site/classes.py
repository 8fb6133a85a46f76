"""Priority classes: weights on the worth of jobs, and strict service, the most important first.

The service of a class is A_c = Σ_{k of c} a_k x_k with a_k = min(v_k, v of the size asked for), so
that an elastic job of the highest class may not take the cluster for the last bit of its speed.
"""

import numpy as np

from ronda.formulations.options.stages import Aim
from ronda.formulations.options.table import OptionTable
from ronda.instances.base import Floats
from ronda.instances.round import Round


def worth_of_classes(round: Round, table: OptionTable) -> Floats | None:
    """Return the factor of each option's class on its value, shape (K,), or None if all are 1."""
    worth = {c.name: c.worth for c in round.site.classes if c.worth != 1.0}
    if not worth:
        return None
    factors = np.array([worth.get(state.job.priority or "", 1.0) for state in table.jobs])
    return np.asarray(factors[table.job])


def strict_classes(round: Round, table: OptionTable, values: Floats) -> list[Aim]:
    """Return the aims of the strict classes, by falling rank; classes of one rank share an aim."""
    ranks = dict[int, list[str]]()
    for c in sorted(round.site.classes, key=lambda c: -c.rank):
        if c.strict:
            ranks.setdefault(c.rank, []).append(c.name)
    if not ranks:
        return []
    service, name = _service(table, values), [state.job.priority for state in table.jobs]
    found = []
    for names in ranks.values():
        own = np.array([each in names for each in name], dtype=bool)[table.job]
        if own.any():
            found.append(Aim(f"class[{'+'.join(names)}]", np.where(own, service, 0.0)))
    return found


def _service(table: OptionTable, values: Floats) -> Floats:
    """Return the lesser of each option's value and that of the best option as asked, shape (K,).

    Where no option is as large as asked, those of fewer GPUs count, and else all.
    """
    asked = np.array([state.job.gpus for state in table.jobs])[table.job]
    most = np.full(len(table.jobs), -np.inf)
    for among in (table.gpus == asked, table.gpus < asked, table.gpus > asked):
        some = np.flatnonzero(among & np.isinf(most[table.job]) & np.isfinite(values))
        np.maximum.at(most, table.job[some], values[some])
    return np.where(np.isfinite(values), np.minimum(values, most[table.job]), 0.0)
