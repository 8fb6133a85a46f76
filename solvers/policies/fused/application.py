"""A fusion class as an application: how fast it is, and what it draws, on each number of GPUs."""

from functools import lru_cache
from typing import NamedTuple

from ronda.instances.profile import Profile, Rated


class ClassWay(NamedTuple):
    """A class on some GPUs at a clock: its work per second, and watts of all of them.

    At another clock other passes may be the fastest, so no formula has what its members have.
    """

    gpus: int
    clock: float
    rate: float
    power_w: float


class Curve(NamedTuple):
    """A class in a pool: all its ways."""

    gpu_type: str
    node_gpus: int
    nodes: int
    ways: tuple[ClassWay, ...]


@lru_cache(maxsize=512)
def application(name: str, curves: tuple[Curve, ...]) -> Profile:
    """Return an application with these curves, wherever its GPUs are."""
    throughput: dict[str, Rated] = {}
    for own in curves:
        rows = [
            (way, nodes)
            for way in own.ways
            for nodes in range(-(-way.gpus // own.node_gpus), min(way.gpus, own.nodes) + 1)
        ]
        if rows:
            throughput[own.gpu_type] = Rated(
                gpus=tuple(way.gpus for way, _ in rows),
                nodes=tuple(nodes for _, nodes in rows),
                batch=(1.0,) * len(rows),
                clock=tuple(way.clock for way, _ in rows),
                rate=tuple(way.rate for way, _ in rows),
                power_w=tuple(way.power_w for way, _ in rows),
            )
    return Profile(name=name, throughput=dict(throughput))
