"""What four more GPUs would change, and for whom."""

import ronda
from ronda.questions.whatif import Gpus

cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=80), nodes=1, gpus_per_node=4)
rates = {"gpus": [1, 2, 4], "rate": [1.0, 1.8, 3.0]}
jobs = [{"id": name, "gpus": 2, "work": w, "rates": rates} for name, w in (("a", 900), ("b", 400))]
(more,) = ronda.whatif(ronda.make_round(cluster, jobs), [Gpus("a100", 4)]).outcomes
print("worth", more.found, "more")
for shift in more.shifts:
    print(shift.job, "gains", shift.gain)
