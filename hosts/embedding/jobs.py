"""Readers of a host's rows as `Job` records; errors name the job and the field."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import replace

from ronda.hosts.embedding.plain import plain
from ronda.hosts.embedding.rates import Tables, tables
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.job import Estimate, Job
from ronda.instances.profile import Profile
from ronda.instances.rules.diagnose import nearest, record_of
from ronda.instances.rules.jobs import job_problems
from ronda.instances.rules.problem import as_error, show

if TYPE_CHECKING:
    from ronda.hosts.embedding.records import Settings

UNTOLD = "speed not known yet"
"""Name of the profile of jobs without rates, whose unit of speed has no meaning."""

SECONDS = "seconds on the GPUs asked for"
"""Name of the profile of jobs with given work but no rates: work counts in these seconds."""

UNRATED = (UNTOLD, SECONDS)

OWN = ("work", "work_sd", "rates", "application")
"""Fields that a host may give in addition to the fields of a `Job`."""

FIELDS = tuple(f for f in Job.__struct_fields__ if f not in ("truth", "estimate"))


class Given(NamedTuple):
    """A job as its host described it.

    Similar jobs share an `application`. `size` is the declared total work, or None. `speeds` are
    the job's own rates; with None its profile has the rates, or they are not known yet.
    """

    job: Job
    application: str
    size: Estimate | None
    speeds: Tables | None


def given_jobs(
    rows: Sequence[Mapping[str, Any]], settings: "Settings", told: Mapping[str, Tables]
) -> list[Given]:
    """Return jobs from rows with the fields of a `Job` and the fields in `OWN`.

    Rates come from the row, from `told` for all jobs at once, or from the profile that the row
    names; otherwise they are not known yet. InputError names each job and field.
    """
    ids = [str(row.get("id", "")) for row in rows]
    own = {name: row.get("rates") for name, row in zip(ids, rows, strict=True)}
    speeds = tables(settings.host, own) | dict(told)
    return [
        _given(row, place_of(k, row), settings.profiles, speeds.get(name))
        for k, (row, name) in enumerate(zip(rows, ids, strict=True))
    ]


def place_of(k: int, row: Mapping[str, Any]) -> str:
    """Return the name of a row in error messages."""
    return f"jobs[{k}] (id {show(plain(row['id']))})" if "id" in row else f"jobs[{k}]"


def _given(
    row: Mapping[str, Any], place: str, profiles: Mapping[str, Profile], speeds: Tables | None
) -> Given:
    refuse_unknown(row, place)
    fields = {key: plain(value) for key, value in row.items() if key not in OWN}
    job = record_of({"submit_s": 0.0, "profile": UNTOLD} | fields, Job, place)
    named = fields.get("profile")
    if named is not None and speeds is None and named not in profiles:
        expected = "rates, or the name of a profile that was handed over"
        raise InputError(f"{place}, field profile", show(named), expected)
    application = plain(row.get("application", named or job.name or job.id))
    if not isinstance(application, str | int) or isinstance(application, bool):
        raise InputError(f"{place}, field application", show(application), "a name")
    return Given(job, str(application), _size(row, place), speeds)


def refuse_unknown(row: Mapping[str, Any], place: str, state: Sequence[str] = ()) -> None:
    """Raise InputError for fields other than those of a job and the `state` fields."""
    known = [*FIELDS, *OWN, *state]
    for key in row:
        if key not in known:
            raise InputError(place, f"unknown field {show(key)}", nearest(str(key), known))


def row_of(job: Job, application: str, size: Estimate | None) -> dict[str, Any]:
    """Return the row from which a job was described, without its rates."""
    row: dict[str, Any] = msgspec.to_builtins(job) | {"application": application}
    if job.profile == UNTOLD:
        del row["profile"]
    return row | ({} if size is None else {"work": size.work, "work_sd": size.sd})


def _size(row: Mapping[str, Any], place: str) -> Estimate | None:
    """Return the declared size of a job, or None."""
    if row.get("work") is None:
        if row.get("work_sd") is not None:
            raise InputError(f"{place}, field work_sd", show(plain(row["work_sd"])), "work, too")
        return None
    fields = {"work": plain(row["work"]), "sd": plain(row.get("work_sd", 0.0))}
    return record_of(fields, Estimate, place)


def shown(given: Given, settings: "Settings") -> tuple[Job, Profile]:
    """Return a job as policies see it, and its profile.

    A job with its own rates may have the numbers of GPUs in their rows, within the host's limits. A
    job of unknown speed gets the GPUs that its user asked for, and its work is seconds on them.
    """
    job, speeds = given.job, given.speeds
    if speeds is None:
        if job.profile in settings.profiles:
            return replace(job, estimate=given.size), settings.profiles[job.profile]
        name, own = UNTOLD if given.size is None else SECONDS, {"min_gpus": None, "max_gpus": None}
        return replace(job, profile=name, **own, estimate=given.size), settings.unrated[name]
    counts = {n for table in speeds.values() for n in table.gpus} | {job.gpus}
    least = min(counts) if job.min_gpus is None else job.min_gpus
    most = max(counts) if job.max_gpus is None else job.max_gpus
    batches = sorted({b for table in speeds.values() for b in table.batch})
    profile = Profile(
        name=f"rates of {job.id}",
        throughput=dict(speeds),
        base_batch=batches[0] if job.batch is None else job.batch,
        batches=tuple(batches) if len(batches) > 1 or job.batch is not None else (),
    )
    limits, estimate = {"min_gpus": least, "max_gpus": most}, given.size
    return replace(job, profile=profile.name, **limits, estimate=estimate), profile


def refuse_odd(
    given: Sequence[Given],
    shown: Sequence[Job],
    profiles: Mapping[str, Profile],
    cluster: Cluster,
) -> None:
    """Raise InputError for jobs that contradict themselves or that the cluster cannot hold."""
    pairs = zip(given, shown, strict=True)
    jobs = [each.job if each.speeds is None else job for each, job in pairs]
    found = list(job_problems(jobs, lambda k: f"jobs[{k}]", profiles, cluster))
    if found:
        raise as_error("jobs", found)
