"""Options now and after waking, by hand."""

import msgspec
import numpy as np
import pytest

from ronda.formulations.allocation.model_data import make_case, restrict
from ronda.formulations.allocation.rows import separable
from ronda.formulations.allocation.waking import begin, ready, with_waking
from ronda.formulations.options.build import build
from ronda.formulations.options.table import option
from ronda.instances.cluster import Cluster, GpuType, NodeGroup
from ronda.instances.job import Allocation, Estimate, Job, JobState
from ronda.instances.profile import PowerCurve, Profile, Tabular
from ronda.instances.round import Round
from ronda.solvers.exact.highs import solve_form
from ronda.solvers.exact.linear_form import Effort, form_of
from ronda.solvers.prices.dual import Search
from ronda.solvers.prices.engine import solve_separable

WAKE_S = 100.0


def two_nodes(*, work=1e6, second=False, wake_s=WAKE_S, asleep=(1,)):
    """Return a round of two nodes of 2 GPUs; a job of 2 or 4 GPUs runs on node 0.

    It does 4 or 8 units a second; with `second` another one like it waits.
    """
    table = Tabular(
        gpus=(2, 4), nodes=(1, 2), local_batch=(2.0, 1.0), step_s=(1.0, 0.5), sync_s=(0.0, 0.0)
    )
    profile = Profile(
        name="p",
        base_batch=4.0,
        throughput={"G": table},
        power={"G": PowerCurve(a_w=20.0, b_w=80.0)},
    )
    cluster = Cluster(
        gpu_types=(GpuType(name="G", memory_gib=16, idle_w=10.0),),
        node_groups=(
            NodeGroup(
                name="n",
                count=2,
                gpus_per_node=2,
                gpu_type="G",
                host_idle_w=40.0,
                wake_s=wake_s,
            ),
        ),
    )

    def job(name):
        estimate = Estimate(work=work)
        return Job(id=name, submit_s=0.0, profile="p", min_gpus=2, max_gpus=4, estimate=estimate)

    round_ = Round(
        cluster=cluster,
        profiles={"p": profile},
        waiting=(JobState(job=job("a"), since_s=0.0),),
        power_cap_w=10_000.0,
        length_s=60.0,
    )
    options = build(round_, prune=False, mind_power=True)
    small = option(options, int(np.flatnonzero(options.gpus == 2)[0]))
    held = Allocation(option=small, placement=((0, 2),))
    running = JobState(job=job("a"), since_s=0.0, allocation=held, started=True)
    waiting = (JobState(job=job("b"), since_s=0.0),) if second else ()
    return msgspec.structs.replace(round_, running=(running,), waiting=waiting, asleep=asleep)


def case_of(round_, waking=frozenset()):
    """Return the case with values equal to GPUs, and what is ready."""
    table = build(round_, prune=False, mind_power=True)
    values = table.gpus.astype(float)
    return values, with_waking(make_case(round_, table, values), ready(round_, waking))


def rows(case):
    """Return (job, GPUs, late, value, ready GPUs) of all variables."""
    columns = (case.job, case.gpus, case.waking.late, case.value, case.waking.use)
    return sorted(zip(*(c.tolist() for c in columns), strict=True))


def test_nothing_to_wait_for():
    """All nodes awake, or waking without delay: no second copy of any option."""
    assert ready(two_nodes(asleep=()), frozenset()) is None
    assert ready(two_nodes(wake_s=0.0), frozenset()) is None
    assert ready(two_nodes(asleep=()), frozenset({1})).nodes.tolist() == [True, False]


def test_a_running_job_goes_on_until_nodes_are_ready():
    """H = max(10 rounds, 600 s, 10 w) = 1,000 s: a tenth of it with 2 GPUs, then 4: 3.8."""
    _, case = case_of(two_nodes())
    assert rows(case) == [
        (0, 2, False, 2.0, 2.0),
        (0, 4, False, 4.0, 4.0),
        (0, 4, True, pytest.approx(3.8), 2.0),
    ]
    assert case.waking.gpus.tolist() == [2.0]


def test_a_waiting_job_begins_when_nodes_are_ready():
    """400 units last 100 s at 4 a second and 50 s at 8: of 200 and 150 s it loses 100."""
    _, case = case_of(two_nodes(work=400.0, second=True))
    of = {state.job.id: j for j, state in enumerate(case.table.jobs)}
    found = {row[1]: row[3:] for row in rows(case) if row[0] == of["b"] and row[2]}
    assert found == {2: (pytest.approx(1.0), 0.0), 4: (pytest.approx(4.0 / 3.0), 0.0)}


def test_what_runs_on_waking_nodes_takes_no_ready_gpus():
    """The job's node still wakes: going on takes no ready GPUs, of which there are none."""
    _, case = case_of(two_nodes(), waking=frozenset({0}))
    assert case.waking.gpus.tolist() == [0.0]
    assert rows(case)[0] == (0, 2, False, 2.0, 0.0)


def test_choosing_to_wait_keeps_the_job_and_wakes_the_node():
    """Waiting for 4 GPUs (3.8) beats 2 now; 4 now need ready GPUs that are not there."""
    values, case = case_of(two_nodes())
    answer = solve_separable(separable(case), Search(gap=1e-6))
    assert answer.objective == pytest.approx(3.8)
    begun = begin(case, values, answer.chosen)
    assert case.table.gpus[begun.chosen].tolist() == [2]
    assert begun.worth[begun.chosen].tolist() == [pytest.approx(3.8)]
    assert begun.awake == (2,)


@pytest.mark.parametrize("watts", [1e4, 380.0, 330.0, 230.0])
def test_the_model_in_one_piece_is_the_same(watts):
    """Whatever the limit on power, the whole model has the engine's optimum."""
    round_ = msgspec.structs.replace(two_nodes(second=True), power_cap_w=watts)
    _, case = case_of(round_)
    found = solve_separable(separable(case), Search(gap=1e-9)).objective
    whole = solve_form(form_of(separable(case, both_limits=True)), Effort(gap=0))
    assert whole.objective == pytest.approx(found, rel=1e-7)


def test_fewer_options_keep_their_delays():
    """A restricted case has the copies that are left."""
    _, case = case_of(two_nodes())
    assert rows(restrict(case, case.waking.late))[0][2] is True
