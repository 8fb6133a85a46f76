"""What a host tells of its jobs, read into the state: refused by name, or taken as a whole."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from ronda.hosts.embedding.held import held, placement_of
from ronda.hosts.embedding.jobs import (
    UNTOLD,
    Given,
    converted,
    given_jobs,
    refuse_odd,
    row_of,
    shown,
    unrated_profiles,
)
from ronda.hosts.embedding.live import (
    Tracked,
    again,
    progressed,
    resized,
    runs_on,
    state_done,
    stopped,
    tracked,
)
from ronda.hosts.embedding.plain import amount, by_name, ids_of, plain, rows_of
from ronda.hosts.embedding.rates import Host, Tables, by_job, tables
from ronda.hosts.embedding.records import Settings, State, StepTime
from ronda.instances.check.sharing import distinct
from ronda.instances.errors import InputError
from ronda.instances.job import Job, JobState
from ronda.instances.models.measured import Way, way_of
from ronda.instances.models.sharing import narrowed
from ronda.instances.profile import NoiseScale
from ronda.instances.rules.problem import as_error, show
from ronda.instances.rules.profile import noise_problems

REMEMBERED = 1000
"""Applications whose rates are kept for new jobs."""

ELSEWHERE = ("partition", "gpu_types")
LIMITS = ("gpus", "min_gpus", "max_gpus", *ELSEWHERE)
"""Fields of a job that say on which GPUs it may run."""

Seen = tuple[tuple[str, str], Way, StepTime]
"""A measured step: of which profile and GPU type, and how the job ran."""


class Reader:
    """Reads news into a `State`, which it changes."""

    def __init__(self, settings: Settings, *, elastic: bool = True) -> None:
        self.settings, self._elastic = settings, elastic
        self._host = Host(settings.cluster)
        self._unrated = unrated_profiles(settings.cluster)
        self._number = {name: k for k, name in enumerate(settings.node_names)}

    def clock(self, state: State, now_s: float | None, power_cap_w: float | None) -> None:
        """Read the time and the power cap; None: as before."""
        if now_s is not None:
            expected = f"a time from {state.now_s:g} s on: no clock goes back"
            told = amount(now_s, "now_s", expected)
            if told < state.now_s:
                raise InputError("now_s", f"{told:g}", expected)
            state.now_s = told
        if isinstance(power_cap_w, float) and power_cap_w == float("inf"):
            state.power_cap_w = None
        elif power_cap_w is not None:
            state.power_cap_w = amount(power_cap_w, "power_cap_w")

    def remodel(self, state: State) -> None:
        """Give jobs the models of now."""
        for job, of in state.jobs.items():
            profile = self.settings.profiles.get(of.profile.name, of.profile)
            shared = of.profile.name == of.given.job.profile != UNTOLD
            if shared and profile.name not in self.settings.profiles:
                place, found = f"profiles: {show(profile.name)}", "none any more"
                raise InputError(place, found, f"the model of job {job!r}")
            if profile is of.profile:
                continue
            runs = of.state.allocation
            if runs is not None:
                option = runs.option
                way = {"clock": option.clock, "batch": option.batch}
                if (
                    held(self.settings.cluster, of.state.job, profile, runs.placement, **way)
                    is None
                ):
                    place = f"profiles: {show(profile.name)}"
                    raise InputError(place, "no speed", f"one for what job {job!r} runs on")
            state.jobs[job] = replace(of, profile=profile)

    def gone(self, state: State, jobs: Iterable[str], what: str) -> list[Tracked]:
        """Take jobs out; return what they were."""
        found = []
        for job in ids_of(jobs, what):
            found.append(_known(state, job, what))
            del state.jobs[job]
        return found

    def complete(
        self, state: State, completed: Iterable[str] | Mapping[str, float]
    ) -> tuple[list[Tracked], dict[str, float]]:
        """Take complete jobs out; return what they were, and how much work."""
        ended = self.gone(state, completed, "completed")
        works = {of.given.job.id: state_done(of, state.now_s) for of in ended}
        if isinstance(completed, Mapping):
            for job, told in completed.items():
                if told is not None:
                    works[job] = amount(told, f"completed: job {job!r}", "work, 0 or more")
        return ended, works

    def narrow(self, state: State) -> None:
        """Let arrays that have lost members go on without them."""
        running = {i: a for i, of in state.jobs.items() if (a := of.state.allocation) is not None}
        if any(a.array is not None for a in running.values()):
            jobs = {i: state.jobs[i].state.job for i in running}
            profiles = {of.profile.name: of.profile for of in state.jobs.values()}
            for job, given in narrowed(running, jobs, profiles, self.settings.cluster).items():
                of = state.jobs[job]
                done = of.state.done_at(state.now_s)
                state.jobs[job] = replace(of, state=of.state.narrowed(given, state.now_s, done))

    def add(self, state: State, added: object, rates: object = None) -> None:
        """Add jobs, with the `rates` of all; those without a submission were submitted now."""
        settings = self.settings
        rows = [{"submit_s": state.now_s} | row for row in rows_of(added, "added")]
        new, profiles = list[Tracked](), dict(self._unrated)
        told = tables(self._host, by_job(rates, "rates"))
        made = given_jobs(rows, self._host, settings.profiles, told)
        for k, given in enumerate(made):
            job = given.job
            if job.id in state.jobs:
                raise InputError(f"added: job {job.id!r}", "a live job", "an id that is new")
            if job.submit_s > state.now_s:
                expected = f"at most now_s, {state.now_s:g}"
                raise InputError(f"added: job {job.id!r}, submit_s", f"{job.submit_s:g}", expected)
            if given.speeds is None and job.profile == UNTOLD:
                given = made[k] = given._replace(speeds=state.alike.get(given.application))
            of = tracked(given, self._unrated, settings.profiles)
            profiles[of.profile.name] = of.profile
            new.append(of)
        refuse_odd(made, [of.state.job for of in new], profiles, settings.cluster)
        state.jobs.update({of.given.job.id: of for of in new})

    def measure(self, state: State, measured: object) -> list[Seen]:
        """Read new rates; return the steps that were measured."""
        steps, rates = _steps(measured)
        for job, speeds in tables(self._host, by_job(rates, "measured")).items():
            of = _known(state, job, "measured")
            state.jobs[job] = self._again(state, of.given._replace(speeds=speeds))
            self._share(state, of.given.application, speeds)
        return [self._seen(state, job, step) for job, step in steps.items()]

    def change(self, state: State, changed: object) -> None:
        """Read other fields of live jobs; what is not told stays."""
        settings, told, rows = self.settings, dict[str, Tables](), list[dict[str, Any]]()
        for row in rows_of(changed, "changed"):
            of = _known(state, row.get("id"), "changed")
            if fixed := sorted({"submit_s", "fusible", "rates"} & row.keys()):
                place = f"changed: job {of.given.job.id!r}"
                raise InputError(place, f"field {show(fixed[0])}", "fields that may change")
            rows.append(row_of(of.given.job, of.given.application, of.given.size) | row)
            if of.given.speeds is not None and "profile" not in row:
                told[of.given.job.id] = of.given.speeds
        given = given_jobs(rows, self._host, settings.profiles, told)
        pairs = [shown(each, self._unrated, settings.profiles) for each in given]
        profiles = self._unrated | {profile.name: profile for _, profile in pairs}
        refuse_odd(given, [job for job, _ in pairs], profiles, settings.cluster)
        fields = LIMITS if self._elastic else ("gpus", *ELSEWHERE)
        for each, (job, _) in zip(given, pairs, strict=True):
            before = state.jobs[job.id].given.job
            of = state.jobs[job.id] = self._again(state, each)
            if any(getattr(before, field) != getattr(each.job, field) for field in fields):
                elastic, cluster = self._elastic, settings.cluster
                state.jobs[job.id] = resized(of, job, cluster, state.now_s, elastic=elastic)

    def _again(self, state: State, given: Given) -> Tracked:
        of, settings = state.jobs[given.job.id], self.settings
        shared = settings.profiles
        return again(of, given, settings.cluster, self._unrated, shared, state.now_s)

    def _share(self, state: State, application: str, speeds: Tables) -> None:
        """Keep the rates of an application for new jobs of it: those of the most GPUs, the last."""
        before = state.alike.pop(application, None)
        keeps = before is not None and _widest(before) > _widest(speeds)
        state.alike[application] = before if before is not None and keeps else speeds
        if len(state.alike) > REMEMBERED:
            del state.alike[next(iter(state.alike))]

    def noise(self, state: State, noise: object) -> list[tuple[Job, NoiseScale]]:
        """Read the gradient noise of jobs; return that of those of which it was not known."""
        first = []
        for job, told in by_name(noise, "noise").items():
            of, place = _known(state, job, "noise"), f"noise: job {job!r}"
            if isinstance(told, NoiseScale):
                scale = converted(msgspec.to_builtins(told), NoiseScale, place)
                if found := list(noise_problems(scale, "")):
                    raise as_error(place, found)
            else:
                number = amount(told, place, "a noise scale in samples, or a NoiseScale")
                scale = NoiseScale(batches=(of.profile.base_batch,), scale=(number,))
            if of.state.noise is None:
                first.append((of.state.job, scale))
            state.jobs[job] = replace(of, state=replace(of.state, noise=scale))
        return first

    def progress(self, state: State, progress: object) -> None:
        """Read what jobs have done."""
        for job, done in by_name(progress, "progress").items():
            of = _known(state, job, "progress")
            told = amount(done, f"progress: job {job!r}", "work, 0 or more")
            state.jobs[job] = progressed(of, told, state.now_s)

    def show(self, state: State, job: str, told: dict[str, Any]) -> None:
        """Read where a job runs, and how it came there, into a state that remembers nothing."""
        of, place = state.jobs[job], f"job {job!r}"
        nodes = told.pop("nodes", None)
        clock = amount(told.pop("clock", 1.0), f"{place}, clock", "above 0, at most 1")
        if nodes is not None:
            cluster = self.settings.cluster
            placement = placement_of(nodes, cluster, self._number, place)
            of = runs_on(of, placement, cluster, state.now_s, clock=clock, batch=None)
            told = {"held_s": 0.0} | told
        if told:
            fields = msgspec.to_builtins(of.state) | {k: plain(v) for k, v in told.items()}
            of = replace(of, state=converted(fields, JobState, place))
        state.jobs[job] = of
        self._fit(state)

    def run(self, state: State, running: object) -> None:
        """Read what jobs really run on; all that run must fit their nodes together."""
        cluster = self.settings.cluster
        for job, nodes in by_name(running, "running").items():
            of, place = _known(state, job, "running"), f"running: job {job!r}"
            if nodes is None:
                state.jobs[job] = stopped(of, state.now_s)
                continue
            placement = placement_of(nodes, cluster, self._number, place)
            for node in (self.settings.node_names[k] for k, _ in placement):
                if state.service.get(node) == "lost":
                    raise InputError(place, f"node {show(node)}, which is lost", "it to be back")
            now = of.state.allocation
            clock = 1.0 if now is None else now.option.clock
            batch = None if now is None else now.option.batch
            state.jobs[job] = runs_on(of, placement, cluster, state.now_s, clock=clock, batch=batch)
        self._fit(state)

    def _fit(self, state: State) -> None:
        """Refuse what runs on more GPUs than a node has; nodes in use are awake."""
        running = [a for of in state.jobs.values() if (a := of.state.allocation) is not None]
        used = Counter[int]()
        for allocation in distinct(running):
            used.update(dict(allocation.placement))
        for node, gpus in used.items():
            room = int(self.settings.cluster.topology.node_gpus[node])
            if gpus > room:
                place = f"running: node {self.settings.node_names[node]!r}"
                expected = f"at most {room}: say of all jobs that moved where they run"
                raise InputError(place, f"{gpus} GPUs in use", expected)
        state.asleep = tuple(node for node in state.asleep if node not in used)

    def _seen(self, state: State, job: str, step: StepTime) -> Seen:
        """Return what a job measured."""
        of, place = _known(state, job, "measured"), f"measured: job {job!r}"
        runs = of.state.allocation
        if runs is None:
            raise InputError(place, "a step of a job that does not run", "one that runs")
        if of.profile.name not in self.settings.profiles:
            raise InputError(place, "a step of a job without profile", "its rates, by columns")
        step = converted(msgspec.to_builtins(step), StepTime, place)
        amount(step.compute_s, f"{place}, compute_s")
        amount(step.sync_s, f"{place}, sync_s")
        option, topology = runs.option, self.settings.cluster.topology
        kind = topology.pools[option.pool].gpu_type.name
        batch = step.local_batch or option.batch / option.gpus
        racks = topology.racks_of(node for node, _ in runs.placement)
        model = of.profile.throughput[kind]
        way = way_of(model, option.gpus, len(runs.placement), batch, racks)
        return (of.profile.name, kind), way, step


def _widest(speeds: Tables) -> int:
    return max(max(table.gpus) for table in speeds.values())


def _known(state: State, job: object, what: str) -> Tracked:
    of = state.jobs.get(job) if isinstance(job, str) else None
    if of is None:
        raise InputError(what, f"job {show(job)}", "a live job: add it first")
    return of


def _steps(measured: object) -> tuple[dict[str, StepTime], object]:
    if not isinstance(measured, Mapping):
        return {}, measured
    steps = {job: each for job, each in measured.items() if isinstance(each, StepTime)}
    rest = {job: each for job, each in measured.items() if job not in steps}
    return steps, rest or None
