"""The thrifty rank by hand."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.objectives.by_name import minds_power, values, values_of
from ronda.formulations.objectives.outlook import outlook
from ronda.formulations.objectives.switching_cost import horizon_s
from ronda.formulations.options.build import build
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.errors import InputError
from ronda.instances.job import Estimate, Job, JobState
from ronda.instances.profile import PowerCurve, Profile, Tabular
from ronda.instances.round import Round


def one_job(watts=1000.0):
    """Return a round of one job on one node of two GPUs; 1 unit a second on one, 1.6 on two.

    A busy GPU draws 100 W at full clock and 60 W at half; the host 40 W awake and 0 W asleep.
    """
    table = Tabular(
        gpus=(1, 2), nodes=(1, 1), local_batch=(2.0, 1.0), step_s=(2.0, 1.25), sync_s=(0.0, 0.0)
    )
    profile = Profile(
        name="p",
        base_batch=2.0,
        throughput={"G": table},
        power={"G": PowerCurve(a_w=20.0, b_w=80.0)},
    )
    job = Job(
        id="j",
        submit_s=0.0,
        profile="p",
        min_gpus=1,
        max_gpus=2,
        estimate=Estimate(work=100.0),
    )
    return Round(
        cluster=Cluster(
            gpu_types=(GpuType(name="G", memory_gib=16, clocks=(0.5, 1.0)),),
            node_groups=(
                NodeGroup(name="n", count=1, gpus_per_node=2, gpu_type="G", host_idle_w=40.0),
            ),
        ),
        profiles={"p": profile},
        waiting=(JobState(job=job, since_s=0.0),),
        power_cap_w=watts,
    )


def test_energy_beyond_need_costs():
    """Each GPU keeps half the host awake, 20 W: a unit costs 120 J on one GPU at full clock.

    Half clock: (60 + 20) / 0.5 = 160 J; two GPUs: 240 / 1.6 = 150 J at full clock and 160 / 0.8 =
    200 J at half. So at thrift 0.6 rank's value is multiplied by 1 - 0.6 e/120: 0.4, 0.2, 0.25, 0.
    """
    round_ = one_job()
    table = build(round_, prune=False, mind_power=True)
    plain = values(round_, table, "rank")
    share = values(round_, table, "thrifty-rank", thrift=0.6) / plain
    by = {
        (n, s): x
        for n, s, x in zip(table.gpus.tolist(), table.clock.tolist(), share.tolist(), strict=True)
    }
    assert by == pytest.approx({(1, 1.0): 0.4, (1, 0.5): 0.2, (2, 1.0): 0.25, (2, 0.5): 0.4 * 0.01})
    assert np.array_equal(values(round_, table, "thrifty-rank", thrift=0.0), plain)


def test_hosts_that_are_awake_anyway_cost_nothing():
    """A unit costs 100 J of one GPU, 200 / 1.6 = 125 J of two, and 120 J with the host."""
    round_ = one_job()
    table = build(round_, prune=False, mind_power=True)
    plain = values(round_, table, "rank")
    share = values(round_, table, "thrifty-rank", thrift=0.6, hosts=0.0) / plain
    by = dict(zip(zip(table.gpus.tolist(), table.clock.tolist(), strict=True), share, strict=True))
    assert by[1, 1.0] == pytest.approx(1 - 0.6 * 100 / 120)
    assert by[2, 1.0] == pytest.approx(1 - 0.6 * 125 / 120)


def test_a_pause_wastes_energy():
    """A change that costs a tenth of the progress costs a ninth more energy for the rest."""
    round_ = one_job()
    table = build(round_, prune=False, mind_power=True)
    seen = outlook(round_, table, horizon_s(round_))
    paused = msgspec.structs.replace(seen, rate=np.where(table.gpus == 2, 0.9, 1.0) * seen.rate)
    share = values_of(paused, "thrifty-rank") / values_of(paused, "rank")
    by = dict(zip(zip(table.gpus.tolist(), table.clock.tolist(), strict=True), share, strict=True))
    assert by[2, 1.0] == pytest.approx(1 - 0.3 * (150 / 0.9) / 120)


def test_without_a_limit_it_is_rank():
    """Energy that nobody counts has no price."""
    round_ = one_job(watts=None)
    table = build(round_, mind_power=True)
    assert np.array_equal(values(round_, table, "thrifty-rank"), values(round_, table, "rank"))


def test_it_minds_power_and_refuses_a_thrift_out_of_range():
    """Its table needs slow options; thrift is a share."""
    assert minds_power("thrifty-rank")
    round_ = one_job()
    with pytest.raises(InputError, match="thrift"):
        values(round_, build(round_), "thrifty-rank", thrift=1.5)


@pytest.mark.parametrize("objective", ["thrifty-rank", "snapshot", "weighted-goodput"])
def test_values_of_an_outlook_are_the_values_of_the_round(objective):
    """A caller that has an outlook already gets the same numbers."""
    round_ = one_job()
    table = build(round_, mind_power=True)
    seen = outlook(round_, table, horizon_s(round_))
    assert np.array_equal(values_of(seen, objective), values(round_, table, objective))
