"""Readers of a host's rates as `ronda.instances.profile.Rated` tables.

The rates of a job are columns (`COLUMNS`): a data frame, or a dict of arrays in which a single
value fills all rows. `rates_from` makes them from a function. A rate of 0 means that the job cannot
run that way. None in place of rates means that they are not known yet.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from msgspec.structs import replace

from ronda.formulations.options.application import PoolShape, pool_shapes
from ronda.hosts.embedding.plain import Columns, by_name, columns_of, is_frame, numbers, plain
from ronda.instances.arguments import checked
from ronda.instances.base import Count, Floats, Rows
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.profile import Rated
from ronda.instances.rules.problem import one_of, show

COLUMNS = ("gpus", "nodes", "rate", "watts", "clock", "batch", "gpu_type")
"""The columns of a table of rates; all but `gpus` and `rate` are optional."""

Tables = dict[str, Rated]
"""Tables of rates, keyed by the name of the GPU type."""


@checked
def rates_from(
    speed: Callable[[int, int, str], float | tuple[float, float] | None],
    cluster: Cluster,
    counts: Sequence[Count] | None = None,
) -> dict[str, list[Any]]:
    """Return the rates of a job as columns, computed by a function.

    Parameters
    ----------
    speed
        ``speed(gpus, nodes, gpu_type)`` returns a rate, a pair (rate, watts), or None if the job
        cannot run there. It is called for each number of GPUs on the fewest nodes and on one more.
    cluster
        Cluster whose GPU types and nodes are used.
    counts
        Numbers of GPUs; by default powers of two and halves of a node, then whole nodes.

    Examples
    --------
    >>> import ronda
    >>> cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), 3, 8)
    >>> ronda.rates_from(lambda gpus, nodes, gpu_type: 10.0 * gpus, cluster, (8, 24))["rate"]
    [80.0, 80.0, 240.0]
    """
    found: dict[str, list[Any]] = {n: [] for n in ("gpus", "nodes", "gpu_type", "rate", "watts")}
    for kind, shape in _largest(cluster).items():
        for gpus in shape.ladder if counts is None else sorted({*counts}):
            if gpus > shape.pool.gpus:
                continue
            fewest = shape.nodes(gpus)
            for nodes in range(fewest, min(fewest + 1, gpus, shape.pool.nodes) + 1):
                answer = speed(gpus, nodes, kind)
                alone = not isinstance(answer, tuple)
                pair: Any = (answer or 0.0, np.nan) if alone else answer
                if len(pair) != 2:
                    place = f"speed({gpus}, {nodes}, {show(kind)})"
                    raise InputError(place, show(plain(pair)), "a rate, (rate, watts) or None")
                for name, value in zip(found, (gpus, nodes, kind, *pair), strict=True):
                    found[name].append(value)
    return found


class Host:
    """The data of a cluster for reading rates: GPU types, idle watts and sizes of nodes."""

    def __init__(self, cluster: Cluster) -> None:
        shapes = _largest(cluster)
        self.names = [t.name for t in cluster.gpu_types]
        self.idle_w = np.array([t.idle_w for t in cluster.gpu_types])
        sizes = [shapes[n].pool.gpus_per_node if n in shapes else 1 for n in self.names]
        self.size = np.array(sizes, dtype=float)


def _largest(cluster: Cluster) -> dict[str, PoolShape]:
    found: dict[str, PoolShape] = {}
    for shape in pool_shapes(cluster):
        before = found.setdefault(shape.pool.gpu_type.name, shape)
        if shape.pool.gpus > before.pool.gpus:
            found[shape.pool.gpu_type.name] = shape
    return found


def by_job(rates: object, place: str) -> dict[Any, Any]:
    """Return the columns of each job, keyed by id; columns may be split by one named ``job``."""
    if not is_frame(rates) and not (isinstance(rates, Mapping) and "job" in rates):
        return by_name(rates, place)
    columns = columns_of(rates, place, ("job", "gpus", "rate"), COLUMNS)
    job = columns.pop("job").astype(str)
    order = np.argsort(job, kind="stable")
    names, starts = np.unique(job[order], return_index=True)
    rows = np.split(order, starts[1:])
    return {
        name: {column: values[own] for column, values in columns.items()}
        for name, own in zip(names.tolist(), rows, strict=True)
    }


def tables(host: Host, rates: Mapping[Any, object]) -> dict[str, Tables]:
    """Return the tables of jobs, keyed by id, from their columns; jobs with None are left out.

    InputError names the job and the column.
    """
    given = {str(job): own for job, own in rates.items() if own is not None}
    return {job: _tables(host, own, f"rates of job {job!r}") for job, own in given.items()}


def _tables(host: Host, own: object, place: str) -> Tables:
    """Return the checked rows of a job, keyed by GPU type, without rows of rate 0."""
    columns = columns_of(own, place, ("gpus", "rate"), COLUMNS)
    gpus, rate = numbers(columns, "gpus", place, whole=True), numbers(columns, "rate", place)
    kind, ones = _kinds(host, columns, len(gpus), place), np.ones(len(gpus))

    def told_or(name: str, default: Floats, **how: bool) -> Floats:
        return numbers(columns, name, place, **how) if name in columns else default

    nodes = told_or("nodes", np.ceil(gpus / host.size[kind]), whole=True)
    clock, batch = told_or("clock", ones), told_or("batch", ones)
    watts = told_or("watts", np.nan * ones, missing=True)
    idle_w = gpus * host.idle_w[kind]
    for name, column, bad, expected in (
        ("gpus", gpus, (gpus < 1) | (gpus > 2**31 - 1), f"1 to {2**31 - 1}"),
        ("nodes", nodes, (nodes < 1) | (nodes > gpus), "1 to one a GPU"),
        ("clock", clock, ~((clock > 0) & (clock <= 1)), "above 0, at most 1"),
        ("batch", batch, ~(batch > 0), "more than 0 samples"),
        ("rate", rate, rate < 0, "0 or more; None for a job that is not known yet"),
        ("watts", watts, watts < idle_w, "at least what the GPUs draw idle"),
    ):
        if bad.any():
            row = int(np.argmax(bad))
            raise InputError(f"{place}, column {name}, row {row}", f"{column[row]:g}", expected)
    told = ~np.isnan(watts)
    values = (kind, gpus, clock, batch, nodes, rate, np.where(told, watts, idle_w), told)
    rows = sorted(zip(*(column[rate > 0].tolist() for column in values), strict=True))
    if not rows:
        raise InputError(place, "no rate above 0", "a way to run it")
    for one, other in pairwise(rows):
        if one[:5] == other[:5]:
            twice = f"{one[1]:g} GPUs on {one[4]:g} nodes twice"
            raise InputError(place, twice, "each way once")
    found: Tables = {}
    for index, ways in groupby(rows, itemgetter(0)):
        _, n, clocks, batches, m, rates, power_w, some = zip(*ways, strict=True)
        whole = {"gpus": tuple(map(int, n)), "nodes": tuple(map(int, m))}
        table = Rated(**whole, batch=batches, clock=clocks, rate=rates)
        found[host.names[index]] = replace(table, power_w=power_w) if any(some) else table
    return found


def _kinds(host: Host, columns: Columns, rows: int, place: str) -> Rows:
    """Return the index of each row's GPU type, which is optional if there is only one type."""
    if "gpu_type" not in columns:
        if len(host.names) > 1:
            raise InputError(place, "no GPU type", f"a column gpu_type: {one_of(host.names)}")
        return np.zeros(rows, dtype=np.int64)
    number = {name: k for k, name in enumerate(host.names)}
    found = [number.get(name, -1) for name in columns["gpu_type"].tolist()]
    if -1 in found:
        row = found.index(-1)
        name = columns["gpu_type"][row]
        raise InputError(f"{place}, column gpu_type, row {row}", show(name), one_of(host.names))
    return np.array(found, dtype=np.int64)
