"""Tables of jobs with their own cluster, read as rounds or instances with all job fields.

`ronda.instances.traces.mapped` reads traces and drops their odd rows. This module does the same for
a log, which has the final states of jobs. Any other table is its user's own list: odd cells in it
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

from ronda.instances.cluster import Cluster, partitions_of
from ronda.instances.errors import InputError
from ronda.instances.files.json import read_part
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Job, JobState
from ronda.instances.profile import Profile, Tabular, rigid_profile
from ronda.instances.round import Round
from ronda.instances.rules.cluster import cluster_problems
from ronda.instances.rules.jobs import job_problems
from ronda.instances.rules.problem import Problem, as_error, limits, one_of, show
from ronda.instances.traces.columns import ALL, Columns, Filters
from ronda.instances.traces.mapped import (
    Converted,
    ReadTable,
    odd_cells,
    own_rows,
    recorded_in,
    refuse_empty,
    sizes,
    span_s,
    table_of,
    tell_runs_apart,
    unreadable,
)
from ronda.instances.traces.rigid import HELIOS_COSTS, RESTARTS, job_of
from ronda.instances.traces.table import (
    SHORTEST_S,
    BadRows,
    faults,
    filtered,
    from_start,
    passing,
    positive,
    read_columns,
    refuse,
    rows,
    to_number,
)


def read_cluster(path: str | Path) -> Cluster:
    """Return the cluster in a JSON file with the fields of a `Cluster`.

    Without ``partitions``, the cluster gets the partitions that its node groups name.
    """
    cluster = read_part(path, Cluster)
    if not cluster.partitions:
        partitions = partitions_of(group.partition for group in cluster.node_groups)
        cluster = structs.replace(cluster, partitions=partitions)
    if found := list(cluster_problems(cluster)):
        raise as_error(str(path), found)
    return cluster


def read_rates(path: str | Path, cluster: Cluster) -> dict[str, Profile]:
    """Return profiles with `Tabular` speeds by name, from a table of measured rates.

    The columns are ``profile`` (a name that jobs use, or a job id), ``gpu_type`` (optional if there
    is only one type), ``gpus``, ``nodes`` (by default the fewest) and ``rate``. The rate is work
    per second in the unit of the jobs' work. A step is one unit of work.
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
    """Read a table of jobs whose cells may name the GPU types and partitions of a cluster.

    With `rates` a job has the profile named by its ``profile`` column or its id, and may use every
    number of GPUs with a row in that profile. Without `rates` a job is rigid and equally fast on
    all GPU types. Its work is given, or follows from its run time on its GPUs of the fastest type
    that it may use. `sized` states that every job needs work or a run time.

    Raises
    ------
    InputError
        If there are odd cells, with the file and all their rows and columns. For a log, as in
        `ronda.instances.traces.mapped.read_mapped`.
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
    wrong = faults(frame, table.columns, timeless=timeless)
    problems: list[Problem] = []
    if log:
        why = unreadable(table, frame, dropped) | {fault.why: fault.bad for fault in wrong}
        frame, left_out = passing(frame, why)
        dropped.add(left_out)
    else:
        problems += [*odd_cells(table, frame), *_unusable(table, frame, wrong)]
        odd = [frame.odd != "", *(fault.bad for fault in wrong)]
        frame = frame[~np.logical_or.reduce(odd)]
    lasting = frame.assign(duration_s=frame.duration_s.fillna(SHORTEST_S))
    frame, filtered_out = passing(frame, filtered(lasting, filters))
    dropped.add(filtered_out)
    if not problems:
        refuse_empty(frame, dropped, table.path)
    frame = frame.sort_values("submit_s", kind="stable", ignore_index=True)
    runs = tell_runs_apart(frame) if log else 0
    own = _Own(table, cluster, rates)
    frame = from_start(frame, filters)
    made = own.jobs(frame)
    problems += own.problems.values() if not log else ()
    if problems:
        raise as_error(table.path, problems)
    for row, problem in own.problems.items():
        dropped.count(f"{problem.place.rpartition(', ')[2]} is not {problem.expected}", [row])
    kept = [job is not None for job in made]
    frame, jobs = frame[kept], [job for job in made if job is not None]
    refuse_empty(frame, dropped, table.path)
    used = [job.gpus * s for job, s in zip(made, own.seconds, strict=True) if job is not None]
    notes = (sizes(frame, table), *own.types(frame), RESTARTS, BUSY)
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
    told = recorded_in(frame)
    return Converted(instance, dropped, load, runs, table.unread, notes, told)


def as_round(instance: Instance) -> Round:
    """Return the round at the last submission in which all jobs wait."""
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
"""A note for runs of jobs whose table has its own cluster."""

_FIELDS = {"num_gpus": "gpus", "submit_s": "submit", "duration_s": "duration"}
"""Fields of a mapping by canonical column, if the names differ."""


def _unusable(table: ReadTable, frame: pd.DataFrame, found: Iterable[BadRows]) -> Iterator[Problem]:
    """Yield the problems in rows with only readable cells."""
    for fault in found:
        field = _FIELDS.get(fault.column, fault.column)
        for row in frame.row[fault.bad & (frame.odd == "")]:
            if (header := table.columns.named.get(field)) is None:
                yield Problem(f"row {row}", fault.why, "a job that can be")
            else:
                found_here = repr(table.told[field][row])
                yield Problem(f"row {row}, {header}", found_here, fault.expected)


@dataclass
class _Own:
    """A reader of the rows of a user's own table, which collects problems by row."""

    table: ReadTable
    cluster: Cluster
    rates: Mapping[str, Profile] | None

    def __post_init__(self) -> None:
        self.kinds = [kind.name for kind in self.cluster.gpu_types]
        rigid = {"rigid": rigid_profile(*self.kinds)}
        self.profiles = rigid if self.rates is None else dict(self.rates)
        self.seconds: list[float] = []
        self.problems: dict[int, Problem] = {}

    def blame(self, field: str, row: Any, expected: str) -> None:
        """Record that the cell of a field in a row has an unknown value."""
        header = self.table.columns.named[field]
        found = repr(self.table.raw.loc[row, header])
        self.problems.setdefault(row, Problem(f"row {row}, {header}", found, expected))

    def types(self, frame: pd.DataFrame) -> tuple[str, ...]:
        """Return a note on the table's GPU types that the cluster does not have."""
        told = Counter(k for own in frame.kinds for k in own if k not in self.kinds)
        words = ", ".join(f"{kind} {count:,}" for kind, count in told.items())
        return (f"jobs by GPU types that the cluster does not have: {words}",) if words else ()

    def jobs(self, frame: pd.DataFrame) -> list[Job | None]:
        """Return the jobs of rows, None for an odd row."""
        made, lines = [self._job(row) for row in rows(frame)], frame.row.tolist()
        sound = [k for k, job in enumerate(made) if job is not None]
        self._compare([job for job in made if job is not None], [lines[k] for k in sound])
        return [None if row in self.problems else job for row, job in zip(lines, made, strict=True)]

    def _job(self, row: Any) -> Job | None:
        """Return the job of a row, or None if a cell is odd, and record its run time in seconds."""
        at, gpus, profile, speed = row.row, int(row.num_gpus), "rigid", 1.0
        kinds = tuple(filter(None, row.gpu_types.split("/")))
        kinds = kinds or tuple(kind for kind in row.kinds if kind in self.kinds)
        low, high = (int(n) if n > 0 else None for n in (row.min_gpus, row.max_gpus))
        self.seconds.append(0.0)
        if self.rates is not None:
            profile = row.profile or row.job_id
            if profile not in self.rates:
                expected = f"a name that has rates: {one_of(self.rates, profile)}"
                if self.table.columns.profile is not None:
                    self.blame("profile", at, expected)
                else:
                    self.problems[at] = Problem(f"row {at}", f"job {show(profile)}", expected)
                return None
            counts, speed = self._ways(profile, kinds, gpus, at)
            if not counts:
                return None
            low, high = low or min(counts), high or max(counts)
        job = job_of(
            row,
            profile=profile,
            partition=row.vc or "default",
            speed=speed,
            gpu_types=kinds,
            min_gpus=low,
            max_gpus=high,
        )
        self.seconds[-1] = 0.0 if job.truth is None else job.truth.work / speed
        return job

    def _ways(
        self, profile: str, kinds: tuple[str, ...], gpus: int, at: int
    ) -> tuple[set[int], float]:
        """Return the numbers of GPUs that a job may have, and its speed on the requested number.

        The set is empty if no rates exist for the requested number.
        """
        tables = self.profiles[profile].throughput
        own = [t for k, t in tables.items() if (not kinds or k in kinds) and isinstance(t, Tabular)]
        counts = {n for table in own for n in table.gpus}
        if gpus not in counts:
            of = f"the rates of {show(profile)}" + (f" on {'/'.join(kinds)}" if kinds else "")
            known = ", ".join(map(str, sorted(counts))) or "none"
            self.blame("gpus", at, f"a number that {of} have: {known}")
            return set(), 1.0
        rates = [
            1.0 / step_s
            for table in own
            for n, step_s in zip(table.gpus, table.step_s, strict=True)
            if n == gpus
        ]
        return counts, max(rates)

    def _compare(self, jobs: list[Job], lines: list[int]) -> None:
        """Record jobs that contradict themselves or others, or that the cluster cannot hold."""
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
