"""Speed of whole decisions, from a round to a plan, and memory over many of them."""

from statistics import median
from typing import Any

import numpy as np
import psutil
from msgspec.structs import replace

from lab.speed.cases import case, timed
from ronda.bench.runs.runner import peak_rss_mib
from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.instances.check.plan import check_plan
from ronda.instances.clock import Deadline
from ronda.instances.job import Allocation, JobState
from ronda.instances.plan import Plan
from ronda.instances.profile import NoiseScale
from ronda.solvers.decision.realise import realise
from ronda.solvers.policies.optimising.prices import Prices
from ronda.solvers.prices.engine import solve_separable
from ronda.solvers.registry import policy as policy_of

REPEATS = 7

FIRST, REPLACED = 5000, 20
"""Decisions after which memory must not grow; after which a job has ended and another has come."""


@case("1000")
def measure_policy(
    jobs: int,
    policy: str = "powerflow",
    gpus: int | None = None,
    severity: str = "balanced",
    seed: int = 0,
) -> dict[str, Any]:
    """Time a policy that decides a generated round, options and placement included.

    Median of 7 after one that is not counted, which computes what the options of each application
    are. cpu_s is processor time.
    """
    round_ = generate.round(jobs, gpus, severity, seed)
    made, plans = policy_of(policy), list[Plan]()

    def decide() -> None:
        plans.append(made.plan(round_, deadline=Deadline(), seed=0))

    decide()
    first = plans.pop()
    _, total_s, cpu_s = timed(decide, REPEATS)
    parts = ("build_s", "solve_s", "extract_s")
    return {
        "gpus": round_.cluster.gpus,
        "options": first.record.options,
        "total_s": total_s,
        "cpu_s": cpu_s,
        **{part: median(getattr(plan.record, part) for plan in plans) for part in parts},
        "gap": first.gap,
        "status": first.status,
        "placed": len(first.allocations),
    }


@case("1024,4096,16384,65536")
def measure_stages(jobs: int, seed: int = 0) -> dict[str, Any]:
    """Time a whole decision of prices about a generated round, in processor time.

    The first of the process (total_s), one more (again_s), and what options, values, arrays,
    engine, placement and check take of it.
    """
    round_ = generate.round(jobs, seed=seed)
    plan, _, total_s = timed(lambda: Prices().plan(round_, deadline=Deadline(), seed=0))
    peak_mib = round(peak_rss_mib(), 1)
    _, _, again_s = timed(lambda: Prices().plan(round_, deadline=Deadline(), seed=0))
    table, _, options_s = timed(lambda: build(round_))
    worth, _, values_s = timed(lambda: values(round_, table, "rank"))

    def arrays() -> tuple[Any, Any]:
        cast = make_case(round_, table, worth)
        return cast, separable(cast)

    (cast, problem), _, arrays_s = timed(arrays)
    answer, _, engine_s = timed(lambda: solve_separable(problem))
    assert answer.chosen is not None
    chosen = np.where(answer.chosen >= 0, cast.rows[answer.chosen], -1)
    _, _, placement_s = timed(lambda: realise(round_, table, worth, chosen, watt_value=0.0))
    _, _, check_s = timed(lambda: check_plan(round_, plan))
    return {
        "gpus": round_.cluster.gpus,
        "options": len(table),
        "total_s": total_s,
        "again_s": again_s,
        "gap": plan.gap,
        "placed": len(plan.allocations),
        "peak_rss_mib": peak_mib,
        "options_s": options_s,
        "values_s": values_s,
        "arrays_s": arrays_s,
        "engine_s": engine_s,
        "placement_s": placement_s,
        "check_s": check_s,
    }


@case()
def measure_memory(jobs: int, policy: str = "prices", decisions: int = 100_000) -> dict[str, Any]:
    """Measure the memory of a policy that decides on and on, as in a scheduler for months.

    The gradient noise of four jobs is another one in each round, and every 20 rounds one of them is
    replaced by a new one. rss_mib is the resident memory after the first 5,000 decisions,
    rss_end_mib that after all, growth their ratio: it should be at most 1.05.
    """
    del jobs
    chosen, process, rng = policy_of(policy), psutil.Process(), np.random.default_rng(0)
    base = generate.round(jobs=4, gpus=8, seed=0)
    states = [replace(s, allocation=None) for s in sorted(base.jobs, key=lambda s: s.job.submit_s)]
    early, began = 0, Deadline()
    plan: Plan | None = None
    for k in range(decisions):
        if k % REPLACED == 0:
            j = k // REPLACED % len(states)
            job = replace(states[j].job, id=f"job-{k}", submit_s=k * base.length_s)
            states[j] = replace(states[j], job=job)
        held = plan.allocations if plan else {}
        now = [_after(s, held.get(s.job.id), k * base.length_s, rng) for s in states]
        round_ = replace(
            base,
            now_s=(k + 1) * base.length_s,
            running=tuple(s for s in now if s.allocation),
            waiting=tuple(s for s in now if not s.allocation),
        )
        plan = chosen.plan(round_, deadline=Deadline(), seed=0, initial=plan)
        if k + 1 == min(FIRST, decisions):
            early = process.memory_info().rss
    end = process.memory_info().rss
    memory = {"rss_mib": early / 2**20, "rss_end_mib": end / 2**20, "growth": end / early}
    return {"jobs": 4, "gpus": 8, "total_s": began.elapsed()} | memory


def _after(
    state: JobState, held: Allocation | None, since_s: float, rng: np.random.Generator
) -> JobState:
    noise = state.noise or NoiseScale(batches=(64.0,), scale=(1000.0,))
    factor = float(rng.uniform(0.5, 2.0))
    state = replace(state, noise=replace(noise, scale=tuple(factor * s for s in noise.scale)))
    return replace(state, allocation=held, since_s=since_s, started=True) if held else state
