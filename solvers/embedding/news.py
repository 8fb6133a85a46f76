"""What a host tells of its jobs, read into the state: refused by name, or taken as a whole."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from ronda.formulations.fusion.sharing import narrowed
from ronda.formulations.models.measured import Way, way_of
from ronda.instances.check.arrays import distinct
from ronda.instances.errors import InputError
from ronda.instances.profile import Profile
from ronda.instances.rules.problem import show
from ronda.solvers.embedding.held import placement_of
from ronda.solvers.embedding.jobs import (
    COUNTS,
    given_jobs,
    named_counts,
    refuse_odd,
    unknown_profile,
)
from ronda.solvers.embedding.live import (
    Live,
    at_rates,
    live,
    narrower,
    progressed,
    runs_on,
    stopped,
)
from ronda.solvers.embedding.plain import amount, by_job, ids_of, rows_of
from ronda.solvers.embedding.rates import Host
from ronda.solvers.embedding.records import Settings, State, StepTime
from ronda.solvers.embedding.round import told_rates

Seen = tuple[tuple[str, str], Way, StepTime]
"""A measured step: of which profile and GPU type, and how the job ran."""


class Reader:
    """Reads news into a `State`, which it changes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._host = Host(settings.cluster, settings.ladder)
        self._untold = unknown_profile(settings.cluster)
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

    def gone(self, state: State, jobs: Iterable[str], what: str) -> list[Live]:
        """Take jobs out; return what they were."""
        found = []
        for job in ids_of(jobs, what):
            found.append(_known(state, job, what))
            del state.jobs[job]
        return found

    def complete(
        self, state: State, completed: Iterable[str] | Mapping[str, float]
    ) -> tuple[list[Live], dict[str, float]]:
        """Take complete jobs out; return what they were, and how much work."""
        ended = self.gone(state, completed, "completed")
        works = {of.job.id: of.state.done_at(state.now_s) if of.known else of.done for of in ended}
        if isinstance(completed, Mapping):
            for job, told in completed.items():
                if told is not None:
                    works[job] = amount(told, f"completed: job {job!r}", "work, 0 or more")
        return ended, works

    def narrow(self, state: State) -> None:
        """Let arrays that have lost members go on without them."""
        held = {i: a for i, of in state.jobs.items() if (a := of.state.allocation) is not None}
        if any(a.array is not None for a in held.values()):
            jobs = {i: state.jobs[i].state.job for i in held}
            profiles = {of.profile.name: of.profile for of in state.jobs.values()}
            for job, given in narrowed(held, jobs, profiles, self.settings.cluster).items():
                state.jobs[job] = narrower(state.jobs[job], given, state.now_s)

    def add(self, state: State, added: object) -> None:
        """Add jobs; those without a submission were submitted now."""
        settings = self.settings
        rows = [{"submit_s": state.now_s} | row for row in rows_of(added, "added")]
        if not rows:
            return
        new, profiles = list[Live](), dict[str, Profile]()
        made = given_jobs(rows, self._host, settings.profiles)
        for given in made:
            job = given.job
            if job.id in state.jobs:
                raise InputError(f"added: job {job.id!r}", "a live job", "an id that is new")
            if job.submit_s > state.now_s:
                expected = f"at most now_s, {state.now_s:g}"
                raise InputError(f"added: job {job.id!r}, submit_s", f"{job.submit_s:g}", expected)
            of = live(given, self._untold, settings.profiles)
            profiles[of.profile.name] = of.profile
            new.append(of)
        refuse_odd(made, [of.state.job for of in new], profiles, settings.cluster)
        state.jobs.update({of.job.id: of for of in new})

    def measure(self, state: State, measured: object) -> list[Seen]:
        """Read new rates; return the steps that were measured."""
        steps, tables = _steps(measured)
        rows = [{f: getattr(of.job, f) for f in ("id", *COUNTS)} for of in state.jobs.values()]
        for job, speeds in told_rates(self._host, tables, named_counts(rows)).items():
            of = _known(state, job, "measured")
            cluster = self.settings.cluster
            state.jobs[job] = at_rates(of, speeds, cluster, self._untold, state.now_s)
        return [self._seen(state, job, step) for job, step in steps.items()]

    def progress(self, state: State, progress: Mapping[str, float]) -> None:
        """Read what jobs have done."""
        for job, done in by_job(progress, "progress").items():
            of = _known(state, job, "progress")
            told = amount(done, f"progress: job {job!r}", "work, 0 or more")
            state.jobs[job] = progressed(of, told, state.now_s)

    def run(self, state: State, running: Mapping[str, object]) -> None:
        """Read what jobs really run on; all that run must fit their nodes together."""
        cluster = self.settings.cluster
        for job, nodes in by_job(running, "running").items():
            of, place = _known(state, job, "running"), f"running: job {job!r}"
            if nodes is None:
                state.jobs[job] = stopped(of, state.now_s)
                continue
            placement = placement_of(nodes, cluster, self._number, place)
            held = of.state.allocation
            clock = 1.0 if held is None else held.option.clock
            batch = None if held is None else held.option.batch
            state.jobs[job] = runs_on(of, placement, cluster, state.now_s, clock=clock, batch=batch)
        self._fit(state)

    def _fit(self, state: State) -> None:
        """Refuse what runs on more GPUs than a node has; nodes in use are awake."""
        held = [a for of in state.jobs.values() if (a := of.state.allocation) is not None]
        used = Counter[int]()
        for allocation in distinct(held):
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
        held = of.state.allocation
        if held is None:
            raise InputError(place, "a step of a job that does not run", "one that runs")
        if not step.compute_s > 0 or not step.sync_s >= 0:
            raise InputError(place, show(msgspec.to_builtins(step)), "seconds above 0")
        option, topology = held.option, self.settings.cluster.topology
        kind = topology.pools[option.pool].gpu_type.name
        batch = step.local_batch or option.batch / option.gpus
        racks = topology.racks_of(node for node, _ in held.placement)
        model = of.profile.throughput[kind]
        way = way_of(model, option.gpus, len(held.placement), batch, racks)
        return (of.profile.name, kind), way, step


def _known(state: State, job: object, what: str) -> Live:
    of = state.jobs.get(job) if isinstance(job, str) else None
    if of is None:
        raise InputError(what, f"job {show(job)}", "a live job: add it first")
    return of


def _steps(measured: object) -> tuple[dict[str, StepTime], object]:
    """Return the steps among what was measured, and the rest."""
    if not isinstance(measured, Mapping):
        return {}, measured
    steps = {job: each for job, each in measured.items() if isinstance(each, StepTime)}
    rest = {job: each for job, each in measured.items() if job not in steps}
    return steps, rest or None
