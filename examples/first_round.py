"""A first round: three jobs, one node, and what one more GPU would be worth."""

import ronda

cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=80), nodes=1, gpus_per_node=4)
rates = {"gpus": [1, 2, 4], "rate": [1.0, 1.8, 3.0]}  # work a second on so many GPUs
sizes = {"a": 900, "b": 400, "c": 90}
jobs = [{"id": name, "gpus": 2, "work": work, "rates": rates} for name, work in sizes.items()]
plan = ronda.solve(ronda.make_round(cluster, jobs), "prices")
for job, allocation in plan.allocations.items():
    print(job, "runs on", allocation.option.gpus, "GPUs")
print("worth", plan.objective, "of at most", plan.bound, "; one more GPU:", plan.prices)
