"""A table of jobs on a cluster of its own: rounds and instances with all that a table says of jobs.

`ronda.instances.traces.mapped` reads traces, whose odd rows are dropped. Here the table is its
user's own: a cell that cannot be meant is refused by its row and column.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from msgspec import structs

from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.files.json import read_part
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Estimate, Job, JobState, Truth
from ronda.instances.profile import Profile, Rigid, Tabular
from ronda.instances.round import Round
from ronda.instances.rules.cluster import cluster_problems
from ronda.instances.rules.jobs import LAST_S, job_problems
from ronda.instances.rules.problem import as_error, limits, one_of, show
from ronda.instances.traces.columns import ALL, Columns, Filters, checked
from ronda.instances.traces.mapped import Converted, canonical, nobody, table_of, times, unusable
from ronda.instances.traces.rigid import HELIOS_COSTS
from ronda.instances.traces.table import (
    SHORTEST_S,
    filtered,
    passing,
    positive,
    read_columns,
    refuse,
    rows,
    to_number,
)
from ronda.instances.traces.text import numbers, only

SWITCH = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


def read_cluster(path: str | Path) -> Cluster:
    """Return the cluster that a JSON file holds, with the fields of a `Cluster`."""
    cluster = read_part(path, Cluster)
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
        Naming file, row and column of what cannot be meant.
    """
    checked(columns, by_name=columns.vc is not None, own=True, sized=sized)
    if columns.profile is not None and rates is None:
        raise InputError(
            "--map: profile", f"{columns.profile!r}, which does nothing", "--rates FILE too"
        )
    table = table_of(Path(path), columns)
    frame = canonical(table.frame, columns, str(path))
    frame, dropped = passing(frame, nobody(frame, table.frame, columns) | _without_gpus(frame))
    own = _Own(str(path), table.frame, columns, cluster, rates)
    own.refuse_unusable(frame, sized=sized)
    frame, filtered_out = passing(frame, filtered(_measurable(frame), filters))
    dropped.update(filtered_out)
    if frame.empty:
        raise InputError(str(path), "no row that is a job", "at least one")
    frame = frame.sort_values("submit_s", kind="stable")
    start_s = float(frame.submit_s.iloc[0]) if filters.start_s is None else filters.start_s
    jobs = own.jobs(frame, start_s)
    own.refuse_odd(jobs, frame)
    used = [job.gpus * s for job, s in zip(jobs, own.seconds, strict=True)]
    span_s = max(1.0, jobs[-1].submit_s - jobs[0].submit_s)
    instance = Instance(
        name=name,
        cluster=cluster,
        profiles={p: own.profiles[p] for p in dict.fromkeys(job.profile for job in jobs)},
        jobs=tuple(jobs),
        costs=HELIOS_COSTS,
        cadence=Cadence(period_s=60.0 if rates else None, on_event=True),
        source=name,
    )
    read = set(columns.named.values())
    unread = tuple(header for header in table.frame.columns if header not in read)
    return Converted(instance, dropped, float(sum(used)) / (span_s * cluster.gpus), 0, unread)


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
        source=instance.source,
    )


def _without_gpus(frame: pd.DataFrame) -> dict[str, "pd.Series[bool]"]:
    return {"no GPUs": frame.num_gpus == 0}


def _measurable(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(duration_s=frame.duration_s.fillna(SHORTEST_S))


@dataclass
class _Own:
    """The cells of a table, and what they may name."""

    path: str
    raw: pd.DataFrame
    columns: Columns
    cluster: Cluster
    rates: Mapping[str, Profile] | None

    def __post_init__(self) -> None:
        self.types = [kind.name for kind in self.cluster.gpu_types]
        rigid = Profile(name="rigid", throughput={name: Rigid() for name in self.types})
        self.profiles = {"rigid": rigid} if self.rates is None else dict(self.rates)
        self.told: dict[str, pd.Series] = {}
        for field, header in self.columns.named.items():
            cells = only(self.raw, header, self.path).str.strip()
            self.told[field] = cells.where(~cells.isin(self.columns.unknown), "")
        self.texts = {field: cells.to_dict() for field, cells in self.told.items()}
        counted = {"weight", "min_gpus", "max_gpus", "work"} & self.told.keys()
        self.values = {field: numbers(self.told[field]).to_dict() for field in counted}
        self.seconds: list[float] = []

    def refuse(self, field: str, row: Any, expected: str) -> None:
        """Refuse the cell of a field in a row."""
        header = self.columns.named[field]
        place = f"{self.path}, row {row}, {header}"
        raise InputError(place, repr(self.raw.loc[row, header]), expected)

    def refuse_unusable(self, frame: pd.DataFrame, *, sized: bool) -> None:
        """Refuse the first row that does not tell GPUs and times."""
        gpus, run_s = frame.num_gpus, frame.duration_s
        bad = {
            "gpus": (~(gpus >= 1) | (gpus % 1 != 0), "a whole number of GPUs"),
            "submit": (~(frame.submit_s.abs() <= LAST_S), "a time"),
        }
        if "duration" in self.told:
            blank = (self.told["duration"].loc[frame.index] == "") & (
                (not sized) | ("work" in self.told)
            )
            expected = f"a run time, {SHORTEST_S:g} to {LAST_S:g} s"
            bad["duration"] = (~run_s.between(SHORTEST_S, LAST_S) & ~blank, expected)
        for field, (odd, expected) in bad.items():
            for row in frame.row[odd][:1]:
                self.refuse(field, row, expected)
        if run_s.notna().all():
            for why, odd in unusable(frame, self.columns).items():
                for row in frame.row[odd][:1]:
                    raise InputError(f"{self.path}, row {row}", why, "a job that can be")

    def jobs(self, frame: pd.DataFrame, start_s: float) -> list[Job]:
        """Return the jobs of rows, whose submissions count from a start."""
        due_s = times(self.told, "deadline", self.columns, self.path)
        return [self._job(row, start_s, float(due_s[row.row])) for row in rows(frame)]

    def _job(self, row: Any, start_s: float, due_s: float) -> Job:
        at = row.row
        named = self._text("profile", at) or row.job_id
        if self.rates is not None and named not in self.rates:
            self._refuse_name("profile", at, named, self.rates)
        profile = "rigid" if self.rates is None else named
        if self._text("deadline", at) and not due_s > row.submit_s:
            self.refuse("deadline", at, "a time after the submission")
        kinds = tuple(filter(None, self._text("gpu_types", at).split("/")))
        gpus = int(row.num_gpus)
        low, high = self._count("min_gpus", at), self._count("max_gpus", at)
        speed = 1.0
        if self.rates is not None:
            counts, speed = self._ways(profile, kinds, gpus, at)
            low, high = low or min(counts), high or max(counts)
        work = self._number("work", at)
        seconds = row.duration_s if work is None else work / speed
        self.seconds.append(seconds if seconds == seconds else 0.0)
        size = row.duration_s * speed if work is None else work
        known = size == size  # not NaN
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
            deadline_s=due_s - start_s if self._text("deadline", at) else None,
            user=row.user or None,
            name=row.name or None,
            estimate=Estimate(work=size) if known else None,
            truth=Truth(work=size) if known else None,
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
            self.refuse("gpus", at, f"a number that {of} have: {_numbers(counts)}")
        rates = [
            1.0 / step_s
            for table in own
            for n, step_s in zip(table.gpus, table.step_s, strict=True)
            if n == gpus
        ]
        return counts, max(rates)

    def _refuse_name(self, field: str, at: int, name: str, known: Mapping[str, Any]) -> None:
        """Refuse a name that is not known: of a column, or else the job's own."""
        expected = f"a name that has rates: {one_of(known, name)}"
        if field in self.told:
            self.refuse(field, at, expected)
        raise InputError(f"{self.path}, row {at}", f"job {show(name)}", expected)

    def _text(self, field: str, at: int) -> str:
        return str(self.texts[field][at]) if field in self.texts else ""

    def _number(self, field: str, at: int, expected: str = "a number above 0") -> float | None:
        """Return the number of a cell; None of an empty one, or where no column has it."""
        if not self._text(field, at):
            return None
        number = float(self.values[field][at])
        if not number > 0:
            self.refuse(field, at, expected)
        return number

    def _count(self, field: str, at: int) -> int | None:
        number = self._number(field, at, "a whole number of GPUs")
        if number is not None and (number % 1 or number > limits().gpus):
            self.refuse(field, at, "a whole number of GPUs")
        return None if number is None else int(number)

    def _switch(self, field: str, at: int) -> bool:
        text = self._text(field, at).lower()
        if text and text not in SWITCH:
            self.refuse(field, at, "yes or no")
        return SWITCH.get(text, True)

    def refuse_odd(self, jobs: list[Job], frame: pd.DataFrame) -> None:
        """Refuse the first job that contradicts itself, or that the cluster could not hold."""
        line = frame.row.tolist()
        fields = {"id": "id", "partition": "vc"}
        for problem in job_problems(jobs, lambda k: f"<{k}>", self.profiles, self.cluster):
            match = re.match(r"<(\d+)>\.?(\w*)", problem.place)
            if match is None:
                raise as_error(self.path, [problem])
            field = fields.get(match[2], match[2])
            header = self.columns.named.get(field)
            place = f"{self.path}, row {line[int(match[1])]}" + (f", {header}" if header else "")
            expected = re.sub(
                r"<(\d+)>", lambda found: f"row {line[int(found[1])]}", problem.expected
            )
            raise InputError(place, problem.found, expected)


def _numbers(counts: set[int]) -> str:
    return ", ".join(map(str, sorted(counts))) or "none"
