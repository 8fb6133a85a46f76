"""Climbs over GPU counts without clocks, for Optimus, ElasticFlow-like and Pollux-like.

Jobs climb their `ladders` while there is room, in the order that the policy chooses. The climb over
rows of an option table, with clocks, is with PowerFlow.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from ronda.formulations.options.application import application_of
from ronda.formulations.options.gpu_ladders import Ladder
from ronda.formulations.placement.requests import Placed, place
from ronda.formulations.sleeping import rest, spare_of
from ronda.formulations.watts import may_sleep, node_classes, nodes_for
from ronda.instances.clock import checkpoint
from ronda.instances.job import Option
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.instances.violation import ROUNDING
from ronda.solvers.greedy.counted import Charge, Counted, Step, charge, climb
from ronda.solvers.greedy.room import Clocks, Room, completed, start_in_order


class GpuLadderClimb:
    """The position of each job on its ladder, and the GPUs and watts that are left.

    Running jobs that may not be stopped have taken their GPUs and watts. `step` (L,) is the index
    into each ladder's counts (-1: no GPUs), and `left` is what is left. `clocks` sets the clock of
    jobs that do not go on unchanged.
    """

    def __init__(self, round: Round, ladders: Sequence[Ladder], clocks: Clocks) -> None:
        self.round, self.ladders, self._clocks = round, ladders, clocks
        self.left = Counted.of(round)
        self.step = [-1] * len(ladders)
        self._now: list[Charge] = [(0.0, 0.0)] * len(ladders)
        self._pinned: dict[str, Option] = {}
        for state in round.running:
            if state.allocation is not None and not state.job.preemptible:
                option = self._pinned[state.job.id] = state.allocation.option
                watts = charge(round, state, option)
                self.left.take(option.pool, option.gpus, watts, anyhow=True)

    def top(self, j: int) -> bool:
        """Return whether job j is at the top of its ladder."""
        return self.step[j] + 1 >= len(self.ladders[j].gpus)

    def move(self, j: int, step: int) -> bool:
        """Move job j to a step if there are enough GPUs and watts; return whether it moved."""
        checkpoint()
        ladder, now = self.ladders[j], self.step[j]
        more = ladder.gpus[step] - (ladder.gpus[now] if now >= 0 else 0)
        if more > self.left.gpus[ladder.pool]:
            return False
        then = self._now[j]
        if self.left.limited:
            then = charge(self.round, ladder.state, self._option(j, step))
        watts = [b - a for a, b in zip(self._now[j], then, strict=True)]
        if not self.left.take(ladder.pool, more, watts):
            return False
        self._now[j], self.step[j] = then, step
        return True

    def climb(self, jobs: Iterable[int], cost: Callable[[int], float | None]) -> None:
        """Let jobs climb single steps, in order of the `cost` of their next steps.

        A job without room for its step, or with the cost None, stops climbing.
        """

        def best(j: int) -> Step | None:
            known = cost(j)
            return None if known is None else (known, self.step[j] + 1)

        climb(jobs, best, lambda j, step: [j] if self.move(j, step) else [])

    def plan(self, policy: str, initial: Plan | None) -> Plan:
        """Place all jobs with GPUs, and fill what is left; the function `rest` handles idle nodes.

        Jobs move only to make room for larger jobs, or for nodes to sleep if that helps to keep a
        limit. If GPUs are left but a job finds no nodes, it is spread over the nodes with most free
        GPUs, or gets fewer GPUs if it has no speed there. If the placement needs more watts than
        were counted and available, the last jobs wait.
        """
        served = {self.ladders[j].state.job.id: j for j, s in enumerate(self.step) if s >= 0}
        chosen = self._pinned | {job: self._option(j, self.step[j]) for job, j in served.items()}
        placed = self._placed(chosen)
        pinned = [state for state in self.round.running if state.job.id in self._pinned]
        room = Room(self.round, pinned, clocks=self._clocks, most_free=True, until_end=False)
        allocations = {job: placed.allocations[job] for job in self._pinned}
        for job, j in served.items():
            given = placed.allocations.get(job)
            if given is not None and room.keep(self.ladders[j].state, given):
                allocations[job] = given
        for job in placed.unplaced:
            j = served[job]
            ways = (self._option(j, k) for k in range(self.step[j], -1, -1))
            spread = (room.way(self.ladders[j].state, option) for option in ways)
            if (given := next(filter(None, spread), None)) is not None:
                room.take(self.ladders[j].state, given)
                allocations[job] = given
        order = [ladder.state for ladder in self.ladders]
        start = partial(start_in_order, room, blocking=False)
        allocations = completed(room, order, allocations, start)
        return rest(self.round, Plan(policy=policy, allocations=allocations), initial)

    def _placed(self, chosen: dict[str, Option]) -> Placed:
        """Place options; if a limit requires it, on as few nodes as their GPUs fill."""
        sleeps = may_sleep(self.round)
        loose = place(self.round, chosen, may_sleep=sleeps)
        plan = Plan(policy="", allocations=loose.allocations, asleep=loose.asleep)
        if not sleeps or spare_of(self.round, plan) >= -ROUNDING * (self.round.watts or 0.0):
            return loose
        pools = self.round.cluster.topology.pools
        gpus = [pool.gpus - left for pool, left in zip(pools, self.left.gpus, strict=True)]
        awake = dict(enumerate(nodes_for(node_classes(self.round), gpus)))
        return place(self.round, chosen, may_sleep=True, awake=awake)

    def _option(self, j: int, step: int) -> Option:
        """Return the option of a step: the current one, if pool, GPUs and batch are the same."""
        ladder, state = self.ladders[j], self.ladders[j].state
        pool, gpus, batch = ladder.pool, ladder.asked[step], ladder.batch[step]
        if state.allocation is not None:
            held = state.allocation.option
            if (held.pool, held.computing, held.batch) == (pool, gpus, batch):
                return held
        of = application_of(self.round, state, pool)
        assert of is not None
        option = of.option(gpus, batch, state.noise, exclusive=state.job.exclusive)
        assert option is not None, "ladders hold only counts with a speed"
        return self._clocks(state, option)
