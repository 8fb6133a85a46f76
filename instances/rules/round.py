"""Rules for rounds: what is known about jobs, and where running jobs are placed."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from ronda.instances.check.option import Examiner, claim_faults
from ronda.instances.check.sharing import distinct, plan_violations
from ronda.instances.cluster import Topology
from ronda.instances.job import Allocation, JobState
from ronda.instances.profile import Rigid
from ronda.instances.round import Round
from ronda.instances.rules.parts import shared_gpu_problems
from ronda.instances.rules.problem import Problem, one_of, show
from ronda.instances.rules.profile import noise_problems

SPANS = ("node", "rack", "cluster")


def state_problems(round: Round) -> Iterator[Problem]:
    """Yield the jobs whose state contradicts their list or reveals what a round must not know."""
    for name, states in (("running", round.running), ("waiting", round.waiting)):
        for k, state in enumerate(states):
            job, runs = state.job, state.allocation is not None
            if job.truth is None and job.submit_s <= round.now_s and runs is (name == "running"):
                continue
            place, owner = f"{name}[{k}]", f" (id {show(job.id)})"
            if job.truth is not None:
                expected = "none: a round holds only what a scheduler may know"
                yield Problem(f"{place}.job.truth{owner}", "the true work", expected)
            if job.submit_s > round.now_s:
                expected = f"at most now_s, {round.now_s:g}"
                yield Problem(f"{place}.job.submit_s{owner}", f"{job.submit_s:g}", expected)
            if name == "running" and not runs:
                yield Problem(place + owner, "no allocation", "one, or the job under waiting")
            if name == "waiting" and runs:
                yield Problem(place + owner, "an allocation", "none, or the job under running")


def measured_problems(round: Round) -> Iterator[Problem]:
    """Yield the inconsistencies in the measured noise scales of jobs."""
    for name, states in (("running", round.running), ("waiting", round.waiting)):
        for k, state in enumerate(states):
            if state.noise is not None:
                yield from noise_problems(state.noise, f"{name}[{k}].noise")


def running_problems(round: Round, *, physics: bool = True) -> Iterator[Problem]:
    """Yield the running allocations that the (consistent) cluster cannot hold.

    `physics` states that the profiles are consistent too, so that speed and power are known.
    """
    topology = round.cluster.topology
    yield from _resting(round, len(topology.node_gpus))
    examiner = Examiner(round.cluster, round.profiles)
    used: Counter[int] = Counter()
    for k, state in enumerate(round.running):
        if state.allocation is None:
            continue
        place = f"running[{k}].allocation"
        owner = f" (id {show(state.job.id)})"
        at = f"{place}.placement{owner}"
        found = [
            *_placement(state.allocation, at, topology, round.asleep),
            *_option(round, state, state.allocation, f"{place}.option", owner),
        ]
        yield from found
        if physics and not found:
            yield from _claims(examiner, state, f"{place}.option", owner)
    for held in distinct(round.held.values()):
        for node, gpus in held.placement:
            used[node] += gpus
    jobs = {state.job.id: state.job for state in round.running}
    for fault in plan_violations(round.held, jobs):
        yield Problem(f"running, {fault.where}", fault.message, "all of it, alike, on one GPU")
    yield from shared_gpu_problems(round.cluster, round.held)
    for node, gpus in sorted(used.items()):
        if node < len(topology.node_gpus) and gpus > topology.node_gpus[node]:
            has = int(topology.node_gpus[node])
            yield Problem("running", f"{gpus} GPUs in use on node {node}", f"at most its {has}")


def _resting(round: Round, nodes: int) -> Iterator[Problem]:
    """Check that sleeping and waking nodes are ascending indices of distinct nodes."""
    for field in ("asleep", "waking"):
        found = getattr(round, field)
        if any(a >= b for a, b in pairwise(found)):
            yield Problem(field, show(found), "ascending node indices")
        for k, node in enumerate(found):
            if not 0 <= node < nodes:
                yield Problem(f"{field}[{k}]", show(node), f"a node, 0 to {nodes - 1}")
    asleep = set(round.asleep)
    for k, node in enumerate(round.waking):
        if node in asleep:
            yield Problem(f"waking[{k}]", f"node {node}, which sleeps", "a node that is awake")


def _claims(examiner: Examiner, state: JobState, place: str, owner: str) -> Iterator[Problem]:
    for field, fault in claim_faults(examiner, state):
        at = f"{place}.{field}" if field else place
        expected = "that, or none: it is computed" if field else "a way in which the job can run"
        yield Problem(f"{at}{owner}", fault.message, expected)


def _placement(
    allocation: Allocation, place: str, topology: Topology, asleep: tuple[int, ...]
) -> Iterator[Problem]:
    """Check that a placement has the option's GPUs on distinct awake nodes of its pool."""
    nodes = [node for node, _ in allocation.placement]
    total = sum(gpus for _, gpus in allocation.placement)
    if total != allocation.option.gpus:
        expected = f"{allocation.option.gpus}, as its option says"
        yield Problem(place, f"{total} GPUs", expected)
    if len(set(nodes)) < len(nodes):
        yield Problem(place, f"nodes {show(nodes)}", "each node once")
    for node in nodes:
        if node >= len(topology.node_gpus):
            yield Problem(place, f"node {node}", f"a node, 0 to {len(topology.node_gpus) - 1}")
        elif topology.node_pool[node] != allocation.option.pool:
            expected = f"a node of pool {allocation.option.pool}"
            found = f"node {node} of pool {topology.node_pool[node]}"
            yield Problem(place, found, expected)
        if node in asleep:
            yield Problem(place, f"node {node}, which sleeps", "a node that is awake")


def _option(
    round: Round, state: JobState, allocation: Allocation, place: str, owner: str
) -> Iterator[Problem]:
    """Check that a job may have its option: pool, GPUs, clock, batch and span."""
    option, job, pools = allocation.option, state.job, round.cluster.topology.pools
    if option.span not in SPANS:
        yield Problem(f"{place}.span{owner}", show(option.span), one_of(SPANS))
    if option.pool >= len(pools):
        expected = f"a pool, 0 to {len(pools) - 1}"
        yield Problem(f"{place}.pool{owner}", str(option.pool), expected)
        return
    pool = pools[option.pool]
    if pool.partition != job.partition:
        expected = f"a pool of the job's partition {show(job.partition)}"
        yield Problem(f"{place}.pool{owner}", f"{option.pool} ({pool.name})", expected)
    if option.clock not in pool.gpu_type.clocks:
        expected = "one of " + ", ".join(f"{c:g}" for c in pool.gpu_type.clocks)
        yield Problem(f"{place}.clock{owner}", f"{option.clock:g}", expected)
    profile = round.profiles.get(job.profile)
    if profile is None:
        return
    allowed = [t for t in profile.throughput if not job.gpu_types or t in job.gpu_types]
    if pool.gpu_type.name not in allowed:
        found = f"{option.pool} with GPU type {show(pool.gpu_type.name)}"
        yield Problem(f"{place}.pool{owner}", found, f"GPU type {one_of(allowed)}")
        return
    rigid = isinstance(profile.throughput[pool.gpu_type.name], Rigid)
    low = job.gpus if rigid else job.min_gpus or job.gpus
    high = job.gpus if rigid else job.max_gpus or job.gpus
    if not low <= option.computing <= high:
        found, expected = str(option.computing), f"{low}" if low == high else f"{low} to {high}"
        yield Problem(f"{place}.gpus{owner}", found, f"{expected}, as its job may have")
    batches = {job.batch or profile.base_batch, *profile.batches}
    if option.batch not in batches:
        expected = "one of " + ", ".join(f"{batch:g}" for batch in sorted(batches))
        yield Problem(f"{place}.batch{owner}", f"{option.batch:g}", expected)
