"""Certificates of lower bounds on mean JCT: prices that one evaluation checks, without any solver.

A certificate holds prices of the cluster's resources over time, and a multiplier of the work of
each job. Whatever they are, `ronda.formulations.bounds.trajectories` turns them into a lower bound
for every schedule; good ones make it tight. So nobody needs to trust who made them: a certificate
that claims more than its prices prove is refused. `ronda.solvers.prices.over_time` makes them.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np

from ronda.formulations.bounds.least_needs import Needs, needs
from ronda.formulations.bounds.resources import shared, supplied
from ronda.formulations.bounds.trajectories import Trajectories
from ronda.instances.base import Name, NonNegative, Positive, Record
from ronda.instances.errors import InputError
from ronda.instances.files import canonical, storage
from ronda.instances.files import json as files
from ronda.instances.instance import Instance

FORMAT = "ronda/bound/1"

SLACK = 1e-9
"""The share by which claims stay below what is proven, for the last digits of other processors."""


class BoundCertificate(Record, frozen=True, kw_only=True):
    """The prices that prove a lower bound on the mean JCT of all schedules of an instance.

    Attributes
    ----------
    instance, fingerprint
        The name of the instance, and the digits that identify its content.
    mean_jct_s
        The bound.
    times_s
        The ascending ends of the K intervals, from 0 on. After the last, all prices are 0.
    prices
        K prices for each resource: per GPU and second for each pool, then, under a power cap and
        under an energy budget, for as many watts as a GPU typically draws. The last never rise.
    nu
        For each job, some prices of a unit of its work, as it is weighed by `stage_prices`.
    until_s
        For each job, the completion time from which its cost is that time at least.
    stage_prices
        For each job, typical prices of the resources, which weigh its stages; empty for all jobs if
        these have one stage.
    """

    format: str = FORMAT
    instance: Name
    fingerprint: Name
    mean_jct_s: NonNegative
    times_s: tuple[NonNegative, ...]
    prices: tuple[tuple[NonNegative, ...], ...]
    nu: tuple[tuple[Positive, ...], ...]
    until_s: tuple[NonNegative, ...]
    stage_prices: tuple[tuple[NonNegative, ...], ...] = ()


def check_bound(instance: Instance, certificate: BoundCertificate) -> float:
    """Return the lower bound in seconds on mean JCT that a certificate proves for an instance.

    InputError if it is of another instance, contradicts itself, or claims more than it proves.
    """
    if (own := files.fingerprint(instance)) != certificate.fingerprint:
        found = f"one of {certificate.instance} ({certificate.fingerprint})"
        raise InputError("certificate", found, f"one of {instance.name} ({own})")
    proven_s = evaluated(instance, certificate)
    if certificate.mean_jct_s > proven_s:
        found = f"a bound of {certificate.mean_jct_s:.9g} s"
        raise InputError("certificate", found, f"at most {proven_s:.9g} s, which it proves")
    return proven_s


def evaluated(
    instance: Instance, certificate: BoundCertificate, need: Needs | None = None
) -> float:
    """Return the bound that the prices prove, whatever the certificate claims.

    `need` is the result of `needs` for the instance, if it is known already.
    """
    need = needs(instance) if need is None else need
    resources, jobs = shared(instance, need), len(instance.jobs)
    times = np.array(certificate.times_s)
    latest_s = float((need.submit_s + need.start_s).max())
    if not (times[:1] == 0.0).all() or (np.diff(times) <= 0).any() or times[-1:] <= latest_s:
        raise InputError("certificate, times_s", "no grid", f"0 and more, up to {latest_s:g} s")
    shape = {"prices": (len(resources), len(times) - 1), "until_s": (jobs,)}
    shape["nu"] = (jobs, len(certificate.nu[0]) if certificate.nu else 1)
    if certificate.stage_prices:
        shape["stage_prices"] = (jobs, len(resources))
    arrays = {}
    for name, expected in shape.items():
        rows = getattr(certificate, name)
        widths = {len(row) for row in rows} if expected[1:] else set()
        if len(rows) != expected[0] or not widths <= {*expected[1:]}:
            raise InputError(
                f"certificate, {name}", "another shape", " x ".join(map(str, expected))
            )
        arrays[name] = np.array(rows, dtype=float)
    prices = arrays["prices"]
    if any(r.stored and (np.diff(p) > 0).any() for r, p in zip(resources, prices, strict=True)):
        raise InputError(
            "certificate, prices", "a price of energy that rises", "one that never does"
        )
    ways = Trajectories(instance, need, resources, times)
    ways.stage_prices[:] = arrays.get("stage_prices", 0.0)
    least = ways.least(prices, arrays["nu"], arrays["until_s"])
    total = float(least.sum()) - float((prices * supplied(resources, times)).sum())
    return max(0.0, (total - float(need.submit_s.sum())) / jobs)


@lru_cache(maxsize=4)
def _packaged(file: str) -> BoundCertificate | None:
    known = file in storage.packaged_folder("bounds")
    return _decoded(storage.packaged(f"bounds/{file}"), file) if known else None


def packaged_bound(instance: Instance) -> BoundCertificate | None:
    """Return the packaged certificate of an instance; None if there is none for its content."""
    found = _packaged(f"{instance.name}.json.zst")
    return found if found and found.fingerprint == files.fingerprint(instance) else None


def read_bound(path: str | Path) -> BoundCertificate:
    """Read a certificate, plain or compressed; check it with `check_bound`."""
    return _decoded(storage.read_bytes(Path(path)), storage.label(path))


def _decoded(data: bytes, place: str) -> BoundCertificate:
    return files.parse(storage.unpack(data, place), place, {FORMAT: BoundCertificate})


def write_bound(certificate: BoundCertificate, path: str | Path) -> None:
    """Write a certificate in the way that `ronda.instances.files.json.write` writes instances."""
    pack = storage.packer(Path(path))
    storage.write_bytes(Path(path), pack(canonical.encode(certificate) + b"\n"))
