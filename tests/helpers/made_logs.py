"""Logs of made clusters: schedules of ronda's own driver, told as a scheduler would have logged."""

import random
from datetime import UTC, datetime

from msgspec.structs import replace

from ronda.horizon.driver import run
from ronda.instances.instance import Cadence
from ronda.instances.job import Estimate
from ronda.instances.traces.recorded import Recorded, RecordedRun
from ronda.solvers.registry import policy as make_policy
from small import make_instance

BEGAN_S = 1_774_224_000.0
"""The moment of a made log at which its instance begins: 2026-03-23."""


def busy(seed, jobs=60, *, nodes=4, each=8, gpus=(1, 2, 4, 8), load=1.3, slack=(1.2, 2.5)):
    """Return rigid jobs of half a minute to an hour, with limits of their own, for a while."""
    rng = random.Random(seed)
    rows, now_s = [], 0.0
    for k in range(jobs):
        wide, long_s = rng.choice(gpus), round(rng.choice((120.0, 600.0, 1800.0, 3600.0)))
        rows.append((f"{1000 + k}", now_s, wide, float(long_s)))
        now_s += round(rng.expovariate(load * nodes * each / (wide * long_s)))
    made = make_instance(rows, nodes=nodes, gpus_per_node=each)
    limited = []
    for job in made.jobs:
        limit_s = 60.0 * -(-job.truth.work * rng.choice(slack) // 60)
        more = {"limit_s": limit_s, "estimate": Estimate(work=limit_s)}
        user = f"user{rng.randrange(3)}"
        limited.append(replace(job, one_node=True, preemptible=False, user=user, **more))
    return replace(made, jobs=tuple(limited))


def logged(instance, policy="fifo", *, until_s=None, knowledge="declared", **cadence):
    """Return an instance of the jobs that ended by `until_s` in a run, and the record of these."""
    when = Cadence(**cadence) if cadence else instance.cadence
    made = run(replace(instance, cadence=when), make_policy(policy), knowledge=knowledge)
    runs = {}
    for outcome in made.jobs:
        (segment,) = outcome.segments  # no job is stopped
        if until_s is None or segment.end_s <= until_s:
            ended = RecordedRun(
                segment.start_s, segment.end_s, dict(segment.placement), "COMPLETED"
            )
            runs[outcome.id] = (ended,)
    last_s = max(own.end_s for (own,) in runs.values())
    kept = tuple(job for job in instance.jobs if job.id in runs)
    nodes = {k: f"n{k + 1}" for k in range(len(instance.cluster.topology.node_gpus))}
    return replace(instance, jobs=kept), Recorded(
        runs, last_s if until_s is None else until_s, nodes
    )


def sacct(instance, recorded):
    """Return a record as ``sacct --parsable2`` writes it, with a header."""

    def when(moment_s):
        return f"{datetime.fromtimestamp(BEGAN_S + moment_s, UTC):%Y-%m-%dT%H:%M:%S}"

    lines = ["JobID|User|Partition|Submit|Eligible|Start|End|State|Timelimit|AllocTRES|NodeList"]
    for job in instance.jobs:
        for run_ in recorded.runs[job.id]:
            told = [job.id, job.user, "main", when(job.submit_s), when(job.submit_s)]
            told += [when(run_.start_s), when(run_.end_s), run_.state]
            told += [f"{job.limit_s // 3600:02.0f}:{job.limit_s % 3600 // 60:02.0f}:00"]
            told += [f"gres/gpu={job.gpus},node={len(run_.held)}"]
            told += [",".join(recorded.nodes[node] for node in run_.held)]
            lines.append("|".join(told))
    return "\n".join(lines) + "\n"
