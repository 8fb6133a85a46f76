"""Rates as a host has them, made into `ronda.instances.profile.Rated` tables, in arrays.

A job's rates are any of

* columns (`COLUMNS`): a data frame, a dict of arrays, or a list of dicts;
* ways by key: ``{gpus: rate}`` or ``{(gpus, nodes[, clock[, batch]]): rate}``, where a rate may be
  a pair (rate, watts);
* either of them by name of GPU type;
* a callable ``rates(gpus, nodes, gpu_type)`` that gives a rate, (rate, watts) or None; it is asked
  once for each way of the ladder;
* None: not known yet.

A rate of 0 says that the job cannot run so.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ronda.formulations.options.application import PoolShape, pool_shapes
from ronda.instances.arrays import Floats, Rows
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.profile import Rated
from ronda.instances.rules.problem import one_of, show
from ronda.solvers.embedding.plain import Columns, array, columns_of, is_frame, numbers, plain

COLUMNS = ("gpus", "nodes", "rate", "watts", "clock", "batch", "gpu_type")
"""Of a table of rates; all but `gpus` and `rate` may be left out."""

Rates = Any
"""See the module."""

Answer = float | tuple[float, float] | None
_ANSWER = "a rate, (rate, watts) or None"
Tables = dict[str, Rated]
"""By name of GPU type."""

Ladder = str | Sequence[int]
"""GPU counts that a callable is asked for: ``"pool"`` for powers of two and halves of a node, then
whole nodes, and what the job's own fields name; ``"all"`` for every count; or the counts."""


MOST_GPUS = 2**31 - 1
"""Of any job."""


class RateRows(NamedTuple):
    """Rows of rates: whose (an index), on which GPU type (an index), and how (R,) each."""

    job: Rows
    kind: Rows
    gpus: Floats
    nodes: Floats
    clock: Floats
    batch: Floats
    rate: Floats
    watts: Floats  # NaN: not told

    def at(self, rows: Rows) -> "RateRows":
        """Return some of the rows."""
        return RateRows(*[column[rows] for column in self])  # type: ignore[arg-type]


class Host:
    """What a cluster offers, for reading rates: GPU types, nodes and ladders."""

    def __init__(self, cluster: Cluster, ladder: Ladder = "pool") -> None:
        self.types = {t.name: t for t in cluster.gpu_types}
        self.names = list(self.types)
        self.shapes: dict[str, PoolShape] = {}
        for shape in pool_shapes(cluster):
            before = self.shapes.setdefault(shape.pool.gpu_type.name, shape)
            if shape.pool.gpus > before.pool.gpus:
                self.shapes[shape.pool.gpu_type.name] = shape
        if not isinstance(ladder, str):
            counts = [int(n) for n in ladder]
            if not counts or min(counts) < 1:
                raise InputError("ladder", show(counts), "GPU counts of at least 1")
            self._counts: list[int] | None = sorted(set(counts))
        elif ladder in ("pool", "all"):
            self._counts = None
        else:
            raise InputError("ladder", show(ladder), '"pool", "all" or GPU counts')
        self.every = ladder == "all"

    def ladder(self, kind: str, named: Iterable[int]) -> list[int]:
        """Return the GPU counts to ask for on a GPU type; a job's fields may have `named` some."""
        shape = self.shapes[kind]
        most = shape.pool.gpus
        if self._counts is not None:
            return [n for n in self._counts if n <= most]
        if self.every:
            return list(range(1, most + 1))
        return sorted({*shape.ladder, *(min(n, most) for n in named)})

    def fewest(self, kind: Rows, gpus: Floats) -> Floats:
        """Return the fewest nodes that hold GPUs of a type (an index)."""
        largest = [self.shapes[n].pool.gpus_per_node if n in self.shapes else 1 for n in self.names]
        return np.asarray(np.ceil(gpus / np.array(largest, dtype=float)[kind]))


def tables(
    host: Host, given: Mapping[str, Rates], named: Mapping[str, Sequence[int]]
) -> dict[str, Tables]:
    """Return the tables of jobs, by id; InputError names the job and the column.

    `named` has the GPU counts, by job, that its fields name.
    """
    parts = [
        part
        for index, (job, rates) in enumerate(given.items())
        for part in _ways(host, index, rates, f"rates of job {job!r}", named.get(job, ()))
    ]
    found = _tables(host, list(given), _joined(parts)) if parts else {}
    for job in given:
        if job not in found:
            raise InputError(f"rates of job {job!r}", "no rate above 0", "a way to run it")
    return found


def tables_of(host: Host, given: object) -> dict[str, Tables]:
    """Return the tables of many jobs at once, by id, from columns with one named ``job``."""
    required = ("job", "gpus", "rate")
    columns = columns_of(given, "rates", required=required, optional=COLUMNS)
    names, job = np.unique(columns.pop("job").astype(str), return_inverse=True)
    return _tables(host, names.tolist(), _of_columns(host, job, columns, "rates"))


def _ways(
    host: Host,
    index: int,
    rates: Rates,
    place: str,
    named: Sequence[int],
    kind: int | None = None,
) -> Iterator[RateRows]:
    """Yield the rows of one job, all on a GPU type (its index), or on those that they name."""
    if callable(rates):
        rates = _sampled(host, rates, named, place)
    if not is_frame(rates) and isinstance(rates, Mapping):
        if not rates:
            raise InputError(place, "no rates", "some, or None: not known yet")
        if all(isinstance(key, str) and key not in COLUMNS for key in rates):
            for name, each in rates.items():
                if name not in host.types:
                    raise InputError(place, f"GPU type {show(name)}", one_of(host.names))
                on = f"{place} on {name}"
                yield from _ways(host, index, each, on, named, host.names.index(name))
            return
        if not any(isinstance(key, str) for key in rates):
            rates = _by_key(rates, place)
    required = ("gpus", "rate")
    columns = columns_of(rates, place, required=required, optional=COLUMNS)
    job = np.full(len(columns["gpus"]), index, dtype=np.int64)
    yield _of_columns(host, job, columns, place, kind)


def _sampled(
    host: Host, rates: Callable[[int, int, str], Answer], named: Sequence[int], place: str
) -> dict[str, Sequence[Any]]:
    """Ask for every way of the ladder on the fewest nodes, and on one more."""
    rows: list[tuple[int, int, float, float, str]] = []
    for kind, shape in host.shapes.items():
        for gpus in host.ladder(kind, named):
            fewest = shape.nodes(gpus)
            for nodes in range(fewest, min(fewest + 1, gpus, shape.pool.nodes) + 1):
                try:
                    answer = rates(gpus, nodes, kind)
                except Exception as error:
                    said = f"{type(error).__name__}: {error}"
                    asked = f"rates({gpus}, {nodes}, {show(kind)})"
                    raise InputError(f"{place}, {asked}", show(said), _ANSWER) from error
                rows.append((gpus, nodes, *_pair(answer or 0.0, place), kind))
    if not rows:
        raise InputError(place, "no count of the ladder that the cluster has", "one")
    names = ("gpus", "nodes", "rate", "watts", "gpu_type")
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def _pair(answer: object, place: str) -> tuple[Any, Any]:
    """Return a rate and watts, NaN if they are not told."""
    if not isinstance(answer, tuple | list):
        return answer, np.nan
    if len(answer) != 2:
        raise InputError(place, show(plain(answer)), _ANSWER)
    return answer[0], answer[1]


def _by_key(rates: Mapping[Any, Any], place: str) -> Columns:
    """Return the columns of ways by key."""
    keys = [key if isinstance(key, tuple) else (key,) for key in rates]
    widths = {len(key) for key in keys}
    if len(widths) > 1 or not 1 <= min(widths) <= 4:
        expected = "keys gpus, (gpus, nodes), (gpus, nodes, clock) or (gpus, nodes, clock, batch)"
        raise InputError(place, f"key {show(str(keys[-1]))}", expected)
    names = ("gpus", "nodes", "clock", "batch")[: widths.pop()]
    pairs = [_pair(value, place) for value in rates.values()]
    columns = {n: array(c) for n, c in zip(names, zip(*keys, strict=True), strict=True)}
    columns["rate"], columns["watts"] = map(array, zip(*pairs, strict=True))
    return columns


def _of_columns(
    host: Host, job: Rows, columns: Columns, place: str, on: int | None = None
) -> RateRows:
    """Return checked rows; those of a rate of 0 are left out."""
    rows = len(job)
    gpus = numbers(columns, "gpus", place, whole=True)
    kind = _kinds(host, columns, rows, place) if on is None else np.full(rows, on, dtype=np.int64)
    if "nodes" in columns:
        nodes = numbers(columns, "nodes", place, whole=True)
    else:
        nodes = host.fewest(kind, gpus)
    ones, rate = np.ones(rows), numbers(columns, "rate", place)
    clock = numbers(columns, "clock", place) if "clock" in columns else ones
    batch = numbers(columns, "batch", place) if "batch" in columns else ones
    watts = _watts(host, kind, gpus, columns, place)
    _within("gpus", (gpus < 1) | (gpus > MOST_GPUS), gpus, f"1 to {MOST_GPUS}", place)
    _within("nodes", (nodes < 1) | (nodes > gpus), nodes, "1 to one a GPU", place)
    _within("clock", ~((clock > 0) & (clock <= 1)), clock, "above 0, at most 1", place)
    _within("batch", ~(batch > 0), batch, "more than 0 samples", place)
    _within("rate", rate < 0, rate, "0 or more; None for a job that is not known yet", place)
    ways = RateRows(job, kind, gpus, nodes, clock, batch, rate, watts)
    return ways.at(np.flatnonzero(rate > 0))


def _kinds(host: Host, columns: Columns, rows: int, place: str) -> Rows:
    """Return the index of each row's GPU type; all are of the first if there is one alone."""
    if "gpu_type" not in columns:
        if len(host.names) > 1:
            expected = f"a column gpu_type: {one_of(host.names)}"
            raise InputError(place, "no GPU type", expected)
        return np.zeros(rows, dtype=np.int64)
    number = {name: k for k, name in enumerate(host.names)}
    found = [number.get(name, -1) for name in columns["gpu_type"].tolist()]
    if -1 in found:
        row = found.index(-1)
        name = columns["gpu_type"][row]
        raise InputError(f"{place}, column gpu_type, row {row}", show(name), one_of(host.names))
    return np.array(found, dtype=np.int64)


def _watts(host: Host, kind: Rows, gpus: Floats, columns: Columns, place: str) -> Floats:
    """Return the watts of all GPUs, NaN where they are not told."""
    if "watts" not in columns:
        return np.full(len(gpus), np.nan)
    try:
        watts = columns["watts"].astype(float)
    except (TypeError, ValueError):
        watts = numbers(columns, "watts", place)
    idle_w = gpus * np.array([t.idle_w for t in host.types.values()])[kind]
    low = (watts < idle_w) | np.isinf(watts)
    if low.any():
        row = int(np.argmax(low))
        expected = f"at least {idle_w[row]:g} W, which {gpus[row]:g} GPUs draw idle"
        raise InputError(f"{place}, column watts, row {row}", f"{watts[row]:g} W", expected)
    return np.asarray(watts)


def _within(name: str, bad: Any, column: Floats, expected: str, place: str) -> None:
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{place}, column {name}, row {row}", f"{column[row]:g}", expected)


def _joined(parts: Sequence[RateRows]) -> RateRows:
    return RateRows(*[np.concatenate(column) for column in zip(*parts, strict=True)])


def _tables(host: Host, jobs: Sequence[str], ways: RateRows) -> dict[str, Tables]:
    """Return the rows of each job and GPU type as a table; jobs without rows have none."""
    if not len(ways.job):
        return {}
    w = ways.at(np.lexsort((ways.nodes, ways.batch, ways.clock, ways.gpus, ways.kind, ways.job)))
    key = np.array([w.job, w.kind, w.gpus, w.clock, w.batch, w.nodes])
    same = key[:, 1:] == key[:, :-1]
    again = same.all(axis=0)
    if again.any():
        row = int(np.argmax(again))
        twice = f"{w.gpus[row]:g} GPUs on {w.nodes[row]:g} nodes twice"
        raise InputError(f"rates of job {jobs[int(w.job[row])]!r}", twice, "each way once")
    starts = np.flatnonzero(np.append(True, ~same[:2].all(axis=0)))
    told = ~np.isnan(w.watts)
    idle_w = np.array([t.idle_w for t in host.types.values()])[w.kind] * w.gpus
    watts = np.where(told, w.watts, idle_w).tolist()
    some_told = np.logical_or.reduceat(told, starts).tolist()
    gpus, nodes = w.gpus.astype(np.int64).tolist(), w.nodes.astype(np.int64).tolist()
    batch, clock, rate = w.batch.tolist(), w.clock.tolist(), w.rate.tolist()
    found: dict[str, Tables] = {}
    ends = [*starts[1:].tolist(), len(gpus)]
    for a, b, with_watts in zip(starts.tolist(), ends, some_told, strict=True):
        found.setdefault(jobs[int(w.job[a])], {})[host.names[int(w.kind[a])]] = Rated(
            gpus=tuple(gpus[a:b]),
            nodes=tuple(nodes[a:b]),
            batch=tuple(batch[a:b]),
            clock=tuple(clock[a:b]),
            rate=tuple(rate[a:b]),
            power_w=tuple(watts[a:b]) if with_watts else (),
        )
    return found
