"""A scheduler's ten lines: what `mypy --strict` must accept, and infer."""

from typing import assert_type

import ronda

cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), nodes=3, gpus_per_node=8)
round_ = ronda.make_round(cluster, [{"id": "a", "gpus": 8}])
assert_type(ronda.policy("fifo").plan(round_, deadline=0.5), ronda.Plan)
host = ronda.Embedded("prices", cluster, costs=ronda.Costs(restart_s=30.0))
rates = {"gpus": [8, 16], "rate": [1.0, 1.8]}
host.update(now_s=0.0, added=[{"id": "a", "gpus": 8, "rates": rates}])
changes = host.decide(deadline_s=1.0)
assert_type(changes, ronda.Changes)
for job, place in changes.start.items():
    assert_type(place.placement, dict[str, int])
    print("start", job, place.placement, place.option.rate)
host.update(now_s=60.0, progress={"a": 30.0}, measured={"a": rates | {"rate": [0.9, 1.7]}})
assert_type(host.save(), bytes)
