"""Choosing each job's batch together with its GPUs and clock, against taking the fastest.

A larger batch synchronises less often, so it computes a larger share of the time and draws more
watts; a smaller one is worth more a sample. Where energy is limited, a slower batch that draws less
leaves watts for others. The instances get an energy budget, a share of what all GPUs draw when they
are busy at full clock. `shortfall` is what the plans of sampled rounds are worth less than the
bound that `milp` proves for them with all batches: the mean share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import click
import numpy as np
import pandas as pd
from msgspec.structs import replace

from ronda.bench.runs.variant import Variant, reference_w
from ronda.bench.study.harness import (
    Folder,
    markdown,
    numbers,
    option,
    policies,
    study,
    words,
)
from ronda.formulations.clock import Deadline
from ronda.formulations.objectives.forms import values
from ronda.formulations.options.build import build
from ronda.formulations.options.table import OptionTable
from ronda.instances.errors import InputError
from ronda.instances.files.catalogue import load
from ronda.instances.instance import Instance
from ronda.instances.outcome.metrics import summarise
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers import registry
from ronda.solvers.contract import Capability
from ronda.solvers.decision.plan import Optimising
from ronda.solvers.horizon.driver import run

BATCHES = ("fastest", "joint")
COLUMNS = ["job", "pool", "gpus", "span", "width", "clock", "batch", "rate", "power_w", "current"]
"""Columns of an option table that have an entry for each row."""


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


@dataclass
class Sampled:
    """A policy of which one plan in `every` is held against the bound of `milp`.

    With batches "fastest", the question that it answers has no others.
    """

    policy: Optimising
    batches: str
    every: int
    name: str
    capabilities: Capability
    rounds: int = 0
    shortfalls: list[float] = field(default_factory=list)

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide a round, and note how far from the bound."""
        question = self.policy.question(round, deadline, seed)
        if self.batches == "fastest":
            table = only_fastest(build(round, prune=False, mind_power=True))
            worth = values(round, table, question.objective, **self.policy.parameters)
            question = replace(question, table=table, values=worth)
        plan = self.policy.answer(question, deadline, initial)
        self.rounds += 1
        if plan.objective is not None and self.rounds % self.every == 0:
            exact = registry.policy("milp").plan(round, deadline=Deadline(), seed=seed)
            if exact.bound:
                self.shortfalls.append((exact.bound - plan.objective) / exact.bound)
        return plan


def measure(instance: str, factor: float, policy: str, batches: str, every: int) -> dict[str, Any]:
    """Drive a policy over an instance with a budget."""
    given = load(instance)
    if not isinstance(given, Instance):
        raise InputError(instance, "a round", "an instance")
    if given.budget.energy is None or factor != 1.0:
        given = Variant(sustained_w=factor * reference_w(given)).apply(given)
    made = registry.policy(policy)
    if not isinstance(made, Optimising):
        raise InputError(f"policy {policy}", "one that optimises nothing", "milp, prices, …")
    sampled = Sampled(made, batches, every, made.name, made.capabilities)
    figures = summarise(given, run(given, sampled))
    return {
        "mean_jct_s": figures["mean_jct_s"],
        "energy_j": figures["energy_j"],
        "restarts": figures["restarts"],
        "violations": figures["violations"],
        "median_solve_s": figures["median_solve_s"],
        "shortfall": float(np.mean(sampled.shortfalls)) if sampled.shortfalls else None,
    }


def table_of(runs: pd.DataFrame) -> str:
    """Return mean JCT, energy and shortfall of every run; Markdown."""
    rows = []
    for one in runs.to_dict("records"):
        short = "" if pd.isna(one["shortfall"]) else f"{100 * one['shortfall']:.3f}"
        rows.append(
            [
                f"{one['instance']} ×{one['factor']:g}",
                one["policy"],
                one["batches"],
                f"{one['mean_jct_s']:,.0f}",
                f"{one['energy_j'] / 3.6e6:.2f}",
                short,
                f"{1e3 * one['median_solve_s']:.1f}",
                f"{one['violations']}",
            ]
        )
    header = ["instance, budget", "policy", "batches", "mean JCT (s)", "energy (kWh)"]
    header += ["shortfall (%)", "decision (ms)", "violations"]
    return markdown(header, rows, words=3)


def compare(
    folder: Folder,
    instances: Sequence[str],
    factors: Sequence[float],
    policies: Sequence[str],
    batches: Sequence[str],
    every: int,
) -> None:
    """Run all policies with the fastest batches and with all."""
    keys = ("instance", "factor", "policy", "batches")
    cases = [
        dict(zip(keys, case, strict=True)) | {"every": every}
        for case in product(instances, factors, policies, batches)
    ]
    folder.write(table_of(folder.measure(cases, measure)))


INSTANCES = ("pollux-1", "pollux-2", "pollux-3", "pollux-4", "philly-batches")

command = study(
    "joint-batches",
    __doc__,
    compare,
    [
        words("--instances", INSTANCES, "Packaged ones."),
        numbers("--factors", "0.5", "Energy budgets, as shares."),
        policies("prices,milp,genetic,genetic(seeded=false)"),
        words("--batches", BATCHES, "Which batches may be chosen."),
        option("--every", type=click.IntRange(1), default=20, help="Rounds to a sample."),
    ],
)
