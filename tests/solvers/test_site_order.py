"""Job arrays, order and nodes that leave in rounds: rows, prices and words, by hand."""

import pytest
from msgspec.structs import replace

from ronda.formulations.node_rules.outages import closed_before, leaving_too_early
from ronda.horizon.solve import solve
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import GpuType, NodeGroup, uniform_cluster
from ronda.instances.job import After, Allocation, Costs, Estimate, Job, JobState, Option
from ronda.instances.plan import SolutionStatus
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.round import Round
from ronda.instances.rules.validate import validate
from ronda.instances.site import Site
from ronda.instances.tables.table import Report
from ronda.questions.explained import explanation_told, sentences
from ronda.solvers.decision.plan import Question
from ronda.solvers.greedy.policy import fill
from ronda.solvers.policies.rigid.queues import Fifo
from ronda.solvers.registry import policy

GPU = GpuType(name="G", memory_gib=16, idle_w=10)
WORK = Profile(name="p", throughput={"G": Rigid()}, power={"G": PowerCurve(a_w=60)})
ENGINES = ("prices", "milp", "milp(placement=exact)")


def job(name, gpus=8, work=7200.0, weight=1.0, held=None, blocked=None, **fields):
    """Return a rigid job that waits, or runs on the given pieces of nodes."""
    estimate = None if work is None else Estimate(work=work)
    made = Job(
        id=name,
        submit_s=0.0,
        profile="p",
        gpus=gpus,
        weight=weight,
        estimate=estimate,
        **fields,
    )
    if held is None:
        return JobState(job=made, since_s=0.0, blocked=blocked)
    span = "node" if len(held) == 1 else "cluster"
    option = Option(pool=0, gpus=gpus, span=span, rate=1.0, power_w=60.0 * gpus)
    given = Allocation(option=option, placement=held)
    return JobState(job=made, since_s=0.0, allocation=given, started=True, held_s=0.0)


def round_of(*states, nodes=2, gpus=8, site=Site(), start_s=30.0, **fields):  # noqa: B008
    """Return a valid round on equal nodes."""
    made = Round(
        cluster=uniform_cluster(GPU, nodes, gpus, host_idle_w=80.0),
        profiles={"p": WORK},
        waiting=tuple(s for s in states if s.allocation is None),
        running=tuple(s for s in states if s.allocation is not None),
        costs=Costs(start_s=start_s, restart_s=start_s),
        site=site,
        **fields,
    )
    return validate(made)


def decided(given, engine, objective="weighted-goodput"):
    """Return a plan in which the checker finds nothing."""
    inside = f"objective={objective},power=1"
    name = f"{engine[:-1]},{inside})" if engine.endswith(")") else f"{engine}({inside})"
    plan = policy(name).plan(given)
    assert check(given, plan) == []
    return plan


O1 = (
    job("a", weight=9.0),
    job("b", weight=9.0),
    job("c", 4, 1800.0),
    job("d", 4, 3500.0),
)


@pytest.mark.parametrize("engine", ENGINES)
def test_short_jobs_run_on_the_node_that_leaves(engine):
    """O1: a or b on node 0, c and d on node 1; the GPU that stays has the other's worth."""
    plan = decided(round_of(*O1, leaving=((1, 3600.0),)), engine)
    assert {"c", "d"} < set(plan.allocations)
    assert len(plan.allocations) == 3
    assert {n for name in "cd" for n, _ in plan.allocations[name].placement} == {1}
    if engine == "prices":
        assert plan.prices["staying[default/G,3600]"] == pytest.approx(9.0 / 8, rel=1e-3)


@pytest.mark.parametrize(("start_s", "runs"), [(100.0, True), (100.5, False)])
@pytest.mark.parametrize("engine", ENGINES)
def test_a_job_may_end_when_the_node_leaves_and_no_later(engine, start_s, runs):
    """O2: 3,500 s of work after 100 s; at 100.5 s of pause it does not fit."""
    given = round_of(job("e", 8, 3500.0), nodes=1, start_s=start_s, leaving=((0, 3600.0),))
    assert (set(decided(given, engine).allocations) == {"e"}) is runs


@pytest.mark.parametrize("engine", ENGINES)
def test_what_runs_stays_where_it_is_and_is_not_moved_to_a_node_that_leaves(engine):
    """O3: j stays on node 1. A gang of 8 that is worth more moves it to node 0, or stops it."""
    j, k = job("j", 4, held=((1, 4),)), job("k", 4, held=((2, 4),))
    leaving = ((1, 2000.0), (2, 3000.0))
    plan = decided(round_of(j, k, nodes=3, leaving=leaving), engine)
    assert plan.allocations["j"].placement == ((1, 4),)
    short = job("s", 8, 1000.0, weight=90.0)
    plan = decided(round_of(j, k, short, job("l", 4), nodes=3, leaving=leaving), engine)
    assert "s" in plan.allocations
    for name, node in (("j", 1), ("k", 2)):
        given = plan.allocations.get(name)
        assert given is None or given.placement in (((node, 4),), ((0, 4),))


@pytest.mark.parametrize("engine", ENGINES)
def test_nodes_leave_one_after_the_other(engine):
    """Of four jobs of 8 GPUs two last beyond 2 h, one 1.5 h and one half an hour: all run."""
    times = {"a": 9000.0, "b": 9000.0, "c": 5400.0, "d": 1800.0}
    jobs = [job(name, 8, work) for name, work in times.items()]
    leaving = ((0, 2000.0), (3, 7200.0))
    plan = decided(round_of(*jobs, nodes=4, leaving=leaving), engine)
    assert len(plan.allocations) == 4
    assert plan.allocations["d"].placement == ((0, 8),)
    assert plan.allocations["c"].placement == ((3, 8),)


def test_pieces_of_whole_nodes_have_rows_of_their_own():
    """Three jobs of 5 GPUs have 16 that stay, but two nodes: two run."""
    jobs = [job(f"j{k}", 5, weight=1.0 + k) for k in range(3)]
    given = round_of(*jobs, nodes=3, leaving=((2, 3600.0),))
    question = Question.of(given, "weighted-goodput", parameters={"power": 1.0})
    assert {n.partition("[")[0] for n in question.table.own.names} == {"staying_nodes"}
    for engine in ENGINES:
        assert set(decided(given, engine).allocations) == {"j1", "j2"}


def test_a_row_that_cannot_bind_is_not_there():
    """All short, few, or running where nothing leaves: the table has no rows of the rule."""
    leaving = ((1, 3600.0),)
    for states in ([job("a", 4, 100.0)], [job("a", 8)], [job("a", 8, held=((1, 8),)), job("b")]):
        question = Question.of(round_of(*states, leaving=leaving), "rank")
        assert question.table.own is None
    assert Question.of(round_of(*O1), "rank").table.own is None


def test_many_times_have_few_rows():
    """40 nodes leave one by one: 16 rows, with the last; placement asks nodes."""
    jobs = [job(f"j{k}", 8, 300.0 * k) for k in range(1, 60)]
    given = round_of(*jobs, nodes=42, leaving=[(n, 400.0 * (n + 1)) for n in range(40)])
    question = Question.of(given, "weighted-goodput", parameters={"power": 1.0})
    assert len(question.table.own.names) == 16
    assert "staying[default/G,16000]" in question.table.own.names
    assert decided(given, "prices").allocations


def test_nodes_of_unequal_size_count_their_own_gpus():
    """Node 1 of 4 GPUs stays, node 0 of 8 leaves: one long job of 4 runs, and not one of 8."""
    groups = [
        NodeGroup(name=f"n{k}", count=1, gpus_per_node=n, gpu_type="G")
        for k, n in enumerate((8, 4))
    ]
    given = round_of(job("a", 8), job("b", 4), job("c", 4), leaving=((0, 3600.0),))
    given = replace(given, cluster=replace(given.cluster, node_groups=tuple(groups)))
    for engine in ENGINES:
        assert [a.placement for a in decided(given, engine).allocations.values()] == [((1, 4),)]


def test_a_sleeping_node_that_leaves_must_wake_first():
    """It wakes for 60 s: 3,500 + 30 + 60 s fit into 3,590 s and not into 3,589 s."""
    given = round_of(job("a", 8, 3500.0), nodes=1, leaving=((0, 3590.0),))
    group = replace(given.cluster.node_groups[0], wake_s=60.0, sleep_w=5.0)
    given = replace(given, cluster=replace(given.cluster, node_groups=(group,)), asleep=(0,))
    assert set(policy("sjf").plan(given).allocations) == {"a"}
    assert not policy("sjf").plan(replace(given, leaving=((0, 3589.0),))).allocations


@pytest.mark.parametrize("engine", ENGINES)
def test_two_of_four_tasks_run_and_the_third_has_the_price(engine):
    """D3: tasks worth 4, 3, 2 and 1, of which two may run: the row is worth 2."""
    tasks = [job(f"t{k}", 1, weight=4.0 - k, job_array="a") for k in range(4)]
    site = Site(job_arrays={"a": 2})
    plan = decided(round_of(*tasks, site=site), engine)
    assert set(plan.allocations) == {"t0", "t1"}
    if engine != "milp(placement=exact)":
        assert 2.0 - 1e-6 <= plan.prices["array[a]"] <= 3.0 + 1e-6
    for most in (4, 5):
        loose = round_of(*tasks, site=Site(job_arrays={"a": most}))
        assert Question.of(loose, "rank").table.own is None
        assert len(decided(loose, engine).allocations) == 4


@pytest.mark.parametrize("engine", ENGINES)
def test_a_throttle_that_was_lowered_stops_no_task(engine):
    """Three run, of now one: they go on, and the fourth does not come."""
    held = [job(f"t{k}", 1, job_array="a", held=((0, 1),)) for k in range(3)]
    given = round_of(*held, job("t3", 1, job_array="a"), site=Site(job_arrays={"a": 1}))
    assert set(decided(given, engine).allocations) == {"t0", "t1", "t2"}


@pytest.mark.parametrize("name", [*ENGINES, "fifo", "srtf", "pollux-like"])
def test_no_policy_starts_a_job_that_may_not_start(name):
    """One is held, one waits for a job that runs, and one for a time; they block nobody."""
    states = (
        job("r", 4, held=((0, 4),)),
        job("a", 1, blocked="it is held"),
        job("b", 1, after=(After(job="r"),)),
        job("c", 1, eligible_s=10.0),
        job("d", 1),
        job("e", 1, eligible_s=0.0),
    )
    given = round_of(*states)
    assert set(policy(name).plan(given).allocations) == {"r", "d", "e"}


def test_no_job_that_may_not_start_fills_the_gap_of_a_failed_policy():
    """What the policy would have decided is filled up with jobs that may start."""
    given = round_of(job("a", 1, blocked="it is held"), job("b", 1))
    assert set(fill(given, {}, Deadline())) == {"b"}
    plan = solve(given, Failing())
    assert (plan.status, set(plan.allocations)) == (SolutionStatus.FALLBACK, {"b"})


class Failing(Fifo):
    """A policy that never decides."""

    def plan(self, round, **given):
        """Raise."""
        raise RuntimeError("no")


def test_a_node_is_open_to_the_job_that_has_all_of_it_there_that_it_can_get():
    """J holds 4 GPUs of node 1: with 4 it may stay there, and 8 would have to come."""
    j = job("j", 4, held=((1, 4),))
    given = round_of(j, leaving=((0, 100.0), (1, 100.0)))
    for gpus, open_ in ((4, [True, False]), (8, [True, True])):
        option = Option(pool=0, gpus=gpus, span="node")
        assert closed_before(given, j, option).tolist() == open_


def words(given, *names):
    """Return what is said of jobs."""
    made = policy("prices(objective=weighted-goodput,power=1)")
    told = explanation_told(given, made, names)(Report({}, []), solve(given, made))
    return ["\n".join(sentences(each)) for each in told.fields["explanation"]]


def test_the_words_say_who_waits_for_whom():
    """B waits for r, which runs for 7,200 s; c for a job that waits; d is held by its host."""
    states = (
        job("r", 4, held=((0, 4),)),
        job("b", 1, after=(After(job="r"),)),
        job("c", 1, after=(After(job="b", when="start"), After(job="r", when="any"))),
        job("d", 1, blocked="can never run: j3 failed"),
    )
    b, c, d = words(round_of(*states), "b", "c", "d")
    assert "it waits for r to end well, which runs, by belief until 7200 s" in b
    assert "it waits for b to start, which waits (and 1 more)" in c
    assert "It may not start now." in d
    assert "Why not: can never run: j3 failed." in d


def test_the_words_say_what_leaves_and_which_limit_would_do():
    """16 GPUs are free, of which 8 stay; a runs there. B could start if its limit allowed it."""
    a = job("a", 8, weight=9.0)
    given = round_of(a, job("b", 8), leaving=((1, 3540.0),))
    (said,) = words(given, "b")
    assert "8 of 8 free GPUs of default/G leave from 59 min on" in said
    assert "it could start with a time limit of at most 59 min" in said
    assert "A GPU of default/G that stays beyond 3540 s costs" in said
    lenient = replace(given, site=Site(kills_at_limit=False))
    option = Option(pool=0, gpus=8, span="node")
    alone = [Allocation(option=option, placement=((0, 8),))]
    text = leaving_too_early(lenient, given.waiting[1], option, alone)
    assert text == "8 of 8 free GPUs of default/G leave from 59 min on"
    assert leaving_too_early(given, given.waiting[1], option, ()) is None  # node 0 is free


def test_energy_is_owed_until_the_time_limit_only():
    """One GPU more draws 50 W: for 30 s of the window of 60 s, with a limit, 1,500 J."""
    limited = job("a", 1, None, limit_s=30.0)
    base_j = (80.0 + 8 * 10.0) * 60.0
    for more_j, kills, runs in [(1500.0, True, 1), (1499.0, True, 0), (1500.0, False, 0)]:
        given = round_of(
            limited,
            nodes=1,
            start_s=0.0,
            energy_j=base_j + more_j,
            window_s=60.0,
            site=Site(kills_at_limit=kills),
        )
        for name in ("fifo", "milp", "prices"):
            plan = policy(name).plan(given)
            assert len(plan.allocations) == runs, (name, more_j, kills)
            assert check(given, plan) == []
