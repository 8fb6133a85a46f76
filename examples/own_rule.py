"""A rule of one's own: one team has at most two GPUs, and what that costs."""

import numpy as np

import ronda

cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=80), nodes=1, gpus_per_node=8)
rates = {"gpus": [1, 2, 4], "rate": [1.0, 1.8, 3.0]}
teams = {"a": "vision", "b": "vision", "c": "speech"}
jobs = [{"id": j, "user": t, "gpus": 2, "work": 900, "rates": rates} for j, t in teams.items()]
round_ = ronda.make_round(cluster, jobs)


def quota(round, table):
    """Team vision has at most 2 GPUs."""
    vision = np.array([state.job.user == "vision" for state in table.jobs])
    return ronda.Limit(table.gpus * vision[table.job], "<=", 2)


for rules in ([], [quota]):
    plan = ronda.solve(round_, "prices", extra=rules)
    given = {job: allocation.option.gpus for job, allocation in plan.allocations.items()}
    print("with" if rules else "without", "the rule:", given, "worth", plan.objective)
    assert ronda.broken_rules(rules, round_, plan) == []
