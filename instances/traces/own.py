"""A table of jobs on a cluster of its own: rounds and instances with all that a table says of jobs.

`ronda.instances.traces.mapped` reads traces, whose odd rows are dropped, and so are those of a log
here, which says how jobs ended. Any other table is its user's own list: cells that cannot be meant
are refused by row and column.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs

from ronda.instances.cluster import Cluster, Partition
from ronda.instances.errors import InputError
from ronda.instances.files.json import read_part
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Estimate, Job, JobState, Truth
from ronda.instances.profile import Profile, Rigid, Tabular
from ronda.instances.round import Round
from ronda.instances.rules.cluster import cluster_problems
from ronda.instances.rules.jobs import job_problems
from ronda.instances.rules.problem import Problem, as_error, limits, one_of, show
from ronda.instances.traces.columns import ALL, Columns, Filters
from ronda.instances.traces.mapped import (
    Converted,
    ReadTable,
    further,
    odd_cells,
    own_rows,
    sizes,
    some,
    span_s,
    table_of,
    tasks_apart,
    tell_runs_apart,
    times,
    unreadable,
    unusable,
    waiting,
)
from ronda.instances.traces.rigid import HELIOS_COSTS, RESTARTS
from ronda.instances.traces.table import (
    SHORTEST_S,
    BadRows,
    filtered,
    passing,
    positive,
    read_columns,
    refuse,
    rows,
    to_number,
)
from ronda.instances.traces.text import numbers

SWITCH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def read_cluster(path: str | Path) -> Cluster:
    """Return the cluster that a JSON file holds, with the fields of a `Cluster`.

    Without ``partitions`` there are those that node groups name.
    """
    cluster = read_part(path, Cluster)
    if not cluster.partitions:
        named = dict.fromkeys(group.partition for group in cluster.node_groups)
        partitions = tuple(Partition(name=name) for name in named if name != "default")
        cluster = structs.replace(cluster, partitions=partitions)
    if found := list(cluster_problems(cluster)):
        raise as_error(str(path), found)
    return cluster


def read_rates(path: str | Path, cluster: Cluster) -> dict[str, Profile]:
    """Return profiles with `Tabular` speeds from a table of measured rates, by name.

    Columns: ``profile`` (what jobs name, or their ids), ``gpu_type`` (unless there is one alone),
    ``gpus``, ``nodes`` (by default the fewest) and ``rate``, work per second in any unit, which is
    the unit of the jobs' work. A step is one unit of work.
    """
    names = {name: (name,) for name in ("gpu_type", "gpus", "nodes", "rate")}
    known = {"profile": ("profile", "model", "job"), **names}
    frame = read_columns(path, known, ("gpu_type", "nodes"), kind="rate")
    size: dict[str, int] = {}
    for group in cluster.node_groups:
        size[group.gpu_type] = max(size.get(group.gpu_type, 0), group.gpus_per_node)
    if len(size) == 1:
        frame["gpu_type"] = frame.gpu_type.where(frame.gpu_type != "", next(iter(size)))
    refuse(path, frame, (frame.profile == "").to_numpy(), "profile", "a name")
    refuse(path, frame, ~frame.gpu_type.isin(size).to_numpy(), "gpu_type", one_of(size))
    frame["gpus"] = to_number(path, frame, "gpus")
    frame["rate"] = positive(path, frame, "rate")
    whole = frame.gpus.between(1, limits().gpus) & (frame.gpus % 1 == 0)
    refuse(path, frame, ~whole.to_numpy(), "gpus", "a whole number of GPUs")
    fewest = np.ceil(frame.gpus / frame.gpu_type.map(size)).astype(int).astype(str)
    frame["nodes"] = frame.nodes.where(frame.nodes != "", fewest)
    frame["nodes"] = to_number(path, frame, "nodes")
    odd = (frame.nodes < 1) | (frame.nodes > frame.gpus) | (frame.nodes % 1 != 0)
    refuse(path, frame, odd.to_numpy(), "nodes", "a whole number, at most one node a GPU")
    twice = frame.duplicated(["profile", "gpu_type", "gpus", "nodes"]).to_numpy()
    refuse(path, frame, twice, "gpus", "each number of GPUs and nodes once for a profile and type")
    tables: dict[str, dict[str, Tabular]] = {}
    for (profile, kind), own in frame.groupby(["profile", "gpu_type"], sort=False):
        gpus = tuple(own.gpus.astype(int).tolist())
        tables.setdefault(str(profile), {})[str(kind)] = Tabular(
            gpus=gpus,
            nodes=tuple(own.nodes.astype(int).tolist()),
            local_batch=tuple(1.0 / n for n in gpus),
            step_s=tuple((1.0 / own.rate).tolist()),
            sync_s=(0.0,) * len(gpus),
        )
    return {
        name: Profile(name=name, throughput=dict(table), source=str(path))
        for name, table in tables.items()
    }


def read_own(
    path: str | Path,
    columns: Columns,
    cluster: Cluster,
    *,
    rates: Mapping[str, Profile] | None = None,
    filters: Filters = ALL,
    name: str = "table",
    sized: bool = True,
) -> Converted:
    """Read a table of jobs on a cluster, whose GPU types and partitions its cells may name.

    With `rates` a job has the profile of its ``profile`` column, or of its id, and may have every
    number of GPUs that has a row there. Without, it is rigid, and as fast on all GPU types. Its
    work is told, or is what it does in its run time on its GPUs of the fastest type that it may
    use. `sized` tells that every job needs one of them.

    Raises
    ------
    InputError
        Naming file, rows and columns of what cannot be meant, all of it; or, of a log, as
        `ronda.instances.traces.mapped.read_mapped` does.
    """
    if columns.profile is not None and rates is None:
        raise InputError(
            "--map: profile", f"{columns.profile!r}, which does nothing", "--rates FILE too"
        )
    parted = bool(cluster.partitions)
    table = table_of(Path(path), columns, by_name=parted, own=True, sized=sized)
    frame, dropped = own_rows(table)
    log = table.columns.state is not None
    frame, empty = passing(frame, {"no GPUs": frame.num_gpus == 0})
    dropped.add(empty)
    timeless = not sized or "work" in table.told
    wrong = unusable(frame, table.columns, timeless=timeless)
    if log:
        why = unreadable(table, frame, dropped) | {fault.why: fault.bad for fault in wrong}
        frame, left_out = passing(frame, why)
        dropped.add(left_out)
    elif problems := [*odd_cells(table, frame), *_unusable(table, frame, wrong)]:
        raise as_error(table.path, problems)
    lasting = frame.assign(duration_s=frame.duration_s.fillna(SHORTEST_S))
    frame, filtered_out = passing(frame, filtered(lasting, filters))
    dropped.add(filtered_out)
    some(frame, dropped, table.path)
    frame = tasks_apart(frame.sort_values("submit_s", kind="stable"), table.path)
    runs = tell_runs_apart(frame) if log else 0
    own = _Own(table, cluster, rates)
    start_s = float(frame.submit_s.iloc[0]) if filters.start_s is None else filters.start_s
    made = own.jobs(frame, start_s)
    if own.problems and not log:
        raise as_error(table.path, [*own.problems.values()])
    for row, problem in own.problems.items():
        dropped.count(f"{problem.place.rpartition(', ')[2]} is not {problem.expected}", [row])
    kept = [job is not None for job in made]
    frame, jobs = frame[kept], [job for job in made if job is not None]
    some(frame, dropped, table.path)
    used = [job.gpus * s for job, s in zip(made, own.seconds, strict=True) if job is not None]
    notes = (sizes(frame, table), *own.types(frame), RESTARTS, BUSY, *waiting(frame))
    instance = Instance(
        name=name,
        cluster=cluster,
        profiles={p: own.profiles[p] for p in dict.fromkeys(job.profile for job in jobs)},
        jobs=tuple(jobs),
        costs=HELIOS_COSTS,
        cadence=Cadence(period_s=60.0 if rates else None, on_event=True),
        source=name,
        made={"notes": [*notes]},
    )
    load = float(sum(used)) / (span_s(frame) * cluster.gpus)
    return Converted(instance, dropped, load, runs, table.unread, notes, further(frame))


def as_round(instance: Instance) -> Round:
    """Return the round in which all jobs wait, at the last submission."""
    public = [structs.replace(job, truth=None) for job in instance.jobs]
    return Round(
        name=instance.name,
        now_s=public[-1].submit_s,
        cluster=instance.cluster,
        profiles=instance.profiles,
        waiting=tuple(JobState(job=job, since_s=job.submit_s) for job in public),
        costs=instance.costs,
        source="; ".join([instance.source, *instance.made["notes"]]),
    )


BUSY = "energy: not known, as the watts of busy GPUs are not"
"""What stands beside a run of jobs on a cluster of its own."""

_FIELDS = {"num_gpus": "gpus", "submit_s": "submit", "duration_s": "duration"}
"""Fields of a mapping, by canonical column."""


def _unusable(table: ReadTable, frame: pd.DataFrame, found: Iterable[BadRows]) -> Iterator[Problem]:
    """Yield what is wrong in rows all of whose cells can be read."""
    for fault in found:
        field = _FIELDS.get(fault.column, "")
        for row in frame.row[fault.bad & (frame.odd == "")]:
            if (header := table.columns.named.get(field)) is None:
                yield Problem(f"row {row}", fault.why, "a job that can be")
            else:
                found_here = repr(table.told[field][row])
                yield Problem(f"row {row}, {header}", found_here, fault.expected)


@dataclass
class _Own:
    """The cells of a table, what they may name, and which of them name something else."""

    table: ReadTable
    cluster: Cluster
    rates: Mapping[str, Profile] | None

    def __post_init__(self) -> None:
        self.kinds = [kind.name for kind in self.cluster.gpu_types]
        rigid = Profile(name="rigid", throughput={name: Rigid() for name in self.kinds})
        self.profiles = {"rigid": rigid} if self.rates is None else dict(self.rates)
        told = self.table.told
        self.texts = {field: cells.to_dict() for field, cells in told.items()}
        counted = {"weight", "min_gpus", "max_gpus", "work"} & told.keys()
        self.values = {field: numbers(told[field]).to_dict() for field in counted}
        self.seconds: list[float] = []
        self.problems: dict[int, Problem] = {}

    def blame(self, field: str, row: Any, expected: str) -> None:
        """Note that the cell of a field in a row is none."""
        place = f"row {row}, {self.table.columns.named[field]}"
        found = repr(self.table.raw.loc[row, self.table.columns.named[field]])
        self.problems.setdefault(row, Problem(place, found, expected))

    def types(self, frame: pd.DataFrame) -> tuple[str, ...]:
        """Say which GPU types of the table the cluster does not have."""
        told = Counter(k for own in frame.kinds for k in own if k not in self.kinds)
        words = ", ".join(f"{kind} {count:,}" for kind, count in told.items())
        return (f"jobs by GPU types that the cluster does not have: {words}",) if words else ()

    def jobs(self, frame: pd.DataFrame, start_s: float) -> list[Job | None]:
        """Return the jobs of rows, whose submissions count from a start; None where one is odd."""
        due_s = times(self.table, "deadline")
        made = [self._job(row, start_s, float(due_s[row.row])) for row in rows(frame)]
        lines = frame.row.tolist()
        sound = [k for k, row in enumerate(lines) if row not in self.problems]
        self._compare([made[k] for k in sound], [lines[k] for k in sound])
        return [None if row in self.problems else job for row, job in zip(lines, made, strict=True)]

    def _job(self, row: Any, start_s: float, due_s: float) -> Job:
        at = row.row
        named = self._text("profile", at) or row.job_id
        profile = "rigid" if self.rates is None else named
        if self.rates is not None and named not in self.rates:
            self._blame_name("profile", at, named, self.rates)
            profile = next(iter(self.rates))
        if self._text("deadline", at) and not due_s > row.submit_s:
            self.blame("deadline", at, "a time after the submission")
        kinds = tuple(filter(None, self._text("gpu_types", at).split("/")))
        kinds = kinds or tuple(kind for kind in row.kinds if kind in self.kinds)
        gpus = int(row.num_gpus)
        low, high = self._count("min_gpus", at), self._count("max_gpus", at)
        speed = 1.0
        if self.rates is not None:
            counts, speed = self._ways(profile, kinds, gpus, at)
            low, high = low or min(counts), high or max(counts)
        work = self._number("work", at)
        size = row.duration_s * speed if work is None else work
        told = row.limit_s * speed if row.limit_s > 0 else size
        self.seconds.append(size / speed if size == size else 0.0)  # not NaN
        return Job(
            id=row.job_id,
            submit_s=row.submit_s - start_s,
            profile=profile,
            gpus=gpus,
            min_gpus=low,
            max_gpus=high,
            partition=row.vc or "default",
            gpu_types=kinds,
            preemptible=self._switch("preemptible", at),
            weight=self._number("weight", at) or 1.0,
            deadline_s=due_s - start_s if due_s > row.submit_s else None,
            user=row.user or None,
            name=row.name or None,
            estimate=Estimate(work=told) if told == told else None,
            truth=Truth(work=size) if size == size else None,
        )

    def _ways(
        self, profile: str, kinds: tuple[str, ...], gpus: int, at: int
    ) -> tuple[set[int], float]:
        """Return the numbers of GPUs that a job may have, and its speed on those it asks for."""
        tables = self.profiles[profile].throughput
        own = [t for k, t in tables.items() if (not kinds or k in kinds) and isinstance(t, Tabular)]
        counts = {n for table in own for n in table.gpus}
        if gpus not in counts:
            of = f"the rates of {show(profile)}" + (f" on {'/'.join(kinds)}" if kinds else "")
            self.blame("gpus", at, f"a number that {of} have: {_numbers(counts)}")
            return {gpus}, 1.0
        rates = [
            1.0 / step_s
            for table in own
            for n, step_s in zip(table.gpus, table.step_s, strict=True)
            if n == gpus
        ]
        return counts, max(rates)

    def _blame_name(self, field: str, at: int, name: str, known: Mapping[str, Any]) -> None:
        """Note a name that is not known: of a column, or else the job's own."""
        expected = f"a name that has rates: {one_of(known, name)}"
        if field in self.texts:
            self.blame(field, at, expected)
        else:
            self.problems[at] = Problem(f"row {at}", f"job {show(name)}", expected)

    def _text(self, field: str, at: int) -> str:
        return str(self.texts[field][at]) if field in self.texts else ""

    def _number(self, field: str, at: int, expected: str = "a number above 0") -> float | None:
        """Return the number of a cell; None of an empty one, or where no column has it."""
        if not self._text(field, at):
            return None
        number = float(self.values[field][at])
        if not number > 0:
            self.blame(field, at, expected)
            return None
        return number

    def _count(self, field: str, at: int) -> int | None:
        number = self._number(field, at, "a whole number of GPUs")
        if number is not None and (number % 1 or number > limits().gpus):
            self.blame(field, at, "a whole number of GPUs")
            return None
        return None if number is None else int(number)

    def _switch(self, field: str, at: int) -> bool:
        text = self._text(field, at).lower()
        if text and text not in SWITCH:
            self.blame(field, at, "yes or no")
        return SWITCH.get(text, True)

    def _compare(self, jobs: list[Job], lines: list[int]) -> None:
        """Note jobs that contradict themselves or others, or that the cluster could not hold."""
        fields = {"id": "id", "partition": "vc"}
        for problem in job_problems(jobs, lambda k: f"<{k}>", self.profiles, self.cluster):
            match = re.match(r"<(\d+)>\.?(\w*)", problem.place)
            if match is None:
                raise as_error(self.table.path, [problem])
            row, field = lines[int(match[1])], fields.get(match[2], match[2])
            header = self.table.columns.named.get(field)
            named = re.sub(r"<(\d+)>", lambda k: f"row {lines[int(k[1])]}", problem.expected)
            place = f"row {row}" + (f", {header}" if header else "")
            self.problems.setdefault(row, Problem(place, problem.found, named))


def _numbers(counts: set[int]) -> str:
    return ", ".join(map(str, sorted(counts))) or "none"
