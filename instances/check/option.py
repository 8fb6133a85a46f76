"""The check of one job's option and placement, and of the claims of running jobs."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from ronda.instances.check.parts import part_faults
from ronda.instances.check.physics import Pace, Physics
from ronda.instances.check.sharing import memory_faults, slowdown
from ronda.instances.cluster import Cluster
from ronda.instances.job import Allocation, Job, JobState, Option
from ronda.instances.profile import Profile, Rated, Rigid
from ronda.instances.round import Round
from ronda.instances.violation import Fault, Violation, differs, exceeds

SPANS = ("node", "rack", "cluster")

Placement = tuple[tuple[int, int], ...]
Parts = tuple[tuple[int, int, int], ...]


class Verdict(NamedTuple):
    """The faults of an option or, if there are none, its paces and the watts that it must claim.

    `claimed` is the pace on the smallest number of nodes; the option's rate must agree with it.
    With span "cluster", several nodes count as several racks if the pool has several. `actual` is
    the pace on the nodes and racks of the placement. Both are None if the option is faulty.
    """

    faults: tuple[Fault, ...]
    claimed: Pace | None = None
    actual: Pace | None = None
    power_w: float = 0.0


class Examiner:
    """An examiner of allocations on a cluster that remembers its verdicts."""

    def __init__(self, cluster: Cluster, profiles: dict[str, Profile]) -> None:
        self.cluster, self.profiles = cluster, profiles
        topology = cluster.topology
        self.pools = topology.pools
        self.node_pool: list[int] = topology.node_pool.tolist()
        self.node_rack: list[int] = topology.node_rack.tolist()
        where = set(zip(self.node_pool, self.node_rack, strict=True))
        self.pool_racks = Counter(pool for pool, _ in where)
        self._physics: dict[tuple[str, str], Physics] = {}
        self._verdicts: dict[tuple[object, ...], Verdict] = {}

    def physics(self, job: Job, option: Option) -> Physics:
        """Return the physics of the job on the option's pool."""
        gpu_type = self.pools[option.pool].gpu_type
        key = (job.profile, gpu_type.name)
        if key not in self._physics:
            self._physics[key] = Physics(self.profiles[job.profile], gpu_type)
        return self._physics[key]

    def placement(self, option: Option, placement: Placement, parts: Parts) -> list[Fault]:
        """Return the faults of a placement: nodes, pool, number of GPUs, span, parts of a GPU."""
        nodes = [node for node, _ in placement]
        absent = [node for node in nodes if not 0 <= node < len(self.node_pool)]
        if absent:
            return [Fault("node", f"there is no node {absent[0]}")]
        found = []
        if len(set(nodes)) < len(nodes):
            found.append(Fault("duplicate-node", f"the placement names a node twice: {nodes}"))
        counts = [count for _, count in placement]
        if min(counts, default=0) < 1 or sum(counts) != option.gpus:
            found.append(Fault("gang", f"places {counts} GPUs, not {option.gpus} in all"))
        alien = [node for node in nodes if self.node_pool[node] != option.pool]
        if alien and 0 <= option.pool < len(self.pools):
            found.append(Fault("pool", f"node {alien[0]} is not in pool {option.pool}"))
        if option.span == "node" and len(set(nodes)) > 1:
            found.append(Fault("span", f"spread over {len(nodes)} nodes, not on one"))
        if option.span == "rack" and len({self.node_rack[node] for node in nodes}) > 1:
            found.append(Fault("span", "spread over several racks, not in one"))
        return found or part_faults(self.cluster, option, placement, parts)

    def verdict(self, job: Job, option: Option, placement: Placement | None) -> Verdict:
        """Return the verdict on an option on a placement or, by default, on its promised nodes."""
        reach = None
        if placement is not None:
            reach = len(placement), len({self.node_rack[node] for node, _ in placement})
        key = (
            job.profile,
            job.gpus,
            job.min_gpus,
            job.max_gpus,
            job.batch,
            job.partition,
            job.gpu_types,
            job.fusible is None,
            job.sizes,
            job.exclusive,
            job.part,
            job.share,
            option.part,
            option.share,
            option.pool,
            option.gpus,
            option.asked,
            option.span,
            option.clock,
            option.batch,
            option.width,
            option.mode,
            reach,
        )
        verdict = self._verdicts.get(key)
        if verdict is None:
            if len(self._verdicts) >= 65536:  # a process may check for months
                self._verdicts.clear()
            verdict = self._verdicts[key] = self._judge(job, option, reach)
        return verdict

    def option_power(self, option: Option, verdict: Verdict) -> list[Fault]:
        """Compare the power that an option claims with that of its verdict."""
        if verdict.claimed is None or not differs(option.power_w, verdict.power_w):
            return []
        return [
            Fault("option-power", f"claims {option.power_w:.9g} W, not {verdict.power_w:.9g} W")
        ]

    def rate(self, state: JobState, option: Option, verdict: Verdict) -> list[Fault]:
        """Compare the rate that an option claims with its pace and the job's noise scale."""
        if verdict.claimed is None:
            return []
        expected = self.expected_rate(state, option, verdict.claimed)
        if not differs(option.rate, expected):
            return []
        return [Fault("rate", f"claims {option.rate:.9g} units of work/s, not {expected:.9g}")]

    def expected_rate(self, state: JobState, option: Option, claimed: Pace) -> float:
        """Return the work per second of an option at its pace and the job's present noise scale."""
        noise = state.noise
        efficiency = self.physics(state.job, option).efficiency(
            option.batch,
            noise.batches if noise is not None else None,
            noise.scale if noise is not None else None,
        )
        return claimed.samples_per_s * efficiency

    def allocation(self, state: JobState, given: Allocation, *, kept: bool) -> list[Violation]:
        """Return all violations within a job's allocation.

        The rate and power of a `kept` allocation were right when it began, and later measurements
        do not make them wrong. A job that keeps its option on other nodes may claim them too. A job
        whose array becomes narrower may claim the rate that follows from its old one.
        """
        option, placement = given.option, given.placement
        faults = self.placement(option, placement, given.parts)
        verdict = self.verdict(state.job, option, None if faults else placement)
        faults += verdict.faults
        held = None if state.allocation is None else state.allocation.option
        measured = held is not None and held.rate == option.rate and held.same_way(option)
        if not kept and not measured and not self._narrowed(state, option):
            faults += self.rate(state, option, verdict)
        if not kept and not (measured and held is not None and held.power_w == option.power_w):
            faults += self.option_power(option, verdict)
        return [fault.at(f"job {state.job.id}") for fault in faults]

    def _narrowed(self, state: JobState, option: Option) -> bool:
        """Return whether the rate is that of the job's wider array, converted to the new width."""
        held = None if state.allocation is None else state.allocation.option
        if held is None or option.width >= held.width:
            return False
        if not replace(option, width=held.width, mode=held.mode).same_way(held):
            return False
        physics = self.physics(state.job, option)
        wide, narrow = (slowdown(physics.profile, physics.gpu_type, o) for o in (held, option))
        if isinstance(wide, Fault) or isinstance(narrow, Fault):
            return False
        return not differs(option.rate, held.rate * wide / narrow)

    def _judge(self, job: Job, option: Option, reach: tuple[int, int] | None) -> Verdict:
        """Return a verdict after checking first the pool, then the size, then the physics.

        `reach` is the number of nodes and of racks, if they are known.
        """
        faults = self._entitlement(job, option)
        if faults:
            return Verdict(tuple(faults))
        physics = self.physics(job, option)
        faults = self._configuration(job, option, physics)
        if faults:
            return Verdict(tuple(faults))
        fewest = -(-option.gpus // self.pools[option.pool].gpus_per_node)
        several = option.span == "cluster" and fewest > 1
        promised = fewest, self.pool_racks[option.pool] if several else 1
        claimed, actual = (
            physics.pace(option.computing, nodes, option.batch, option.clock, racks)
            for nodes, racks in (promised, reach or promised)
        )
        if isinstance(claimed, Fault):
            return Verdict((claimed,))
        if isinstance(actual, Fault):
            return Verdict((actual,))
        longer = slowdown(physics.profile, physics.gpu_type, option)
        if isinstance(longer, Fault):
            return Verdict((longer,))
        longer /= physics.gpu_type.speed(job.part, job.share)
        need, local_batch = physics.profile.memory, claimed.local_batch
        if faults := memory_faults(need, physics.gpu_type, option, local_batch):
            return Verdict(tuple(faults))
        power_w = physics.told_w(option.computing, fewest, option.batch, option.clock)
        if power_w is None:
            power_w = physics.busy_w(option.computing, option.clock, claimed.sync_share)
        power_w += (option.gpus - option.computing) * self.pools[option.pool].gpu_type.idle_w
        paces = _slower(claimed, longer), _slower(actual, longer)
        power_w = power_w / option.width if option.share is None else power_w * option.share
        return Verdict((), *paces, power_w)

    def _entitlement(self, job: Job, option: Option) -> list[Fault]:
        """Return the faults that bar the job from the pool altogether."""
        if not 0 <= option.pool < len(self.pools):
            return [Fault("pool", f"there is no pool {option.pool}")]
        profile = self.profiles.get(job.profile)
        if profile is None:
            return [Fault("options", f"there is no profile {job.profile!r}")]
        pool, faults = self.pools[option.pool], []
        name = pool.gpu_type.name
        if pool.partition != job.partition:
            faults.append(Fault("partition", f"in {pool.partition!r}, not in {job.partition!r}"))
        if name not in profile.throughput:
            faults.append(Fault("options", f"profile {profile.name!r} does not know {name}"))
        if job.gpu_types and name not in job.gpu_types:
            faults.append(Fault("options", f"the job may not use {name}"))
        return faults

    def _configuration(self, job: Job, option: Option, physics: Physics) -> list[Fault]:
        """Return the faults of the option's size, clock, batch or span."""
        faults = []
        rigid = isinstance(physics.model, Rigid)
        low = job.gpus if rigid or job.min_gpus is None else job.min_gpus
        high = job.gpus if rigid or job.max_gpus is None else job.max_gpus
        if not low <= option.computing <= high:
            allowed = f"{low}" if low == high else f"{low} to {high}"
            faults.append(Fault("gpus", f"{option.computing} GPUs, not {allowed}"))
        if job.sizes and option.computing not in job.sizes:
            faults.append(Fault("sizes", f"{option.computing} GPUs, not one of {job.sizes}"))
        faults += self._idle(job, option)
        cut = job.part is not None or job.share is not None
        share = physics.gpu_type.fraction(job.part, job.share)
        if job.part is not None and physics.gpu_type.profile(job.part) is None:
            faults.append(Fault("part", f"{physics.gpu_type.name} has no part {job.part!r}"))
        elif (option.part, option.share) != (job.part, share):
            found, asked = _fraction(option.part, option.share), _fraction(job.part, share)
            faults.append(Fault("part", f"runs on {found}, not on {asked}"))
        clocks = (1.0,) if rigid or cut else physics.gpu_type.clocks
        if option.clock not in clocks:
            faults.append(Fault("clock", f"clock {option.clock:g}, not one of {clocks}"))
        own = physics.profile.base_batch if job.batch is None else job.batch
        if option.batch != own and option.batch not in physics.profile.batches:
            faults.append(Fault("batch", f"batch {option.batch:g} is neither offered nor its own"))
        if option.width != 1 and job.fusible is None:
            faults.append(Fault("width", f"shared by {option.width}, but the job is not fusible"))
        if option.span not in SPANS:
            faults.append(Fault("span", f"span {option.span!r}, not one of {SPANS}"))
        return faults

    def _idle(self, job: Job, option: Option) -> list[Fault]:
        """Return the faults of GPUs that a job holds and that do not compute."""
        if option.asked is None:
            return []
        whole = self.pools[option.pool].gpus_per_node
        if not job.exclusive:
            return [
                Fault("exclusive", f"holds {option.gpus} GPUs, of which it asked {option.asked}")
            ]
        held = -(-option.asked // whole) * whole
        if option.asked >= option.gpus or option.gpus != held:
            return [Fault("exclusive", f"holds {option.gpus} GPUs for {option.asked}, not {held}")]
        return []


def _fraction(part: str | None, share: float | None) -> str:
    whole = "whole GPUs" if share is None else f"{share:.6g} of a GPU"
    return f"{part}, {whole}" if part else whole


def _slower(pace: Pace, factor: float) -> Pace:
    return pace._replace(samples_per_s=pace.samples_per_s / factor)


_ABSENT = Option(pool=0, gpus=1)  # a missing field has its default


def completed(round: Round) -> Round:
    """Return the round with missing batches, rates and powers of running jobs filled in.

    A field with its default counts as missing if the profile forbids that value. The batch and the
    fraction of a GPU are taken from the job, the rate is computed at the job's present noise scale,
    and the power is taken from the profile. Other faults remain. The cluster and the profiles must
    be consistent.
    """
    if not any(s.allocation and _may_lack(s.allocation.option) for s in round.running):
        return round
    examiner = Examiner(round.cluster, round.profiles)
    running = tuple(_completed(examiner, state) for state in round.running)
    same = all(a is b for a, b in zip(running, round.running, strict=True))
    return round if same else replace(round, running=running)


def claim_faults(examiner: Examiner, state: JobState) -> Iterator[tuple[str, Fault]]:
    """Yield the faults in a running job's claims, each with the name of the option's field or "".

    Measurements may have been refitted since the job began. A rate is therefore compared only with
    a rigid profile, and watts are not compared with a `Rated` table.
    """
    held = state.allocation
    assert held is not None
    faults = examiner.placement(held.option, held.placement, held.parts)
    verdict = examiner.verdict(state.job, held.option, None if faults else held.placement)
    for fault in [*faults, *verdict.faults]:
        yield "", fault
    if verdict.claimed is None:
        return
    model = examiner.physics(state.job, held.option).model
    if not isinstance(model, Rated):
        for fault in examiner.option_power(held.option, verdict):
            yield "power_w", fault
    if isinstance(model, Rigid):
        for fault in examiner.rate(state, held.option, verdict):
            yield "rate", fault


def own_batch(state: JobState, profile: Profile) -> float:
    """Return the global batch that the job's user chose."""
    return profile.base_batch if state.job.batch is None else state.job.batch


def _may_lack(option: Option) -> bool:
    return (
        option.rate == _ABSENT.rate
        or option.power_w == _ABSENT.power_w
        or option.batch == _ABSENT.batch
        or (option.part is not None and option.share is None)
    )


def _completed(examiner: Examiner, state: JobState) -> JobState:
    """Return the state with a complete option, or the same object."""
    held, profile = state.allocation, examiner.profiles.get(state.job.profile)
    if held is None or profile is None or not _may_lack(held.option):
        return state
    option, own = held.option, own_batch(state, profile)
    if option.batch == _ABSENT.batch and option.batch not in (own, *profile.batches):
        option = replace(option, batch=own)
    if option.part is not None and option.share is None and option.pool < len(examiner.pools):
        gpu_type = examiner.pools[option.pool].gpu_type
        option = replace(option, share=gpu_type.fraction(option.part, None))
    verdict = examiner.verdict(state.job, option, None)
    if verdict.claimed is None:
        return state
    power_w, rate = option.power_w, option.rate
    if power_w == _ABSENT.power_w:
        power_w = verdict.power_w
    if rate == _ABSENT.rate:
        # over all noise scales, the efficiency is from B0/B to 1
        speed, physics = verdict.claimed.samples_per_s, examiner.physics(state.job, option)
        worst = physics.efficiency(option.batch, (option.batch,), (0.0,))
        if exceeds(speed * min(1.0, worst), rate) or exceeds(rate, speed * max(1.0, worst)):
            rate = examiner.expected_rate(state, option, verdict.claimed)
    if (option, power_w, rate) == (held.option, option.power_w, option.rate):
        return state
    option = replace(option, power_w=power_w, rate=rate)
    return replace(state, allocation=replace(held, option=option))
