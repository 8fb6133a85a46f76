"""The metrics of a schedule, as shown in every comparison."""

from dataclasses import dataclass
from itertools import pairwise
from math import nan

import numpy as np
from numpy.typing import NDArray

from ronda.instances.arguments import checked
from ronda.instances.base import Floats
from ronda.instances.demand import DAY_S
from ronda.instances.instance import Faults, Instance
from ronda.instances.outcome.sweep_results import searched
from ronda.instances.plan import SolutionStatus, gap_between
from ronda.instances.schedule import JobOutcome, Schedule, Segment
from ronda.instances.violation import SECOND


@dataclass(frozen=True, slots=True)
class JobFigures:
    """The figures of all J jobs as parallel arrays, in the schedule's order.

    `jct_s` is the completion minus the submission, or NaN for a job that was cut off, was discarded
    or could never run. `early_s` is the part of it before the job could start, and `queue_s` the
    rest of it without GPUs. `gpu_s` are the GPU-seconds held, including pauses;
    members of an array have even shares. `preemptions` counts how often a job lost all its GPUs
    before it ended. `restarts` counts its changes of allocation and its resumptions.
    """

    jct_s: Floats
    early_s: Floats
    queue_s: Floats
    gpu_s: Floats
    preemptions: NDArray[np.int64]
    restarts: NDArray[np.int64]


def job_figures(schedule: Schedule) -> JobFigures:
    """Return the figures of every job of a schedule."""
    outcomes = schedule.jobs
    gone = ("discarded", "dependency failed")
    jct_s = np.array(
        [nan if o.end_s is None or o.state in gone else o.end_s - o.submit_s for o in outcomes]
    )
    early_s = np.array([(o.eligible_s or o.submit_s) - o.submit_s for o in outcomes])
    held_s = np.array([sum(s.end_s - s.start_s for s in o.segments) for o in outcomes])
    queue_s = jct_s - early_s - held_s
    return JobFigures(
        jct_s=jct_s,
        early_s=early_s,
        queue_s=np.where(np.abs(queue_s) < SECOND, 0.0, queue_s),  # drop rounding errors
        gpu_s=np.array(
            [sum(s.option.own_gpus * (s.end_s - s.start_s) for s in o.segments) for o in outcomes]
        ),
        preemptions=np.array([_preemptions(o, schedule.end_s) for o in outcomes], dtype=np.int64),
        restarts=np.array([_restarts(o.segments) for o in outcomes], dtype=np.int64),
    )


@checked
def summarise(instance: Instance, schedule: Schedule) -> dict[str, float | int | str]:
    """Return the figures of a run by name.

    Means and percentiles (linear between ranks) cover the jobs that ended and were not discarded. A
    figure without any data is NaN.

    * `instance`, `policy`, `seed`, `jobs`, `unfinished` (jobs that were cut off);
    * `mean_jct_s`, `median_jct_s`, `p95_jct_s`, `p99_jct_s`;
    * `mean_queue_s`, `p99_queue_s`, `p999_queue_s`, `longest_queue_s`: JCT minus the time in which
      a job held GPUs, whose mean is `mean_run_s`; `queued_jobs`: number of jobs that queued for
      more than a microsecond. A job queues from the time on at which it could start;
    * for instances whose jobs must wait for others or for a time: `mean_early_s`, the mean time
      from submission until a job could start, and `unrun_jobs`, the number of jobs that never
      could, which no mean includes;
    * for instances with time limits: `over_limit_jobs`, the number of jobs that reached theirs;
    * `makespan_s`: time from the first submission to the end of the schedule;
    * `preemptions`: number of times that a job lost all its GPUs before it ended; `restarts`:
      number of changes of an allocation and of resumptions; `restart_share`: share of `gpu_s`
      spent in their pauses; `pinned_jobs`: number of jobs that could not be stopped for a while;
    * `mean_fusible_jct_s` and `mean_lone_jct_s`: mean JCT of jobs that may share a GPU and of other
      jobs, if the instance has both;
    * `energy_j`: energy from 0 to the end of the schedule; `energy_cost` and `carbon_g`: its cost
      and carbon, if the instance has series of prices or carbon intensity;
    * `sleeping_nodes`: mean number; `wakeups_per_day` and `woken_per_day`: number of wake-up times
      and of woken nodes; all three count until the last submission, or until the end if all jobs
      are submitted at 0;
    * `above_optimum` and `energy_above_optimum`: relative distance of the mean JCT and the energy
      from the instance's known optimum;
    * for instances with faults: `failures` of jobs, by themselves or by nodes; `failed_jobs`:
      number of jobs that failed for good; `lost_gpu_s`: GPU-seconds of lost progress;
    * for instances with sweeps: `sweeps` and `discarded_jobs`: their numbers; `mean_best_s` and
      `mean_best_gpu_s`: time since a sweep's first submission and GPU-seconds of its trials until
      a reported loss is within 1 % of the least final loss (for sweeps that reached it;
      `missed_sweeps` did not); `mean_regret`: relative distance of the least reported loss from the
      least final loss; `paused_gpu_s`: GPU-seconds of starting and restarting trials;
      `mean_least_loss` and `begun_jobs`: least reported loss and number of begun trials at the
      deadline, if any; `mean_all_good_s`: time until all good trials were near the least loss (for
      sweeps that reached it);
    * `gpu_s`: GPU-seconds held; `gpu_utilisation`: `gpu_s` divided by all GPUs times the makespan;
    * `rounds`, `median_solve_s`, `p99_solve_s`, `overruns`, `fallbacks` (decisions that keep
      running jobs because there is no plan), and `violations` of all proposed plans;
    * for policies that bound their rounds, `mean_round_gap`: mean relative gap of their decisions;
      `proven_rounds`: share of decisions with a proof that no plan is better by more than the
      policy's gap.
    """
    figures = job_figures(schedule)
    ended = ~np.isnan(figures.jct_s)
    jct_s, queue_s, early_s = (
        each[ended] for each in (figures.jct_s, figures.queue_s, figures.early_s)
    )
    makespan_s = schedule.end_s - min((o.submit_s for o in schedule.jobs), default=0.0)
    again = [s for o in schedule.jobs for s in o.segments[1:]]
    paused_gpu_s = sum(s.option.own_gpus * (s.resume_s - s.start_s) for s in again)
    gpu_s = float(figures.gpu_s.sum())
    solve_s = np.array([r.solve_s for r in schedule.rounds])
    return {
        "instance": schedule.instance,
        "policy": schedule.policy,
        "seed": schedule.seed,
        "jobs": len(schedule.jobs),
        "unfinished": sum(outcome.end_s is None for outcome in schedule.jobs),
        "mean_jct_s": _mean(jct_s),
        "median_jct_s": _percentile(jct_s, 50),
        "p95_jct_s": _percentile(jct_s, 95),
        "p99_jct_s": _percentile(jct_s, 99),
        "mean_run_s": _mean(jct_s - early_s - queue_s),
        "mean_queue_s": _mean(queue_s),
        "p99_queue_s": _percentile(queue_s, 99),
        "p999_queue_s": _percentile(queue_s, 99.9),
        "longest_queue_s": _percentile(queue_s, 100),
        "queued_jobs": int(np.count_nonzero(queue_s > SECOND)),
        "makespan_s": makespan_s,
        "preemptions": int(figures.preemptions.sum()),
        "restarts": int(figures.restarts.sum()),
        "restart_share": paused_gpu_s / gpu_s if gpu_s > 0 else nan,
        "pinned_jobs": len({job for r in schedule.rounds for job in r.pinned_jobs}),
        **_in_order(instance, schedule, early_s),
        **_fusible(instance, figures.jct_s),
        "energy_j": schedule.energy.total_j,
        **_priced(schedule),
        **_slept(schedule),
        **_above_optimum(instance, _mean(jct_s), schedule.energy.total_j),
        **_lost(instance, schedule),
        **_searched(instance, schedule),
        "gpu_s": gpu_s,
        "gpu_utilisation": gpu_s / (instance.cluster.gpus * makespan_s) if makespan_s > 0 else nan,
        "rounds": len(schedule.rounds),
        "median_solve_s": _percentile(solve_s, 50),
        "p99_solve_s": _percentile(solve_s, 99),
        "overruns": sum(r.overrun for r in schedule.rounds),
        "fallbacks": sum(r.status is SolutionStatus.FALLBACK for r in schedule.rounds),
        "violations": sum(len(r.violations) for r in schedule.rounds),
        **_bounded(schedule),
    }


def _bounded(schedule: Schedule) -> dict[str, float]:
    pairs = [
        (r.objective, r.bound)
        for r in schedule.rounds
        if r.objective is not None and r.bound is not None
    ]
    if not pairs:
        return {}
    gaps = [gap_between(bound, worth) for worth, bound in pairs]
    proven = sum(r.status is SolutionStatus.OPTIMAL for r in schedule.rounds)
    return {
        "mean_round_gap": sum(gaps) / len(gaps),
        "proven_rounds": proven / len(schedule.rounds),
    }


def _priced(schedule: Schedule) -> dict[str, float]:
    found = {"energy_cost": schedule.energy_cost, "carbon_g": schedule.carbon_g}
    return {name: value for name, value in found.items() if value is not None}


def _in_order(instance: Instance, schedule: Schedule, early_s: Floats) -> dict[str, float]:
    found: dict[str, float] = {}
    if any(job.after or job.eligible_s is not None for job in instance.jobs):
        unrun = sum(o.ended_by == "dependency failed" for o in schedule.jobs)
        found |= {"mean_early_s": _mean(early_s), "unrun_jobs": unrun}
    limits = {job.id: job.limit_s for job in instance.jobs if job.limit_s is not None}
    if limits:
        held = {o.id: sum(s.end_s - s.start_s for s in o.segments) for o in schedule.jobs}
        over = sum(held[job] >= limit_s - SECOND for job, limit_s in limits.items())
        found["over_limit_jobs"] = over
    return found


def _fusible(instance: Instance, jct_s: Floats) -> dict[str, float]:
    fusible = np.array([job.fusible is not None for job in instance.jobs], dtype=bool)
    if fusible.all() or not fusible.any():
        return {}
    ended = ~np.isnan(jct_s)
    return {
        "mean_fusible_jct_s": _mean(jct_s[ended & fusible]),
        "mean_lone_jct_s": _mean(jct_s[ended & ~fusible]),
    }


def _slept(schedule: Schedule) -> dict[str, float]:
    until_s = max((o.submit_s for o in schedule.jobs), default=0.0) or schedule.end_s
    if not until_s > 0:
        return {}
    asleep_s = sum(max(0.0, min(end, until_s) - start) for _, start, end in schedule.sleeps)
    woken = [end for _, _, end in schedule.sleeps if end < until_s]
    return {
        "sleeping_nodes": asleep_s / until_s,
        "wakeups_per_day": len(set(woken)) / (until_s / DAY_S),
        "woken_per_day": len(woken) / (until_s / DAY_S),
    }


def _above_optimum(instance: Instance, mean_jct_s: float, energy_j: float) -> dict[str, float]:
    best = instance.reference.get("optimum", {})
    found = {"above_optimum": ("mean_jct_s", mean_jct_s)}
    found["energy_above_optimum"] = "energy_j", energy_j
    return {key: value / best[of] - 1.0 for key, (of, value) in found.items() if best.get(of)}


def _lost(instance: Instance, schedule: Schedule) -> dict[str, float]:
    own = any(job.truth is not None and job.truth.failures for job in instance.jobs)
    if instance.faults == Faults() and not own:
        return {}
    gpus = {(o.id, s.end_s): s.option.own_gpus for o in schedule.jobs for s in o.segments}
    return {
        "failures": len(schedule.failures),
        "failed_jobs": sum(outcome.failed for outcome in schedule.jobs),
        "lost_gpu_s": sum(f.lost_s * gpus[f.job, f.time_s] for f in schedule.failures),
    }


def _searched(instance: Instance, schedule: Schedule) -> dict[str, float]:
    if not instance.sweeps:
        return {}
    found = [searched(instance, schedule, name) for name in instance.sweeps]
    good_s = np.array([each.all_good_s for each in found])
    best = np.array([each.within() for each in found]).reshape(-1, 2)
    reached = best[~np.isnan(best[:, 0])]
    return {
        "sweeps": len(found),
        "discarded_jobs": sum(outcome.discarded for outcome in schedule.jobs),
        "missed_sweeps": len(best) - len(reached),
        "mean_best_s": _mean(reached[:, 0]),
        "mean_best_gpu_s": _mean(reached[:, 1]),
        "mean_regret": _mean(np.array([each.regret() for each in found])),
        "mean_least_loss": _mean(np.array([each.in_time for each in found])),
        "begun_jobs": sum(each.begun for each in found),
        "mean_all_good_s": _mean(good_s[~np.isnan(good_s)]),
        "paused_gpu_s": sum(each.paused_gpu_s for each in found),
    }


def _mean(values: Floats) -> float:
    return float(values.mean()) if values.size else nan


def _percentile(values: Floats, percent: float) -> float:
    return float(np.percentile(values, percent)) if values.size else nan


def _preemptions(outcome: JobOutcome, end_s: float) -> int:
    """Count the gaps between segments, plus one if an unfinished job held nothing at the end."""
    segments = outcome.segments
    gaps = sum(b.start_s > a.end_s for a, b in pairwise(segments))
    last_s = end_s if outcome.end_s is None else outcome.end_s
    stopped = bool(segments) and segments[-1].end_s < last_s
    return gaps + stopped


def _restarts(segments: tuple[Segment, ...]) -> int:
    return sum(
        a.end_s != b.start_s or not (a.held.goes_on(b.held) or a.held.narrows_to(b.held))
        for a, b in pairwise(segments)
    )
