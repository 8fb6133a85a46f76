"""The best choice of options of a tiny round, by trying all: no code is shared with the models."""

from itertools import product

import numpy as np


def rows_by_job(table):
    """Return what each job may choose: its rows, or -1 unless it must run."""
    return [
        [*range(table.start[j], table.start[j + 1]), *([] if table.must_run[j] else [-1])]
        for j in range(len(table.jobs))
    ]


def least_power(round_, gpus):
    """Return the least idle power in watts of nodes that hold a number of GPUs in each pool.

    By trying every set of nodes that stay awake.
    """
    t = round_.cluster.topology
    n = len(t.node_gpus)
    sleeps = round_.watts is not None
    least = np.inf
    for awake in product((True, False), repeat=n) if sleeps else [(True,) * n]:
        room = [0] * len(gpus)
        watts = 0.0
        for node in range(n):
            idle = t.host_idle_w[node] + t.node_gpus[node] * t.gpu_idle_w[node]
            watts += idle if awake[node] else t.sleep_w[node]
            room[t.node_pool[node]] += t.node_gpus[node] * awake[node]
        if all(a <= b for a, b in zip(gpus, room, strict=True)):
            least = min(least, watts)
    return least


def best_choice(round_, table, worth):
    """Return the best value over all combinations of rows that break no limit.

    Combinations that cannot be better than one that was found, whatever the limits, are not
    looked at.
    """
    idle = [p.gpu_type.idle_w for p in table.pools]
    room = [p.gpus for p in table.pools]
    powers = {}

    def use_of(k):
        """Return the value of a row, and what it uses: pool, GPUs, watts and joules."""
        if k < 0:
            return 0.0, 0, 0, 0.0, 0.0
        p, n = int(table.pool[k]), int(table.gpus[k])
        watts = float(table.power_w[k] - n * idle[p])
        work = table.jobs[table.job[k]].remaining_at(round_.now_s)
        runs_s = round_.window_s if work is None else min(round_.window_s, work / table.rate[k])
        return float(worth[k]), p, n, watts, watts * runs_s

    ways = [sorted(map(use_of, rows), reverse=True) for rows in rows_by_job(table)]
    most = np.cumsum([0.0, *(own[0][0] for own in reversed(ways))])[::-1]
    best = -np.inf

    def within(gpus, watts, joules):
        """Tell whether a combination keeps all limits."""
        if any(g > r for g, r in zip(gpus, room, strict=True)):
            return False
        if round_.watts is None:
            return True
        if gpus not in powers:
            powers[gpus] = least_power(round_, gpus)
        cap_w, energy_j = round_.power_cap_w, round_.energy_j
        if cap_w is not None and powers[gpus] + watts > cap_w * (1 + 1e-12):
            return False
        joules += powers[gpus] * round_.window_s
        return energy_j is None or joules <= energy_j * (1 + 1e-12)

    def go_on(j, value, gpus, watts, joules):
        """Choose for the jobs from j on."""
        nonlocal best
        if value + most[j] <= best:
            return
        if j == len(ways):
            if within(gpus, watts, joules):
                best = value
            return
        for gain, p, n, more_w, more_j in ways[j]:
            used = (*gpus[:p], gpus[p] + n, *gpus[p + 1 :])
            go_on(j + 1, value + gain, used, watts + more_w, joules + more_j)

    go_on(0, 0.0, (0,) * len(room), 0.0, 0.0)
    return best
