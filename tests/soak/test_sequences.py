"""Sequences of what a host tells `ronda.Embedded`, right and wrong: it decides on and on."""

import numpy as np
import pytest

import ronda
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.errors import InputError

pytestmark = pytest.mark.soak

CLUSTER = uniform_cluster(GpuType(name="G", memory_gib=40, idle_w=50), 3, 4)
SIZES = (1, 2, 4, 8)
POLICIES = ("fifo", "srtf", "prices", "pollux-like", "tiresias", "milp", "las", "optimus", "ones")
WRONG = (
    {"now_s": "x"},
    {"completed": ["nobody"]},
    {"removed": [["a"]]},
    {"added": [{"id": "a", "gpus": 0}]},
    {"added": [{"id": "b", "work": float("nan"), "rates": {"gpus": [1], "rate": [1.0]}}]},
    {"power_cap_w": -1.0},
    {"node_names": ["one"]},
    {"running": {"nobody": {"nodes-0": 1}}},
)


@pytest.mark.seeds(40)
def test_a_sequence_of_news_is_decided(seed):
    """What is wrong is refused in one line and changes nothing; what runs fits on its nodes."""
    rng = np.random.default_rng([seed, 13])
    host, now_s, count = ronda.Embedded(str(rng.choice(POLICIES)), CLUSTER), 0.0, 0
    for _ in range(12):
        now_s += float(rng.choice([0.0, 1.0, 60.0, 1e5]))
        added = []
        for _ in range(int(rng.integers(3))):
            speeds = {"gpus": [*SIZES], "rate": [n**0.7 * rng.uniform(0.5, 1) for n in SIZES]}
            work, firm = float(10.0 ** rng.uniform(-1, 6)), bool(rng.random() < 0.3)
            added.append(
                {"id": f"j{count}", "work": work, "rates": speeds, "preemptible": not firm}
            )
            count += 1
        ended = [job for job in host.jobs if rng.random() < 0.15]
        gone = {"completed": ended} if rng.random() < 0.5 else {"removed": ended}
        host.update(now_s=now_s, added=added, **gone)
        if rng.random() < 0.4:
            before = host.save()
            with pytest.raises(InputError) as refused:
                host.update(**WRONG[rng.integers(len(WRONG))])
            assert "\n" not in str(refused.value)
            assert host.save() == before
        if rng.random() < 0.2:
            host = ronda.Embedded.restore(host.save())
        firm = {s.job.id: s.allocation for s in host.round().running if not s.job.preemptible}
        host.decide(deadline_s=5.0)
        used = np.zeros(3)
        for held in host.running.values():
            for node, gpus in held.placement:
                used[node] += gpus
        assert (used <= 4).all()
        assert firm.items() <= host.running.items()
