"""Slices of nodes within racks: known answers, rows, best fit, moves, neighbours and policies."""

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.formulations.node_rules.best_fit import in_racks
from ronda.formulations.placement.reasons import lack_of_room
from ronda.horizon.driver import run
from ronda.instances.check.checker import check
from ronda.instances.clock import Deadline
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.instance import Instance
from ronda.instances.job import Allocation, Costs, JobState, Option, Slices, Truth
from ronda.instances.rules.validate import validate
from ronda.instances.site import Neighbourhood, Site
from ronda.questions.explain import explain_jobs
from ronda.questions.explained import sentences
from ronda.solvers.decision.plan import Question
from ronda.solvers.registry import policy
from slice_rounds import GPUS, PROFILES, asked, cluster, job, racks

EXACT = "milp(placement=exact)"
ENGINES = ("milp", "prices", EXACT)
GREEDY = ("fifo", "srtf", "slurm-like", "optimus", "pollux-like")


def plan_of(name, round_):
    """Return a valid plan of a round."""
    if name in ENGINES:
        within = "placement=exact," if name == EXACT else ""
        name = f"{name.partition('(')[0]}({within}objective=weighted-goodput,power=1)"
    plan = policy(name).plan(round_, deadline=Deadline(20.0), seed=0)
    assert check(round_, plan) == []
    return plan


def capacity(round_, name):
    """Return what a row of a round may have."""
    own = Question.of(round_, "weighted-goodput", parameters={"power": 1.0}).table.own
    return float(own.capacity[own.names.index(name)])


@pytest.mark.parametrize("name", ENGINES)
def test_two_slices_find_room_where_one_does_not(name):
    """Beside two jobs of 16 nodes, 2 + 2 nodes are left: 2 slices of 2 run, one of 4 waits."""
    where = cluster(18, 18)
    wide = [job("a", 16, 16), job("b", 16, 16)]
    one = plan_of(name, asked(where, [*wide, job("c", 4, 4)]))
    assert sorted(one.allocations) == ["a", "b"]
    two = asked(where, [*wide, job("c", 4, 2)])
    plan = plan_of(name, two)
    assert sorted(plan.allocations) == ["a", "b", "c"]
    assert racks(two, plan, "c") == [2, 2]


@pytest.mark.parametrize("name", [*ENGINES, *GREEDY])
def test_slices_go_where_most_of_them_fit(name):
    """With 18, 16 and 10 nodes free, 5 slices of 8 go as 2, 2, 1; two of 16 fit, three do not."""
    where = cluster(18, 16, 10)
    five = asked(where, [job("a", 40, 8)])
    plan = plan_of(name, five)
    assert racks(five, plan, "a") == [16, 16, 8]
    assert capacity(five, "slices[default/B,rack,8]") == 5
    two = asked(where, [job("a", 32, 16), job("b", 10, 10)])
    assert sorted(plan_of(name, two).allocations) == ["a", "b"]
    assert plan_of(name, asked(cluster(18, 16, 14), [job("a", 48, 16)])).allocations == {}


@pytest.mark.parametrize("name", ENGINES)
def test_a_row_says_how_many_slices_racks_hold(name):
    """Three slices of 12 have 36 nodes, but two racks of 18 hold two."""
    three = asked(cluster(18, 18), [job(i, 12, 12) for i in "abc"])
    plan = plan_of(name, three)
    assert len(plan.allocations) == 2
    assert plan.bound == pytest.approx(plan.objective, rel=1e-3)
    assert capacity(three, "slices[default/B,rack,12]") == 2


def test_only_two_of_three_slices_that_keep_all_blocks_fit():
    """Slices of 10, 10 and 9 nodes keep all rows of blocks on 18 + 11; what fills racks tells."""
    odd = asked(cluster(18, 11), [job("a", 10, 10), job("b", 10, 10), job("c", 9, 9)])
    for u, most in ((1, 29), (9, 3), (10, 2)):
        assert capacity(odd, f"slices[default/B,rack,{u}]") == most
    table = Question.of(odd, "weighted-goodput", parameters={"power": 1.0}).table
    broken = table.own.broken(np.arange(len(table))) > 0
    cut = [name for name, odd in zip(table.own.names, broken, strict=True) if odd]
    assert cut == ["slice_nodes[default/B,rack,9]"]  # 9s and 10s fill 18 + 10 nodes, not 29
    best = plan_of(EXACT, odd)
    assert sorted(best.allocations) == ["a", "b"]
    assert best.bound == pytest.approx(best.objective, rel=1e-4)
    for name in ("milp", "prices"):
        plan = plan_of(name, odd)
        assert sorted(plan.allocations) == ["a", "b"]
        assert plan.bound >= best.objective * (1 - 1e-6)


@pytest.mark.parametrize("name", [*ENGINES, *GREEDY])
def test_slices_of_every_kind_are_placed(name):
    """Listed, spread, balanced, together in a block, and in blocks."""
    where = cluster(4, 4, 4, 4)
    cases = {
        "listed": (job("a", 6, Slices(listed=(3, 3))), [3, 3]),
        "spread": (job("a", 4, Slices(nodes=1, spread=True)), [1, 1, 1, 1]),
        "spread list": (job("a", 6, Slices(listed=(1, 3, 2), spread=True)), [3, 2, 1]),
        "balanced": (job("a", 7, Slices(balanced=True)), [4, 3]),
        "balanced, too": (job("a", 10, Slices(balanced=True)), [4, 3, 3]),
        "together": (job("a", 6, Slices(nodes=2, together="block")), [4, 2]),
        "in blocks": (job("a", 8, Slices(nodes=8, within="block")), [4, 4]),
    }
    for each, counts in cases.values():
        round_ = asked(where, [each])
        assert racks(round_, plan_of(name, round_), "a") == counts
    taken = [(job("x", 1), (0,)), (job("y", 1), (4,)), (job("z", 2), (8, 12))]
    firm = [(replace(each, preemptible=False), nodes) for each, nodes in taken]
    for each in (
        job("a", 8, Slices(nodes=2, together="block")),
        job("a", 14, Slices(balanced=True)),
        job("a", 4, 4),
    ):
        assert "a" not in plan_of(name, asked(where, [each], firm)).allocations


@pytest.mark.parametrize("name", ENGINES)
def test_what_runs_moves_out_of_the_way_of_a_slice(name):
    """Single nodes that run scattered over racks move together; pinned ones block their rack."""
    where = cluster(4, 4)
    small = [
        (job("x", 1), (1,)),
        (job("y", 1), (5,)),
    ]
    round_ = asked(where, [job("a", 4, 4)], small)
    plan = plan_of(name, round_)
    assert sorted(plan.allocations) == ["a", "x", "y"]
    assert racks(round_, plan, "a") == [4]
    firm = [(replace(each, preemptible=False), nodes) for each, nodes in small]
    stuck = asked(where, [job("a", 4, 4)], firm)
    assert sorted(plan_of(name, stuck).allocations) == ["x", "y"]
    assert capacity(stuck, "slices[default/B,rack,4]") == 0


def test_nodes_out_of_service_hold_no_slice():
    """A rack with a node out has one node less."""
    where = cluster(4, 4, out=(0,))
    both = asked(where, [job("a", 4, 4), job("b", 4, 4)])
    for name in ENGINES:
        assert len(plan_of(name, both).allocations) == 1
    assert capacity(both, "slices[default/B,rack,4]") == 1


def test_a_job_whose_slices_came_later_goes_on():
    """It is not stopped, and its nodes count as they are."""
    round_ = asked(cluster(4, 4), [job("b", 3, 3)], [(job("a", 4, 2), (0, 1, 2, 4))])
    for name in ENGINES:
        plan = plan_of(name, round_)
        assert sorted(plan.allocations) == ["a", "b"]
    assert [n for n, _ in plan.allocations["a"].placement] == [0, 1, 2, 4]


APART = {"apart": ("apart", 2), "together": ("together", 1)}


@pytest.mark.parametrize("name", [*ENGINES, *GREEDY])
@pytest.mark.parametrize("rule", APART)
def test_neighbours_share_a_rack_or_none(name, rule):
    """Of three jobs of 2 nodes on two racks of 4, two run apart, or two together."""
    kind, many = APART[rule]
    site = Site(neighbourhoods=(Neighbourhood(name="n", rule=kind, within="rack"),))
    jobs = [job(i, 2, neighbourhoods=("n",)) for i in "abc"]
    round_ = asked(cluster(4, 4), jobs, site=site)
    plan = plan_of(name, round_)
    assert len(plan.allocations) == 2
    at = {
        int(round_.cluster.topology.node_rack[n])
        for held in plan.allocations.values()
        for n, _ in held.placement
    }
    assert len(at) == many


def test_neighbours_that_run_against_a_rule_go_on():
    """A rule that came later stops nobody, and the rows leave room for what runs."""
    site = Site(neighbourhoods=(Neighbourhood(name="n", rule="apart", within="rack"),))
    hood = {"neighbourhoods": ("n",)}
    running = [(job("a", 1, **hood), (0,)), (job("b", 1, **hood), (1,))]
    round_ = asked(cluster(4, 4), [job("c", 1, **hood), job("d", 1, **hood)], running, site)
    for name in ENGINES:
        assert len(plan_of(name, round_).allocations) == 3
    site = Site(neighbourhoods=(Neighbourhood(name="n", rule="together"),))
    round_ = asked(cluster(4, 4), [job("c", 1, **hood)], running, site)
    for name in ENGINES:
        assert sorted(plan_of(name, round_).allocations) == ["a", "b"]


@pytest.mark.parametrize("name", ["prices", "fifo", "srtf", "pollux-like"])
def test_a_run_keeps_slices_to_the_end(name):
    """Jobs in slices, alone on nodes, on named nodes and apart, come and go."""
    site = Site(neighbourhoods=(Neighbourhood(name="n", rule="apart", within="rack"),))
    jobs = [
        job("a", 4, 2),
        job("b", 6, Slices(listed=(3, 3), spread=True)),
        replace(job("c", 1), gpus=3, exclusive=True),
        replace(job("d", 1, neighbourhoods=("n",)), nodes=(7,)),
        job("e", 2, 2, neighbourhoods=("n",)),
        job("f", 5, Slices(balanced=True)),
    ]
    made = tuple(
        replace(each, submit_s=20.0 * k, truth=Truth(work=100.0 + 10 * k))
        for k, each in enumerate(jobs)
    )
    costs = Costs(restart_s=5.0)
    whole = Instance(
        name="x", cluster=cluster(4, 4), jobs=made, profiles=PROFILES, site=site, costs=costs
    )
    answer = run(validate(whole), policy(name))
    assert check(whole, answer) == []
    assert all(outcome.end_s is not None for outcome in answer.jobs)


def test_levels_without_racks_are_refused():
    """A slice needs racks."""
    bare = Cluster(
        gpu_types=(GpuType(name="B", memory_gib=186),),
        node_groups=(NodeGroup(name="g", count=4, gpus_per_node=GPUS, gpu_type="B"),),
    )
    with pytest.raises(InputError, match=r"slices\.within"):
        asked(bare, [job("a", 2, 2)])


def test_words_say_what_slices_lack_and_cost():
    """The reason names the empty nodes of racks; the price a room for a slice."""
    odd = asked(cluster(3, 3), [job(i, 1, 1) for i in "bc"])
    assert sorted(plan_of("prices", odd).allocations) == ["b", "c"]
    wanted = JobState(job=job("a", 4, 4), since_s=0.0)
    taken = {"b": Allocation(option=Option(pool=0, gpus=4), placement=((0, 4),))}
    said = lack_of_room(odd, wanted, Option(pool=0, gpus=16), taken)
    assert "4 nodes in slices of 4, each in one rack, and empty nodes by rack are 3, 2" in said
    three = asked(cluster(18, 18), [job(i, 12, 12) for i in "abc"])
    plan = plan_of("prices", three)
    waits = next(i for i in "abc" if i not in plan.allocations)
    found = explain_jobs(three, plan, [waits], parameters={"power": 1.0})
    text = " ".join(sentences(found[0]))
    assert "oom in a rack for a slice of 12 nodes of default/B,rack" in text


def test_a_running_job_counts_as_it_stays():
    """Its two nodes are in two racks of 3, which leaves room for a slice of 2 in each."""
    jobs = [job("b", 2, 2), job("c", 2, 2)]
    round_ = asked(cluster(3, 3), jobs, [(job("a", 2, 2), (0, 3))])
    for name in ENGINES:
        assert sorted(plan_of(name, round_).allocations) == ["a", "b", "c"]


def test_nodes_that_jobs_name_have_a_row():
    """Three jobs of a node name two nodes, one of which a job that must run holds."""
    pair = [replace(job(i, 1), nodes=(0, 1)) for i in "abc"]
    round_ = asked(cluster(4, 4), pair)
    assert capacity(round_, "named_nodes[default/B,0]") == 2 * GPUS
    plan = plan_of("prices", round_)
    assert len(plan.allocations) == 2
    assert plan.bound == pytest.approx(plan.objective, rel=1e-3)
    firm = [(replace(job("x", 1), preemptible=False), (1,))]
    assert capacity(asked(cluster(4, 4), pair, firm), "named_nodes[default/B,0]") == GPUS


FITS = {
    "tightest": (Slices(nodes=2), 2, [4, 2, 3], [0, 2, 0]),
    "most first, last tightest": (Slices(nodes=8), 40, [18, 16, 10], [16, 16, 8]),
    "last tightest": (Slices(nodes=2), 6, [5, 3, 4, 2], [0, 0, 4, 2]),
    "listed": (Slices(listed=(1, 3)), 4, [4, 3, 1], [0, 3, 1]),
    "balanced": (Slices(balanced=True), 5, [2, 3, 4], [2, 3, 0]),
    "none": (Slices(nodes=3), 6, [5, 2, 2], None),
    "spread": (Slices(nodes=2, spread=True), 4, [9, 3], [2, 2]),
}


@pytest.mark.parametrize("case", FITS)
def test_slices_fit_best(case):
    """As few racks as can be, and the last one as full as can be."""
    slices, nodes, free, expected = FITS[case]
    assert in_racks(slices, nodes, free) == expected
