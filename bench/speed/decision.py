"""Speed of decisions: a policy on a generated round, and `prices` beside `milp` over a horizon."""

from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.bench.speed.cases import tell, timed
from ronda.formulations.clock import Deadline
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.files.catalogue import load
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.horizon.driver import run
from ronda.solvers.policies.optimising.milp import Milp
from ronda.solvers.policies.optimising.prices import Prices
from ronda.solvers.registry import policy

REPEATS = 7

BLOCK = 50
"""Rounds after which the policies take turns."""


def measure_policy(
    name: str, jobs: int, gpus: int | None, severity: str, seed: int
) -> dict[str, Any]:
    """Decide a round several times, placement included, and return the medians.

    The first decision is not counted: it computes what the options of each application are.
    """
    round_ = generate.round(jobs, gpus, severity, seed)
    made, plans = policy(name), list[Plan]()

    def decide() -> None:
        plans.append(made.plan(round_, deadline=Deadline(), seed=0))

    decide()
    first = plans.pop()
    _, total_s, cpu_s = timed(decide, REPEATS)
    parts = ("build_s", "solve_s", "extract_s")
    return {
        "gpus": round_.cluster.gpus,
        "severity": severity,
        "options": first.record.options,
        "total_s": total_s,
        "cpu_s": cpu_s,
        **{part: median(getattr(plan.record, part) for plan in plans) for part in parts},
        "gap": first.gap,
        "status": first.status,
        "placed": len(first.allocations),
    }


measure_powerflow = partial(measure_policy, "powerflow")
measure_powerflow_prices = partial(measure_policy, "powerflow-prices")
measure_milp_energy = partial(measure_policy, "milp-energy")


@dataclass
class Both:
    """Let `prices` decide a horizon, and `milp` the same rounds as well, in turns.

    Both see the same rounds and the same last plans. They take turns every `BLOCK` rounds: what
    else runs on the machine slows both down, and each finds the processor's caches as it leaves
    them itself, as in a run of its own. `seconds` are of both: by the clock, and of this process.
    """

    gap: float
    name: str = field(default=Prices.name, init=False)
    capabilities: Capability = field(default=Prices.capabilities, init=False)
    seconds: dict[str, list[tuple[float, float]]] = field(
        default_factory=lambda: {"prices": [], "milp": []}, init=False
    )
    rounds: list[tuple[Round, float | None, int, Plan | None]] = field(
        default_factory=list, init=False
    )

    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Decide by prices; from time to time let `milp` catch up."""
        asked = (round, deadline.limit_s, seed, initial)
        self.rounds.append(asked)
        made = self._decide(Prices(gap=self.gap), *asked)
        if len(self.rounds) % BLOCK == 0:
            self.catch_up()
        return made

    def catch_up(self) -> None:
        """Let `milp` decide the rounds that it has not seen yet."""
        for asked in self.rounds[len(self.seconds["milp"]) :]:
            self._decide(Milp(gap=self.gap), *asked)

    def _decide(
        self, by: Prices | Milp, round: Round, limit_s: float | None, seed: int, last: Plan | None
    ) -> Plan:
        made, wall_s, cpu_s = timed(
            lambda: by.plan(round, deadline=Deadline(limit_s), seed=seed, initial=last)
        )
        self.seconds[by.name].append((wall_s, cpu_s))
        return made


def measure_decision(
    jobs: int, instance: str, gap: float, limit_s: float, seed: int
) -> dict[str, Any]:
    """Time the decisions over the first jobs of a packaged horizon."""
    whole = load(instance)
    if isinstance(whole, Round):
        raise InputError("--instance", f"{whole.name!r}, a round", "a horizon")
    first = replace(whole, jobs=whole.jobs[:jobs])
    both = Both(gap)
    tell(f"decision: {first.name}: {len(first.jobs):,} jobs ...")
    run(first, both, seed=seed, time_limit_s=limit_s)
    both.catch_up()
    found = {
        "jobs": len(first.jobs),
        "gpus": first.cluster.gpus,
        "gap_asked": gap,
        "seed": seed,
        "instance": first.name,
        "rounds": len(both.rounds),
        "live_jobs": median(len(round_.jobs) for round_, *_ in both.rounds),
    }
    for prefix, total, name in (("", "total_s", "prices"), ("baseline_", "baseline_s", "milp")):
        wall_s, cpu_s = np.transpose(both.seconds[name])
        found[total] = float(np.median(wall_s))
        found[f"{prefix}cpu_s"] = float(np.median(cpu_s))
        found[f"{prefix}mean_s"] = float(wall_s.mean())
        found[f"{prefix}p99_s"] = float(np.quantile(wall_s, 0.99, method="lower"))
    return found
