"""The figures of a run that tables show, with their titles and number formats."""

from collections.abc import Callable
from dataclasses import dataclass

from ronda.instances.tables.numbers import (
    count,
    fine,
    fine_percent,
    hours,
    joules,
    milliseconds,
    percent,
    seconds,
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column with its metric, its title and its number format; with `best`, lower is better."""

    key: str
    title: str
    write: Callable[[float], str]
    best: bool = False


COLUMNS = (
    Column("mean_jct_s", "mean JCT (s)", seconds, best=True),
    Column("p95_jct_s", "p95 JCT (s)", seconds, best=True),
    Column("p99_jct_s", "p99 JCT (s)", seconds, best=True),
    Column("mean_queue_s", "queueing (s)", seconds, best=True),
    Column("makespan_s", "makespan (s)", seconds, best=True),
    Column("energy_j", "energy", joules, best=True),
    Column("gpu_utilisation", "GPUs used (%)", percent),
    Column("gap_mean_jct", "gap to bound (%)", percent, best=True),
    Column("restarts_per_job", "restarts/job", count),
    Column("rounds", "decisions", count),
    Column("median_solve_s", "median solve (ms)", milliseconds, best=True),
    Column("p99_solve_s", "p99 solve (ms)", milliseconds, best=True),
    Column("overruns", "overruns", count),
    Column("mean_round_gap", "round gap (%)", fine_percent, best=True),
    Column("proven_rounds", "rounds proven (%)", percent),
)

SEARCHES = (
    Column("mean_best_s", "time to the best (s)", seconds, best=True),
    Column("mean_best_gpu_s", "GPU-seconds to it", seconds, best=True),
    Column("missed_sweeps", "sweeps without it", count),
    Column("discarded_jobs", "trials given up", count),
)
"""Figures for instances with sweeps; the best is a reported loss within 1 % of the least."""


MORE = (
    Column("median_jct_s", "median JCT (s)", seconds, best=True),
    Column("mean_run_s", "execution (s)", seconds, best=True),
    Column("p99_queue_s", "p99 queueing (s)", seconds, best=True),
    Column("p999_queue_s", "p99.9 queueing (s)", seconds, best=True),
    Column("longest_queue_s", "longest queueing (s)", seconds, best=True),
    Column("mean_fusible_jct_s", "sweeps' JCT (s)", seconds, best=True),
    Column("mean_lone_jct_s", "others' JCT (s)", seconds, best=True),
    Column("above_optimum", "above the best (%)", percent, best=True),
    Column("energy_above_optimum", "energy above the best (%)", percent),
    Column("gpu_s", "GPU-hours", hours, best=True),
    Column("jobs", "jobs", count),
    Column("unfinished", "unfinished jobs", count),
    Column("queued_jobs", "queued jobs", count),
    Column("preemptions", "preemptions", count),
    Column("restarts", "restarts", count),
    Column("restart_share", "GPU time of restarts (%)", percent),
    Column("pinned_jobs", "pinned jobs", count),
    Column("fallbacks", "fallbacks", count),
    Column("violations", "violations", count),
    Column("broken_rules", "broken rules of a record", count),
    Column("sleeping_nodes", "sleeping nodes", count),
    Column("wakeups_per_day", "wake-ups a day", count),
    Column("woken_per_day", "nodes woken a day", count),
    Column("mean_slowdown", "slowdown by tenant", count, best=True),
    Column("worst_slowdown", "worst tenant's slowdown", count, best=True),
    Column("owed_met", "owed GPUs given (%)", percent),
    Column("idle_quota", "idle for quota (%)", percent),
    Column("idle_host", "idle for host resources (%)", percent),
    Column("idle_parts", "idle for parts (%)", percent),
    Column("idle_rack", "idle in pieces (%)", percent),
    Column("idle_order", "idle by order (%)", percent),
    Column("failures", "failures", count),
    Column("failed_jobs", "failed jobs", count),
    Column("lost_gpu_s", "lost GPU-hours", hours, best=True),
    Column("energy_cost", "energy cost", count, best=True),
    Column("carbon_g", "carbon (g)", count, best=True),
    Column("sweeps", "sweeps", count),
    Column("mean_charged_gpu_s", "GPU-hours to the best", hours, best=True),
    Column("mean_regret", "regret (%)", percent, best=True),
    Column("mean_least_loss", "least loss", fine, best=True),
    Column("mean_all_good_s", "time to all good trials (s)", seconds, best=True),
    Column("begun_jobs", "trials begun", count),
    Column("paused_gpu_s", "paused GPU-hours", hours),
    Column("bound_mean_jct_s", "bound on mean JCT (s)", seconds),
    Column("bound_makespan_s", "bound on makespan (s)", seconds),
    Column("bound_energy_j", "bound on energy", joules),
    Column("size_error", "error of believed sizes (%)", percent),
    Column("size_coverage", "sizes within 10-90 % as believed (%)", percent),
    Column("rate_error", "error of believed speeds (%)", percent),
    Column("wall_s", "wall time (s)", seconds),
    Column("peak_rss_mib", "memory (MiB)", count),
)
"""All other figures of a run, for suites that request them."""

METRICS = {column.key: column for column in (*COLUMNS, *SEARCHES, *MORE)}
