"""Logs made by hand or by a small scheduler, whose truth is known to the tests."""

from itertools import count
from math import inf

from ronda.instances.traces.logs.instance import log_instance
from ronda.instances.traces.logs.runs import LogRun, RowAccount


def ran(job, submit, start, end, node="n1", gpus=1, **more):
    """Return a run of a job on one node, with a limit of twice its length."""
    told = {"eligible_s": submit, "limit_s": 2.0 * max(1.0, end - start), "state": "COMPLETED"}
    told |= {"partition": "p", "account": "a", "user": "u", "kinds": ("gpu",), "count": 1} | more
    return LogRun(
        place=f"row {job}",
        job=str(job),
        submit_s=float(submit),
        start_s=float(start),
        end_s=float(end),
        ran_s=float(end - start),
        gpus=float(gpus),
        nodes=node,
        **told,
    )


def read_runs(runs, until=None, cluster=None):
    """Return the instance and the record that runs make, as a log that begins at 0."""
    account = RowAccount(until_s=max(run.end_s for run in runs) if until is None else until)
    found = log_instance(
        runs,
        account,
        place="made",
        name="made",
        source="",
        start_s=0.0,
        instant=True,
        cluster=cluster,
    )
    return found.instance, found.recorded


def scheduled(jobs, sizes, rng=None, cycle=1):
    """Return the runs of a scheduler that decides every `cycle` seconds.

    `jobs` are (submit, length, gpus) in any order. Without `rng` the queue is first come, first
    served, and the first that does not fit holds up all others; with it, jobs that fit start in a
    random order on random nodes.
    """
    waiting, running, runs = sorted(enumerate(jobs), key=lambda each: each[1][0]), [], []
    free = dict(sizes)
    for now in count(0, cycle):
        for end, node, gpus in [each for each in running if each[0] <= now]:
            free[node] += gpus
            running.remove((end, node, gpus))
        there = [each for each in waiting if each[1][0] <= now]
        if rng is not None:
            rng.shuffle(there)
        for k, (submit, length, gpus) in there:
            able = [node for node in sizes if free[node] >= gpus]
            if not able:
                if rng is None:
                    break
                continue
            node = able[0] if rng is None else rng.choice(able)
            free[node] -= gpus
            running.append((now + length, node, gpus))
            waiting.remove((k, (submit, length, gpus)))
            runs.append(ran(k, submit, now, now + length, node, gpus))
        if not waiting:
            return runs
    raise AssertionError(inf)
