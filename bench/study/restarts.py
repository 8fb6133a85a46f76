"""How the mean JCT and the number of restarts follow what a restart costs.

Every instance is driven with each restart cost in place of its own. Where rounds price a switch as
the driver charges it, jobs restart less the more it costs, and the mean JCT rises smoothly. With
several seeds all figures are means.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import msgspec
import pandas as pd

from ronda.bench.study.harness import (
    Folder,
    markdown,
    numbers,
    packaged,
    policies,
    seeds,
    study,
    texts,
)
from ronda.instances.check.answer import check
from ronda.instances.instance import Instance
from ronda.instances.job import Costs
from ronda.instances.outcome.metrics import summarise
from ronda.solvers.horizon.driver import run

INSTANCES = "pollux-1,pollux-2,pollux-3,pollux-4,philly-energy-small"
POLICIES = "milp,milp-energy,prices,genetic,evolve,powerflow,optimus,pollux-like,ones"


def with_restarts(instance: Instance, restart_s: float) -> Instance:
    """Return the instance with this restart cost for all jobs; a first start costs as before."""
    costs = Costs(start_s=instance.costs.start_s, restart_s=restart_s)
    jobs = tuple(msgspec.structs.replace(job, costs=None) for job in instance.jobs)
    return msgspec.structs.replace(instance, costs=costs, jobs=jobs)


def measure(instance: str, policy: str, restart_s: float, seed: int) -> dict[str, Any]:
    """Drive one policy over one instance at one restart cost."""
    given = with_restarts(packaged(instance), restart_s)
    schedule = run(given, policy, seed=seed)
    segments = sum(len(job.segments) - 1 for job in schedule.jobs)
    return {
        "mean_jct_s": summarise(given, schedule)["mean_jct_s"],
        "restarts_a_job": segments / len(schedule.jobs),
        "pinned": len({job for record in schedule.rounds for job in record.pinned_jobs}),
        "violations": len(check(given, schedule)),
    }


def table(runs: pd.DataFrame) -> str:
    """Return mean JCT (s) and restarts a job, a row for each instance and policy; Markdown."""
    costs = sorted(runs.restart_s.unique())
    rows = []
    for (instance, policy), own in runs.groupby(["instance", "policy"], sort=False):
        at = own.groupby("restart_s")[["mean_jct_s", "restarts_a_job"]].mean()
        cells = [f"{at.mean_jct_s[c]:,.0f} ({at.restarts_a_job[c]:.1f})" for c in costs]
        rows.append([str(instance), str(policy), *cells, f"{own.pinned.sum()}"])
    header = ["instance", "policy", *(f"{cost:g} s" for cost in costs), "pinned jobs"]
    return markdown(header, rows, words=2)


def compare(
    folder: Folder,
    instances: Sequence[str],
    policies: Sequence[str],
    restarts: Sequence[float],
    seeds: Sequence[int],
) -> int:
    """Measure all cases; return 1 if a schedule breaks a rule."""
    cases = [
        {"instance": instance, "policy": policy, "restart_s": restart_s, "seed": seed}
        for instance, policy, restart_s, seed in product(instances, policies, restarts, seeds)
    ]
    runs = folder.measure(cases, measure)
    folder.write(table(runs))
    return int((runs.violations > 0).any())


command = study(
    "restarts",
    __doc__,
    compare,
    [
        texts("--instances", INSTANCES, "Packaged instances."),
        policies(POLICIES),
        numbers("--restarts", "0,30,60,120,300,600", "Seconds that a restart costs.", zero=True),
        seeds("0"),
    ],
)
