"""Speed of whole decisions, stage by stage: from a round to a plan that is checked."""

from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.bench.runs.runner import peak_rss_mib
from ronda.bench.speed.cases import timed
from ronda.formulations.allocation.case import make_case
from ronda.formulations.allocation.rows import separable
from ronda.formulations.clock import Deadline
from ronda.formulations.models.throughput import speed_and_share
from ronda.formulations.objectives.forms import values
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.instances.check.plan import check_plan
from ronda.instances.job import JobState
from ronda.instances.profile import Profile, Tabular
from ronda.instances.round import Round
from ronda.solvers.decision.realise import realise
from ronda.solvers.policies.optimising.prices import Prices
from ronda.solvers.prices.engine import solve_separable

GPUS = (1, 2, 4, 8, 16, 32, 64)
"""GPU counts of the measured tables; more than eight are on whole nodes."""

LOCAL_BATCHES = 8
"""Local batches measured for each."""


def measure_stages(jobs: int, seed: int) -> dict[str, Any]:
    """Decide a generated round, then its stages one by one; all in processor time.

    `total_s` is the first decision of the process, `again_s` one more of the same round.
    """
    round_ = generate.round(jobs, seed=seed)
    found = _decided(round_)
    table, _, options_s = timed(lambda: build(round_))
    worth, _, values_s = timed(lambda: values(round_, table, "rank"))

    def arrays() -> tuple[Any, Any]:
        case = make_case(round_, table, worth)
        return case, separable(case)

    (case, problem), _, arrays_s = timed(arrays)
    answer, _, engine_s = timed(lambda: solve_separable(problem))
    assert answer.chosen is not None
    chosen = np.where(answer.chosen >= 0, case.rows[answer.chosen], -1)
    _, _, placement_s = timed(lambda: realise(round_, table, worth, chosen, watt_value=0.0))
    plan = Prices().plan(round_, deadline=Deadline(), seed=0)
    _, _, check_s = timed(lambda: check_plan(round_, plan))
    return found | {
        "seed": seed,
        "options_s": options_s,
        "values_s": values_s,
        "arrays_s": arrays_s,
        "engine_s": engine_s,
        "placement_s": placement_s,
        "check_s": check_s,
    }


def measure_profiles(jobs: int, seed: int) -> dict[str, Any]:
    """Decide a round in which every job has a measured profile of its own, first and again."""
    made = generate.round(jobs, seed=seed)
    Prices().plan(generate.round(8, seed=seed + 1), deadline=Deadline(), seed=0)  # loads all
    return _decided(measured(made, seed)) | {"seed": seed}


def _decided(round_: Round) -> dict[str, Any]:
    """Return what the first and the second decision of a round take, in processor time."""
    plan, _, total_s = timed(lambda: Prices().plan(round_, deadline=Deadline(), seed=0))
    peak = round(peak_rss_mib(), 1)
    _, _, again_s = timed(lambda: Prices().plan(round_, deadline=Deadline(), seed=0))
    return {
        "gpus": round_.cluster.gpus,
        "options": plan.record.options,
        "total_s": total_s,
        "again_s": again_s,
        "gap": plan.gap,
        "placed": len(plan.allocations),
        "peak_rss_mib": peak,
    }


def measured(round: Round, seed: int) -> Round:
    """Return the round where each job waits with a table of its own: its application's, perturbed.

    Step times are off by a lognormal factor of 5 % each.
    """
    rng, profiles, states = np.random.default_rng(seed), dict[str, Profile](), []
    for state in sorted(round.jobs, key=lambda state: state.job.submit_s):
        job = replace(state.job, profile=state.job.id)
        profiles[job.id] = _table(round.profiles[state.job.profile], job.id, rng)
        states.append(JobState(job=job, since_s=job.submit_s, noise=state.noise))
    return replace(round, profiles=profiles, running=(), waiting=tuple(states))


def _table(profile: Profile, name: str, rng: np.random.Generator) -> Profile:
    """Return a profile with measured step times in place of its models."""
    most = profile.max_local_batch or 256.0
    gpus = np.repeat(GPUS, LOCAL_BATCHES)
    local = np.tile(np.geomspace(most / 2 ** (LOCAL_BATCHES - 1), most, LOCAL_BATCHES), len(GPUS))
    nodes = -(-gpus // 8)
    tables = {}
    for kind in profile.throughput:
        speed, share = speed_and_share(profile, kind, gpus, nodes, gpus * local)
        step_s = gpus * local / speed * rng.lognormal(0.0, 0.05, len(gpus))
        tables[kind] = Tabular(
            gpus=tuple(gpus.tolist()),
            nodes=tuple(nodes.tolist()),
            local_batch=tuple(local.tolist()),
            step_s=tuple(step_s.tolist()),
            sync_s=tuple((share * step_s).tolist()),
        )
    return replace(profile, name=name, throughput=tables, min_local_batch=0.0)
