"""Instances with other budgets, power figures and nodes."""

import pytest
from msgspec.structs import replace

from ronda.bench.runs.variant import UNCHANGED, Variant, reference_w
from ronda.instances.budget import Budget, EnergyBudget
from ronda.instances.errors import InputError
from ronda.instances.files.catalogue import load
from ronda.instances.files.json import fingerprint


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
