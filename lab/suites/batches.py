"""A policy of ronda where the only batch to choose is the fastest for its GPUs, clock and place."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from msgspec.structs import replace

from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.formulations.options.table import OptionTable
from ronda.instances.clock import Deadline
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.decision.plan import Optimising
from ronda.solvers.registry import policy

COLUMNS = ["job", "pool", "gpus", "span", "width", "clock", "batch", "rate", "power_w", "current"]
"""Columns of an option table that have an entry for each row."""


@dataclass(frozen=True)
class Fastest:
    """The policy `of` a name, with fewer options."""

    of: str = "prices"
    seeded: bool = True  # of genetic
    capabilities: ClassVar[Capability] = Capability.RANDOM

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round."""
        more: dict[str, Any] = {} if self.seeded else {"seeded": False}
        made = policy(self.of, **more)
        assert isinstance(made, Optimising)
        question = made.question(round, deadline, seed, initial)
        table = only_fastest(build(round, prune=False, mind_power=True))
        worth = values(round, table, question.objective, **question.parameters)
        asked = replace(question, table=table, values=worth)
        return made.decide(round, deadline=deadline, seed=seed, initial=initial, asked=asked)


def only_fastest(table: OptionTable) -> OptionTable:
    """Return the rows with the fastest batch for their GPUs, clock and place, and the current."""
    columns = (table.rate, table.clock, table.span, table.gpus, table.pool, table.job)
    order = np.lexsort(columns)
    same = np.array([column[order] for column in columns[1:]])
    kept = table.current.copy()
    kept[order[np.append((same[:, 1:] != same[:, :-1]).any(axis=0), True)]] = True
    columns_of = {name: getattr(table, name)[kept] for name in COLUMNS}
    start = np.searchsorted(columns_of["job"], np.arange(len(table.jobs) + 1))
    return replace(table, start=start, **columns_of)
