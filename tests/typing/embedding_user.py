"""A scheduler's ten lines: what `mypy --strict` must accept, and infer."""

from typing import assert_type

import ronda

cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), nodes=3, gpus_per_node=8)
host = ronda.Embedded("prices", cluster, costs=ronda.Costs(restart_s=30.0))
host.update(now_s=0.0, added=[{"id": "a", "gpus": 8, "rates": {8: 1.0, 16: 1.8}}])
changes = host.decide(deadline_s=1.0)
assert_type(changes, ronda.Changes)
for job, place in changes.start.items():
    assert_type(place.nodes, dict[str, int])
    print("start", job, place.nodes, place.rate)
host.update(now_s=60.0, progress={"a": 30.0}, measured={"a": {8: 0.9, 16: 1.7}})
assert_type(host.save(), bytes)
