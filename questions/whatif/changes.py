"""Changes to a round; each gives a new round in which nodes and pools keep their numbers.

New nodes come after existing ones, and removed nodes are out of service
(`ronda.instances.cluster.Cluster.out`), so plans of both rounds name nodes alike.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ronda.formulations.topology import racks_above
from ronda.formulations.watts import drawn_w
from ronda.instances.base import Positive, Record
from ronda.instances.cluster import Cluster
from ronda.instances.errors import InputError
from ronda.instances.files.json import read_part
from ronda.instances.files.storage import label
from ronda.instances.job import Job, JobState
from ronda.instances.round import Round
from ronda.instances.rules.diagnose import record_of
from ronda.instances.rules.problem import one_of


class Gpus(Record, frozen=True):
    """The addition or removal of GPUs of a type.

    The name of the type may be in upper or lower case. If several partitions have it, the name
    includes one, as in ``vc1/A100``. A negative number of GPUs is removed, first from the nodes
    with the fewest GPUs in use. New nodes are like the largest group of the type and stand in its
    rack, the last is smaller if the GPUs do not fill it, and they draw no power until they are
    used.
    """

    gpu_type: str
    number: int

    def __str__(self) -> str:
        return f"{self.number:+d} {self.gpu_type}"

    def apply(self, round: Round) -> Round:
        """Return the round with more or fewer GPUs."""
        pool = self._pool(round.cluster)
        if not self.number:
            raise InputError("--gpus", "0", "a number of GPUs more (+8) or fewer (-8)")
        if self.number > 0:
            return replace(round, cluster=self._added(round.cluster, pool))
        topology = round.cluster.topology
        used = dict.fromkeys((topology.node_pool == pool).nonzero()[0].tolist(), 0)
        for held in round.held.values():
            for node, gpus in held.placement:
                if node in used:
                    used[node] += gpus
        left, gone = -self.number, dict[int, int]()
        for node in sorted(used, key=lambda node: (used[node], -node)):
            gone[node] = min(left, int(topology.node_gpus[node]))
            left -= gone[node]
        if left:
            there = f"at most the {topology.pools[pool].gpus} that are in service"
            raise InputError("--gpus", f"{-self.number} GPUs of {self.gpu_type} fewer", there)
        return _without(round, {node: gpus for node, gpus in gone.items() if gpus})

    def _pool(self, cluster: Cluster) -> int:
        names = [pool.name for pool in cluster.topology.pools]
        wanted = self.gpu_type.casefold()
        found = [
            k
            for k, name in enumerate(names)
            if wanted in (name.casefold(), name.rpartition("/")[2].casefold())
        ]
        if len(found) != 1:
            several = f"{self.gpu_type!r}, which is several pools" if found else repr(self.gpu_type)
            raise InputError("--gpus", several, one_of(names, self.gpu_type))
        return found[0]

    def _added(self, cluster: Cluster, pool: int) -> Cluster:
        pools = cluster.topology.pools
        key = (pools[pool].partition, pools[pool].gpu_type.name)
        own = [g for g in cluster.node_groups if (g.partition, g.gpu_type) == key]
        like = max(own, key=lambda group: group.count)
        whole, rest = divmod(self.number, like.gpus_per_node)
        shapes = [(whole, like.gpus_per_node), (1 if rest else 0, rest)]
        groups = list(cluster.node_groups)
        for count, gpus in shapes:
            if count:
                names = {group.name for group in groups}  # new nodes are off while not in use
                number = next(n for n in range(1, len(names) + 2) if f"new-{n}" not in names)
                off = {"sleep_w": 0.0, "wake_s": 0.0, "wake_w": 0.0}
                groups.append(
                    replace(like, name=f"new-{number}", count=count, gpus_per_node=gpus, **off)
                )
        return replace(cluster, node_groups=tuple(groups))


class PowerCap(Record, frozen=True):
    """A change of the power cap, to a `share` of the present one or else to some watts.

    Without either, there is no cap.
    """

    watts: Positive | None = None
    share: Positive | None = None

    def __str__(self) -> str:
        return f"cap {self.watts:,g} W" if self.share is None else f"cap ×{self.share:g}"

    def apply(self, round: Round) -> Round:
        """Return the round with the new cap."""
        cap_w = self.watts
        if self.share is not None:
            if round.power_cap_w is None:
                now_w = drawn_w(round, round.held, None)
                told = f"watts, as in 30kW; what runs now draws {now_w:,.0f} W with all nodes"
                raise InputError("--power-cap", f"{self.share:g} of no cap", told)
            cap_w = self.share * round.power_cap_w
        return replace(round, power_cap_w=cap_w)


class EnergyShare(Record, frozen=True):
    """A share of the energy that the round may use, and of the power that it can sustain."""

    share: Positive

    def __str__(self) -> str:
        return f"energy ×{self.share:g}"

    def apply(self, round: Round) -> Round:
        """Return the round with the new energy budget."""
        if round.energy_j is None:
            raise InputError("--energy", f"{self.share:g} of no budget", "a round that has one")
        scaled = {
            name: value * self.share
            for name in ("energy_j", "banked_j", "sustained_w")
            if (value := getattr(round, name)) is not None
        }
        return replace(round, **scaled)


class WithoutRack(Record, frozen=True):
    """The removal of a rack and all racks below it; jobs there wait."""

    rack: str

    def __str__(self) -> str:
        return f"without rack {self.rack}"

    def apply(self, round: Round) -> Round:
        """Return the round without the rack."""
        cluster = round.cluster
        above, topology = racks_above(cluster), cluster.topology
        below = {
            r for r, name in enumerate(topology.racks) if self.rack in above.get(name, (name,))
        }
        gone = {
            node: int(topology.node_gpus[node])
            for node, rack in enumerate(topology.node_rack.tolist())
            if rack in below and topology.node_gpus[node]
        }
        if below and not gone:
            found = f"{self.rack!r}, which has no node in service"
            raise InputError("--remove-rack", found, "a rack that has one")
        if not gone:
            known = [
                *dict.fromkeys([*filter(None, topology.racks), *(r.name for r in cluster.racks)])
            ]
            expected = one_of(known, self.rack) if known else "a round whose nodes are in racks"
            raise InputError("--remove-rack", repr(self.rack), expected)
        return _without(round, gone)


class WithoutNode(Record, frozen=True):
    """The removal of a node; jobs there wait."""

    node: int

    def __str__(self) -> str:
        return f"without node {self.node}"

    def apply(self, round: Round) -> Round:
        """Return the round without the node."""
        gpus = round.cluster.topology.node_gpus
        if not 0 <= self.node < len(gpus) or not gpus[self.node]:
            expected = f"a node in service, of 0 to {len(gpus) - 1}"
            raise InputError("--remove-node", f"{self.node}", expected)
        return _without(round, {self.node: int(gpus[self.node])})


class NewJob(Record, frozen=True):
    """An additional waiting job, without ``truth``."""

    job: Job

    def __str__(self) -> str:
        return f"with job {self.job.id}"

    def apply(self, round: Round) -> Round:
        """Return the round with the new job."""
        if any(state.job.id == self.job.id for state in round.jobs):
            raise InputError("--job", repr(self.job.id), "an id that no job of the round has")
        state = JobState(job=self.job, since_s=round.now_s)
        waiting = sorted((*round.waiting, state), key=lambda s: s.job.submit_s)
        return replace(round, waiting=tuple(waiting))


class WithoutJob(Record, frozen=True):
    """The removal of a job."""

    job: str

    def __str__(self) -> str:
        return f"without job {self.job}"

    def apply(self, round: Round) -> Round:
        """Return the round without the job."""
        known = [state.job.id for state in round.jobs]
        if self.job not in known:
            raise InputError("--remove-job", repr(self.job), one_of(known, self.job))
        running, waiting = (
            tuple(s for s in states if s.job.id != self.job)
            for states in (round.running, round.waiting)
        )
        return replace(round, running=running, waiting=waiting)


Change = Gpus | PowerCap | EnergyShare | WithoutRack | WithoutNode | NewJob | WithoutJob
"""A change of any kind; its text describes it in words."""


def _without(round: Round, gone: dict[int, int]) -> Round:
    """Return the round with some GPUs of nodes out of service; jobs that lose GPUs wait."""
    cluster = round.cluster
    out = dict(cluster.out)
    for node, gpus in gone.items():
        out[node] = out.get(node, 0) + gpus
    left = replace(cluster, out=tuple(sorted(out.items())))
    node_gpus, used = left.topology.node_gpus, dict.fromkeys(gone, 0)
    for held in round.held.values():
        for node, gpus in held.placement:
            if node in used:
                used[node] += gpus
    short = {node for node, gpus in used.items() if gpus > node_gpus[node]}
    stays, stopped = list[JobState](), list[JobState]()
    for state in round.running:
        on = () if state.allocation is None else state.allocation.placement
        if short.isdisjoint(node for node, _ in on):
            stays.append(state)
        else:
            stopped.append(state.stopped(round.now_s, state.done_at(round.now_s)))
    waiting = sorted((*round.waiting, *stopped), key=lambda state: state.job.submit_s)
    off = {node for node in gone if not node_gpus[node]}
    return replace(
        round,
        cluster=left,
        running=tuple(stays),
        waiting=tuple(waiting),
        asleep=_except(round.asleep, off),
        waking=_except(round.waking, off),
    )


def _except(nodes: Iterable[int], off: set[int]) -> tuple[int, ...]:
    return tuple(node for node in nodes if node not in off)


def read_job(path: Path, now_s: float) -> Job:
    """Read a new job from a file; the default time of submission is now."""
    fields: dict[str, Any] = read_part(path, dict)
    new = record_of({"submit_s": now_s} | fields, Job, label(path))
    if new.truth is not None:
        raise InputError(f"{path}, truth", "one", "none: of a round nobody knows it")
    return new
