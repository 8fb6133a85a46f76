"""A fusion class as an application: how fast it is, and what it draws, on each number of GPUs."""

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ronda.formulations.models.throughput import fastest_step
from ronda.instances.profile import PowerCurve, Profile, Rated, Rigid, Tabular, Throughput
from ronda.solvers.policies.fused.groups import Home


class Curve(NamedTuple):
    """A class in a pool: pairs (GPUs, work per second at full clock), and what else speed needs.

    The clock slows the part `phi` of computing; `sync_share` of a step synchronises, which it does
    not slow.
    """

    gpu_type: str
    rates: tuple[tuple[int, float], ...]
    node_gpus: int
    nodes: int
    phi: float
    sync_share: float
    power: PowerCurve | None


def curve(home: Home, rates: Iterable[tuple[int, float]]) -> Curve:
    """Return the curve of a class at home, from its rates."""
    profile, pool = home.of.profile, home.of.shape.pool
    name = pool.gpu_type.name
    model = profile.throughput[name]
    assert not isinstance(model, Rigid | Rated)
    share = float(fastest_step(profile, pool.gpu_type, 1, 1, home.batch).sync_share)
    nodes = pool.gpus_per_node, pool.nodes
    return Curve(name, tuple(rates), *nodes, model.phi, share, profile.power.get(name))


@lru_cache(maxsize=512)
def application(name: str, curves: tuple[Curve, ...]) -> Profile:
    """Return an application with these curves, wherever its GPUs are: a step is a unit of work."""
    throughput: dict[str, Throughput] = {}
    for own in curves:
        rows = [
            (gpus, nodes, 1.0 / gpus, 1.0 / rate)
            for gpus, rate in own.rates
            for nodes in range(-(-gpus // own.node_gpus), min(gpus, own.nodes) + 1)
        ]
        gpus, nodes, local_batch, step_s = zip(*rows, strict=True)
        throughput[own.gpu_type] = Tabular(
            gpus=gpus,
            nodes=nodes,
            local_batch=local_batch,
            step_s=step_s,
            sync_s=tuple(own.sync_share * seconds for seconds in step_s),
            phi=own.phi,
        )
    power = {own.gpu_type: own.power for own in curves if own.power is not None}
    return Profile(name=name, throughput=throughput, power=power)
