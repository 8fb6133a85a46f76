"""A reader of a host's news into the state; errors name the job, and news count as a whole."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ronda.hosts.embedding.jobs import UNTOLD, given_jobs, refuse_odd, row_of, shown
from ronda.hosts.embedding.live import (
    Tracked,
    again,
    held,
    placement_of,
    progressed,
    resized,
    runs_on,
    state_done,
    stopped,
)
from ronda.hosts.embedding.plain import amount, by_name, ids_of, is_frame, plain, rows_of
from ronda.hosts.embedding.rates import Tables, by_job, tables
from ronda.hosts.embedding.records import Settings, State, StepTime
from ronda.instances.check.sharing import distinct
from ronda.instances.errors import InputError
from ronda.instances.job import Job, JobState
from ronda.instances.models.measured import Way, way_of
from ronda.instances.models.sharing import narrowed
from ronda.instances.profile import NoiseScale
from ronda.instances.rules.diagnose import record_of
from ronda.instances.rules.problem import as_error, show
from ronda.instances.rules.profile import noise_problems

Seen = tuple[tuple[str, str], Way, StepTime]
"""A measured step: profile and GPU type, the GPUs and nodes used, and the step time."""


class Reader:
    """A reader of news, which changes a `State`."""

    def __init__(self, state: State, settings: Settings, *, elastic: bool = True) -> None:
        self.state, self.settings, self._elastic = state, settings, elastic

    def clock(self, now_s: float | None, power_cap_w: float | None) -> None:
        """Read the time and the power cap; None means no change."""
        if now_s is not None:
            expected = f"a time from {self.state.now_s:g} s on: no clock goes back"
            told = amount(now_s, "now_s", expected)
            if told < self.state.now_s:
                raise InputError("now_s", f"{told:g}", expected)
            self.state.now_s = told
        if isinstance(power_cap_w, float) and power_cap_w == float("inf"):
            self.state.power_cap_w = None
        elif power_cap_w is not None:
            self.state.power_cap_w = amount(power_cap_w, "power_cap_w")

    def remodel(self) -> None:
        """Give all jobs the present models."""
        for job, of in self.state.jobs.items():
            profile = self.settings.profiles.get(of.profile.name, of.profile)
            place = f"profiles: {show(profile.name)}"
            shared = of.profile.name == of.given.job.profile
            if shared and profile.name not in (UNTOLD, *self.settings.profiles):
                raise InputError(place, "none any more", f"the model of job {job!r}")
            if profile is of.profile:
                continue
            if (runs := of.state.allocation) is not None:
                way = {"clock": runs.option.clock, "batch": runs.option.batch}
                on = runs.placement
                if held(self.settings.cluster, of.state.job, profile, on, **way) is None:
                    raise InputError(place, "no speed", f"one for what job {job!r} runs on")
            self.state.jobs[job] = replace(of, profile=profile)

    def gone(self, jobs: Iterable[str], what: str) -> list[Tracked]:
        """Remove jobs from the state and return them."""
        found = []
        for job in ids_of(jobs, what):
            found.append(self._known(job, what))
            del self.state.jobs[job]
        return found

    def complete(
        self, completed: Iterable[str] | Mapping[str, float]
    ) -> tuple[list[Tracked], dict[str, float]]:
        """Remove completed jobs from the state; return them and the work of each."""
        ended = self.gone(completed, "completed")
        works = {of.given.job.id: state_done(of, self.state.now_s) for of in ended}
        if isinstance(completed, Mapping):
            for job, told in completed.items():
                if told is not None:
                    works[job] = amount(told, f"completed: job {job!r}", "work, 0 or more")
        return ended, works

    def narrow(self) -> None:
        """Let arrays go on without the members that have left."""
        running = self.state.held
        if any(a.array is not None for a in running.values()):
            jobs = {i: self.state.jobs[i].state.job for i in running}
            profiles = {of.profile.name: of.profile for of in self.state.jobs.values()}
            for job, given in narrowed(running, jobs, profiles, self.settings.cluster).items():
                of, now_s = self.state.jobs[job], self.state.now_s
                narrow = of.state.narrowed(given, now_s, of.state.done_at(now_s))
                self.state.jobs[job] = replace(of, state=narrow)

    def add(self, added: object, rates: object = None) -> None:
        """Add jobs, with `rates` for all of them; the default time of submission is now."""
        settings = self.settings
        rows = [{"submit_s": self.state.now_s} | row for row in rows_of(added, "added")]
        new, profiles = list[Tracked](), dict(self.settings.unrated)
        told = tables(self.settings.host, by_job(rates, "rates"))
        made = given_jobs(rows, settings, told)
        for k, given in enumerate(made):
            job = given.job
            if job.id in self.state.jobs:
                raise InputError(f"added: job {job.id!r}", "a live job", "an id that is new")
            if job.submit_s > self.state.now_s:
                expected = f"at most now_s, {self.state.now_s:g}"
                raise InputError(f"added: job {job.id!r}, submit_s", f"{job.submit_s:g}", expected)
            if given.speeds is None and job.profile == UNTOLD:
                given = made[k] = given._replace(speeds=self.state.alike.get(given.application))
            own, profile = shown(given, settings)
            profiles[profile.name], state = profile, JobState(job=own, since_s=own.submit_s)
            new.append(Tracked(given=given, done=0.0, state=state, profile=profile))
        refuse_odd(made, [of.state.job for of in new], profiles, settings.cluster)
        self.state.jobs.update({of.given.job.id: of for of in new})

    def measure(self, measured: object) -> list[Seen]:
        """Read new rates, and return the measured steps."""
        steps, rates = _steps(measured)
        for job, speeds in tables(self.settings.host, by_job(rates, "measured")).items():
            of = self._known(job, "measured")
            given = of.given._replace(speeds=speeds)
            self.state.jobs[job] = again(of, given, self.settings, self.state.now_s)
            # New jobs of an application have its latest rates with the most GPUs.
            before = self.state.alike.pop(of.given.application, speeds)
            self.state.alike[of.given.application] = max(speeds, before, key=_widest)
            if len(self.state.alike) > 1000:  # the memory is bounded
                del self.state.alike[next(iter(self.state.alike))]
        return [self._seen(job, step) for job, step in steps.items()]

    def change(self, changed: object) -> None:
        """Read new values of some fields of live jobs."""
        settings, told, rows = self.settings, dict[str, Tables](), list[dict[str, Any]]()
        for row in rows_of(changed, "changed"):
            of = self._known(row.get("id"), "changed")
            if fixed := sorted({"submit_s", "fusible", "rates"} & row.keys()):
                place = f"changed: job {of.given.job.id!r}"
                raise InputError(place, f"field {show(fixed[0])}", "fields that may change")
            rows.append(row_of(of.given.job, of.given.application, of.given.size) | row)
            if of.given.speeds is not None and "profile" not in row:
                told[of.given.job.id] = of.given.speeds
        given = given_jobs(rows, settings, told)
        pairs = [shown(each, settings) for each in given]
        profiles = settings.unrated | {profile.name: profile for _, profile in pairs}
        refuse_odd(given, [job for job, _ in pairs], profiles, settings.cluster)
        fields = ["gpus", "partition", "gpu_types"]  # these say on which GPUs a job may run
        fields += ["min_gpus", "max_gpus"] if self._elastic else []
        now_s, elastic = self.state.now_s, self._elastic
        for each, (job, _) in zip(given, pairs, strict=True):
            before = self.state.jobs[job.id]
            of = again(before, each, settings, now_s)
            if any(getattr(before.given.job, f) != getattr(each.job, f) for f in fields):
                of = resized(of, job, settings.cluster, now_s, elastic=elastic)
            self.state.jobs[job.id] = of

    def _known(self, job: object, what: str) -> Tracked:
        of = self.state.jobs.get(job) if isinstance(job, str) else None
        if of is None:
            raise InputError(what, f"job {show(job)}", "a live job: add it first")
        return of

    def noise(self, noise: object) -> list[tuple[Job, NoiseScale]]:
        """Read the gradient noise of jobs, and return it for jobs whose noise was unknown."""
        first = []
        for job, told in by_name(noise, "noise").items():
            of, place = self._known(job, "noise"), f"noise: job {job!r}"
            if isinstance(told, NoiseScale):
                scale = record_of(msgspec.to_builtins(told), NoiseScale, place)
                if found := list(noise_problems(scale, "")):
                    raise as_error(place, found)
            else:
                number = amount(told, place, "a noise scale in samples, or a NoiseScale")
                scale = NoiseScale(batches=(of.profile.base_batch,), scale=(number,))
            if of.state.noise is None:
                first.append((of.state.job, scale))
            self.state.jobs[job] = replace(of, state=replace(of.state, noise=scale))
        return first

    def progress(self, progress: object) -> None:
        """Read the total work that jobs have done."""
        for job, done in by_name(progress, "progress").items():
            of = self._known(job, "progress")
            told = amount(done, f"progress: job {job!r}", "work, 0 or more")
            self.state.jobs[job] = progressed(of, told, self.state.now_s)

    def block(self, blocked: object) -> None:
        """Read why jobs may not start."""
        for job, why in by_name(blocked, "blocked").items():
            of = self._known(job, "blocked")
            if why is not None and (not isinstance(why, str) or not why):
                raise InputError(f"blocked: job {job!r}", show(why), "a reason, or None")
            self.state.jobs[job] = replace(of, state=replace(of.state, blocked=why))

    def show(self, job: str, told: dict[str, Any]) -> None:
        """Read where a job runs, and its past, into a state without memory."""
        of, place = self.state.jobs[job], f"job {job!r}"
        nodes = told.pop("nodes", None)
        clock = amount(told.pop("clock", 1.0), f"{place}, clock", "above 0, at most 1")
        if nodes is not None:
            cluster = self.settings.cluster
            placement = placement_of(nodes, cluster, self.settings.number, place)
            of = runs_on(of, placement, cluster, self.state.now_s, clock=clock)
            told = {"held_s": 0.0} | told
        if told:
            fields = msgspec.to_builtins(of.state) | {k: plain(v) for k, v in told.items()}
            of = replace(of, state=record_of(fields, JobState, place))
        self.state.jobs[job] = of
        self._fit()

    def run(self, running: object) -> None:
        """Read on which nodes jobs really run; all running jobs must fit together."""
        cluster = self.settings.cluster
        for job, nodes in by_name(running, "running").items():
            of, place = self._known(job, "running"), f"running: job {job!r}"
            if nodes is None:
                self.state.jobs[job] = stopped(of, self.state.now_s)
                continue
            placement = placement_of(nodes, cluster, self.settings.number, place)
            for node in (self.settings.node_names[k] for k, _ in placement):
                if self.state.service.get(node) == "lost":
                    raise InputError(place, f"node {show(node)}, which is lost", "it to be back")
            now = of.state.allocation
            clock = 1.0 if now is None else now.option.clock
            batch = None if now is None else now.option.batch
            self.state.jobs[job] = runs_on(
                of, placement, cluster, self.state.now_s, clock=clock, batch=batch
            )
        self._fit()

    def _fit(self) -> None:
        """Raise InputError if jobs use more GPUs than a node has; mark nodes in use as awake."""
        used = Counter[int]()
        for allocation in distinct([*self.state.held.values()]):
            used.update(dict(allocation.placement))
        for node, gpus in used.items():
            room = int(self.settings.cluster.topology.node_gpus[node])
            if gpus > room:
                place = f"running: node {self.settings.node_names[node]!r}"
                expected = f"at most {room}: say of all jobs that moved where they run"
                raise InputError(place, f"{gpus} GPUs in use", expected)
        self.state.asleep = tuple(node for node in self.state.asleep if node not in used)

    def _seen(self, job: str, step: StepTime) -> Seen:
        """Return a measured step with its profile and GPU type, and the GPUs and nodes used."""
        of, place = self._known(job, "measured"), f"measured: job {job!r}"
        runs = of.state.allocation
        if runs is None:
            raise InputError(place, "a step of a job that does not run", "one that runs")
        if of.profile.name not in self.settings.profiles:
            raise InputError(place, "a step of a job without profile", "its rates, by columns")
        step = record_of(msgspec.to_builtins(step), StepTime, place)
        amount(step.compute_s, f"{place}, compute_s")
        amount(step.sync_s, f"{place}, sync_s")
        option, topology = runs.option, self.settings.cluster.topology
        kind = topology.pools[option.pool].gpu_type.name
        batch = step.local_batch or option.batch / option.computing
        racks = topology.racks_of(node for node, _ in runs.placement)
        model = of.profile.throughput[kind]
        way = way_of(model, option.computing, len(runs.placement), batch, racks)
        return (of.profile.name, kind), way, step


def _widest(speeds: Tables) -> int:
    return max(max(table.gpus) for table in speeds.values())


def _steps(measured: object) -> tuple[dict[str, StepTime], object]:
    if not isinstance(measured, Mapping):
        return {}, measured
    steps = {job: each for job, each in measured.items() if isinstance(each, StepTime)}
    rest = {job: each for job, each in measured.items() if job not in steps}
    return steps, rest or None


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """An item that an update refused; all other items take effect.

    Attributes
    ----------
    argument
        Argument of `Embedded.update` that had the item.
    item
        Id of the job or name of the node; "" if the whole argument cannot be read.
    message
        Error in one line: its place, the value found and the value expected.
    """

    argument: str
    item: str
    message: str


def items(told: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield news one by one as triples of argument, job or node, and news."""
    for argument, given in told.items():
        try:
            parts = _parts(argument, given)
        except InputError:  # unreadable: whoever applies it says why
            parts = [("", given)]
        for item, part in parts:
            yield argument, item, part


def _parts(argument: str, given: Any) -> list[tuple[str, Any]]:
    if argument in ("added", "changed"):
        rows = rows_of(given, argument) if is_frame(given) else ids_of(given, argument)
        return [(str(r.get("id", "")) if isinstance(r, Mapping) else "", [r]) for r in rows]
    if argument == "measured":
        given = by_job(given, argument)
    if argument in ("removed", "completed") and not isinstance(given, Mapping):
        return [(str(job), [job]) for job in ids_of(given, argument)]
    return [(str(name), {name: each}) for name, each in by_name(given, argument).items()]
