"""What plans say of themselves: *optimal* only what their own bound proves, on nodes."""

import pytest
from msgspec.structs import replace

import ronda
from limited_rounds import limited_round
from ronda.instances.cluster import GpuType, Rack, uniform_cluster
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.plan import SolutionStatus, closes, gap_between, trusted_bound
from ronda.instances.profile import Parametric, PowerCurve, Profile
from ronda.instances.round import Round


@pytest.mark.parametrize("objective", ["rank", "finish-time-fairness", "density"])
@pytest.mark.parametrize("policy", ["prices", "milp"])
@pytest.mark.parametrize("weight", [1e-9, 1.0, 1e9])
def test_where_nothing_can_run_the_gap_is_0(policy, objective, weight):
    """A host of 100 W, an idle GPU of 50 W, and 70 or 150 W more for a job: more than 200 W."""
    gpu = GpuType(name="A", memory_gib=16.0, idle_w=50.0, clocks=(0.5, 1.0))
    model, curve = Parametric(alpha_c_s=1.0, beta_c_s=0.0), PowerCurve(a_w=40.0, b_w=160.0)
    job = Job(id="a", submit_s=0.0, profile="net", weight=weight, estimate=Estimate(work=100.0))
    round_ = Round(
        now_s=1000.0,
        cluster=uniform_cluster(gpu, 1, 1, host_idle_w=100.0),
        profiles={"net": Profile(name="net", throughput={"A": model}, power={"A": curve})},
        waiting=(JobState(job=job, since_s=0.0),),
        power_cap_w=200.0,
    )
    plan = ronda.solve(round_, f"{policy}(objective={objective})")
    assert (plan.allocations, plan.objective, plan.bound) == ({}, 0.0, 0.0)
    assert (plan.status, str(plan.gap)) == (SolutionStatus.OPTIMAL, "0.0")


ENGINES = ("prices", "milp", "milp(placement=exact)", "cp-sat", "genetic", "evolve", "milp-energy")


def limited(**limits):
    """Return a round of two jobs on one node that draws nothing without them; a rack holds it."""
    racks = (Rack(name="r", power_cap_w=limits.pop("rack_w", None)),)
    gpu = GpuType(name="A", memory_gib=16.0, clocks=(0.5, 1.0))
    cluster = uniform_cluster(gpu, 1, 2, rack="r", sleep_w=0.0)
    model, curve = Parametric(alpha_c_s=1.0, beta_c_s=0.0), PowerCurve(a_w=40.0, b_w=160.0)
    fields = {"profile": "net", "estimate": Estimate(work=limits.pop("work", 100.0))}
    weights = limits.pop("weights", (1.0, 1.0))
    return Round(
        now_s=1000.0,
        cluster=replace(cluster, racks=racks),
        profiles={"net": Profile(name="net", throughput={"A": model}, power={"A": curve})},
        waiting=tuple(
            JobState(job=Job(id=f"j{k}", submit_s=0.0, weight=w, **fields), since_s=0.0)
            for k, w in enumerate(weights)
        ),
        **limits,
    )


@pytest.mark.parametrize("policy", ENGINES)
@pytest.mark.parametrize("number", [1e30, 1e305, 1.7e308])
@pytest.mark.parametrize("limit", ["power_cap_w", "energy_j", "rack_w"])
def test_a_huge_limit_is_as_none(policy, limit, number):
    """Both jobs run, as without it."""
    plan = ronda.solve(limited(**{limit: number}), policy)
    assert plan.allocations.keys() == {"j0", "j1"}
    assert plan.status is SolutionStatus.OPTIMAL


@pytest.mark.parametrize("policy", ENGINES)
@pytest.mark.parametrize("number", [5e-324, 1e-308, 1e-30])
@pytest.mark.parametrize("limit", ["power_cap_w", "energy_j", "rack_w"])
def test_a_tiny_limit_is_as_nothing(policy, limit, number):
    """No job runs, and no engine breaks down."""
    plan = ronda.solve(limited(**{limit: number}), policy)
    assert plan.allocations == {}
    assert plan.status in (SolutionStatus.OPTIMAL, SolutionStatus.FEASIBLE)


@pytest.mark.parametrize("policy", [*ENGINES, "gavel-like", "shockwave-like", "powerflow"])
@pytest.mark.parametrize(
    "fields",
    [
        {"weights": (1.7e308, 1.7e308)},
        {"weights": (5e-324, 1.0)},
        {"work": 1e-300},
        {"work": 5e-324},
        {"energy_price_per_j": 1e305, "carbon_g_per_j": 5e-324},
    ],
)
def test_numbers_of_any_size_are_weighed(policy, fields):
    """Both jobs run below a cap of 400 W: 200 W each."""
    plan = ronda.solve(limited(power_cap_w=400.0, **fields), policy)
    assert plan.allocations.keys() == {"j0", "j1"}


def test_cp_sat_is_right_with_rows_of_many_sizes():
    """Its sums are kept small: with larger ones it called 2 the optimum."""
    found = [ronda.solve(limited_round(23), f"{p}(objective=makespan)") for p in ("cp-sat", "milp")]
    assert [plan.objective for plan in found] == [pytest.approx(2.1507745, rel=1e-7)] * 2


@pytest.mark.parametrize("seed", [18, 29, 33, 47, 59, 61])
@pytest.mark.parametrize("policy", ["genetic", "evolve"])
def test_a_search_proves_what_it_has_placed(policy, seed):
    """The best genome may be within the gap; what is placed, and moved for it, need not be."""
    plan = ronda.solve(limited_round(seed), policy)
    assert plan.status is not SolutionStatus.OPTIMAL or plan.gap <= 1e-4


def test_moves_are_part_of_what_is_proven():
    """The options alone are within the gap of the bound; less the moves for them they are not."""
    plan = ronda.solve(limited_round(39), "evolve")
    gross = plan.objective + plan.details.move_loss
    assert plan.bound - gross <= 1e-4 * plan.bound
    assert plan.gap > 1e-2
    assert plan.status is SolutionStatus.FEASIBLE


@pytest.mark.parametrize("policy", ["prices", "milp"])
@pytest.mark.parametrize("seed", [18, 26, 78])
def test_a_plan_that_is_worth_less_than_nothing_is_proven_as_any(policy, seed):
    """A rule asks for more jobs than there are, at a price: the best plan is a loss.

    On nodes it is chosen again (18, 78), or worth a little less than its options alone (26).
    """

    def kept(round, table):
        return ronda.Limit(1.0 * table.current, ">=", 9.0, penalty=1.0)

    made = ronda.policy(f"{policy}(objective=density)", extra=[kept])
    plan = ronda.solve(limited_round(seed), made)
    assert plan.objective < 0
    assert plan.status is SolutionStatus.OPTIMAL
    assert plan.gap <= 1e-4


def test_a_bound_that_a_known_plan_refutes_is_none():
    """A solver says 9 where a plan of 10 is known: then the safe bound of 12 is all there is."""
    assert trusted_bound(11.0, 12.0, 10.0) == 11.0
    assert trusted_bound(13.0, 12.0, 10.0) == 12.0  # it says less than the prices do
    assert trusted_bound(9.0, 12.0, 10.0) == 12.0
    assert trusted_bound(10.0 - 1e-6, 12.0, 10.0) == 10.0  # but for its tolerance
    assert trusted_bound(9.0, 12.0, None) == 9.0


def test_what_is_not_known_proves_nothing():
    """An infinite bound is within no gap; a sum that rounding left of large numbers is 0."""
    assert not closes(float("inf"), 1.0, 0.5)
    assert closes(1e-3, 0.0, 1e-4, scale=1e12)
    assert not closes(1.0, 0.0, 1e-4, scale=1e12)


@pytest.mark.parametrize(
    ("policy", "seed", "by"),
    [
        ("prices", 1, "prices"),
        ("milp", 1, "prices"),
        ("prices", 0, "labels"),
        ("prices", 8, "highs"),
        ("milp(placement=exact)", 0, "highs"),
        ("cp-sat", 0, "cp-sat"),
    ],
)
def test_a_plan_says_who_proves_it(policy, seed, by):
    """Prices alone, where they can; else a search that is taken at its word."""
    plan = ronda.solve(limited_round(seed), policy)
    assert (plan.status, plan.details.proven_by) == (SolutionStatus.OPTIMAL, by)
    assert plan.details.dual_bound >= plan.bound
    alone = gap_between(plan.details.dual_bound, plan.objective) <= 1e-4
    assert alone == (by == "prices")
