"""The exact policy: optimal, in time, explained, and honest about what it could not place."""

import dataclasses
import os
import subprocess
import sys
from itertools import count
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest

from every_choice import best_choice
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.formulations.options.table import rows_of, running_rows
from ronda.instances import clock
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Rack
from ronda.instances.errors import InputError
from ronda.instances.generate import round as generated
from ronda.instances.generate import tiny_round
from ronda.instances.job import Allocation, Estimate, Job, JobState, Option
from ronda.instances.plan import SolutionStatus, StopReason
from ronda.instances.profile import PowerCurve, Profile, Rigid
from ronda.instances.round import Round
from ronda.solvers.contract import Policy
from ronda.solvers.decision import by_milp as allocate
from ronda.solvers.decision.plan import to_plan
from ronda.solvers.policies.optimising.milp import Milp
from ronda.solvers.prices import engine
from ronda.solvers.prices.fill import needed_blocks
from ronda.solvers.registry import policy

EXACT = Milp(gap=0.0)


def plan_of(made, round_, *, limit_s=None, seed=0, initial=None):
    """Return a policy's plan."""
    return made.plan(round_, deadline=Deadline(limit_s), seed=seed, initial=initial)


def rigid_round(sizes, *, placed=None, must=(), **fields):
    """Return a round of rigid jobs on two nodes of 8 GPUs; `placed` maps a job's index to its node.

    A node draws 200 + 8 x 50 = 600 W idle and 10 W asleep; a busy GPU 250 W.
    """
    group = NodeGroup(
        name="g",
        count=2,
        gpus_per_node=8,
        gpu_type="V100",
        host_idle_w=200.0,
        sleep_w=10.0,
        wake_s=60.0,
    )
    states = []
    for k, n in enumerate(sizes):
        job = Job(
            id=f"j{k}",
            submit_s=float(k),
            profile="rigid",
            gpus=n,
            preemptible=k not in must,
            estimate=Estimate(work=3600.0 * (k + 1)),
        )
        held = None
        if placed is not None and k in placed:
            span = Option(pool=0, gpus=n, span="node", rate=1.0, power_w=250.0 * n)
            held = Allocation(option=span, placement=((placed[k], n),))
        states.append(JobState(job=job, since_s=0.0, started=held is not None, allocation=held))
    return Round(
        now_s=100.0,
        cluster=Cluster(
            gpu_types=(GpuType(name="V100", memory_gib=32, idle_w=50.0),), node_groups=(group,)
        ),
        profiles={
            "rigid": Profile(
                name="rigid",
                throughput={"V100": Rigid()},
                power={"V100": PowerCurve(a_w=250.0)},
            )
        },
        running=tuple(s for s in states if s.allocation is not None),
        waiting=tuple(s for s in states if s.allocation is None),
        **fields,
    )


def optimum(round_):
    """Return the best value of any choice of options, by trying all."""
    table = build(round_)
    return best_choice(round_, table, values(round_, table))


@pytest.mark.parametrize("block", range(10))
def test_plans_are_optimal_and_valid(block):
    """On 200 tiny rounds what is placed and what is reported lost make up the optimum."""
    for seed in range(20 * block, 20 * block + (20 if os.environ.get("SOAK") else 8)):
        round_ = tiny_round(seed)
        plan = plan_of(EXACT, round_)
        lost = plan.details.placement_loss
        assert plan.objective + lost == pytest.approx(optimum(round_), rel=1e-9), seed
        assert plan.bound >= plan.objective
        assert check(round_, plan) == []
        assert plan.stop is StopReason.COMPLETE
        assert (plan.status is SolutionStatus.OPTIMAL) == (lost == 0)


@pytest.mark.parametrize("severity", ["loose", "balanced", "tight"])
def test_generated_rounds_are_solved_to_the_gap(severity):
    """Plans of rounds with running jobs, power and energy limits are valid and within the gap."""
    for seed in range(2):
        round_ = generated(40, None, severity, seed)
        plan = plan_of(Milp(gap=1e-3), round_)
        assert check(round_, plan) == []
        assert plan.gap <= 1e-3
        assert plan.status is SolutionStatus.OPTIMAL
        assert plan.record.options == len(build(round_))
        limits = {"gpus[default/A100]", "power_cap", "energy_window"}  # one may imply the other
        assert {"gpus[default/A100]"} < set(plan.prices) <= limits
        assert all(price >= 0 for price in plan.prices.values())


def test_time_limit_is_kept(processor_time):
    """A large round returns in time with an incumbent, a bound and a gap."""
    round_ = generated(300, None, "tight", 1)
    plan_of(EXACT, generated(10, None, "tight", 0))  # imports done
    whole = Deadline()
    plan_of(EXACT, round_)
    limit_s = 0.4 * whole.elapsed()
    deadline = Deadline(limit_s)
    plan = EXACT.plan(round_, deadline=deadline, seed=0)
    assert deadline.elapsed() < limit_s + 0.5  # HiGHS looks at the clock now and then
    assert plan.stop is StopReason.TIME_LIMIT
    assert plan.status is SolutionStatus.FEASIBLE
    assert 0 < plan.gap < 0.05
    assert check(round_, plan) == []
    assert plan.record.total_s <= deadline.elapsed()


def test_without_time_for_a_model_the_greedy_plan_comes_with_the_dual_bound(monkeypatch):
    """If not even the model can be built the plan is the greedy one, and says why it stopped."""
    monkeypatch.setattr(allocate, "SECONDS_PER_OPTION", 1e6)
    round_ = generated(400, None, "tight", 1)
    plan = plan_of(EXACT, round_, limit_s=1e3)
    assert plan.stop is StopReason.TIME_LIMIT
    assert plan.status is SolutionStatus.FEASIBLE
    assert plan.record.variables == 0
    assert plan.record.solver == "prices"
    assert 0 < plan.gap < 0.1
    assert check(round_, plan) == []


def test_a_choice_that_comes_late_is_placed(monkeypatch):
    """Half a second late, and 2 ms between two looks at the clock: it is placed all the same."""
    round_ = generated(20, None, "loose", 0)
    question = EXACT.question(round_, Deadline(), 0)
    choice = EXACT.choose(question, Deadline(), None)
    in_time = to_plan(question, choice, Deadline())
    now = count(0.0, 0.002)
    monkeypatch.setattr(clock, "time", SimpleNamespace(perf_counter=lambda: next(now)))
    deadline = Deadline(0.1)
    while deadline.elapsed() < 0.6:
        pass
    assert to_plan(question, choice, deadline).allocations == in_time.allocations


def test_same_seed_same_plan():
    """Twice the same seed: the same allocations, node by node, and the same trace."""
    round_ = generated(30, None, "tight", 2)
    first, second = (plan_of(Milp(gap=1e-3), round_, seed=5) for _ in range(2))
    assert first.allocations == second.allocations
    assert first.asleep == second.asleep
    assert first.record.nodes == second.record.nodes
    worths = [[w for _, w in plan.record.incumbents] for plan in (first, second)]
    assert worths[0] == worths[1]


def test_initial_plan_is_a_warm_start(monkeypatch):
    """The best plan as `initial` is the first incumbent, and without time for a MILP the answer."""
    round_ = generated(30, None, "tight", 4)
    best = plan_of(Milp(gap=1e-4), round_)
    monkeypatch.setattr(allocate, "SECONDS_PER_OPTION", 1e6)
    greedy = plan_of(EXACT, round_, limit_s=1e3)
    assert best.objective > greedy.objective
    again = plan_of(EXACT, round_, limit_s=1e3, initial=best)
    assert again.objective == pytest.approx(best.objective)
    assert again.record.incumbents[0][1] == pytest.approx(best.objective)


def test_initial_plan_and_running_jobs_are_found_in_the_table():
    """Rows of what runs are the current ones; a plan's rows have its options."""
    round_ = generated(30, None, "tight", 3)
    table = build(round_)
    running = running_rows(table)
    assert (running >= 0).sum() == len(round_.running)
    assert table.current[running[running >= 0]].all()
    plan = plan_of(Milp(gap=1e-2), round_)
    rows = rows_of(table, plan)
    for state, k in zip(table.jobs, rows.tolist(), strict=True):
        held = plan.allocations.get(state.job.id)
        assert (held is None) == (k < 0)
        if held is not None:
            assert (held.option.gpus, held.option.clock) == (table.gpus[k], table.clock[k])


def test_easy_rounds_need_no_milp():
    """If all jobs fit at their best the greedy plan is proven by its bound."""
    plan = plan_of(EXACT, rigid_round([4, 2, 1]))
    assert len(plan.allocations) == 3
    assert (plan.stop, plan.status) == (StopReason.COMPLETE, SolutionStatus.OPTIMAL)
    assert plan.record.variables == 0
    assert plan.gap == pytest.approx(0.0, abs=1e-9)


def test_a_round_without_jobs_is_trivial():
    """Nothing to decide: an empty plan, optimal at 0."""
    plan = plan_of(EXACT, rigid_round([]))
    assert plan.allocations == {}
    assert (plan.objective, plan.bound) == (0.0, 0.0)
    assert plan.status is SolutionStatus.OPTIMAL


def test_running_jobs_that_stay_keep_their_allocation():
    """A job that is left alone keeps the very same object."""
    round_ = rigid_round([4, 8], placed={0: 1})
    plan = plan_of(EXACT, round_)
    assert plan.allocations["j0"] is round_.running[0].allocation
    assert plan.allocations["j1"].placement == ((0, 8),)


def test_what_cannot_be_placed_is_reported():
    """Pinned jobs on both nodes leave 7 + 7 GPUs: a job of 8 has no node, and the plan says so.

    By the nodes no plan is better; by options alone the job is worth what is lost by it.
    """
    round_ = rigid_round([1, 1, 8], placed={0: 0, 1: 1}, must=(0, 1))
    plan = plan_of(EXACT, round_)
    assert set(plan.allocations) == {"j0", "j1"}
    assert list(plan.details.unplaced) == ["j2"]
    assert plan.details.placement_loss > 0
    assert plan.status is SolutionStatus.OPTIMAL
    assert plan.bound == pytest.approx(plan.objective)
    plan = plan_of(dataclasses.replace(EXACT, placement="aggregate"), round_)
    assert plan.status is SolutionStatus.FEASIBLE
    assert plan.bound == pytest.approx(plan.objective + plan.details.placement_loss)
    assert plan.gap > 0


def test_a_power_cap_that_must_run_jobs_break_is_explained():
    """Two pinned jobs draw 2 x (200 + 8 x 250) W; a cap of 4000 W is below, and is named."""
    round_ = rigid_round([8, 8], placed={0: 0, 1: 1}, must=(0, 1), power_cap_w=4000.0)
    plan = plan_of(EXACT, round_)
    assert plan.status is SolutionStatus.OPTIMAL
    assert plan.allocations == round_.held
    (conflict,) = plan.details.conflicts
    assert conflict.constraints == ("one_option[j0]", "one_option[j1]", "power_cap")
    assert "4400 W" in conflict.message
    assert msgspec.json.encode(plan)


def test_prices_name_what_is_scarce():
    """Jobs of 5 GPUs are short of whole nodes, not of GPUs; jobs of 8 of GPUs, not of watts."""
    plan = plan_of(EXACT, rigid_round([5, 5, 5]))
    assert plan.prices["whole_nodes[default/V100,1]"] > 0
    assert plan.prices["gpus[default/V100]"] == pytest.approx(0.0, abs=1e-9)
    plan = plan_of(EXACT, rigid_round([8, 8, 8], power_cap_w=1e5))
    assert plan.prices["gpus[default/V100]"] > 0
    assert plan.prices["power_cap"] == 0.0
    plan = plan_of(EXACT, rigid_round([8, 8, 8], power_cap_w=3000.0))
    assert plan.prices["power_cap"] > 0


def test_nodes_sleep_to_make_room_for_a_job():
    """With 2210 W one job of 8 fits if the other node sleeps: 600 + 10 + 8 x 200."""
    round_ = rigid_round([8], power_cap_w=2210.0)
    plan = plan_of(EXACT, round_)
    assert set(plan.allocations) == {"j0"}
    assert len(plan.asleep) == 1
    assert check(round_, plan) == []


def test_idle_nodes_stay_awake_within_a_cap():
    """Nodes are not put to sleep where the cap allows them to idle: waking takes time."""
    assert plan_of(EXACT, rigid_round([8], power_cap_w=2800.0)).asleep == ()
    assert len(plan_of(EXACT, rigid_round([8], power_cap_w=2799.0)).asleep) == 1


def test_jobs_are_shed_if_pinned_ones_keep_more_nodes_awake_than_they_fill():
    """Pinned jobs of 1 GPU on both nodes keep both awake, though one node would hold them."""
    # both awake: 1200 + 2 x 200 = 1600 W; a job of 2 more adds 400 W: 2000 W. Counting GPUs alone
    # the three fit in one node: 610 + 4 x 200 = 1410 W.
    round_ = rigid_round([1, 1, 2], placed={0: 0, 1: 1}, must=(0, 1), power_cap_w=1900.0)
    plan = plan_of(EXACT, round_)
    assert set(plan.allocations) == {"j0", "j1"}
    assert list(plan.details.unplaced) == ["j2"]
    assert check(round_, plan) == []


def test_only_what_was_asked_for_without_elasticity():
    """With elastic=False every job that runs has its requested GPUs at full clock."""
    round_ = generated(40, None, "balanced", 0)
    asked = {s.job.id: s.job.gpus for s in round_.jobs}
    plan = plan_of(Milp(elastic=False), round_)
    assert plan.allocations
    for job, held in plan.allocations.items():
        assert held.option.gpus == asked[job]
        assert held.option.clock == 1.0


@pytest.mark.parametrize("objective", ["density", "weighted-goodput", "makespan", "energy"])
def test_every_objective_can_be_solved(objective):
    """The policy takes any objective; objectives that look at watts get all clocks."""
    round_ = generated(30, None, "balanced", 1)
    plan = plan_of(Milp(objective=objective, gap=1e-2), round_)
    assert check(round_, plan) == []
    assert plan.gap <= 1e-2
    assert plan.details.objective == objective


def test_parameters_are_checked():
    """A gap below 0 and an objective that is not known are the user's errors."""
    with pytest.raises(InputError, match="gap"):
        Milp(gap=-1.0)
    with pytest.raises(InputError, match="objective"):
        Milp(objective="speed")


def test_registry_knows_it():
    """The policy is made from its name, and has the face that all policies have."""
    made = policy("milp(objective=density, gap=1e-3, elastic=false)")
    assert made == Milp(objective="density", gap=1e-3, elastic=False)
    assert isinstance(made, Policy)


def test_importing_the_policy_imports_no_solver():
    """Pyomo is imported when the first MILP is solved; the dual needs HiGHS."""
    code = (
        "import sys, ronda.solvers.policies.optimising.milp\n"
        "print([m for m in ('pyomo', 'deap', 'pandas', 'matplotlib')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_with_time_for_few_options_the_bound_still_holds(monkeypatch):
    """A MILP of the two options of least loss: what is left out is in the bound."""

    def poor(problem, jobs, prices):
        chosen = np.where(problem.must, problem.start[:-1], -1)
        return chosen, needed_blocks(problem, prices, chosen)

    monkeypatch.setattr(engine, "fill", poor)
    monkeypatch.setattr(allocate, "FEWEST", 1)
    monkeypatch.setattr(allocate, "_affordable", lambda options, search: 2)
    cut = 0
    for seed in range(30):
        round_ = msgspec.structs.replace(tiny_round(seed), asleep=())
        plan = plan_of(EXACT, round_)
        best = optimum(round_)
        lost = plan.details.placement_loss
        assert plan.objective + lost <= best * (1 + 1e-9)
        assert plan.bound >= best * (1 - 1e-9), seed
        cut += plan.stop is StopReason.TIME_LIMIT
    assert cut > 1


def rack_round(sizes, caps, **fields):
    """Return a round like `rigid_round`, each node in a rack of its own, capped or not."""
    round_ = rigid_round(sizes, **fields)
    (group,) = round_.cluster.node_groups
    names = [f"r{k}" for k in range(len(caps))]
    cluster = msgspec.structs.replace(
        round_.cluster,
        node_groups=tuple(
            msgspec.structs.replace(group, name=name, count=1, rack=name) for name in names
        ),
        racks=tuple(Rack(name=n, power_cap_w=c) for n, c in zip(names, caps, strict=True)),
    )
    return msgspec.structs.replace(round_, cluster=cluster)


def test_racks_power_caps_are_kept():
    """Where a rack's cap allows no job, jobs go to the other one and the capped node sleeps."""
    round_ = rack_round([8, 8], (500.0, None))
    plan = plan_of(EXACT, round_)
    assert [held.placement for held in plan.allocations.values()] == [((1, 8),)]
    assert plan.asleep == (0,)
    assert check(round_, plan) == []
    assert plan.gap == pytest.approx(0.0, abs=1e-9)


def test_options_that_no_rack_could_bear_are_left_out():
    """A job of 4 adds 800 W to 600; caps of 1000 W would bear half of it each, which cannot be."""
    plan = plan_of(EXACT, rack_round([4], (1000.0, 1000.0)))
    assert plan.allocations == {}
    assert plan.objective == plan.bound == 0.0


def test_a_rack_above_its_cap_without_jobs_is_explained():
    """A cap of 5 W is below what the node draws asleep: no plan is possible."""
    plan = plan_of(EXACT, rack_round([8], (5.0, None)))
    assert plan.stop is StopReason.INFEASIBLE
    assert plan.details.conflicts[0].constraints == ("rack_power[r0]",)


def test_jobs_that_fit_nowhere_wait():
    """A job larger than the cluster has no option, and the others run."""
    plan = plan_of(EXACT, rigid_round([64, 2]))
    assert set(plan.allocations) == {"j1"}


def test_random_parts_have_their_share():
    """Four jobs of 8 GPUs on 16: two parts have 8 each and run one job, four have 4 and run none.

    The bound is that of all jobs together; what no part can run starts on what is left.
    """
    round_ = rigid_round([8, 8, 8, 8])
    whole = plan_of(EXACT, round_)
    for parts, runs in ((2, 2), (4, 0)):
        made = Milp(parts=parts)
        choice = made.choose(made.question(round_, Deadline(), 1), Deadline(), None)
        assert np.count_nonzero(choice.chosen >= 0) == runs
        plan = plan_of(made, round_, seed=1)
        assert not check(round_, plan)
        assert len(plan.allocations) == 2
        assert plan.bound >= whole.objective
        assert plan.allocations == plan_of(Milp(parts=parts), round_, seed=1).allocations


@pytest.mark.parametrize("given", [{"parts": 0}, {"parts": 2, "placement": "exact"}])
def test_parts_that_there_are_not_are_refused(given):
    """No part at all, or parts of a model that knows the nodes."""
    with pytest.raises(InputError, match="milp: parts"):
        Milp(**given)
