"""Instances with other limits, machines, costs and jobs."""

import numpy as np
import pytest
from msgspec.structs import replace

from ronda.bench.runs.variant import UNCHANGED, SearchDraw, Sleep, Variant, Window, reference_w
from ronda.instances import generate
from ronda.instances.budget import Budget, EnergyBudget
from ronda.instances.errors import InputError
from ronda.instances.files.json import fingerprint
from ronda.instances.files.packaged import load
from ronda.instances.generate import Breakage
from ronda.instances.job import Costs
from ronda.instances.rules.validate import validate


def test_nothing_changed_is_the_instance_itself(two_nodes):
    """The defaults leave even the fingerprint as it is, and so does the own budget."""
    assert fingerprint(UNCHANGED.apply(two_nodes)) == fingerprint(two_nodes)
    assert UNCHANGED.title == ""
    budgeted = load("philly-energy-small")
    same = Variant(sustained_w=reference_w(budgeted), factor=1.0).apply(budgeted)
    assert fingerprint(same) == fingerprint(budgeted)


def test_reference_without_a_budget_by_hand(two_nodes):
    """Two hosts of 100 W and eight GPUs of 10 + 50 W busy: 200 + 480 = 680 W."""
    assert reference_w(two_nodes) == pytest.approx(680.0)


def test_reference_is_the_mean_over_jobs_of_a_busy_gpu(two_nodes):
    """Needs of a, b, c: 200, 400, 10 GPU-seconds; c at 120 W: (600 * 60 + 10 * 120) / 610."""
    hungry = replace(two_nodes.profiles["rigid"], name="hungry")
    curve = replace(hungry.power["G"], b_w=110.0)
    instance = replace(
        two_nodes,
        profiles=two_nodes.profiles | {"hungry": replace(hungry, power={"G": curve})},
        jobs=(*two_nodes.jobs[:2], replace(two_nodes.jobs[2], profile="hungry")),
    )
    busy_w = (600 * 60 + 10 * 120) / 610
    assert reference_w(instance) == pytest.approx(200 + 8 * busy_w)


def test_a_budget_of_its_own_is_scaled_with_its_credit(two_nodes):
    """Half the watts, half the credit; horizon and window stay."""
    own = EnergyBudget(joules=72_000.0, horizon_s=100.0, credit_j=500.0, window_s=60.0)
    instance = replace(two_nodes, budget=Budget(energy=own))
    assert reference_w(instance) == 720.0
    half = Variant(sustained_w=360.0).apply(instance).budget.energy
    assert half == replace(own, joules=36_000.0, credit_j=250.0)


def test_an_instance_without_a_budget_gets_one(two_nodes):
    """It accrues at the watts asked for, from nothing, over the submissions or an hour."""
    energy = Variant(sustained_w=340.0).apply(two_nodes).budget.energy
    assert energy == EnergyBudget(joules=340.0 * 3600.0, horizon_s=3600.0)


def test_power_figures_and_nodes(two_nodes):
    """Idle power of hosts and GPUs, watts of the curves, and nodes of the first group."""
    idle = Variant(idle=1.3).apply(two_nodes)
    # 2 x (100 + 4 x 10) x 1.3
    assert idle.cluster.topology.idle_w == pytest.approx(364.0)
    assert idle.profiles == two_nodes.profiles
    assert idle.cluster.node_groups[0].sleep_w == 5.0
    power = Variant(power=0.9).apply(two_nodes)
    assert power.cluster == two_nodes.cluster
    curve = power.profiles["rigid"].power["G"]
    assert (curve.a_w, curve.b_w, curve.sync_w) == (9.0, 45.0, None)
    assert Variant(nodes=1).apply(two_nodes).cluster.gpus == 12
    # a sustained budget is given in watts: what else is changed does not change it
    both = Variant(sustained_w=340.0, idle=1.3).apply(two_nodes)
    assert both.budget.energy.sustained_w == 340.0


def test_titles():
    """Words for tables and progress bars."""
    assert Variant(idle=0.7, nodes=2).change == "idle ×0.7, nodes +2"
    assert Variant(sustained_w=5.0, factor=0.8, power=1.1).title == "budget ×0.8, power ×1.1"
    dear = Variant(restart_s=0.0, window=Window(jobs=9), in_place=False)
    assert dear.change == "restart_s 0, window of 9 jobs, not in place"


def test_every_power_curve_is_scaled_while_synchronising_too():
    """The packaged curves have a level for synchronisation."""
    instance = load("pollux-1")
    before, after = (
        x.profiles["bert"].power["T4"] for x in (instance, Variant(power=2.0).apply(instance))
    )
    assert after.sync_w == 2 * before.sync_w


def test_no_power_data_has_no_reference(two_nodes):
    """A sweep of budgets needs watts; the error says so instead of an energy budget of 0 J."""
    gpu = replace(two_nodes.cluster.gpu_types[0], idle_w=0.0)
    group = replace(two_nodes.cluster.node_groups[0], host_idle_w=0.0, sleep_w=0.0)
    cluster = replace(two_nodes.cluster, gpu_types=(gpu,), node_groups=(group,))
    profiles = {k: replace(p, power={}) for k, p in two_nodes.profiles.items()}
    with pytest.raises(InputError, match="no power data"):
        reference_w(replace(two_nodes, cluster=cluster, profiles=profiles))


def test_a_window_has_its_load_and_gangs():
    """40 jobs in a row; every tenth is 50 to 90 % of 16 GPUs and runs as long as before."""
    trace, variant = (
        load("venus-vcvly"),
        Variant(window=Window(jobs=40, gangs=10), load=0.9, seed=3),
    )
    made = validate(variant.apply(trace))
    ids = [job.id for job in made.jobs]
    first = [job.id for job in trace.jobs].index(ids[0])
    own = trace.jobs[first : first + 40]
    assert ids == [job.id for job in own]
    assert [job.truth for job in made.jobs] == [job.truth for job in own]
    wide = [b.gpus for a, b in zip(own, made.jobs, strict=True) if a.gpus != b.gpus]
    assert 1 <= len(wide) <= 4
    assert all(8 <= n <= 14 for n in wide)
    area = sum(job.gpus * job.truth.work for job in made.jobs)
    assert area / (16 * made.jobs[-1].submit_s) == pytest.approx(0.9, rel=1e-3)
    assert made == variant.apply(trace) != replace(variant, seed=4).apply(trace)


def test_a_window_of_all_jobs_without_gangs_begins_at_0():
    """Nothing but the clock has changed."""
    trace = load("venus-vcvly")
    made = Variant(window=Window(jobs=10_000)).apply(trace)
    assert [job.gpus for job in made.jobs] == [job.gpus for job in trace.jobs]
    assert made.jobs[0].submit_s == 0.0
    assert made.jobs[-1].submit_s == trace.jobs[-1].submit_s - trace.jobs[0].submit_s


def test_a_search_is_some_trials_of_one_sweep_at_once():
    """In an order that the seed draws, on a node of their own."""
    trace, variant = load("sweep-titan"), Variant(search=SearchDraw(sweep="mrpc", trials=5, gpus=3))
    made = validate(variant.apply(trace))
    assert (len(made.jobs), made.cluster.gpus, list(made.sweeps)) == (5, 3, ["mrpc"])
    assert {job.submit_s for job in made.jobs} == {0.0}
    assert made == variant.apply(trace) != replace(variant, seed=1).apply(trace)
    with pytest.raises(InputError, match="no sweep 'joy'; expected one of"):
        Variant(search=SearchDraw(sweep="joy", trials=5, gpus=3)).apply(trace)


def test_sizes_vary_and_estimates_stay(two_nodes):
    """Factors have the mean 1: over many jobs within 2 %; 0.5 of their logarithm is 0.5."""
    many = replace(
        two_nodes, jobs=tuple(replace(two_nodes.jobs[0], id=f"{k}") for k in range(5000))
    )
    made = Variant(size_noise=0.5, seed=2).apply(many)
    factors = np.array([job.truth.work for job in made.jobs]) / 100.0
    assert factors.mean() == pytest.approx(1.0, rel=0.02)
    assert np.log(factors).std() == pytest.approx(0.5, rel=0.03)
    assert [job.estimate for job in made.jobs] == [job.estimate for job in many.jobs]


def test_costs_are_replaced(two_nodes):
    """That of a restart for all jobs; in place, for those that could."""
    own = Costs(start_s=3.0, restart_s=9.0, scale_s=1.0)
    given = replace(
        two_nodes, costs=own, jobs=(replace(two_nodes.jobs[0], costs=own), *two_nodes.jobs[1:])
    )
    dear = Variant(restart_s=60.0).apply(given)
    assert dear.costs == Costs(start_s=3.0, restart_s=60.0)
    assert {job.costs for job in dear.jobs} == {None}
    slow = Variant(in_place=False).apply(given)
    assert slow.costs == slow.jobs[0].costs == Costs(start_s=3.0, restart_s=9.0)


def test_when_to_decide_and_which_nodes_sleep(two_nodes):
    """Fields of the cadence and of the node groups."""
    made = Variant(period_s=30.0, on_event=False).apply(two_nodes)
    assert (made.cadence.period_s, made.cadence.on_event) == (30.0, False)
    asleep = Variant(sleep=Sleep(host_idle_w=80.0, sleep_w=2.0, wake_s=300.0)).apply(two_nodes)
    (group,) = asleep.cluster.node_groups
    assert (group.host_idle_w, group.sleep_w, group.wake_s, group.wake_w) == (80.0, 2.0, 300.0, 0.0)


def test_the_faults_of_philly_faults_are_those_of_its_parameters():
    """With its seed; some faults alone are other faults, none are none."""
    plain, packaged = load("philly-energy-small"), load("philly-faults")
    drawn = packaged.made["breakage"]
    made = Variant(faults=generate.Breakage(**drawn), seed=1).apply(plain)
    assert (made.faults, made.jobs) == (packaged.faults, packaged.jobs)
    alone = Variant(faults=generate.Breakage(stragglers=0.05), seed=1)
    assert alone.draws
    assert alone.apply(plain).faults != packaged.faults
    none = Variant(faults=generate.Breakage())
    assert not none.draws
    assert none.apply(plain) == plain


def test_trials_share_gpus_as_other_models_do():
    """The models must be packaged."""
    search = generate.sweep(4, 1, 0)
    made = Variant(share="resnet18").apply(search)
    assert made.name == search.name
    assert {job.fusible for job in made.jobs} == {"sweep"}
    with pytest.raises(InputError, match="found joy; expected one of pointnet"):
        Variant(share="joy").apply(search)


def test_declared_sizes_are_wrong_by_the_seed(two_nodes):
    """True ones stay."""
    made = Variant(wrong_sizes=True, seed=6).apply(two_nodes)
    assert [job.truth for job in made.jobs] == [job.truth for job in two_nodes.jobs]
    assert made != Variant(wrong_sizes=True, seed=7).apply(two_nodes)


def test_of_a_changed_instance_nobody_knows_the_optimum():
    """What is known to be reached holds for the instance as it is."""
    probe = load("probe-restart")
    assert Variant().apply(probe).reference == probe.reference != {}
    assert Variant(restart_s=0.0).apply(probe).reference == {}


def test_different_changes_have_different_titles():
    """Tables, pages and folders of figures go by them."""
    sleep = Sleep(host_idle_w=1.0, sleep_w=1.0, wake_s=1.0)
    one, other = (Breakage(node_failures=rate) for rate in (1.0, 2.0))
    made = [Variant(), Variant(sleep=sleep), Variant(on_event=False), Variant(on_event=True)]
    made += [Variant(faults=one), Variant(faults=other)]
    assert len({each.title for each in made}) == len(made)
    assert Variant(faults=Breakage()).title == ""
