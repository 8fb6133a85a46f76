"""The least total completion time of tiny instances, by trying every schedule on whole seconds.

Pauses follow the rules of the checker: a first pause, a pause after each change, which is shorter
before any progress, and after a stop the rest of a pause that was cut short. Nodes stay awake.
"""

from itertools import product
from math import ceil, inf

from ronda.formulations.bounds.modes import modes


def least_mean_jct_s(instance, until_s=60):
    """Return the least mean JCT of all schedules whose decisions are at whole seconds."""
    jobs, pools = instance.jobs, instance.cluster.topology.pools
    ways = [modes(instance, job) for job in jobs]
    choices = [range(-1, len(some.gpus)) for some in ways]
    cap = instance.budget.power_cap_w
    free_w = inf if cap is None else cap.values[0] - sum(p.gpus * p.gpu_type.idle_w for p in pools)

    def fits(chosen):
        own = [(some, n) for some, n in zip(ways, chosen, strict=True) if n >= 0]
        used = [sum(w.gpus[n] for w, n in own if w.pool[n] == p) for p in range(len(pools))]
        watts = sum(w.busy_w[n] for w, n in own)
        return all(u <= p.gpus for u, p in zip(used, pools, strict=True)) and watts <= free_w

    plans = [chosen for chosen in product(*choices) if fits(chosen)]
    fresh = (0.0, -1, 0.0, False)  # work done, mode, owed pause, progressed
    fastest = [some.rate[0][some.busy_w <= free_w].max() for some in ways]
    states, best = {tuple(fresh for _ in jobs): 0.0}, 1e-6  # beyond all jobs in a row:
    for job in jobs:
        best += max(j.submit_s for j in jobs)
        ahead = zip(jobs[: jobs.index(job) + 1], fastest, strict=False)
        starts = [(j.costs or instance.costs).start_s for j in jobs]
        best += sum(ceil(j.truth.work / r) for j, r in ahead) + sum(starts)

    def left_s(state):
        rest = zip(jobs, fastest, state, strict=True)
        return sum((job.truth.work - s[0]) / rate + s[2] for job, rate, s in rest if s)

    for now in range(until_s):
        after = {}
        for state, total in states.items():
            for chosen in plans:
                moved, cost = [], total
                for job, some, was, n in zip(jobs, ways, state, chosen, strict=True):
                    became = was and _second(instance, job, some, was, n, now)
                    if was and became is False:
                        break
                    if was and became[0] >= job.truth.work - 1e-9:
                        spare = (became[0] - job.truth.work) / some.rate[0, n]
                        cost, became = cost + now + 1 - spare, None
                    moved.append(became)
                else:
                    if cost < after.get(tuple(moved), best):
                        after[tuple(moved)] = cost
        best = min(best, after.pop(tuple(None for _ in jobs), best))
        spent = (now + 1) * len(jobs)
        states = {
            s: t
            for s, t in after.items()
            if t + left_s(s) + spent - (now + 1) * s.count(None) < best
        }
        if not states:
            return (best - sum(job.submit_s for job in jobs)) / len(jobs)
    raise AssertionError("more time is needed")


def _second(instance, job, some, was, n, now):
    """Return a job's state after a second in a mode; False if it may not be in it."""
    done, mode, owed_s, progressed = was
    if n < 0:
        return done, -1, owed_s, progressed
    if now < job.submit_s:
        return False
    if n != mode:
        costs = job.costs or instance.costs
        change_s = costs.restart(int(some.gpus[n]))
        if mode >= 0 and costs.scale_s is not None:
            change_s = costs.scale_s
        first = done == 0 and owed_s == 0 and mode < 0
        if not progressed:
            change_s = costs.start_s if first else min(costs.start_s, change_s)
        owed_s += change_s
    work_s = max(0.0, 1.0 - owed_s)
    gained = some.rate[0, n] * work_s
    return round(done + gained, 9), n, max(0.0, owed_s - 1.0), progressed or gained > 0
