"""Tiny rounds on several nodes and racks, and their best plan by trying every plan.

Written apart from the exact model: jobs get nodes one by one, and only what the limits allow is
followed. It is what `milp(placement=exact)` is held against.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from ronda.formulations.objectives.switching_cost import loss_of_moves
from ronda.formulations.options.table import SPANS, OptionTable
from ronda.formulations.watts import may_sleep
from ronda.instances.base import Floats
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.job import Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.profile import Parametric, PowerCurve, Profile, Rigid
from ronda.instances.round import Round

Placement = tuple[tuple[int, int], ...]

SIZES = (1, 2, 3, 4, 5, 6)
POWERS = (1, 2, 4, 8)


def tiny(seed: int, *, powers: bool = False) -> Round:
    """Return a random round of 4 to 6 jobs on 2 to 5 nodes in 1 to 3 racks, some below a pod.

    Jobs run in one piece or in several, some may not move; sometimes nodes differ in size, or power
    is limited, of the cluster, a rack or a pod. With `powers` all blocks are powers of two in one
    rack, moves cost nothing, no job has to stay, and nothing but GPUs is limited.
    """
    rng = np.random.default_rng([seed, 11, powers])
    cluster = _cluster(rng, powers=powers)
    topology = cluster.topology
    free, states = topology.node_gpus.tolist(), []
    sizes, broken = POWERS if powers else SIZES, bool(rng.random() < 0.5)
    for k in range(int(rng.integers(4, 7))):
        runs = k < len(free) if broken else bool(rng.random() < 0.6)
        most = max(topology.node_gpus) if powers else sum(topology.node_gpus)
        if broken and runs:
            most = max(1, topology.node_gpus[0] // 2)
        gpus = int(rng.choice([n for n in sizes if n <= most]))
        elastic = bool(rng.random() < 0.4)
        profile, low, high = ("elastic", 1, gpus) if elastic else ("rigid", None, None)
        held = _held(rng, cluster, free, gpus, spread=broken, whole=powers) if runs else None
        job = Job(
            id=f"j{k}",
            submit_s=0.0,
            profile=profile,
            gpus=gpus,
            min_gpus=low,
            max_gpus=high,
            preemptible=powers or bool(rng.random() < 0.85),
            estimate=Estimate(work=float(rng.integers(200, 4000))),
        )
        states.append(JobState(job=job, since_s=0.0, started=held is not None, allocation=held))
    round_ = Round(
        name=f"tiny-positions-{seed}",
        now_s=100.0,
        length_s=60.0,
        cluster=cluster,
        profiles=_profiles(),
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
        costs=Costs(start_s=5.0, restart_s=0.0 if powers else float(rng.choice([10, 60, 200]))),
    )
    return round_ if powers else _limited(rng, round_)


def random_values(table: OptionTable, seed: int) -> Floats:
    """Return (K,) what the options of a tiny round are worth: what runs less, some nothing."""
    rng = np.random.default_rng([seed, 12])
    drawn = np.round(rng.lognormal(0.0, 0.5, len(table)) * table.gpus**0.7, 3)
    drawn *= np.where(table.current, 0.5, 1.0)
    return np.where(rng.random(len(table)) < 0.1, -drawn, drawn)


def best_plan(round: Round, table: OptionTable, values: Floats, node_price: float) -> float:
    """Return the best value of any plan: of options, less moves and `node_price` a node in use.

    Running jobs stay, stop or start again. What starts takes whole nodes, the pool's largest, and
    at most one block; where the pool has too few of these, the fewest empty nodes that hold it.
    """
    return _Search(round, table, values, node_price).best()


class _Search:
    """Depth first over jobs, cut off where even the best options left are worth no more."""

    def __init__(self, round: Round, table: OptionTable, values: Floats, node_price: float) -> None:
        self.round, self.table, self.values = round, table, values
        self.size: list[int] = round.cluster.topology.node_gpus.tolist()
        self.node_price = node_price
        self.top = -np.inf
        self.jobs = [self._choices(j) for j in range(len(table.jobs))]
        most = [max((worth for worth, _, _ in own), default=0.0) for own in self.jobs]
        self.rest = [sum(max(w, 0.0) for w in most[j:]) for j in range(len(most) + 1)]

    def best(self) -> float:
        """Return the best value."""
        self._try(0, 0.0, list(self.size), [])
        return self.top

    def _try(
        self, j: int, worth: float, free: list[int], taken: list[tuple[int, Placement]]
    ) -> None:
        if worth + self.rest[j] <= self.top:
            return
        if j == len(self.jobs):
            used = sum(f < s for f, s in zip(free, self.size, strict=True))
            worth -= used * self.node_price
            if worth > self.top and self._power_holds(free, taken):
                self.top = worth
            return
        for gain, row, placement in self.jobs[j]:
            if all(free[n] >= g for n, g in placement):
                for n, g in placement:
                    free[n] -= g
                self._try(j + 1, worth + gain, free, [*taken, (row, placement)])
                for n, g in placement:
                    free[n] += g

    def _choices(self, j: int) -> list[tuple[float, int, Placement]]:
        """Return (value, row, nodes) of all that job j may do, the best first."""
        table, state = self.table, self.table.jobs[j]
        found: list[tuple[float, int, Placement]] = []
        for k in range(table.start[j], table.start[j + 1]):
            worth = float(self.values[k])
            if table.current[k]:
                assert state.allocation is not None
                found.append((worth, k, state.allocation.placement))
                worth -= loss_of_moves(
                    self.round, table, self.values, np.array([k]), {state.job.id}
                )
            if not table.must_run[j] and self.values[k] > 0:
                found += [(worth, k, placement) for placement in self._anywhere(k)]
        if not table.must_run[j]:
            found.append((0.0, -1, ()))
        return sorted(found, key=lambda choice: -choice[0])

    def _anywhere(self, k: int) -> Iterator[Placement]:
        """Yield all nodes on which row k may start."""
        topology = self.round.cluster.topology
        gpus, span = int(self.table.gpus[k]), SPANS[int(self.table.span[k])]
        nodes = np.flatnonzero(topology.node_pool == self.table.pool[k]).tolist()
        largest = max(self.size[n] for n in nodes)
        whole, rest = divmod(gpus, largest)
        wide = [n for n in nodes if self.size[n] == largest]
        regular = [
            (*((n, largest) for n in filled), *([(b, rest)] if rest else []))
            for filled in combinations(wide, whole)
            for b in ([n for n in nodes if n not in filled] if rest else [-1])
            if not rest or self.size[b] >= rest
        ]
        if not regular:  # the fewest nodes, each for itself
            sizes = sorted((self.size[n] for n in nodes), reverse=True)
            fewest = 1 + int(np.searchsorted(np.cumsum(sizes), gpus))
            regular = [
                tuple((n, self.size[n]) for n in chosen)
                for chosen in combinations(nodes, fewest)
                if sum(self.size[n] for n in chosen) >= gpus
            ]
        for placement in regular:
            racks = {int(topology.node_rack[n]) for n, _ in placement}
            if (span != "node" or len(placement) == 1) and (span != "rack" or len(racks) == 1):
                yield placement

    def _power_holds(self, free: Sequence[int], taken: list[tuple[int, Placement]]) -> bool:
        """Tell whether the cluster's and every rack's limit on power hold."""
        round_, cluster = self.round, self.round.cluster
        topology, sleeps = cluster.topology, may_sleep(round_)
        watts = [
            float(awake if f < s or not sleeps else min(awake, asleep))
            for f, s, awake, asleep in zip(
                free, self.size, topology.awake_w, topology.sleep_w, strict=True
            )
        ]
        for k, placement in taken:
            held = sum(g for _, g in placement)
            for n, g in placement:
                watts[n] += float(self.table.extra_w[k]) * g / held
        if round_.watts is not None and sum(watts) > round_.watts * (1 + 1e-9):
            return False
        parents = {rack.name: rack.parent for rack in cluster.racks}
        for rack in cluster.racks:
            if rack.power_cap_w is None:
                continue
            there = 0.0
            for n, w in enumerate(watts):
                name: str | None = topology.racks[topology.node_rack[n]]
                while name is not None and name != rack.name:
                    name = parents.get(name)
                there += w if name == rack.name else 0.0
            if there > rack.power_cap_w * (1 + 1e-9):
                return False
        return True


def _profiles() -> dict[str, Profile]:
    """Return a job that runs only as asked, and one that racks slow down."""
    curve = {"G": PowerCurve(a_w=60.0, b_w=40.0)}
    model = Parametric(alpha_c_s=0.01, beta_c_s=0.02, alpha_r_s=0.01, alpha_n_s=0.02, alpha_x_s=0.1)
    return {
        "rigid": Profile(name="rigid", throughput={"G": Rigid()}, power=curve, base_batch=8.0),
        "elastic": Profile(name="elastic", throughput={"G": model}, power=curve, base_batch=8.0),
    }


def _cluster(rng: np.random.Generator, *, powers: bool) -> Cluster:
    """Return the nodes of a tiny round."""
    racks = int(rng.integers(1, 4))
    size = int(rng.choice((2, 3, 4, 6)))
    unequal = rng.random() < (0.6 if powers else 0.3)
    groups = []
    for r in range(racks):
        other = int(rng.choice([2, 3, 4, 6])) if unequal and r else size
        count = int(rng.integers(1, 3))
        groups.append(
            NodeGroup(
                name=f"g{r}",
                count=count,
                gpus_per_node=other,
                gpu_type="G",
                rack="r0" if powers else f"r{r}",
                host_idle_w=100.0,
                sleep_w=10.0,
            )
        )
    below = rng.random() < 0.5
    names = [Rack(name=f"r{r}", parent="pod" if below and r < 2 else None) for r in range(racks)]
    return Cluster(
        gpu_types=(GpuType(name="G", memory_gib=16.0, idle_w=30.0),),
        racks=(*names, *((Rack(name="pod"),) if below else ())),
        node_groups=tuple(groups),
    )


def _held(
    rng: np.random.Generator,
    cluster: Cluster,
    free: list[int],
    gpus: int,
    *,
    spread: bool,
    whole: bool,
) -> Allocation | None:
    """Return free GPUs here and there that a job runs on, taken from `free`; None without room.

    Those of the emptiest nodes first if `spread`.
    """
    racks, pieces, left = cluster.topology.node_rack, list[tuple[int, int]](), gpus
    order = rng.permutation(len(free)).tolist()
    for n in sorted(order, key=lambda n: -free[n]) if spread else order:
        if left and free[n] and (not whole or free[n] >= min(left, gpus)):
            pieces.append((n, min(left, free[n])))
            left -= pieces[-1][1]
    if left:
        return None
    for n, g in pieces:
        free[n] -= g
    span = "node" if len(pieces) == 1 else "cluster"
    if span == "cluster" and len({int(racks[n]) for n, _ in pieces}) == 1 and rng.random() < 0.5:
        span = "rack"
    option = Option(pool=0, gpus=gpus, span=span, batch=8.0, rate=1.0, power_w=100.0 * gpus)
    return Allocation(option=option, placement=tuple(sorted(pieces)))


def _limited(rng: np.random.Generator, round: Round) -> Round:
    """Return the round with, sometimes, a limit on power that what runs keeps."""
    from msgspec.structs import replace

    cluster, topology = round.cluster, round.cluster.topology
    drawn = topology.awake_w.copy()
    for state in round.running:
        assert state.allocation is not None
        for node, gpus in state.allocation.placement:
            drawn[node] += 70.0 * gpus
    kind, slack = rng.random(), float(rng.uniform(0.0, 200.0))
    if kind < 0.2:
        return replace(round, power_cap_w=float(drawn.sum()) + slack)
    if kind < 0.4:
        capped = cluster.racks[int(rng.integers(len(cluster.racks)))].name
        below = [
            capped in (name, next(r.parent for r in cluster.racks if r.name == name))
            for name in topology.racks
        ]
        there = float(drawn[np.array(below)[topology.node_rack]].sum())
        racks = tuple(
            replace(r, power_cap_w=there + slack) if r.name == capped else r for r in cluster.racks
        )
        return replace(round, cluster=replace(cluster, racks=racks))
    return round
