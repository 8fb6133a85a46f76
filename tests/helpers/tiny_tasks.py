"""Tiny rounds of tasks on nodes, and the best plan of each by trying every one.

Written apart from the engine: jobs get nodes one by one, and only what the limits allow is
followed. `best_by_nodes` asks HiGHS for the same number, with a variable for each task and node.
"""

from dataclasses import dataclass, field
from itertools import combinations

import highspy
import numpy as np

from ronda.instances.tasks.arrays import TaskRound

COUNTS = ((1, 1), (2, 1), (1, 2), (2, 2), (3, 1))
RESOURCES = ("cpu", "memory", "gpu")


def tiny_tasks(seed):
    """Return a random round of 4 to 9 tasks on 2 to 4 nodes of two kinds, in one or two pools.

    Half of them have groups, gangs of two, jobs with two ways to run, running tasks, or a budget of
    these; some shapes fit no node or may not run in a pool, and some values differ by millions.
    """
    rng = np.random.default_rng([seed, 58])
    count = np.array(COUNTS[rng.integers(len(COUNTS))])
    pool = np.array([0, int(rng.random() < 0.6)])
    capacity = np.stack([rng.integers(3, 9, 2), rng.integers(4, 12, 2), rng.integers(0, 5, 2)], 1)
    shapes, tasks = int(rng.integers(2, 5)), int(rng.integers(4, 10))
    use = np.stack(
        [rng.integers(1, 5, shapes), rng.integers(0, 6, shapes), rng.integers(0, 3, shapes)], 1
    )
    speed = rng.choice([0.0, 1.0, 1.3], (shapes, 2), p=[0.15, 0.6, 0.25])
    shape = rng.integers(0, shapes, tasks)
    spread = 5.0 if rng.random() < 0.1 else 0.5
    value = np.round(rng.lognormal(0.0, spread, tasks) * (1 + use[shape].sum(1)), 3) + 0.001
    group = rng.integers(-1, 2, tasks) if rng.random() < 0.6 else np.full(tasks, -1)
    ways = np.sort(rng.integers(0, tasks, tasks)) if rng.random() < 0.5 else None
    group = group if ways is None else group[ways]
    round_ = TaskRound(
        name=f"tiny-tasks-{seed}",
        resources=RESOURCES,
        kinds=("small", "large"),
        capacity=capacity,
        count=count,
        pool=pool,
        pools=("east", "west"),
        use=use,
        slices=1 + (rng.random(shapes) < (0.3 if rng.random() < 0.5 else 0.0)),
        speed=speed,
        shape=shape,
        value=value,
        group=group,
        job=ways,
        held_task=np.zeros(0, dtype=np.int64),
        held_node=np.zeros(0, dtype=np.int64),
        move_cost=np.zeros(tasks),
    )
    return _running(rng, round_) if rng.random() < 0.6 else round_


def _running(rng, round_):
    """Return the round with tasks on nodes at random, and perhaps a budget."""
    search, held = _Search(round_), {}
    for job in rng.permutation(len(search.jobs)).tolist():
        choices = [c for c in search.jobs[job] if search.fits(c)]
        if choices and rng.random() < 0.7:
            chosen = choices[rng.integers(len(choices))]
            search.take(chosen)
            held[chosen.task] = chosen.nodes
    cost = np.zeros(round_.tasks)
    for task in held:
        own = search.number == search.number[task]
        cost[own] = np.round(rng.choice([0.0, 0.05, 0.5]) * round_.value[task], 3)
    pairs = sorted((task, node) for task, nodes in held.items() for node in nodes)
    most = int(rng.integers(0, len(held) + 1)) if rng.random() < 0.5 else None
    given = {name: getattr(round_, name) for name in TaskRound.__dataclass_fields__}
    return TaskRound(
        **given
        | {
            "held_task": np.array([task for task, _ in pairs], dtype=np.int64),
            "held_node": np.array([node for _, node in pairs], dtype=np.int64),
            "move_cost": cost,
            "most_disrupted": most,
        }
    )


@dataclass
class Choice:
    """A task on nodes: its worth with the move paid, and whether it stays where it runs."""

    task: int
    nodes: tuple
    worth: float
    stays: bool


@dataclass
class _Search:
    """Depth first over jobs, cut off where even the best choices left are worth no more."""

    round: TaskRound
    top: float = -np.inf
    jobs: list = field(default_factory=list)

    def __post_init__(self):
        """List the choices of each job."""
        r = self.round
        self.number = np.arange(r.tasks) if r.job is None else r.job
        self.free = r.capacity[r.node_kind].tolist()
        self.groups = [set() for _ in self.free]
        held = {}
        for task, node in zip(r.held_task.tolist(), r.held_node.tolist(), strict=True):
            held.setdefault(task, set()).add(node)
        self.runs = {int(self.number[task]): task for task in held}
        for job in np.unique(self.number).tolist():
            was = self.runs.get(job)
            lost = 0.0 if was is None else float(r.move_cost[was])
            own = [
                Choice(task, nodes, gain if stays else gain - lost, stays)
                for task in np.flatnonzero(self.number == job).tolist()
                for nodes, gain in self._places(task)
                for stays in [task == was and set(nodes) == held[was]]
            ]
            self.jobs.append(sorted(own, key=lambda c: -c.worth))
        self.names = np.unique(self.number).tolist()
        most = [max((c.worth for c in own), default=0.0) for own in self.jobs]
        self.rest = [sum(max(w, 0.0) for w in most[j:]) for j in range(len(most) + 1)]

    def _places(self, task):
        r, shape = self.round, self.round.shape[task]
        pool = r.pool[r.node_kind]
        for p in range(len(r.pools)):
            if r.speed[shape, p] > 0:
                there = np.flatnonzero(pool == p).tolist()
                for nodes in combinations(there, int(r.slices[shape])):
                    yield nodes, float(r.value[task] * r.speed[shape, p])

    def fits(self, choice):
        """Whether its nodes have room and none of its group."""
        use, group = self.round.use[self.round.shape[choice.task]], self.round.group[choice.task]
        return all(
            (use <= self.free[n]).all() and (group < 0 or group not in self.groups[n])
            for n in choice.nodes
        )

    def take(self, choice, sign=1):
        """Put it on its nodes; with -1 take it away."""
        use, group = self.round.use[self.round.shape[choice.task]], self.round.group[choice.task]
        for n in choice.nodes:
            self.free[n] = [f - sign * u for f, u in zip(self.free[n], use.tolist(), strict=True)]
            if group >= 0:
                (self.groups[n].add if sign > 0 else self.groups[n].discard)(group)

    def look(self, j=0, worth=0.0, disrupted=0):
        """Try all choices of the jobs from the `j`th on; return the best worth."""
        budget = self.round.most_disrupted
        if worth + self.rest[j] <= self.top or (budget is not None and disrupted > budget):
            return self.top
        if j == len(self.jobs):
            self.top = worth
            return worth
        runs = self.names[j] in self.runs
        for choice in self.jobs[j]:
            if self.fits(choice):
                self.take(choice)
                self.look(j + 1, worth + choice.worth, disrupted + (runs and not choice.stays))
                self.take(choice, -1)
        return self.look(j + 1, worth, disrupted + runs)


def best_tried(round_):
    """Return the worth of the best plan, by trying every one."""
    return _Search(round_).look()


def best_by_nodes(round_):
    """Return the worth of the best plan, by a model with a variable for each task and node."""
    r, h, inf = round_, highspy.Highs(), highspy.kHighsInf
    h.setOptionValue("output_flag", False)
    h.setOptionValue("mip_rel_gap", 0.0)
    h.setOptionValue("mip_abs_gap", 0.0)
    h.changeObjectiveSense(highspy.ObjSense.kMaximize)
    kind, pool = r.node_kind, r.pool[r.node_kind]
    number = np.arange(r.tasks) if r.job is None else r.job
    was = {int(number[task]): int(task) for task in r.held_task}
    on, whole, stay = {}, {}, {}

    def binary(worth):
        h.addCol(worth, 0.0, 1.0, 0, np.zeros(0, np.int32), np.zeros(0))
        h.changeColIntegrality(h.getNumCol() - 1, highspy.HighsVarType.kInteger)
        return h.getNumCol() - 1

    def at_most(limit, terms, least=-inf):
        index, value = np.array([c for c, _ in terms], dtype=np.int32), [float(a) for _, a in terms]
        h.addRow(least, limit, len(terms), index, np.array(value))

    for t in range(r.tasks):
        lost = float(r.move_cost[was[int(number[t])]]) if int(number[t]) in was else 0.0
        for p in range(len(r.pools)):
            speed = float(r.speed[r.shape[t], p])
            there = np.flatnonzero(pool == p).tolist()
            if speed > 0 and there:
                whole[t, p] = binary(float(r.value[t]) * speed - lost)
                on |= {(t, n): binary(0.0) for n in there}
                pieces = [(on[t, n], 1) for n in there]
                at_most(0.0, [*pieces, (whole[t, p], -int(r.slices[r.shape[t]]))], 0.0)
        if was.get(int(number[t])) == t:
            stay[t] = binary(lost)
            for n in r.held_node[r.held_task == t].tolist():
                at_most(0.0, [(stay[t], 1), (on[t, n], -1)])
    for job in np.unique(number).tolist():
        at_most(1.0, [(c, 1) for (t, _), c in whole.items() if number[t] == job])
    for n in range(r.nodes):
        here = {t: c for (t, m), c in on.items() if m == n}
        for k, room in enumerate(r.capacity[kind[n]].tolist()):
            at_most(room, [(c, r.use[r.shape[t], k]) for t, c in here.items()])
        for group in np.unique(r.group[r.group >= 0]).tolist():
            at_most(1.0, [(c, 1) for t, c in here.items() if r.group[t] == group])
    if r.most_disrupted is not None:
        at_most(inf, [(c, 1) for c in stay.values()], len(was) - r.most_disrupted)
    if not whole:  # no task may run anywhere: an empty model has no optimum
        return 0.0
    h.run()
    assert h.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return h.getInfo().objective_function_value


def worth_of_plan(round_, plan):
    """Return what a plan is worth; an assertion fails where it breaks a rule."""
    search, on, worth, kept = _Search(round_), {}, 0.0, 0
    for task, node in zip(plan.task.tolist(), plan.node.tolist(), strict=True):
        on.setdefault(task, []).append(node)
    for job, choices in zip(search.names, search.jobs, strict=True):
        mine = [task for task in on if search.number[task] == job]
        assert len(mine) <= 1, f"job {job} is placed in several ways"
        for task in mine:
            there = [c for c in choices if c.task == task and list(c.nodes) == on[task]]
            assert there, f"task {task} may not be on nodes {on[task]}"
            assert search.fits(there[0]), f"task {task} has no room on nodes {on[task]}"
            search.take(there[0])
            worth += there[0].worth
            kept += there[0].stays
    budget = round_.most_disrupted
    assert budget is None or len(search.runs) - kept <= budget, "too many are disrupted"
    return worth
