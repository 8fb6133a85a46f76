"""Arrays as one job each, for policies that do not decide which jobs share GPUs.

Alone a step takes 1 s at full clock and 2 s at half, packed 0.8 k times as long for k jobs. A GPU
draws 50 W idle, 200 W busy and 120 W at half clock, a host 100 W.
"""

import pytest
from msgspec.structs import replace

from arrays import COSTS, Told, array, instance, standing
from ronda.formulations.options.build import build
from ronda.horizon.driver import run
from ronda.horizon.solve import solve
from ronda.horizon.state import ClusterState
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.job import Estimate
from ronda.instances.plan import Plan, SolutionStatus
from ronda.instances.profile import NoiseScale
from ronda.solvers.as_one import AsOne
from ronda.solvers.contract import Capability
from ronda.solvers.registry import policy


def round_of(works, arrays, *, now_s=10.0, done=0.0, firm=(), **fields):
    """Return a round in which arrays of jobs (mode, node, ids) run, and the others wait.

    All have progressed since 0 s.
    """
    state = ClusterState(instance(works, classes=["c"] * len(works), **fields))
    state.advance(0.0)
    round_, held = state.snapshot(60.0), {}
    for mode, node, ids in arrays:
        held |= array(round_, ids, mode, node, ids[0])
    return replace(standing(round_, held, firm=firm, done=done), now_s=now_s)


def alone(state, **fields):
    """Return a state whose job is of no class, and differs in some fields."""
    return replace(state, job=replace(state.job, fusible=None, **fields))


def planned(round, spec, **how):
    """Return a policy's own plan, which is in order."""
    plan = solve(round, spec, **how)
    assert plan.status is not SolutionStatus.FALLBACK, plan.record.message
    assert check(round, plan) == []
    return plan


def test_it_lasts_as_long_as_its_last_member():
    """Of 3 packed for 10 s each has done 10 / 2.4 of 20, 30 and 40; each GPU counts once."""
    round_ = round_of([20.0, 30.0, 40.0], [("packed", 0, ["j0", "j1", "j2"])], firm=["j1"])
    (one,) = AsOne(round_).round.running
    held, member = one.allocation, round_.held["j2"]
    assert (one.job.id, one.job.weight, one.job.preemptible) == ("j2", 3.0, False)
    assert (held.placement, held.array) == (((0, 1),), None)
    assert (held.option.width, held.option.mode) == (1, "exclusive")
    assert member.option.power_w == pytest.approx(200 / 3)
    assert held.option.power_w == pytest.approx(200)
    left_s = (40 - 10 / 2.4) * 2.4
    assert one.remaining_at(10.0) / held.option.rate == pytest.approx(left_s)
    assert one.done_at(10.0) / held.option.rate == pytest.approx(10.0)


def test_of_a_member_without_a_size_nobody_knows_how_long_it_lasts():
    """One estimate is missing."""
    round_ = round_of([20.0, 30.0], [("packed", 0, ["j0", "j1"])])
    first, other = round_.running
    bare = replace(other, job=replace(other.job, estimate=None))
    (one,) = AsOne(replace(round_, running=(first, bare))).round.running
    assert one.remaining_at(10.0) is None


def test_its_pool_batch_and_number_of_gpus_stay():
    """Alone its job could be on 1 to 4 GPUs of two types, with batches of 1 or 2: only clocks."""
    round_ = round_of([20.0, 30.0], [("packed", 0, ["j0", "j1"])])
    net, cluster = round_.profiles["net"], round_.cluster
    kinds = ("A", "B")
    net = replace(
        net,
        batches=(1.0, 2.0),
        throughput=dict.fromkeys(kinds, net.throughput["A"]),
        power=dict.fromkeys(kinds, net.power["A"]),
        sharing=dict.fromkeys(kinds, net.sharing["A"]),
    )
    types = (*cluster.gpu_types, replace(cluster.gpu_types[0], name="B"))
    groups = (*cluster.node_groups, replace(cluster.node_groups[0], name="b", gpu_type="B"))
    noise = NoiseScale(batches=(1.0, 2.0), scale=(10.0, 10.0))
    for batch in (1.0, 2.0):
        running = tuple(
            replace(
                s,
                job=replace(s.job, max_gpus=4),
                allocation=replace(s.allocation, option=replace(s.allocation.option, batch=batch)),
                noise=noise,
            )
            for s in round_.running
        )
        asked = replace(
            round_,
            cluster=replace(cluster, gpu_types=types, node_groups=groups),
            profiles={"net": net},
            running=running,
        )
        table = build(AsOne(asked).round, mind_power=True)
        ways = zip(table.pool, table.gpus, table.batch, table.clock, strict=True)
        assert sorted(ways) == [(0, 1, batch, 0.5), (0, 1, batch, 1.0)]
        assert AsOne(asked).round.running[0].job.fusible is None


def test_without_arrays_the_round_is_the_very_same():
    """And so is a plan."""
    round_ = round_of([20.0, 30.0], [("packed", 0, ["j0"])])
    seen, plan = AsOne(round_), Plan()
    assert seen.round is round_
    assert seen.told(plan) is plan
    assert seen.shown(plan) is plan


def test_a_plan_is_told_to_all_members():
    """Kept: the very same objects; elsewhere, at another clock: all alike; left out: none."""
    round_ = round_of([20.0, 30.0], [("packed", 0, ["j0", "j1"])], nodes=2)
    seen, held = AsOne(round_), round_.held
    (one,) = seen.round.running
    kept = seen.told(Plan(allocations=seen.round.held)).allocations
    assert all(kept[i] is held[i] for i in ("j0", "j1"))
    moved = replace(one.allocation, placement=((1, 1),))
    told = Plan(allocations={"j1": moved})
    there = seen.told(told)
    assert {i: a.placement for i, a in there.allocations.items()} == dict.fromkeys(held, ((1, 1),))
    assert all(there.allocations[i].option is held[i].option for i in held)
    assert check(round_, there) == []
    assert seen.shown(there) == told
    slow = replace(one.allocation.option, clock=0.5, rate=0.5, power_w=120.0)
    told = Plan(allocations={"j1": replace(one.allocation, option=slow)})
    slower = seen.told(told)
    for given in slower.allocations.values():  # 2 packed take 1.6 times as long
        assert (given.option.rate, given.option.power_w) == pytest.approx((0.5 / 1.6, 60.0))
        assert (given.option.width, given.option.mode, given.array) == (2, "packed", "j0")
    assert check(round_, slower) == []
    assert seen.shown(slower) == told
    assert seen.told(Plan()).allocations == {}


def test_gpus_of_arrays_are_counted_once():
    """Two arrays and a job fill 3 of 4 GPUs: of two that wait one starts, wherever it came."""
    arrays = [("packed", 0, ["j0", "j1"]), ("fused", 0, ["j2", "j3", "j4"]), ("packed", 1, ["j5"])]
    round_ = round_of([50.0] * 8, arrays, nodes=2)
    for spec in ("fifo", "sjf", "fifo(backfill=easy)", "tiresias", "optimus", "ces-queue", "hfht"):
        plan = planned(round_, spec)
        assert set(round_.held) <= set(plan.allocations), spec
        joined = {a.placement for i, a in plan.allocations.items() if i in ("j6", "j7")}
        assert joined == {((1, 1),)}, spec


@pytest.mark.parametrize("spec", ["srtf", "prices", "milp"])
def test_a_short_job_stops_an_array_whole_unless_it_must_run(spec):
    """On one GPU two have 1,000 s to go each, and one that waits 5 s."""
    for firm, runs in (((), {"j2"}), (("j1",), {"j0", "j1"})):
        round_ = round_of([1000.0, 1000.0, 5.0], [("packed", 0, ["j0", "j1"])], gpus=1, firm=firm)
        plan = planned(replace(round_, waiting=(alone(round_.waiting[0]),)), spec)
        assert plan.allocations.keys() == runs


@pytest.mark.parametrize("spec", ["prices", "milp", "milp-energy"])
def test_a_cap_slows_an_array_whole(spec):
    """Of 280 W 150 W are idle: at full clock the GPU would draw 150 W more, at half 70 W."""
    round_ = round_of([1000.0, 1000.0], [("packed", 0, ["j0", "j1"])], gpus=1)
    plan = planned(replace(round_, power_cap_w=280.0), spec)
    assert {a.option.clock for a in plan.allocations.values()} == {0.5}
    assert {a.option.power_w for a in plan.allocations.values()} == {60.0}
    assert {a.array for a in plan.allocations.values()} == {"j0"}


@pytest.mark.parametrize("spec", ["fifo", "hfht"])
def test_energy_is_charged_until_the_last_member_ends(spec):
    """Its GPU draws 150 W more for (20 - 10 / 1.6) 1.6 = 22 s, or for 1,606 s: 3.3 kJ or 241 kJ.

    j2 would draw 150 W for 600 s, 90 kJ, on a node that sleeps if it does not start. Beside two
    nodes of 150 W that are awake for an hour the budget has 120 kJ.
    """
    for work, starts in ((20.0, True), (1010.0, False)):
        works = [15.0, work, 600.0]
        round_ = round_of(works, [("packed", 0, ["j0", "j1"])], gpus=1, nodes=2)
        budget = {"energy_j": 300.0 * 3600 + 120e3, "window_s": 3600.0}
        plan = planned(replace(round_, waiting=(alone(round_.waiting[0]),), **budget), spec)
        assert ("j2" in plan.allocations) is starts


def test_policies_of_others_see_arrays_as_one_unless_they_say_that_they_decide():
    """What a policy without the capability keeps is kept whole."""
    round_ = round_of([20.0, 30.0], [("packed", 0, ["j0", "j1"])])
    seen = []

    def tell(round):
        seen.append([state.job.id for state in round.running])
        return round.held

    decides = Told(tell)
    plain = Told(tell)
    plain.capabilities = Capability.NONE
    for made in (decides, plain):
        assert planned(round_, made).allocations == round_.held
    assert seen == [["j0", "j1"], ["j1"]]


def test_an_earlier_plan_is_shown_as_the_round_is():
    """The plan that made the array is a start: it is kept, and the plan is no worse."""
    round_ = round_of([900.0, 1000.0, 950.0], [("packed", 0, ["j0", "j1"])], gpus=1)
    for spec in ("prices", "milp", "evolve(generations=2)"):
        first = planned(round_, spec)
        again = planned(round_, spec, initial=first)
        assert again.objective == pytest.approx(first.objective)
    other = {i: replace(a, array="other") for i, a in round_.held.items()}
    assert AsOne(round_).shown(Plan(allocations=other)).allocations == {}


class Turns:
    """HFHT's rule until a time, then another policy."""

    name = "turns"
    capabilities = Capability.ARRAYS | Capability.PREEMPTS | Capability.ELASTIC

    def __init__(self, other, from_s):
        self.other, self.from_s = policy(other), from_s

    def plan(self, round, **how):
        """Ask the one whose turn it is."""
        made = self.other if round.now_s >= self.from_s else policy("hfht")
        return made.plan(round, **how)


@pytest.mark.parametrize("spec", ["fifo", "srtf", "prices", "ones", "asha", "gavel-like"])
def test_a_run_goes_on_with_a_policy_that_does_not_fuse(spec):
    """Arrays of 7 and 3 run when it takes over: they end, and so does what comes after."""
    works = [30.0, 40, 50, 60, 70, 30, 40, 50, 60, 70, 5, 5]
    made = instance(works, gpus=2, submit_s=[0.0] * 10 + [20.0, 20.0], costs=COSTS)
    schedule = run(made, Turns(spec, 15.0))
    assert [r.violations for r in schedule.rounds if r.violations] == []
    assert check(made, schedule) == []
    assert max(s.option.width for o in schedule.jobs for s in o.segments) == 7


@pytest.mark.parametrize("spec", ["prices", "hfht", "sweep"])
def test_time_that_is_over_keeps_arrays(spec):
    """Cut at once: what runs keeps running, and one job starts beside it."""
    round_ = round_of([20.0, 30.0, 40.0, 50.0], [("packed", 0, ["j0", "j1"])])
    plan = policy(spec).plan(round_, deadline=Deadline(1e-9), seed=0)
    assert check(round_, plan) == []
    assert plan.allocations.items() >= round_.held.items()
    assert plan.allocations.keys() == {"j0", "j1", "j2"}


def test_quantiles_of_what_is_left_are_scaled():
    """A step alone is worth 1.6 in the array of two: the seconds stay the same."""
    round_ = round_of([20.0, 30.0], [("packed", 0, ["j0", "j1"])])
    first, other = round_.running
    told = Estimate(work=30.0, sd=3.0, quantiles=(24.0, 36.0))
    sure = replace(other, job=replace(other.job, estimate=told))
    (one,) = AsOne(replace(round_, running=(first, sure))).round.running
    assert one.job.estimate.quantiles == pytest.approx((1.6 * 24, 1.6 * 36))
    assert one.job.estimate.sd == pytest.approx(1.6 * 3)
