"""ronda inside another scheduler: the host reports events, and ronda returns changes."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock, RLock
from typing import Any, Literal

import msgspec
from msgspec.structs import replace

from ronda.horizon.beliefs import Beliefs
from ronda.horizon.gate import answer
from ronda.hosts.embedding.changes import LOG, Changes, Hook, changes, tell
from ronda.hosts.embedding.jobs import UNRATED
from ronda.hosts.embedding.live import carried_out
from ronda.hosts.embedding.nodes import NodeNews, moved, settle, tell_nodes, with_nodes
from ronda.hosts.embedding.plain import by_name
from ronda.hosts.embedding.reader import Reader, Refusal, items
from ronda.hosts.embedding.records import (
    FORMAT,
    SavedState,
    Settings,
    Speeds,
    State,
    checked_settings,
    names_of,
    settings_of,
    with_past,
)
from ronda.hosts.embedding.round import round_of
from ronda.instances.arguments import checked, refuse_unfit
from ronda.instances.base import Index, Positive
from ronda.instances.check.incremental import Ledger
from ronda.instances.check.option import completed
from ronda.instances.clock import Deadline, OutOfTimeError, cancellable
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.files.storage import read_bytes, write_bytes
from ronda.instances.job import Allocation, Costs, Job
from ronda.instances.plan import Plan, SolutionStatus, StopReason
from ronda.instances.profile import NoiseScale, Profile
from ronda.instances.round import Round
from ronda.instances.rules.problem import show
from ronda.instances.site import NO_SITE, Site
from ronda.solvers.contract import Capability, Policy
from ronda.solvers.registry import as_policy

_SOLVING = Lock()
"""Lock by which solvers of a process take turns, because two threads may block each other."""


class Embedded:
    """The decision maker of another scheduler, which keeps jobs, beliefs and the last plan.

    It only decides: it starts no thread, opens no file, prints nothing and changes no global
    settings. It logs as ``ronda.embedding``: each decision (INFO), refusals and fallbacks
    (WARNING). Any thread may call it. Calls wait for each other, except `cancel`.

    Parameters
    ----------
    policy
        Policy, or its name with parameters.
    cluster
        Cluster on which jobs run.
    profiles
        Shared models of speed, keyed by name.
    costs
        Costs of starts, changes and stops; a job may have its own.
    length_s
        Approximate time between decisions, in seconds.
    history
        Whether the sizes of completed jobs predict undeclared sizes of similar jobs.
    speeds
        Whether the speeds of `profiles` are ``"given"``, or ``"learnt"`` from measured steps of
        jobs. If learnt, a model only says where its jobs can run.
    node_names
        Names of the nodes in order; by default the name of the group and a number.
    seed
        Seed of all random choices.
    site
        Rules of the site.
    on_decision
        Function that is called with the `DecisionRecord` of each decision, for metrics.

    Examples
    --------
    >>> import ronda
    >>> cluster = ronda.uniform_cluster(ronda.GpuType(name="A100", memory_gib=40), 3, 8)
    >>> host = ronda.Embedded("prices", cluster)
    >>> rates = {"gpus": [8, 16, 24], "rate": [1.0, 1.8, 2.5]}
    >>> host.update(added=[{"id": "a", "work": 900.0, "rates": rates}])
    ()
    >>> host.decide(deadline_s=5.0).start["a"].placement
    {'nodes-0': 8, 'nodes-1': 8, 'nodes-2': 8}
    """

    @checked
    def __init__(
        self,
        policy: Policy | str,
        cluster: Cluster,
        *,
        profiles: Mapping[str, Profile] | None = None,
        costs: Costs | None = None,
        length_s: Positive = 60.0,
        history: bool = True,
        speeds: Speeds = "given",
        node_names: Sequence[str] | None = None,
        seed: Index = 0,
        site: Site | None = None,
        on_decision: Hook | None = None,
    ) -> None:
        rest = {"length_s": length_s, "history": history, "speeds": speeds, "seed": seed}
        rules = site or NO_SITE
        settings = settings_of(cluster, profiles, costs, node_names, site=rules, **rest)
        self._set_up(policy, settings, on_decision)

    def _set_up(self, policy: Policy | str, settings: Settings, on_decision: Hook | None) -> None:
        """Set all fields of a new or a restored host."""
        self._spec = policy if isinstance(policy, str) else None
        self._policy, self._settings = as_policy(policy), settings
        self._on_decision = on_decision
        self._elastic = Capability.ELASTIC in self._policy.capabilities
        self._cluster = settings.cluster  # without the GPUs that are now out of service
        learns = settings.speeds == "learnt"
        self._beliefs = Beliefs(history=settings.history, alike=self._alike, speeds=learns)
        self._state = State()
        self._profiles: dict[str, Profile] = {}
        self._ledger: Ledger | None = None  # running jobs, if all were decided here
        self._lock, self._cancelled = RLock(), Event()
        self._warned = False

    def _alike(self, job: Job) -> str:
        """Return the application of a job for learnt sizes; jobs without rates are kept apart."""
        of = self._state.jobs.get(job.id)
        name = job.profile if of is None else of.given.application
        return f"{job.profile}: {name}" if job.profile in UNRATED else name

    def update(
        self,
        *,
        now_s: float | None = None,
        power_cap_w: float | None = None,
        profiles: Mapping[str, Profile | None] | None = None,
        cluster: Cluster | None = None,
        node_names: Sequence[str] | None = None,
        nodes_added: Mapping[str, str] | None = None,
        completed: Iterable[str] | Mapping[str, float] = (),
        removed: Iterable[str] = (),
        nodes: Mapping[str, NodeNews] | None = None,
        added: object = (),
        measured: object = None,
        changed: object = (),
        progress: Mapping[str, float] | None = None,
        running: Mapping[str, object] | None = None,
        noise: Mapping[str, float | NoiseScale] | None = None,
        blocked: Mapping[str, str | None] | None = None,
        errors: Literal["raise", "return"] = "raise",
    ) -> tuple[Refusal, ...]:
        """Report what has happened since the last decision; all of it takes effect, or nothing.

        With `errors` "return" each item is accepted or refused separately, and the refused ones are
        returned. The parameters are listed in the order in which they take effect.

        Parameters
        ----------
        now_s
            Time in seconds by any clock that never goes back; None means no change.
        power_cap_w
            New limit on the power draw of the cluster; None means no change, infinite no limit.
        profiles
            New shared models, or new versions under the same names, or None for a model that no job
            uses any more. Learnt data are kept.
        cluster, node_names
            New machines; jobs go on running on nodes with the same names.
        nodes_added
            Names of new nodes, each mapped to the name of the node group that it resembles.
        completed
            Completed jobs, or a mapping to their total work; the default is the work done so far.
        removed
            Jobs that have left without completing.
        nodes
            Events of nodes, keyed by name. If a node is ``"lost"``, its jobs go back to their last
            checkpoint (`Costs.checkpoint_s`, unless `progress` reports their work) and wait. If it
            is ``"drained"``, its jobs go on there, and no new job starts. If it is ``"back"``, it
            is in service again. A number is the time at which it will go out of service, until
            which jobs start there that end before; ``"back"`` takes it back.
        added
            Rows of new jobs, as for `make_round`, without their state.
        measured
            New rates of jobs, keyed by id or as a frame with a column ``job``; or the `StepTime` of
            jobs whose models are learnt, keyed by id.
        changed
            Rows of live jobs with ``id`` and the fields that change, such as ``work``, ``weight``,
            ``deadline_s`` and limits. A job keeps its progress and the beliefs about it. If its
            allocation is no longer allowed, the job leaves it at the next decision, unless it may
            not be stopped.
        progress
            Total work done by jobs so far, in the unit of their rates.
        running
            Nodes on which jobs really run; None for a job that does not run. Jobs without an entry
            run as decided.
        noise
            Present gradient noise scale of jobs in samples, for all batches or for each batch. A
            job whose profile has several batches keeps its own batch until its noise is known.
        blocked
            Reasons why waiting jobs may not start, such as a job that must come first, keyed by id;
            None if a job may start. A job also waits for the live jobs in its ``after``, and for
            its ``eligible_s``.
        errors
            With "return", each job or node is accepted or refused separately; time, power, models
            and new machines still take effect together or raise.

        Raises
        ------
        InputError
            If a job is wrong; the error names the job and the field or column.
        """
        told = {k: list(v) if isinstance(v, Iterator) else v for k, v in locals().items()}
        del told["self"], told["errors"]
        refuse_unfit("errors", errors, Literal["raise", "return"])
        with self._lock:
            try:
                self._take(told)
                return ()
            except InputError:
                if errors == "raise":
                    raise
            whole = ("now_s", "power_cap_w", "profiles", "cluster", "node_names")
            self._take({name: told.pop(name) for name in whole})
            refused = []
            for argument, item, part in items(told):
                try:
                    self._take({argument: part})
                except InputError as error:
                    refused.append(Refusal(argument=argument, item=item, message=str(error)))
        for each in refused:
            LOG.warning("refused: %s", each.message)
        return tuple(refused)

    def _take(self, told: Mapping[str, Any]) -> None:
        """Apply all news in the order in which a run would produce them, or raise and apply none.

        A completed job has not lost its node, reports count after losses, and a step was measured
        under the job's previous limits.
        """
        before = self._state
        state = replace(before, jobs=dict(before.jobs), alike=dict(before.alike))
        settings = self._settings_with(told)
        read = Reader(state, settings, elastic=self._elastic)
        read.clock(told.get("now_s"), told.get("power_cap_w"))
        ended, works = read.complete(told.get("completed", ()))
        ended += read.gone(told.get("removed", ()), "removed")
        machines = settings.cluster is not self._settings.cluster
        machines |= settings.node_names is not self._settings.node_names
        if machines:
            moved(state, self._settings, settings)
        tell_nodes(state, settings, told.get("nodes"))
        if settings is not self._settings:
            read.remodel()
        read.add(told.get("added", ()))
        steps = read.measure(told.get("measured"))
        read.change(told.get("changed", ()))
        read.progress(told.get("progress"))
        read.run(told.get("running"))
        read.narrow()
        began = read.noise(told.get("noise"))
        read.block(told.get("blocked"))
        shown = self._in_service(state, settings)
        for of in ended:
            work = works.get(of.given.job.id)
            self._beliefs.end(of.state.job, work if work and of.known else None)
        old, new = self._settings.profiles, settings.profiles
        for name in old.keys() | new.keys() if new is not old else ():
            if old.get(name) is not new.get(name):
                self._beliefs.remodel(name)
        for job, scale in began:
            self._beliefs.begin(job, scale)
        for where, way, step in steps:
            self._beliefs.measure(where, way, step.compute_s, step.sync_s)
        left = any(of.leaves is not None for of in state.jobs.values())
        gone = {of.state.job.id: held for of in ended if (held := of.state.allocation) is not None}
        strange = shown is not self._cluster or left or told.get("running")
        if strange or any(held.array is not None for held in gone.values()):
            self._ledger = None
        for name in gone:
            if self._ledger is not None:
                self._ledger.release(name)
        state = with_past(before, state, self._settings)
        self._state, self._profiles = state, self._profiles_of(state)
        self._settings, self._cluster = settings, shown

    @checked
    def decide(self, deadline_s: Positive | None = None) -> Changes:
        """Decide which jobs run from now on, and assume that the host carries the decision out.

        Even if the policy fails, the call returns at about the deadline, with an answer in which
        running jobs go on and jobs that fit start. The same state gives the same answer unless the
        deadline ends the search.
        """
        deadline = Deadline(deadline_s, cancelled=self._cancelled)
        self._mind_noise()
        with self._lock, _turn(deadline) as mine:
            at_s, round = [deadline.elapsed()], self._round()
            if mine:
                found = self._decided(round, deadline, at_s)
            else:
                found = Changes(plan=_kept(round, StopReason.TIME_LIMIT))
            at_s.append(deadline.elapsed())
        tell(round, found, at_s, self._on_decision)
        return found

    def _decided(self, round: Round, deadline: Deadline, at_s: list[float]) -> Changes:
        """Decide a round and carry it out; note in `at_s` when round and plan were ready."""
        before, ledger = self._state, self._ledger or Ledger(round.cluster)
        try:
            with cancellable(self._cancelled):
                believed = self._believed(round)
                at_s.append(deadline.elapsed())
                plan = answer(
                    self._policy,
                    believed,
                    ledger,
                    deadline=deadline,
                    seed=self._settings.seed,
                    initial=before.plan,
                ).plan
        except OutOfTimeError:
            plan = _kept(round, StopReason.TIME_LIMIT)
        at_s.append(deadline.elapsed())
        if self._cancelled.is_set():
            self._cancelled.clear()
            return Changes(cancelled=True, plan=_kept(round, StopReason.TIME_LIMIT))
        left = {job: of.leaves for job, of in before.jobs.items() if of.leaves is not None}
        found = changes(round.cluster, self._settings.node_names, round.held | left, plan)
        after = carried_out(before, self._settings, round.held, plan)
        self._state = with_past(before, after, self._settings)
        self._cluster = self._in_service(self._state, self._settings)
        self._ledger = None
        sound = plan.status is not SolutionStatus.NONE  # otherwise it may break a rule
        if sound and self._cluster is round.cluster:
            ledger.accept(plan)
            self._ledger = ledger
        return found

    def _mind_noise(self) -> None:
        """Warn once about jobs that keep their batch because their noise is unknown."""
        for job, of in () if self._warned else self._state.jobs.items():
            given = of.given
            free = given.speeds is None and given.job.batch is None and len(of.profile.batches) > 1
            if not free or of.state.noise is not None or of.state.allocation is None:
                continue
            if self._state.now_s - of.state.held_s >= self._settings.length_s:
                self._warned = True
                text = f"the noise of job {job!r} is not told: it keeps its batch (update(noise=))"
                warnings.warn(text, stacklevel=3)
                return

    def cancel(self) -> None:
        """Make the current decision, or else the next one, change nothing.

        The decision returns at its next checkpoint; a running call of HiGHS ends by its own limits.
        """
        self._cancelled.set()

    @property
    def jobs(self) -> tuple[str, ...]:
        """The ids of the live jobs."""
        return tuple(self._state.jobs)

    @property
    def running(self) -> dict[str, Allocation]:
        """The allocations of running jobs, keyed by id."""
        return self._state.held

    def round(self) -> Round:
        """Return the present round as policies see it, including beliefs."""
        with self._lock:
            return self._believed(self._round())

    def _believed(self, round: Round) -> Round:
        """Return a round with beliefs, as policies see it, in which no rate is a placeholder."""
        return completed(self._beliefs.believe(round))

    def _round(self) -> Round:
        """Return the round without beliefs."""
        return round_of(self._settings, self._state, self._profiles, self._cluster)

    @checked
    def save(self, path: str | Path | None = None) -> bytes:
        """Return the state for another process to go on from, and write it to `path` if given."""
        with self._lock:
            saved = SavedState(
                format=FORMAT,
                policy=self._spec,
                settings=self._settings,
                state=self._state,
                believed=self._beliefs.save(),
                told=self._on_decision is not None,
            )
            data = msgspec.msgpack.encode(saved)
        if path is not None:
            write_bytes(Path(path), data)
        return data

    @classmethod
    @checked
    def restore(
        cls,
        saved: bytes | str | Path,
        policy: Policy | str | None = None,
        on_decision: Hook | None = None,
    ) -> "Embedded":
        """Return an `Embedded` that goes on from a saved one, given as bytes or a file.

        Parameters
        ----------
        policy
            New policy; it is required if the saved policy was not given by name.
        on_decision
            Hook for decisions. It is not saved; a warning is logged if the saved host had one.
        """
        data = saved if isinstance(saved, bytes) else read_bytes(Path(saved))
        try:
            found = msgspec.msgpack.decode(data, type=SavedState)
        except msgspec.DecodeError as error:
            raise InputError("saved state", str(error), "what Embedded.save made") from None
        chosen = policy if policy is not None else found.policy
        if found.told and on_decision is None:
            warnings.warn(
                "decisions are told to nobody any more: restore(on_decision=)", stacklevel=3
            )
        if found.format != FORMAT:
            raise InputError("saved state", show(found.format), FORMAT)
        if chosen is None:
            raise InputError("policy", "none: it was saved with one that has no name", "one")
        made = cls.__new__(cls)
        made._set_up(chosen, checked_settings(found.settings), on_decision)
        made._state = found.state
        made._cluster = made._in_service(found.state, found.settings)
        made._profiles = made._profiles_of(found.state)
        made._beliefs.restore(found.believed)
        return made

    def _settings_with(self, told: Mapping[str, Any]) -> Settings:
        """Return the settings with new profiles and machines; the same object without any."""
        settings = self._settings
        known, models = settings.profiles, by_name(told.get("profiles"), "profiles")
        if any(known.get(name) is not model for name, model in models.items()):
            told_now = (known | models).items()
            settings = replace(settings, profiles={n: m for n, m in told_now if m is not None})
        cluster, names = told.get("cluster"), told.get("node_names")
        if cluster is not None or names is not None:
            cluster = settings.cluster if cluster is None else cluster
            settings = replace(settings, cluster=cluster, node_names=names_of(cluster, names))
        if by_name(told.get("nodes_added"), "nodes_added"):
            cluster, names = with_nodes(settings.cluster, settings.node_names, told["nodes_added"])
            settings = replace(settings, cluster=cluster, node_names=names)
        return (
            settings if settings is self._settings else checked_settings(settings, self._settings)
        )

    def _in_service(self, state: State, settings: Settings) -> Cluster:
        """Return the cluster without GPUs out of service; the same object while nothing changes."""
        out, whole = settle(state, settings), settings.cluster
        if out == whole.out:
            return whole
        same = settings is self._settings and self._cluster.out == out
        return self._cluster if same else replace(whole, out=out)

    def _profiles_of(self, state: State) -> dict[str, Profile]:
        """Return the profiles of live jobs; the same object while nothing changes."""
        found = {of.profile.name: of.profile for of in state.jobs.values()}
        last = self._profiles
        same = found.keys() == last.keys() and all(found[n] is last[n] for n in found)
        return last if same else found


@contextmanager
def _turn(deadline: Deadline) -> Iterator[bool]:
    """Wait for other decisions of this process to end, and return whether there is time left."""
    mine = _SOLVING.acquire(timeout=-1 if deadline.limit_s is None else deadline.left())
    try:
        yield mine
    finally:
        if mine:
            _SOLVING.release()


def _kept(round: Round, stop: StopReason) -> Plan:
    return Plan(allocations=round.held, stop=stop, status=SolutionStatus.FALLBACK)
