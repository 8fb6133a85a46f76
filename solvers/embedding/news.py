"""What a host tells of its jobs, read into the state: refused by name, or taken as a whole."""

from collections.abc import Iterable, Mapping

import msgspec

from ronda.formulations.models.measured import Way, way_of
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
from ronda.solvers.embedding.live import Live, at_rates, live, progressed, runs_on, stopped
from ronda.solvers.embedding.plain import plain, rows_of
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
            if not state.now_s <= now_s < float("inf"):
                expected = f"a time from {state.now_s:g} s on: no clock goes back"
                raise InputError("now_s", f"{now_s:g}", expected)
            state.now_s = float(now_s)
        if power_cap_w is not None:
            if not power_cap_w >= 0:
                raise InputError("power_cap_w", f"{power_cap_w:g}", "0 or more")
            state.power_cap_w = None if power_cap_w == float("inf") else float(power_cap_w)

    def gone(self, state: State, jobs: Iterable[str], what: str) -> list[Live]:
        """Take jobs out; return what they were."""
        found = []
        for job in jobs:
            found.append(_known(state, job, what))
            del state.jobs[job]
        return found

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
        for job, done in progress.items():
            of, amount = _known(state, job, "progress"), plain(done)
            if not isinstance(amount, int | float) or not 0 <= amount < float("inf"):
                raise InputError(f"progress: job {job!r}", show(amount), "work, 0 or more")
            state.jobs[job] = progressed(of, float(amount), state.now_s)

    def run(self, state: State, running: Mapping[str, object]) -> None:
        """Read what jobs really run on."""
        cluster = self.settings.cluster
        for job, nodes in running.items():
            of, place = _known(state, job, "running"), f"running: job {job!r}"
            if nodes is None:
                state.jobs[job] = stopped(of, state.now_s)
                continue
            placement = placement_of(nodes, cluster, self._number, place)
            held = of.state.allocation
            clock = 1.0 if held is None else held.option.clock
            batch = None if held is None else held.option.batch
            state.jobs[job] = runs_on(of, placement, cluster, state.now_s, clock=clock, batch=batch)

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


def _known(state: State, job: str, what: str) -> Live:
    of = state.jobs.get(job)
    if of is None:
        raise InputError(what, f"job {job!r}", "a live job: add it first")
    return of


def _steps(measured: object) -> tuple[dict[str, StepTime], object]:
    """Return the steps among what was measured, and the rest."""
    if not isinstance(measured, Mapping):
        return {}, measured
    steps = {job: each for job, each in measured.items() if isinstance(each, StepTime)}
    rest = {job: each for job, each in measured.items() if job not in steps}
    return steps, rest or None
