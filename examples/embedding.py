"""Inside another scheduler: tell what happens, ask what to change."""

import ronda

cluster = ronda.uniform_cluster(ronda.GpuType(name="T4", memory_gib=16), nodes=2, gpus_per_node=4)
rates = {"gpus": [1, 2, 4], "rate": [1.0, 1.8, 3.0]}
embedded = ronda.Embedded("prices", cluster)
jobs = [{"id": j, "gpus": 2, "work": 9_000, "rates": rates} for j in ("a", "b", "c")]
embedded.update(now_s=0.0, added=jobs)
started = embedded.decide(deadline_s=1.0).start
print("start:", {job: place.placement for job, place in started.items()})
embedded.update(now_s=60.0, completed=["c"])
changes = embedded.decide(deadline_s=1.0)
print("then: start", list(changes.start), "resize", list(changes.resize))
