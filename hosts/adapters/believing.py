"""Beliefs for hosts like AdaptDL, which name all live jobs at every decision.

Such a host gives only a fitted speed-up function for each job. Successive functions show what ronda
believes in a run with ``--knowledge history``: the time of a step where the job really ran (each
new measurement changes the fit), the gradient noise, and the work done since the last decision.
Jobs of one application share these beliefs.
"""

import re
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ronda.hosts.adapters.goodput import Goodput, first_batch, goodput_of
from ronda.hosts.adapters.telling import Hosted, placement_of
from ronda.hosts.embedding.changes import Changes
from ronda.hosts.embedding.records import StepTime
from ronda.hosts.embedding.unmeasured import unmeasured_profile
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, Costs
from ronda.instances.profile import Profile, Tabular
from ronda.solvers.contract import Policy

Key = Any
ApplicationOf = Callable[[Key], str]


def by_name(key: Key) -> str:
    """Return the application of a job: its name without the number or hash at the end.

    Kubernetes appends a hash of five letters and digits without vowels to a ``generateName``.
    """
    name = str(key[-1] if isinstance(key, tuple) else key)
    return re.sub(f"[-_.]({_NUMBER})$", "", name)


_NUMBER = r"\d+|[0-9a-f]{8,}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[bcdfghj-np-tv-xz2-9]{5}"


def now_of(job: Any) -> float | None:
    """Return the time from a job's creation time and age; None if the job lacks them."""
    since, age = getattr(job, "creation_timestamp", None), getattr(job, "age", None)
    if age is None or not isinstance(since, int | float):
        return None
    return float(since) + float(age)


class HostJob(NamedTuple):
    """A live job as its host describes it.

    `low` and `high` limit its GPUs, `speedups` are its functions keyed by GPU type (None if
    unknown), and `nodes` has the node of each GPU that it holds.
    """

    application: str
    submit_s: float
    low: int
    high: int
    speedups: Mapping[str, Any]
    nodes: Sequence[int]
    preemptible: bool = True
    costs: Costs | None = None


class Ran(NamedTuple):
    """The run of a job since the last decision: placement, start, speed and local batch."""

    placement: tuple[tuple[int, int], ...]
    resume_s: float
    rate: float
    local_batch: float


class Batches(NamedTuple):
    """The batches of an application, as for `unmeasured_profile`; local ones by GPU type."""

    base_batch: float
    max_batch: float
    local_batch: dict[str, tuple[float, float]]


class Believing(Hosted):
    """An `Embedded` that learns from speed-up functions.

    If functions of jobs with one name contradict each other, in batches or by a factor of three in
    step time, the jobs belong to several applications. In that case the name says nothing about
    jobs that have no function yet. Without `beliefs`, jobs have the rates of their own functions
    and nothing is learnt.
    """

    def __init__(
        self, policy: Policy | str, *, length_s: float, costs: Costs, beliefs: bool = True
    ) -> None:
        rest = {"history": beliefs, "speeds": "learnt"}
        super().__init__(policy, length_s=length_s, costs=costs, **rest)
        self.costs, self.beliefs = costs, beliefs
        self._most: dict[str, int] = {}  # most GPUs of jobs, keyed by application
        self._batches: dict[str, Batches] = {}  # keyed by application with a model
        self._models: dict[str, Profile] = {}  # keyed by application of live jobs
        self._handed: set[str] = set()  # models that the façade has
        self._kinds: dict[str, dict[str, dict[str, Goodput]]] = {}  # by name, its applications
        self._warned = False
        self._shares: set[str] = set()  # jobs that share the model of their application
        self._known: dict[str, dict[str, Goodput]] = {}  # functions at the last decision
        self._ran: dict[str, Ran] = {}
        self._done: dict[str, float] = {}
        self._limited: dict[str, dict[str, Any]] = {}
        self._of: dict[str, str] = {}  # application of each job
        self._now_s = 0.0

    def decide(
        self,
        now_s: float,
        jobs: Mapping[str, HostJob],
        cluster: Cluster,
        node_names: Sequence[str],
        deadline_s: float | None,
        unfit: Collection[str] = (),
    ) -> Changes:
        """Report all live jobs and decide; `unfit` jobs are too large for any machine."""
        if self.meet(cluster, node_names):
            self._models.clear()  # models say where jobs can run
        known = {name: self._read(job) for name, job in jobs.items()}
        jobs = {name: self._sorted(name, job, known[name]) for name, job in jobs.items()}
        self.host.update(removed=[name for name in self.host.jobs if name in unfit])
        self._tell(now_s, jobs, known)
        changes = self.host.decide(deadline_s)
        self._known, self._now_s = known, now_s
        self._note(jobs, known)
        self._mind_idle(jobs)
        return changes

    def _sorted(self, name: str, job: HostJob, known: dict[str, Goodput]) -> HostJob:
        """Return a job with its application, which jobs with similar functions share."""
        kinds, before = self._kinds.setdefault(job.application, {}), self._of.get(name)
        if not known:
            mine = before or (job.application if len(kinds) < 2 else f"{name} alone")
        else:
            order = sorted(kinds, key=lambda kind: kind != before)
            new = f"{job.application} ({len(kinds) + 1})" if kinds else job.application
            mine = next((kind for kind in order if _alike(kinds[kind], known)), new)
            kinds[mine] = kinds.get(mine, {}) | known
        if mine != before:
            self._shares.discard(name)
        self._of[name] = mine
        return job._replace(application=mine)

    def _mind_idle(self, jobs: Mapping[str, HostJob]) -> None:
        """Warn once if GPUs stay idle although waiting jobs would fit."""
        gpus, running = int(self.cluster.topology.node_gpus.sum()), self.host.running
        idle = gpus - sum(given.option.gpus for given in running.values())
        late = [name for name, job in jobs.items() if name not in running and job.low <= idle]
        if late and 2 * idle >= gpus and not self._warned:
            self._warned = True
            text = f"{idle} of {gpus} GPUs idle, and job {late[0]!r} waits: see application="
            warnings.warn(text, stacklevel=4)

    def _read(self, job: HostJob) -> dict[str, Goodput]:
        if not self.beliefs:
            return {}
        found = {kind: goodput_of(speedup) for kind, speedup in job.speedups.items()}
        return {kind: each for kind, each in found.items() if each is not None}

    def _tell(
        self, now_s: float, jobs: Mapping[str, HostJob], known: Mapping[str, dict[str, Goodput]]
    ) -> None:
        """Report to the façade what has happened since the last decision."""
        host = self.host
        live = [name for name in host.jobs if name in jobs]
        gone = [name for name in host.jobs if name not in jobs]
        seen = {name: self._since(name, now_s, jobs[name], known[name]) for name in live}
        held = {name: tuple(sorted(a.placement)) for name, a in host.running.items()}
        rates = {name: self._rates(jobs[name]) for name in live if name not in self._shares}
        host.update(now_s=now_s, completed=gone)
        profiles = self._new_profiles(jobs, known)
        host.update(running=self._strange(jobs, profiles))
        host.update(
            profiles=profiles,
            measured={name: each for name, each in rates.items() if each is not None},
            running={
                name: self._where(name, jobs[name])
                for name in live
                if placement_of(jobs[name].nodes) != held.get(name, ())
            },
        )
        self._shares &= jobs.keys()
        for kept in (self._done, self._limited, self._of):
            for name in kept.keys() - jobs.keys():
                del kept[name]
        for job in jobs.values():
            self._most[job.application] = max(job.high, self._most.get(job.application, 0))
        new = [name for name in jobs if name not in live]
        host.update(added=[self._row(name, jobs[name]) for name in new], changed=self._joins(jobs))
        host.update(running={name: self._where(name, jobs[name]) for name in new})
        host.update(
            progress={n: self._done[n] for n in live if n in self._shares and n in self._done},
            measured={
                n: step
                for n, step in seen.items()
                if step is not None and n in host.running and n in self._shares
            },
            noise={name: next(iter(each.values())).noise for name, each in known.items() if each},
            profiles=dict.fromkeys(self._handed - self._models.keys()),
        )
        self._handed &= self._models.keys()

    def _since(
        self, name: str, now_s: float, job: HostJob, known: Mapping[str, Goodput]
    ) -> StepTime | None:
        """Count a job's work since the last decision, and return its step time if measured."""
        ran, kind = self._ran.get(name), self._kind(job)
        if ran is None or kind not in known or ran.placement != placement_of(job.nodes):
            return None
        gpus, nodes, now = len(job.nodes), len(ran.placement), known[kind]
        rate, _ = now.tuned(nodes, gpus)
        before = self._known.get(name, {}).get(kind)
        measured = before is None or before.model != now.model
        if not measured:  # only the noise has changed
            rate = (rate + ran.rate) / 2
        ran_s = max(0.0, now_s - max(self._now_s, ran.resume_s))
        self._done[name] = self._done.get(name, 0.0) + rate * ran_s
        if not measured:
            return None
        local = ran.local_batch or first_batch(now.base, now.low, now.high, gpus)
        return now.step(nodes, gpus, local)

    def _note(self, jobs: Mapping[str, HostJob], known: Mapping[str, dict[str, Goodput]]) -> None:
        """Record how jobs run from now on."""
        ran = dict[str, Ran]()
        for name, given in self.host.running.items():
            before, kind = self._ran.get(name), self._kind_of(given)
            resume_s, placement = self._now_s, tuple(sorted(given.placement))
            if before is not None and before.placement == placement:
                resume_s = before.resume_s
            else:
                costs = jobs[name].costs or self.costs
                resume_s += costs.pause(given.option.gpus, started=name in self._done)
                self._done.setdefault(name, 0.0)
            tuned = 0.0, 0.0
            if kind in known[name]:
                tuned = known[name][kind].tuned(len(placement), given.option.gpus)
            ran[name] = Ran(placement, resume_s, *tuned)
        self._ran = ran

    def _kind(self, job: HostJob) -> str:
        """Return the GPU type on which a job runs; "" if it waits."""
        if not job.nodes:
            return ""
        topology = self.cluster.topology
        return topology.pools[int(topology.node_pool[job.nodes[0]])].gpu_type.name

    def _kind_of(self, given: Allocation) -> str:
        return self.cluster.topology.pools[given.option.pool].gpu_type.name

    def _new_profiles(
        self, jobs: Mapping[str, HostJob], known: Mapping[str, dict[str, Goodput]]
    ) -> dict[str, Any]:
        """Return new models of applications whose batches have become better known."""
        for name, each in known.items():
            application = jobs[name].application
            for kind, new in each.items():
                before = self._batches.get(application, Batches(new.base, new.most, {}))
                low, high = before.local_batch.get(kind, (new.low, new.high))
                local = before.local_batch | {kind: (min(low, new.low), max(high, new.high))}
                now = Batches(before.base_batch, max(before.max_batch, new.most), local)
                if now != before:
                    self._models.pop(application, None)
                self._batches[application] = now
        named = dict.fromkeys(job.application for job in jobs.values())
        live = {each: self._batches[each] for each in named if each in self._batches}
        found = {
            application: unmeasured_profile(application, self.cluster, **of._asdict())
            for application, of in live.items()
            if application not in self._models
        }
        self._models = {each: found.get(each) or self._models[each] for each in live}
        self._handed |= found.keys()
        return found

    def _strange(
        self, jobs: Mapping[str, HostJob], profiles: Mapping[str, Profile]
    ) -> dict[str, None]:
        """Return the jobs that run on numbers of GPUs and nodes that the new models lack."""
        found = dict[str, None]()
        for name, held in self.host.running.items():
            if name in self._shares and (application := jobs[name].application) in profiles:
                way = held.option.gpus, len(held.placement)
                if not self._knows(application, self._kind_of(held), way):
                    found[name] = None
        return found

    def _may_share(self, job: HostJob) -> bool:
        """Return whether the model of its application suits a job, including on its present nodes.

        A job that may not be stopped has its own rates, only for its present nodes.
        """
        return job.preemptible and job.application in self._batches and self._is_known(job)

    def _is_known(self, job: HostJob) -> bool:
        way = len(job.nodes), len(set(job.nodes))
        return not job.nodes or self._knows(job.application, self._kind(job), way)

    def _knows(self, application: str, kind: str, way: tuple[int, int]) -> bool:
        model = self._models[application].throughput.get(kind)
        return isinstance(model, Tabular) and way in zip(model.gpus, model.nodes, strict=True)

    def _where(self, name: str, job: HostJob) -> Sequence[int] | None:
        """Return the nodes of a job's GPUs; None if its model does not include them."""
        may = name not in self._shares or self._is_known(job)
        return job.nodes if job.nodes and may else None

    def _limits(self, job: HostJob) -> dict[str, Any]:
        """Return the limits of a job that shares the model of its application."""
        held = len(job.nodes)
        low, most = min(job.low, held or job.low), max(job.low, self._most[job.application], held)
        return {"gpus": low, "min_gpus": low, "max_gpus": most}

    def _row(self, name: str, job: HostJob) -> dict[str, Any]:
        """Return the row of a new job."""
        row = {"id": name, "submit_s": job.submit_s, "application": job.application}
        row |= {"preemptible": job.preemptible}
        if job.costs is not None:
            row["costs"] = {"start_s": job.costs.start_s, "restart_s": job.costs.restart_s}
        if self._may_share(job):
            self._shares.add(name)
            return row | self._limits(job) | {"profile": job.application}
        held = len(job.nodes) or job.low
        row |= {"gpus": min(job.low, held), "application": f"{job.application}, by speed-up"}
        return row | {"rates": self._rates(job)}

    def _joins(self, jobs: Mapping[str, HostJob]) -> list[dict[str, Any]]:
        """Return rows of live jobs that change: newly shared models, and wider limits."""
        rows, lives = [], {name: jobs[name] for name in self.host.jobs if name in jobs}
        for name, job in lives.items():
            if name not in self._shares and not self._may_share(job):
                continue
            row = {"id": name} | self._limits(job)
            if name not in self._shares:
                row |= {"profile": job.application, "application": job.application}
                self._shares.add(name)
                self._done.setdefault(name, 0.0)
            elif self._limited.get(name) == row:
                continue
            self._limited[name] = row
            rows.append(row)
        return rows

    def _rates(self, job: HostJob) -> dict[str, Any] | None:
        """Return the rates of a job's own functions; None if it has no functions."""
        parts, topology = [], self.cluster.topology
        for k, pool in enumerate(topology.pools):
            speedup = job.speedups.get(pool.gpu_type.name)
            if speedup is None:
                continue
            own = topology.node_pool == k
            size, most = int(topology.node_gpus[own].max()), min(job.high, pool.gpus)
            held = len(job.nodes) if self._kind(job) == pool.gpu_type.name else 0
            counts = {n for n in range(job.low, most + 1) if n <= size or n % size == 0}
            ways = {(n, -(-n // size)) for n in counts}
            if held:
                ways |= {(held, len(set(job.nodes))), (held, -(-held // size))}
            if ways:
                gpus, nodes = np.array(sorted(ways)).T
                kinds = np.repeat(pool.gpu_type.name, len(gpus))
                parts.append((gpus, nodes, np.asarray(speedup(nodes, gpus), dtype=float), kinds))
        if not parts:
            return None
        columns = map(np.concatenate, zip(*parts, strict=True))
        return dict(zip(("gpus", "nodes", "rate", "gpu_type"), columns, strict=True))


def _alike(one: Mapping[str, Goodput], other: Mapping[str, Goodput]) -> bool:
    """Return whether the functions of two jobs, keyed by GPU type, may be of one application."""
    ours, theirs = ({(each.base, each.most) for each in own.values()} for own in (one, other))
    if ours != theirs:
        return False
    for a, b in ((one[kind], other[kind]) for kind in one.keys() & other.keys()):
        if (a.low, a.high, a.accumulates) != (b.low, b.high, b.accumulates):
            return False
        local = first_batch(a.base, a.low, a.high, 1)
        if not 1 / 3 <= a.step(1, 1, local).compute_s / b.step(1, 1, local).compute_s <= 3:
            return False
    return True
