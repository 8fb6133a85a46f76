"""The smallest changes that make a round feasible, against every choice of tiny rounds."""

from itertools import combinations, product

import numpy as np
import pytest
from msgspec.structs import replace

import ronda
from ronda.formulations.options.table import option
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Rack
from ronda.instances.job import Allocation, Estimate, Job, JobState
from ronda.questions.fix import fixes
from ronda.questions.whatif.changes import Gpus
from ronda.solvers.decision.conflicts import conflicts_of
from ronda.solvers.rules import with_rules
from tests.solvers.test_rules import _rated

IDLE_W, BUSY_W = 20.0, 100.0


def of_users(sense, limit, user, name):
    """Return a rule on the GPUs of a user's jobs."""

    def rule(round, table):
        mine = np.array([s.job.user == user for s in table.jobs])[table.job]
        return ronda.Limit(table.gpus * mine, sense, limit, name=name)

    return rule


def large(limit):
    """Return a rule on the number of jobs with two GPUs or more."""
    return lambda round, table: ronda.Limit(table.gpus >= 2, "<=", limit, name="large")


def drawn(seed):
    """Return a tiny round on nodes of equal size, with firm jobs, a power cap, and its rules."""
    rng = np.random.default_rng([seed, 46])
    size = int(rng.integers(2, 5))
    kind = ronda.GpuType(name="G", memory_gib=16, idle_w=IDLE_W)
    cluster = ronda.uniform_cluster(kind, int(rng.integers(1, 3)), size)
    rates = {n: float(n**0.8) for n in range(1, size + 1)}
    profile = ronda.Profile(name="p", throughput={"G": _rated(rates)}, power={"G": _rated(rates)})
    running, waiting, free = [], [], [size] * cluster.node_groups[0].count
    for j in range(int(rng.integers(2, 5))):
        gpus = int(rng.integers(1, size + 1))
        job = Job(
            id=f"j{j}",
            submit_s=float(j),
            profile="p",
            user=str(rng.choice(["v", "w"])),
            gpus=gpus,
            min_gpus=1 if rng.random() < 0.4 else None,
            estimate=Estimate(work=1000.0),
            preemptible=bool(rng.random() < 0.4),
        )
        state = JobState(job=job, since_s=float(j))
        node = next((n for n, left in enumerate(free) if left >= gpus), None)
        if node is not None and rng.random() < 0.6:
            free[node] -= gpus
            running.append((state, node))
        else:
            waiting.append(state)
    made = ronda.Round(
        now_s=100.0,
        cluster=cluster,
        profiles={"p": profile},
        waiting=(*waiting, *(s for s, _ in running)),
    )
    table = ronda.option_table(made)
    held = {}
    for j, state in enumerate(table.jobs):
        for k in range(int(table.start[j]), int(table.start[j + 1])):
            if table.gpus[k] == state.job.gpus:
                held[state.job.id] = option(table, k)
    states = [
        replace(
            s,
            started=True,
            allocation=Allocation(option=held[s.job.id], placement=((n, s.job.gpus),)),
        )
        for s, n in running
    ]
    made = replace(made, running=tuple(states), waiting=tuple(waiting))
    rules = [
        of_users(">=", int(rng.integers(1, 8)), "v", "least_v"),
        of_users("<=", int(rng.integers(0, 4)), "w", "most_w"),
        large(int(rng.integers(0, 3))),
    ]
    if rng.random() < 0.6:
        share = float(rng.uniform(0.2, 1.1))
        gpus = cluster.gpus
        made = replace(made, power_cap_w=IDLE_W * gpus + share * (BUSY_W - IDLE_W) * gpus)
    return made, [r for r in rules if rng.random() < 0.7]


def least_idle(jobs, sizes, free):
    """Return the fewest GPUs on nodes that jobs (size, node or None) wake; None without room.

    Each job is on one node, and nodes without a job sleep.
    """
    if not jobs:
        return sum(n for n, left in zip(sizes, free, strict=True) if left < n)
    (size, fixed), *rest = jobs
    ways = [
        least_idle(rest, sizes, [*free[:n], left - size, *free[n + 1 :]])
        for n, left in enumerate(free)
        if fixed in (None, n) and left >= size
    ]
    return min((way for way in ways if way is not None), default=None)


def brute(round_, rules, *, without=(), loose=""):
    """Return the least excess over the limit `loose` of a choice that keeps all others, or None.

    Without one, 0 if some choice keeps all. Jobs in `without` are given up.
    """
    table = ronda.option_table(round_)
    limits = [rule(round_, table) for rule in rules]
    ways = []
    for j, state in enumerate(table.jobs):
        own = list(range(int(table.start[j]), int(table.start[j + 1])))
        firm = state.allocation is not None and not state.job.preemptible
        ways.append([-1] if state.job.id in without else own if firm else [-1, *own])
    nodes, best = round_.cluster.topology.node_gpus.tolist(), None
    for choice in product(*ways):
        rows = np.array([k for k in choice if k >= 0], dtype=int)
        over = {}
        for limit in limits:
            sign = -1 if limit.sense == ">=" else 1
            use = np.asarray(limit.coefficients, dtype=float)[rows].sum()
            over[f"rule[{limit.name}]"] = sign * (use - limit.limit)
        on = {s.job.id: s.allocation.placement[0][0] for s in round_.running}
        firm = [s.job.id for s in round_.running if not s.job.preemptible]
        jobs = [(int(table.gpus[k]), table.jobs[table.job[k]].job.id) for k in rows.tolist()]
        places = [(n, on[job] if job in firm else None) for n, job in jobs]
        idle = least_idle(sorted(places, key=lambda place: place[1] is None), nodes, nodes)
        if idle is None:
            continue
        if round_.power_cap_w is not None:
            busy = float(table.extra_w[rows].sum())
            over["power_cap"] = IDLE_W * idle + busy - round_.power_cap_w
        excess = max(0.0, over.pop(loose, 0.0))
        if all(x <= 1e-9 for x in over.values()):
            best = excess if best is None else min(best, excess)
    return best


def asked(round_, rules):
    """Return the fixes of a round, or None if it is feasible."""
    policy = with_rules(ronda.policy("milp"), rules, "extra")
    question = policy.question(round_, Deadline(), 0)
    conflicts = conflicts_of(question, Deadline())
    if not conflicts:
        return None
    return list(fixes(round_, policy, question, conflicts, Deadline()))


@pytest.mark.parametrize("seed", range(30))
def test_as_small_as_of_all_choices(seed):
    """Each fix that was checked on nodes is the smallest, and what is said not to help does not.

    The model counts GPUs, so that a fix whose plan found no room is only known to be no larger.
    """
    round_, rules = drawn(seed)
    found = asked(round_, rules)
    if found is None:
        return
    every = {state.job.id for state in round_.running if not state.job.preemptible}
    assert {f.kind for f in found} >= {"gpus"}
    for fix in found:
        if fix.kind == "gpus":
            more = range(1, 11)
            least = next(
                (n for n in more if brute(Gpus(fix.of, n).apply(round_), rules) is not None), None
            )
        elif fix.kind == "jobs":
            least = next(
                (n for n in range(1, len(every) + 1) if _without(round_, rules, every, n)), None
            )
        else:
            least = brute(round_, rules, loose="power_cap" if fix.kind == "power" else fix.of)
        if fix.more is None:
            assert least is None, fix
        elif fix.checked:
            assert abs(fix.more) == pytest.approx(least, abs=1e-6), fix
        else:
            assert least is None or abs(fix.more) <= least + 1e-6, fix
    known = {fix.of for fix in found if fix.kind == "rule"}
    for rule in rules:  # a limit that is not named helps nobody
        name = f"rule[{rule(round_, ronda.option_table(round_)).name}]"
        assert name in known or brute(round_, rules, loose=name) is None


def _without(round_, rules, every, n):
    """Return whether giving up some n of the firm jobs helps."""
    return any(
        brute(round_, rules, without=gone) is not None for gone in combinations(sorted(every), n)
    )


def test_fixes_are_checked_on_nodes():
    """The fixes of these rounds all have a plan that the checker accepted."""
    found = [fix for seed in (2, 7, 9, 12, 14, 23) for fix in asked(*drawn(seed)) if fix.more]
    assert len(found) >= 8
    assert all(fix.checked for fix in found)


def test_a_later_outage():
    """Until a job on it ends, a node that leaves would have to stay.

    Jobs of 4 GPUs need 1000 s and may take 10 more to start; one of two nodes leaves in 600 s, so
    that only one of them can run, and a rule asks for 8 GPUs.
    """
    kind = ronda.GpuType(name="G", memory_gib=16)
    four = {"gpus": 4, "rates": {"gpus": [4], "rate": [1.0]}, "work": 1000.0, "user": "v"}
    made = ronda.make_round(
        ronda.uniform_cluster(kind, 2, 4), [four | {"id": "a"}, four | {"id": "b"}]
    )
    jobs = tuple(replace(s, job=replace(s.job, limit_s=1200.0)) for s in made.waiting)
    made = replace(made, waiting=jobs, leaving=((1, made.now_s + 600.0),))
    found = {fix.kind: fix for fix in asked(made, [of_users(">=", 8, "v", "both")])}
    end_s = found["outage"].limit
    later = replace(made, leaving=((1, end_s),))
    assert asked(later, [of_users(">=", 8, "v", "both")]) is None
    sooner = replace(made, leaving=((1, end_s - 0.01),))
    assert asked(sooner, [of_users(">=", 8, "v", "both")]) is not None
    assert (found["outage"].checked, found["rule"].more, found["gpus"].more) == (True, -4, 4)


def test_jobs_that_share_a_rack():
    """Four firm jobs draw 100 W for each of 2 GPUs, two of them in a rack that bears 300 W.

    Its cap must rise by 100 W, or one of its jobs must go; more GPUs help nobody.
    """
    kind = ronda.GpuType(name="G", memory_gib=16)
    groups = [
        ronda.NodeGroup(name=f"n{r}", count=2, gpus_per_node=2, gpu_type="G", rack=f"r{r}")
        for r in (0, 1)
    ]
    racks = (Rack(name="r0", power_cap_w=300.0), Rack(name="r1"))
    cluster = ronda.Cluster(gpu_types=(kind,), node_groups=tuple(groups), racks=racks)
    rates = {n: float(n) for n in (1, 2)}
    profile = ronda.Profile(name="p", throughput={"G": _rated(rates)}, power={"G": _rated(rates)})
    job = Job(id="j", submit_s=0.0, profile="p", gpus=2, estimate=Estimate(work=9.0))
    waiting = tuple(JobState(job=replace(job, id=f"j{n}"), since_s=0.0) for n in range(4))
    made = ronda.Round(now_s=100.0, cluster=cluster, profiles={"p": profile}, waiting=waiting)
    table, running = ronda.option_table(made), []
    for n, state in enumerate(waiting):
        way = option(table, int(table.start[n + 1]) - 1)
        given = Allocation(option=way, placement=((n, 2),))
        firm = replace(state.job, preemptible=False)
        running.append(replace(state, started=True, job=firm, allocation=given))
    made = replace(made, waiting=(), running=tuple(running))
    found = {fix.kind: fix for fix in asked(made, [])}
    assert found["rack"].more == pytest.approx(100.0)
    assert (found["rack"].limit, found["rack"].checked) == (pytest.approx(400.0), True)
    assert (found["jobs"].more, found["jobs"].checked) == (1.0, True)
    assert set(found["jobs"].jobs) < {"j0", "j1"}
    assert found["gpus"].more is None


@pytest.mark.parametrize("seed", [0, 1, 2, 4, 5, 6, 7])  # of 3 a node would have too many
def test_the_fewest_jobs_that_free_enough_power_where_they_run(seed):
    """Firm jobs of 1 or 2 GPUs are scattered over nodes of 4, which sleep when all theirs are gone.

    Elsewhere fewer nodes would be enough, but they may not move.
    """
    rng = np.random.default_rng([seed, 47])
    kind = ronda.GpuType(name="G", memory_gib=16, idle_w=IDLE_W)
    rates = {n: float(n) for n in (1, 2)}
    profile = ronda.Profile(name="p", throughput={"G": _rated(rates)}, power={"G": _rated(rates)})
    nodes = rng.integers(0, 3, 5).tolist()
    states = []
    for j, _ in enumerate(nodes):
        size = int(rng.integers(1, 3)) if nodes[: j + 1].count(nodes[j]) < 3 else 1
        job = Job(id=f"j{j}", submit_s=0.0, profile="p", gpus=size, estimate=Estimate(work=9.0))
        states.append(JobState(job=job, since_s=0.0))
    made = ronda.Round(
        now_s=100.0,
        cluster=ronda.uniform_cluster(kind, 3, 4),
        profiles={"p": profile},
        waiting=tuple(states),
    )
    table, running = ronda.option_table(made), []
    for j, (state, node) in enumerate(zip(states, nodes, strict=True)):
        given = Allocation(
            option=option(table, int(table.start[j + 1]) - 1), placement=((node, state.job.gpus),)
        )
        firm = replace(state.job, preemptible=False)
        running.append(replace(state, started=True, job=firm, allocation=given))

    def drawn_w(kept):
        awake = {nodes[j] for j in kept}
        return 4 * IDLE_W * len(awake) + sum(80.0 * states[j].job.gpus for j in kept)

    every = range(len(nodes))
    cap_w = float(rng.uniform(0.3, 0.9)) * drawn_w(every)
    made = replace(made, waiting=(), running=tuple(running), power_cap_w=cap_w)
    found = {fix.kind: fix for fix in asked(made, [])}
    least = next(
        n
        for n in every
        if any(drawn_w(set(every) - {*gone}) <= cap_w for gone in combinations(every, n))
    )
    assert (found["jobs"].more, found["jobs"].checked) == (least, True)
    assert found["power"].limit == pytest.approx(drawn_w(every))
