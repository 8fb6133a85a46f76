"""The instance that a log's runs make, with a record of what ran when and where."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf, isnan
from typing import Any, Literal, NamedTuple

from msgspec import structs

from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError, printable
from ronda.instances.instance import Cadence, Instance
from ronda.instances.job import Estimate, Job, Need, Pieces, Truth
from ronda.instances.profile import rigid_profile
from ronda.instances.rules.hosts import need_problems
from ronda.instances.rules.jobs import LAST_S, job_problems
from ronda.instances.rules.problem import Problem, limits
from ronda.instances.site import NO_SITE, OWN, Site, with_named
from ronda.instances.traces.columns import Dropped
from ronda.instances.traces.logs.runs import STEPS, LogRun, RowAccount
from ronda.instances.traces.logs.seen_cluster import (
    SeenCluster,
    given_cluster,
    inferred_cluster,
    natural,
    spread,
)
from ronda.instances.traces.recorded import Recorded, RecordedRun
from ronda.instances.traces.rigid import HELIOS_COSTS, RESTARTS, Machine, busy_power

TIMED_OUT = "TIMEOUT"
"""The state of a job that its time limit ended."""

INSTANT_S = 0.5
"""Seconds of a run that a clock of whole seconds shows to be over when it starts."""


class ReadLog(NamedTuple):
    """An instance made of a log, with the record of its runs and an account of the log's rows.

    `runs` is the number of runs of the instance's jobs, parts of heterogeneous jobs apart.
    `gpu_hours` are those of all these runs. `load` is the GPU-seconds of all jobs divided by those
    of the cluster between the first and the last submission. `machines` says where the cluster is
    from: it was given, was seen in use at once (a lower bound), or is unknown, as no start is told.
    """

    instance: Instance
    recorded: Recorded
    account: RowAccount
    runs: int
    gpu_hours: float
    load: float
    machines: Literal["given", "seen", "unknown"]

    @property
    def dropped(self) -> Dropped:
        """The rows that did not become runs of jobs, by reason."""
        return self.account.dropped

    @property
    def fields(self) -> dict[str, Any]:
        """The outcome as fields for programs."""
        account = self.account
        return {
            "rows": account.rows,
            "runs": self.runs,
            "gpu_hours": round(self.gpu_hours, 3),
            "load": round(self.load, 4),
            "dropped": account.dropped,
            "examples": account.dropped.examples,
            "folded": account.folded,
            "unread": account.unread,
            "notes": self.instance.made["notes"],
        }

    @property
    def words(self) -> Iterator[str]:
        """The outcome as lines of text."""
        account, jobs = self.account, len(self.instance.jobs)
        steps = "".join(f", {n:,} {what}" for what, n in account.folded.items())
        yield f"rows: {account.rows:,}, of which {self.runs:,} are runs of {jobs:,} jobs{steps}"
        yield f"GPU-hours of these runs: {self.gpu_hours:,.1f}"
        if account.unread:
            yield f"columns not read: {', '.join(map(printable, account.unread))}"
        yield from self.instance.made["notes"]
        yield f"load: {self.load:.2f} of the cluster, from the first submission to the last"


def log_instance(
    runs: Iterable[LogRun],
    account: RowAccount,
    *,
    place: str,
    name: str,
    source: str,
    cluster: Cluster | None = None,
    seen_cluster: Callable[[], SeenCluster | None] | None = None,
    described: Sequence[Machine] = (),
    start_s: float | None = None,
    site: Site = NO_SITE,
    instant: bool = False,
) -> ReadLog:
    """Return the instance of rigid jobs that a log tells of.

    All runs of one id are one job, which was submitted with the first run and needs what the last
    one took. Parts of a heterogeneous job that ran in one partition on one GPU type are one job.
    Jobs that never started are dropped. A job that ran when the log ended ends there. Time 0 is
    `start_s` or else the first submission of a job.

    Parameters
    ----------
    runs, account
        The runs of a reader and its account, to which jobs that are left out are added.
    place
        The file, for errors.
    cluster, seen_cluster
        The cluster; or a function, called when all runs are read, that returns the cluster with the
        names that the log has for it. Without both, or if that returns None, it is inferred.
    described
        GPU types that ronda does not know.
    site
        The accounts, QOS and limits that are known; those that jobs name besides are added.
    instant
        Whether to keep jobs that ended on their nodes in the second in which they started; they
        work for `INSTANT_S`.

    Raises
    ------
    InputError
        If no job is left, with what was left out and how to read a log of CPUs.
    """
    at_once = dict[str, int]()
    jobs = list(_jobs(runs, account, at_once))
    until_s = account.until_s
    parts = (part for job in jobs for run in job.runs for part in run)
    started = [part for part in parts if not part.gone_s(until_s) <= part.start_s]
    seen = None if seen_cluster is None else seen_cluster()
    if cluster is not None:
        seen = given_cluster(cluster, started)
    machines: Literal["given", "seen", "unknown"] = "given"
    if seen is None:
        seen = inferred_cluster(started, until_s, described)
        machines = "unknown" if all(part.supposed for part in started) else "seen"
    jobs.sort(key=lambda job: (job.submit_s, natural(job.id)))
    base_s = start_s if start_s is not None else jobs[0].submit_s if jobs else 0.0
    maker = _Maker(seen, base_s, until_s, at_once, site, instant)
    sound = _sound(jobs, maker, account)
    if not sound:
        raise _no_jobs(account, place)
    jobs, made = [job for job, _ in sound], [one for _, one in sound]
    said = [*seen.notes, *maker.notes(jobs, site), RESTARTS]
    told = account.told + account.folded
    said += [f"{what}: {count:,}" for what, count in told.items() if what != STEPS]
    instance = Instance(
        name=name,
        cluster=seen.cluster,
        profiles={"rigid": maker.profile},
        jobs=tuple(made),
        costs=HELIOS_COSTS,
        cadence=Cadence(period_s=None, on_event=True),
        site=_site(site, made, at_once),
        source=source,
        made={"notes": said, "unix_start_s": base_s},
    )
    used_s = sum(job.gpus * job.truth.work for job in made if job.truth is not None)
    span_s = max(1.0, made[-1].submit_s - made[0].submit_s)
    every = [part for job in jobs for run in job.runs for part in run]
    return ReadLog(
        instance=instance,
        recorded=maker.recorded(jobs),
        account=account,
        runs=len(every),
        gpu_hours=sum(part.gpus * maker.held_s(part) for part in every) / 3600.0,
        load=used_s / (span_s * seen.cluster.gpus),
        machines=machines,
    )


def _site(site: Site, jobs: Sequence[Job], at_once: Mapping[str, int]) -> Site:
    """Return a site with the accounts, QOS and array limits that jobs name."""
    named = with_named(site, (job.tenant for job in jobs), (job.priority for job in jobs))
    arrays = dict.fromkeys(job.job_array for job in jobs if job.job_array)
    return structs.replace(named, job_arrays={name: at_once[name] for name in arrays})


class _LoggedJob(NamedTuple):
    """A job: its id, its first submission, and its started runs in order, each with its parts."""

    id: str
    submit_s: float
    runs: list[list[LogRun]]
    waits_again: bool

    @property
    def last(self) -> LogRun:
        """The first part of the last run."""
        return self.runs[-1][0]


def _jobs(
    runs: Iterable[LogRun], account: RowAccount, at_once: dict[str, int]
) -> Iterator[_LoggedJob]:
    """Yield the jobs that started, count the rows of the others, and find limits of arrays."""
    by_id = defaultdict[str, dict[int, list[LogRun]]](dict)
    for run in runs:
        if run.at_once and run.array:
            at_once[run.array] = run.at_once
        if run.tasks:
            account.folded["waiting tasks of arrays"] += sum(map(len, run.tasks))
            account.drop(f"never started: {run.state}", run.place)
            continue
        by_id[run.job].setdefault(run.part, []).append(run)
    for job, parts in by_id.items():
        for part, own in parts.items():
            parts[part] = _ordered(own, account)
        started = {part: [run for run in own if run.started] for part, own in parts.items()}
        latest = max((own[-1] for own in parts.values()), key=lambda run: run.submit_s)
        for own in parts.values():
            for run in own:
                if not run.started:
                    again = any(started.values())
                    why = "waits or was given up after a restart" if again else "never started"
                    account.drop(f"{why}: {run.state}", run.place)
        pools = defaultdict[tuple[str, tuple[str, ...]], list[int]](list)
        for part, own in started.items():
            if own:
                pools[own[-1].partition, own[-1].kinds].append(part)
        for members in pools.values():
            first = parts[members[0]][0]
            name = job if len(pools) == 1 else f"{job}+{members[0]}"
            if len(pools) > 1:
                apart = "parts of heterogeneous jobs in other pools, now jobs of their own"
                account.told[apart] += 1
            elif len(members) > 1:
                account.told["heterogeneous jobs, each one job of all parts"] += 1
            most = max(len(started[part]) for part in members)
            each = [[started[p][k] for p in members if k < len(started[p])] for k in range(most)]
            yield _LoggedJob(name, first.submit_s, each, not latest.started)


def _ordered(runs: list[LogRun], account: RowAccount) -> list[LogRun]:
    """Return the runs of a job in order of time, each of them once.

    Of two rows of one start the one that tells of the later end counts.
    """
    if len(runs) == 1:
        return runs
    found = dict[Any, LogRun]()
    for run in runs:
        key = (run.submit_s, run.start_s if run.started else run.state)
        before = found.get(key)
        if before is not None:
            keep = run if isnan(before.end_s) or run.end_s > before.end_s else before
            account.drop("the same run once more", (before if keep is run else run).place)
            run = keep
        found[key] = run
    ordered = list[LogRun]()
    for run in sorted(found.values(), key=lambda r: r.start_s if r.started else r.submit_s):
        if ordered and run.started and ordered[-1].started:
            before = ordered[-1]
            if isnan(before.end_s):
                account.drop("a run without an end before another of its job", before.place)
                ordered.pop()
            elif run.start_s < before.end_s:
                account.drop("a run that begins before the one before it ends", run.place)
                continue
        ordered.append(run)
    return ordered


class _Maker:
    """A maker of jobs and their records, which counts what it assumes."""

    def __init__(
        self,
        seen: SeenCluster,
        base_s: float,
        until_s: float,
        at_once: Mapping[str, int],
        site: Site,
        instant: bool,
    ) -> None:
        self.inner = {tenant.parent for tenant in site.tenants}
        self.seen, self.base_s, self.until_s, self.at_once = seen, base_s, until_s, at_once
        self.instant = instant
        self.known = {kind.name for kind in seen.cluster.gpu_types}
        self.hosts = {name for group in seen.cluster.node_groups for name in group.has}
        self.labels = {label for group in seen.cluster.node_groups for label in group.features}
        self.whole = not seen.cluster.partitions
        power = {kind: busy_power(m)[m.gpu.name] for kind, m in seen.machines.items()}
        self.profile = structs.replace(
            rigid_profile(*sorted(self.known)), power=power if len(power) == len(self.known) else {}
        )
        self.strange = Counter[str]()
        self.unlabelled = 0

    def held_s(self, run: LogRun) -> float:
        """Return the seconds for which a run held its GPUs within the log."""
        return self.until_s - run.start_s if isnan(run.held_s) else run.held_s

    def worked_s(self, run: LogRun) -> float:
        """Return the seconds of progress of a run within the log."""
        return self.held_s(run) - run.suspended_s if isnan(run.ran_s) else run.ran_s

    def job(self, logged: _LoggedJob) -> Job | None:
        """Return the job, or None if it did not run for any time."""
        parts, run = logged.runs[-1], logged.last
        work = max(part.total_s or self.worked_s(part) for part in parts)
        if work == 0 and self.instant and run.nodes:
            work = INSTANT_S
        if not work > 0:
            return None
        partition, features = self.seen.home.get(
            run.partition or "default", (run.partition or "default", ())
        )
        widths = (sum(part.gpus for part in each) for each in logged.runs)
        gpus = int(max(widths) if run.total_s else sum(part.gpus for part in parts))
        limit_s = run.limit_s if 0 < run.limit_s < inf else None
        if limit_s is not None and run.state != TIMED_OUT:
            limit_s = max(limit_s, work)
        first = logged.runs[0][0]
        eligible_s = min(first.eligible_s, first.start_s)
        pieces = sum(part.count for part in parts)
        return Job(
            id=logged.id,
            submit_s=logged.submit_s - self.base_s,
            profile="rigid",
            gpus=gpus,
            partition="default" if self.whole else partition,
            gpu_types=self._types(run),
            user=run.user or None,
            name=run.name or None,
            estimate=Estimate(work=run.limit_s if 0 < run.limit_s < inf else work),
            truth=Truth(work=work),
            tenant=f"{run.account}{OWN}" if run.account in self.inner else run.account or None,
            priority=run.qos or None,
            limit_s=limit_s,
            eligible_s=eligible_s - self.base_s if eligible_s > logged.submit_s else None,
            job_array=run.array if run.array in self.at_once else None,
            features=tuple(dict.fromkeys((*features, *self._labels(run)))),
            needs=self._needs(parts, gpus),
            after=() if run.after is None else (run.after,),
            pieces=Pieces(count=pieces) if pieces > 1 and gpus % pieces == 0 else None,
        )

    def _labels(self, run: LogRun) -> list[str]:
        """Return the labels that a job asked for and some nodes have, and count the others."""
        self.unlabelled += not self.labels.issuperset(run.features)
        return [label for label in run.features if label in self.labels]

    def _types(self, run: LogRun) -> tuple[str, ...]:
        """Return the types that a job asked for or, if the log does not say that, those it had.

        A job that asked for GPUs of any type may have all types of its partition.
        """
        told = run.kinds if run.asked is None else run.asked
        self.strange.update(kind for kind in told if kind not in self.known)
        return tuple(kind for kind in told if kind in self.known)

    def _needs(self, parts: Sequence[LogRun], gpus: int) -> dict[str, Need]:
        cpus, gib = (sum(getattr(p, name) for p in parts) for name in ("cpus", "memory_gib"))
        told = {"cpu": cpus, "memory_gib": gib}
        return {
            name: Need(per_gpu=round(amount / gpus, 9))
            for name, amount in told.items()
            if amount and name in self.hosts
        }

    def notes(self, jobs: Sequence[_LoggedJob], site: Site) -> Iterator[str]:
        """Describe what was assumed of the jobs."""
        last = [job.last for job in jobs]
        limited = [run for run in last if 0 < run.limit_s < inf]
        words = "users' time limits" if limited else "true run times, as the log has no limits"
        if limited and (without := len(last) - len(limited)):
            words += f"; of {without:,} jobs without one, true run times"
        yield f"sizes: {words}"
        longer = sum(
            self.held_s(r) - r.suspended_s > r.limit_s for r in limited if r.state != TIMED_OUT
        )
        if longer:
            yield f"jobs longer than their limits, which are as long as these: {longer:,}"
        more = [job for job in jobs if len(job.runs) > 1 and not job.last.total_s]
        if more:
            lost = sum(
                self.held_s(p) * p.gpus for job in more for run in job.runs[:-1] for p in run
            )
            yield (
                f"jobs that ran more than once: {len(more):,}, taken to begin anew with the last "
                f"run; {lost / 3600:,.1f} GPU-hours of earlier runs are in the record alone"
            )
        if going := sum(isnan(run.end_s) for run in last):
            yield f"jobs that ran when the log ended, and end there: {going:,}"
        if again := sum(job.waits_again for job in jobs):
            yield f"jobs that waited again when the log ended, or were given up then: {again:,}"
        if held := sum(run.suspended_s > 0 for run in last):
            yield f"jobs that were suspended: {held:,}; without it they progress all the time"
        if self.unlabelled:
            yield f"jobs with constraints that no node is known to meet: {self.unlabelled:,}"
        if self.strange:
            words = ", ".join(f"{kind} {count:,}" for kind, count in self.strange.items())
            yield f"jobs by GPU types that the cluster does not have: {words}"
        if {run.qos for run in last} - {"", *(each.name for each in site.classes)}:
            yield "priority classes: the log's QOS, all of rank 0, as it does not say their ranks"

    def recorded(self, jobs: Sequence[_LoggedJob]) -> Recorded:
        """Return the record of all runs on the instance's clock."""
        told = [job for job in jobs if not job.last.supposed]
        runs = {job.id: tuple(self._run(parts) for parts in job.runs) for job in told}
        names = {k: name for name, k in self.seen.index.items()}
        return Recorded(runs, self.until_s - self.base_s, names)

    def _run(self, parts: Sequence[LogRun]) -> RecordedRun:
        held = Counter[int]()
        shares = [spread(part) for part in parts]
        if all(name in self.seen.index for share in shares for name in share):
            for share in shares:
                for name, gpus in share.items():
                    held[self.seen.index[name]] += gpus
        ends = [part.end_s for part in parts]
        joules = sum(part.energy_j for part in parts)
        return RecordedRun(
            start_s=min(part.start_s for part in parts) - self.base_s,
            end_s=None if any(map(isnan, ends)) else max(ends) - self.base_s,
            held=dict(sorted(held.items())),
            state=parts[0].state,
            suspended_s=max(part.suspended_s for part in parts),
            energy_j=None if isnan(joules) else joules,
        )


def _sound(
    jobs: Sequence[_LoggedJob], maker: _Maker, account: RowAccount
) -> list[tuple[_LoggedJob, Job]]:
    """Return the jobs that the cluster can hold, and count the rows of the others."""
    pairs = []
    for logged in jobs:
        if (job := maker.job(logged)) is None:
            _drop(logged, "no run time", account)
        elif not (0 <= job.submit_s <= LAST_S and maker.worked_s(logged.last) <= LAST_S):
            _drop(logged, f"times more than {LAST_S:g} s apart", account)
        else:
            pairs.append((logged, job))
    if len(pairs) > limits().jobs:
        found = f"{len(pairs):,} jobs"
        raise InputError("the log", found, f"{limits().at_most('jobs')}, or a part: --sample 0.1")
    wrong = dict[int, str]()
    profiles, cluster = {"rigid": maker.profile}, maker.seen.cluster
    own = [job for _, job in pairs]

    def place(k: int) -> str:
        return f"<{k}>"

    for problem in job_problems(own, place, profiles, cluster):
        k, what = _placed(problem)
        wrong.setdefault(k, f"{what or 'job'} is not {problem.expected}")
    for k, why in wrong.items():
        _drop(pairs[k][0], why, account)
    for k in {_placed(problem)[0] for problem in need_problems(own, place, profiles, cluster)}:
        more = "jobs whose cores or memory are more than such nodes have, left out of needs"
        account.told[more] += 1
        pairs[k] = pairs[k][0], structs.replace(pairs[k][1], needs={})
    kept = [pair for k, pair in enumerate(pairs) if k not in wrong]
    ids = {job.id for _, job in kept}
    there = [tuple(one for one in job.after if one.job in ids) for _, job in kept]
    return [
        (logged, structs.replace(job, after=after))
        for (logged, job), after in zip(kept, there, strict=True)
    ]


def _placed(problem: Problem) -> tuple[int, str]:
    """Return the number of the job that a problem is about, and the field."""
    inside, _, rest = problem.place.removeprefix("<").partition(">")
    return int(inside), rest.partition(" ")[0].lstrip(".")


def _drop(logged: _LoggedJob, why: str, account: RowAccount) -> None:
    for run in logged.runs:
        for part in run:
            account.drop(why, part.place)


def _no_jobs(account: RowAccount, place: str) -> InputError:
    expected = "at least one"
    if [why for why, _ in account.dropped.most_common(1)] == ["no GPUs"]:
        expected = (
            "jobs with GPUs (Slurm logs them with AccountingStorageTRES=gres/gpu); "
            "--device cpu reads each core as a device"
        )
    return account.dropped.all_rows(place, expected)
