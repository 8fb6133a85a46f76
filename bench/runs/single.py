"""One run in this process: it drives a case to its end, and in a folder it resumes after a kill."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, log, nan
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec

from ronda.bench.runs.folder import claim, keep, load_record, store_record
from ronda.bench.runs.shared import idle_by_cause, tenant_figures
from ronda.bench.runs.specs import RunCase
from ronda.formulations.bounds.clairvoyant import bounds
from ronda.horizon.driver import run
from ronda.horizon.isolated import Isolated
from ronda.instances.check.checker import check
from ronda.instances.files.json import write
from ronda.instances.instance import DECLARED, LEARNT, Instance, Knowledge
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.throughput import samples_per_s
from ronda.instances.outcome.metrics import summarise
from ronda.instances.outcome.sweep_results import searched
from ronda.instances.schedule import RECORDED, Schedule
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.turns import SHARE
from ronda.solvers.registry import policy, policy_class

Progress = Callable[[int, int, float], None]
"""A callback that gets the number of completed jobs, of all jobs, and the time in the horizon."""

BOUNDED = ("mean_jct_s", "makespan_s", "energy_j")


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The metrics of a run (the fields of ``ronda run``), and descriptions of its faults.

    `wrong` names each broken rule of the schedule, and the reason why the first refused plan was
    refused. `gave` says that limits gave way to jobs that must not be stopped.
    """

    metrics: dict[str, Any]
    wrong: list[str]
    gave: list[str] = field(default_factory=list)


def measure(
    instance: Instance,
    schedule: Schedule,
    *,
    wall_s: float,
    level: Knowledge = DECLARED,
    tight_s: float | None = None,
) -> RunFigures:
    """Summarise, check and bound the schedule of a run of `wall_s` at a `level` of knowledge.

    `gap_mean_jct` is the relative distance of the mean JCT from the clairvoyant bound, which may be
    `tight_s`; it is missing without a bound, and `bound_proof` says where its prices come from.
    Bounds cover all jobs and are 0 if some jobs were given up. Energies are NaN if the draw of busy
    GPUs is unknown. Instances with a site's rules have the figures of `tenant_figures` and
    `idle_by_cause` too. `notes` are those of the instance; `wrong` is the first fault. What a log
    tells of has no decisions, and the rules that it breaks, the `broken_rules`, are no fault of it.
    """
    violations = check(instance, schedule)
    metrics: dict[str, Any] = dict(summarise(instance, schedule))
    least = bounds(instance, tight_s=tight_s)
    metrics["knowledge"] = knowledge(instance, schedule.policy, level)
    metrics["restarts_per_job"] = metrics["restarts"] / metrics["jobs"]
    whole = not any(outcome.discarded for outcome in schedule.jobs)
    metrics |= {f"bound_{name}": whole * getattr(least, name) for name in BOUNDED}
    metrics["bound_proof"] = least.proof
    metrics |= believed(schedule)
    if instance.sweeps:
        metrics["mean_charged_gpu_s"] = charged(instance, schedule)
    metrics |= tenant_figures(instance, schedule)
    if schedule.policy != RECORDED:  # nodes may hold more there than they have
        metrics |= idle_by_cause(instance, schedule)
    if whole and least.mean_jct_s > 0:
        metrics["gap_mean_jct"] = metrics["mean_jct_s"] / least.mean_jct_s - 1.0
    if not metered(instance):
        energies = {"energy_j", "bound_energy_j", "energy_cost", "carbon_g"}
        metrics |= dict.fromkeys(metrics.keys() & energies, nan)
    told = instance.made.get("notes")
    if isinstance(told, list):
        metrics["notes"] = [*map(str, told)]
    metrics["wall_s"] = wall_s
    if schedule.policy == RECORDED:  # it has no figures that only decisions have
        decided = (
            "rounds",
            "median_solve_s",
            "p99_solve_s",
            "overruns",
            "fallbacks",
            "pinned_jobs",
        )
        kept = {name: value for name, value in metrics.items() if name not in decided}
        words = [f"{RECORDED}: {note}" for note in schedule.config.get("notes", ())]
        if violations:
            kept.pop("gap_mean_jct", None)  # the bound holds for what keeps the rules
            counts = Counter(each.code for each in violations).most_common()
            broken = ", ".join(f"{code} {n:,}" for code, n in counts)
            words.append(f"{RECORDED}: it breaks rules of the instance: {broken}")
        words = [*kept.get("notes", ()), *words]
        return RunFigures(kept | {"broken_rules": len(violations), "notes": words}, [])
    metrics["violations"] += len(violations)  # in addition to those of refused plans
    refused = _first(schedule, "violations", "faults of plans that were refused")
    gave = _first(schedule, "conflicts", "limits gave way")
    wrong = [*map(str, violations), *refused]
    return RunFigures(metrics | ({"wrong": wrong[0]} if wrong else {}), wrong, gave)


def eaten(shares: Mapping[str, Sequence[float]]) -> list[str]:
    """Return a line on policies with runs whose restarts took more than `SHARE` of the GPU time."""
    told = []
    for name, each in shares.items():
        over = [f"{share:.0%}" for share in sorted(each) if share > SHARE]
        if over:
            told.append(f"{name} {'-'.join(dict.fromkeys((over[0], over[-1])))}")
    what = f"restarts took more than {SHARE:.0%} of the GPU time that jobs had"
    return [f"{what}: {', '.join(told)}"] if told else []


def metered(instance: Instance) -> bool:
    """Return whether the draw of a busy GPU of the cluster is known for any job."""
    types = {group.gpu_type for group in instance.cluster.node_groups}
    used = {job.profile for job in instance.jobs}
    return any(types & instance.profiles[name].power.keys() for name in used)


def _first(schedule: Schedule, field: str, what: str) -> list[str]:
    """Return a line on the entries of a field in all round records, if there are any."""
    found = [(each.now_s, why) for each in schedule.rounds for why in getattr(each, field)]
    if not found:
        return []
    (now_s, why), *_ = found
    return [f"{len(found)} {what}; the first at {now_s:g} s: {why}"]


def believed(schedule: Schedule) -> dict[str, float]:
    """Return the accuracy of forecasts, or nothing if there were none.

    `size_error` and `rate_error` are means of ``|log(believed / real)|``. `size_coverage` is the
    share of sizes between the believed 10 % and 90 % quantiles: 0.8 for calibrated beliefs.
    """
    found: dict[str, float] = {}
    for what in ("size", "rate"):
        own = [each for each in schedule.forecasts if each.what == what]
        if own:
            found[f"{what}_error"] = fmean(abs(log(each.believed / each.real)) for each in own)
        shares = [each.share for each in own if each.share is not None]
        if shares:
            found[f"{what}_coverage"] = fmean(0.1 <= share <= 0.9 for share in shares)
    return found


def charged(instance: Instance, schedule: Schedule) -> float:
    """Return the mean GPU-seconds that sweeps took to come within 1 % of the least loss.

    A sweep that missed it is charged the GPU-seconds of training all its trials as requested, each
    alone and without a stop, which would be needed to be sure.
    """
    gpu_type = instance.cluster.gpu_types[0].name
    found = []
    for name in instance.sweeps:
        _, best_gpu_s = searched(instance, schedule, name).within()
        if isnan(best_gpu_s):
            best_gpu_s = 0.0
            for job in instance.jobs:
                if job.sweep == name and job.truth is not None:
                    profile = instance.profiles[job.profile]
                    batch = job.batch or profile.base_batch
                    at = Configuration(job.gpus, 1, batch)
                    rate = float(samples_per_s(profile, gpu_type, at))
                    best_gpu_s += job.gpus * job.truth.work / rate
        found.append(best_gpu_s)
    return fmean(found)


def drive(
    instance: Instance,
    case: RunCase,
    *,
    journal: Path | None = None,
    progress: Progress | None = None,
    isolated: bool = False,
    certificate: Path | None = None,
    bounding: Callable[[float], None] | None = None,
) -> tuple[Schedule, RunFigures]:
    """Run a case to its end; return the schedule and its figures.

    `instance` already has its changes. `journal` stores decisions as they are made; decisions that
    it already holds are reused, and count with the time that they took originally. With `isolated`,
    the policy decides in its own process. A tight bound that the case asks for is found first,
    unless the case has it; `certificate` and `bounding` are passed to `tight_bound_s`.
    """
    tight_s = case.tight_bound_s
    if case.bound_effort == "tight" and tight_s is None:
        from ronda.solvers.prices.over_time import tight_bound_s  # loads HiGHS

        tight_s = tight_bound_s(instance, certificate, bounding)
    resumed = journal is not None and journal.exists()
    began = time.perf_counter()
    schedule = run(
        instance,
        (Isolated if isolated else policy)(case.policy, **case.config),
        seed=case.seed,
        time_limit_s=case.time_limit_s,
        cadence=case.cadence(instance),
        knowledge=case.level,
        predictor=None if case.predictor is None else case.predictor.read(),
        journal=journal,
        progress=progress,
    )
    wall_s = time.perf_counter() - began
    if resumed:
        wall_s = sum(record.solve_s + record.overhead_s for record in schedule.rounds)
    return schedule, measure(instance, schedule, wall_s=wall_s, level=case.level, tight_s=tight_s)


def drive_in_folder(
    instance: Instance,
    case: RunCase,
    out: Path,
    *,
    progress: Progress | None = None,
    isolated: bool = False,
    bounding: Callable[[float], None] | None = None,
    draw: Callable[[Schedule, Path], None],
) -> RunFigures:
    """Run a case, or resume where an earlier process stopped, and keep all results in a folder.

    The folder gets ``schedule.json.zst``, the figures of `draw`, and last ``metrics.json``; if that
    exists, nothing runs again. ``journal.jsonl`` stores decisions as they are made.
    """
    about = {
        name: msgspec.to_builtins(getattr(case, name))
        for name in case.__struct_fields__
        if name not in {"source", "label", "tight_bound_s"}  # as they come from the others
    }
    done, journal = out / "metrics.json", out / "journal.jsonl"
    with claim(out, "run", about):
        if done.exists():
            return RunFigures(load_record(done, dict[str, Any]), [])
        keep(out, case.source, instance)
        schedule, measured = drive(
            instance,
            case,
            journal=journal,
            progress=progress,
            isolated=isolated,
            certificate=out / "bound.json.zst",
            bounding=bounding,
        )
        write(schedule, out / "schedule.json.zst")
        draw(schedule, out / "figures")
        store_record(done, measured.metrics)
        journal.unlink()  # all of it is in the schedule now
    return measured


def knowledge(instance: Instance, policy: str, level: Knowledge = DECLARED) -> str:
    """Return the source of the sizes that a policy uses, in a run at the given level of knowledge.

    ``oracle`` means true estimates, ``declared`` means estimates that may be wrong, ``history``
    means experience from jobs that ran, and ``none`` means no sizes, or only the progress of live
    jobs. If energy is limited, all policies use the estimates for how long a job draws its power.
    """
    if level in LEARNT or policy == RECORDED:
        return "" if policy == RECORDED else level
    able: Capability = policy_class(policy).capabilities  # type: ignore[attr-defined]
    told = level == "oracle" or any(job.estimate is not None for job in instance.jobs)
    if Capability.SIZES not in able or not told:
        return "history" if Capability.HISTORY in able else "none"
    exact = level == "oracle" or all(
        job.truth is not None and job.estimate is not None and job.estimate.work == job.truth.work
        for job in instance.jobs
    )
    return "oracle" if exact else "declared"
