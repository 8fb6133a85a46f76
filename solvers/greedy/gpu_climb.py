"""Climbing GPU counts job by job, clocks left aside: Optimus, ElasticFlow-like, Pollux-like.

Jobs climb their `ladders`, in whatever order the policy takes them, while there is room. What
climbs rows of an option table, clocks included, is `ronda.solvers.greedy.marginal`.
"""

import heapq
from collections.abc import Callable, Iterable, Sequence

import msgspec

from ronda.formulations.models.power import extra_w
from ronda.formulations.options.application import application_of
from ronda.formulations.options.ladders import Ladder
from ronda.formulations.placement.nodes import FreeList
from ronda.formulations.placement.orders import most_free
from ronda.formulations.placement.placer import place
from ronda.formulations.watts import capped
from ronda.instances.job import Allocation, Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.greedy.room import Clocks, free_nodes, spread_over

ROUNDING = 1e-9
"""Relative rounding allowed against the power limit."""


class GpuLadderClimb:
    """How far each job has climbed, and the GPUs and watts that are left.

    Running jobs that may not be stopped have taken theirs. Watts are those of the round's limit
    (the tighter of the power cap and what the energy budget gives for the window) with every node
    awake. `step` (L,) is the index into each ladder's counts (-1: no GPUs), `left` (P,) the GPUs
    left in each pool; `clocks` sets the clock of jobs that do not go on as they run.
    """

    def __init__(self, round: Round, ladders: Sequence[Ladder], clocks: Clocks) -> None:
        self.round, self.ladders, self._clocks = round, ladders, clocks
        topology = round.cluster.topology
        self.left = [pool.gpus for pool in topology.pools]
        limit = round.watts
        self._watts = None if limit is None else limit * (1 + ROUNDING) - topology.idle_w
        self.step, self._now_w = [-1] * len(ladders), [0.0] * len(ladders)
        self._known_w: dict[tuple[str, int, int, float], float] = {}
        self._pinned: dict[str, Option] = {}
        for state in round.running:
            if state.allocation is not None and not state.job.preemptible:
                option = state.allocation.option
                self._pinned[state.job.id] = option
                self.left[option.pool] -= option.gpus
                if self._watts is not None:
                    self._watts -= extra_w(self.round, option)

    def top(self, j: int) -> bool:
        """Tell whether job j has reached the top of its ladder."""
        return self.step[j] + 1 >= len(self.ladders[j].gpus)

    def move(self, j: int, step: int) -> bool:
        """Let job j climb to a step if GPUs and watts suffice; tell whether they did."""
        ladder, now = self.ladders[j], self.step[j]
        more = ladder.gpus[step] - (ladder.gpus[now] if now >= 0 else 0)
        if more > self.left[ladder.pool]:
            return False
        if self._watts is not None:
            watts = self._watts_of(j, step)
            more_w = watts - self._now_w[j]
            if more_w > max(self._watts, 0.0):
                return False
            self._watts -= more_w
            self._now_w[j] = watts
        self.left[ladder.pool] -= more
        self.step[j] = step
        return True

    def climb(self, jobs: Iterable[int], cost: Callable[[int], float | None]) -> None:
        """Let jobs climb single steps while GPUs last, the next step of least `cost` first.

        A job whose step finds no room, or whose cost is None, climbs no more.
        """
        steps = [(known, j) for j in jobs if (known := cost(j)) is not None]
        heapq.heapify(steps)
        while steps and any(self.left):
            _, j = heapq.heappop(steps)
            if self.move(j, self.step[j] + 1) and (known := cost(j)) is not None:
                heapq.heappush(steps, (known, j))

    def plan(self, policy: str) -> Plan:
        """Place all jobs that have GPUs.

        Jobs that move do so only to make room for larger ones. A job that finds no nodes though
        GPUs are left is spread over those with most of them free; if it has no speed there, on
        fewer GPUs.
        """
        served = {self.ladders[j].state.job.id: j for j, s in enumerate(self.step) if s >= 0}
        chosen = self._pinned | {job: self._option(j, self.step[j]) for job, j in served.items()}
        placed = place(self.round, chosen)
        allocations = placed.allocations
        for job in placed.moved:
            moved = self._afresh(served[job], allocations[job].option)
            allocations[job] = msgspec.structs.replace(allocations[job], option=moved)
        if placed.unplaced and not capped(self.round.cluster):
            free = free_nodes(self.round)
            for allocation in allocations.values():
                free[allocation.option.pool].take(allocation.placement)
            for job in placed.unplaced:
                spread = self._spread(served[job], free[self.ladders[served[job]].pool])
                if spread is not None:
                    allocations[job] = spread
        return Plan(policy=policy, allocations=allocations, asleep=placed.asleep)

    def _spread(self, j: int, free: FreeList) -> Allocation | None:
        """Put a job on the nodes with most free GPUs, on as many GPUs as it has a speed with."""
        for step in range(self.step[j], -1, -1):
            option = self._afresh(j, self._option(j, step))
            placement = most_free(free, option.gpus)
            if placement is None:
                continue
            spread = spread_over(self.round, self.ladders[j].state, option, len(placement))
            if spread is not None:
                free.take(placement)
                return Allocation(option=spread, placement=placement)
        return None

    def _afresh(self, j: int, option: Option) -> Option:
        """Return an option with the rate to expect on the fewest nodes, not the measured one."""
        state = self.ladders[j].state
        of = application_of(self.round, state, option.pool)
        if of is None or state.allocation is None or option is not state.allocation.option:
            return option
        return of.option(option.gpus, option.batch, state.noise, clock=option.clock) or option

    def _option(self, j: int, step: int) -> Option:
        """Return what a step stands for: what the job runs with, if GPUs and batch are the same."""
        ladder, state = self.ladders[j], self.ladders[j].state
        pool, gpus, batch = ladder.pool, ladder.gpus[step], ladder.batch[step]
        if state.allocation is not None:
            held = state.allocation.option
            if (held.pool, held.gpus, held.batch) == (pool, gpus, batch):
                return held
        of = application_of(self.round, state, pool)
        option = of.option(gpus, batch, state.noise) if of is not None else None
        assert option is not None, "ladders hold only counts with a speed"
        return self._clocks(state, option)

    def _watts_of(self, j: int, step: int) -> float:
        """Return the watts that a step adds to idle GPUs: the same for all jobs of a profile."""
        ladder, state = self.ladders[j], self.ladders[j].state
        if state.allocation is not None and state.allocation.option.gpus == ladder.gpus[step]:
            return extra_w(self.round, self._option(j, step))
        key = (state.job.profile, ladder.pool, ladder.gpus[step], ladder.batch[step])
        if key not in self._known_w:
            self._known_w[key] = extra_w(self.round, self._option(j, step))
        return self._known_w[key]
