"""A round from what a host has: rates and jobs in each form, and errors that name the place."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ronda
from ronda.formulations.options.build import build
from ronda.instances.clock import Deadline
from ronda.instances.cluster import GpuType, uniform_cluster
from ronda.instances.errors import InputError
from ronda.solvers.registry import POLICIES, policy
from tests.helpers.ways import ways

A100 = GpuType(name="A100", memory_gib=40, idle_w=50)
CLUSTER = uniform_cluster(A100, 3, 8)
ROWS = {(8, 1): 1.0, (16, 2): 1.8, (24, 3): 2.5}


class Frame:
    """What polars and others have in common: columns by name, that become numpy arrays."""

    def __init__(self, columns):
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name):
        return pd.Series(self._columns[name])


def columns():
    """Return the rows as columns."""
    return {
        "gpus": np.array([8, 16, 24]),
        "nodes": np.array([1, 2, 3], dtype=np.int32),
        "rate": np.array([1.0, 1.8, 2.5], dtype=np.float32).astype(float),
    }


FORMS = {
    "columns": columns(),
    "one GPU type": columns() | {"gpu_type": "A100"},
    "pandas": pd.DataFrame(columns()),
    "another frame": Frame(columns()),
    "a function": ronda.rates_from(
        lambda gpus, nodes, kind: ROWS.get((gpus, nodes)), CLUSTER, (8, 16, 24)
    ),
}


def rated(round_, job="a"):
    """Return a job's table."""
    state = next(s for s in round_.jobs if s.job.id == job)
    return round_.profiles[state.job.profile].throughput["A100"]


def test_a_job_may_be_called_like_a_column():
    """Rates in rows are by job, whatever its name."""
    round_ = ronda.make_round(CLUSTER, [{"id": "job", "rates": ways(ROWS)}])
    assert rated(round_, "job").gpus == (8, 16, 24)


@pytest.mark.parametrize("form", list(FORMS))
def test_every_form_of_rates_gives_the_same_table(form):
    """And all 24 of 24 GPUs are offered, and taken, though no ladder of powers of two has 24."""
    job = {"id": "a", "work": 900.0, "rates": FORMS[form]}
    round_ = ronda.make_round(CLUSTER, [job])
    table = rated(round_)
    assert (table.gpus, table.nodes) == ((8, 16, 24), (1, 2, 3))
    assert table.rate == pytest.approx((1.0, 1.8, 2.5))
    plan = ronda.solve(round_, "milp")
    assert plan.allocations["a"].option.gpus == 24
    assert ronda.check(round_, plan) == []


def test_a_function_is_asked_once_for_each_way():
    """Of 24 GPUs in nodes of 8: powers of two, whole nodes; on the fewest nodes and on one more."""
    asked = []

    def speed(gpus, nodes, kind):
        asked.append((gpus, nodes))
        return (float(gpus), 100.0 * gpus) if nodes == 1 else None

    rates = ronda.rates_from(speed, CLUSTER)
    ways = [(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (8, 1), (8, 2), (16, 2), (16, 3)]
    assert asked == list(zip(rates["gpus"], rates["nodes"], strict=True)) == ways
    assert rates["rate"] == [1.0, 2.0, 0.0, 4.0, 0.0, 8.0, 0.0, 0.0, 0.0]
    table = rated(ronda.make_round(CLUSTER, [{"id": "a", "rates": rates}]))
    assert (table.gpus, table.power_w) == ((1, 2, 4, 8), (100.0, 200.0, 400.0, 800.0))
    odd = ronda.rates_from(lambda *_: 1.0, CLUSTER, (24, 5, 99))["gpus"]
    assert odd == [5, 5, 24]  # 99 is more than there are
    with pytest.raises(InputError, match=r"speed\(1, 1, .*rate, watts"):
        ronda.rates_from(lambda *_: (1.0, 2.0, 3.0), CLUSTER)


def test_all_tables_at_once_by_a_column_of_jobs():
    """Jobs come in any order, from a frame too; a missing cell is a field left out."""
    jobs = pd.DataFrame(
        {"id": ["late", "early"], "submit_s": [60.0, 0.0], "gpus": [8, 16], "work": [5.0, np.nan]}
    )
    rates = pd.DataFrame(
        {"job": ["early", "late"] * 2, "gpus": [8, 8, 16, 16], "rate": [1, 2, 3, 4]}
    )
    round_ = ronda.make_round(CLUSTER, jobs, rates=rates, now_s=60.0)
    assert [s.job.id for s in round_.waiting] == ["early", "late"]
    assert rated(round_, "late").rate == (2.0, 4.0)
    assert round_.waiting[0].job.estimate is None
    assert round_.waiting[1].job.estimate.work == 5.0


def test_rates_by_type_on_a_cluster_of_several():
    """Each type has its own nodes: 8 GPUs are one node of the first, two of the second."""
    cluster = ronda.Cluster(
        gpu_types=(A100, GpuType(name="V100", memory_gib=16)),
        node_groups=(
            ronda.NodeGroup(name="a", count=1, gpus_per_node=8, gpu_type="A100"),
            ronda.NodeGroup(name="v", count=2, gpus_per_node=4, gpu_type="V100"),
        ),
    )
    rates = {"gpus": 8, "gpu_type": ["A100", "V100"], "rate": [3.0, 4.0]}
    round_ = ronda.make_round(cluster, [{"id": "a", "rates": rates}])
    found = round_.profiles[round_.waiting[0].job.profile].throughput
    assert (found["A100"].nodes, found["V100"].nodes) == ((1,), (2,))
    assert len(ronda.solve(round_, "prices").allocations["a"].placement) == 2
    with pytest.raises(InputError, match="gpu_type"):
        ronda.make_round(cluster, [{"id": "a", "rates": ways({8: 1.0})}])


def test_watts_clocks_and_batches_are_options_of_their_own():
    """By hand: 8 GPUs at 0.5 of the clock draw 900 W of the 1,350 W that the cap leaves."""
    cluster = uniform_cluster(
        GpuType(name="A100", memory_gib=40, idle_w=50, clocks=(0.5, 1.0)), 3, 8
    )
    rates = {
        "gpus": [8, 8, 8],
        "clock": [1.0, 0.5, 0.5],
        "batch": [64, 64, 128],
        "rate": [2.0, 1.2, 1.1],
        "watts": [2000.0, 900.0, 800.0],
    }
    job = {"id": "a", "batch": 64, "work": 100.0, "rates": rates}
    round_ = ronda.make_round(cluster, [job], power_cap_w=16 * 50 + 950.0)
    table = build(round_)
    assert sorted(table.power_w.tolist()) == [800.0, 900.0, 2000.0]
    option = ronda.solve(round_, "prices").allocations["a"].option
    assert (option.clock, option.batch, option.power_w) == (0.5, 64.0, 900.0)


def test_only_what_was_asked_for_without_elasticity():
    """A rigid policy takes the requested GPUs at the full clock."""
    job = {"id": "a", "gpus": 16, "rates": ways(ROWS)}
    plan = ronda.solve(ronda.make_round(CLUSTER, [job]), "fifo")
    assert plan.allocations["a"].option.gpus == 16


def test_rates_on_more_nodes_than_needed_are_for_what_runs_so():
    """They are no option, but a job that runs so counts at its own rate."""
    job = {"id": "a", "gpus": 4, "rates": ways({(4, 1): 1.0, (4, 2): 1.7})}
    table = build(ronda.make_round(CLUSTER, [job]))
    assert table.rate.tolist() == [1.0]
    running = ronda.make_round(CLUSTER, [job | {"nodes": {0: 2, 1: 2}}], now_s=50.0)
    assert running.running[0].allocation.option.rate == 1.7
    assert running.running[0].held_s == 0.0  # nothing is told of when it began
    assert sorted(build(running).rate.tolist()) == [1.0, 1.7]


def test_not_known_yet_is_a_state():
    """It gets what its user asked for, and no number stands for its speed."""
    round_ = ronda.make_round(CLUSTER, [{"id": "a", "gpus": 4, "max_gpus": 8}])
    assert round_.waiting[0].job.estimate is None
    plan = ronda.solve(round_, "prices")
    assert plan.allocations["a"].option.gpus == 4


def test_a_kept_job_whose_rates_were_fitted_anew_is_no_violation():
    """It runs at 1.0 by an earlier table; now that says 0.7, and the plan is in order."""
    first = ronda.make_round(CLUSTER, [{"id": "a", "rates": ways({8: 1.0}), "nodes": {0: 8}}])
    later = ronda.make_round(CLUSTER, [{"id": "a", "rates": ways({8: 0.7}), "nodes": {0: 8}}])
    held = first.running[0]
    mixed = ronda.Round(cluster=CLUSTER, profiles=later.profiles, running=(held,))
    plan = ronda.solve(mixed, "prices")
    assert plan.allocations["a"] is not None
    assert plan.status is not None
    assert ronda.check(mixed, plan) == []


BAD = {
    "a name of a column": ({"gpu": [8], "rate": [1.0]}, "unknown column"),
    "no rate": ({"gpus": [8]}, 'no column "rate"'),
    "lengths": ({"gpus": [8, 16], "rate": [1.0]}, "columns of 2 gpus, 1 rate"),
    "a word": ({"gpus": [8, 16], "rate": [1.0, "fast"]}, "column rate, row 1"),
    "not a number": ({"gpus": [8, 16], "rate": [1.0, np.nan]}, "column rate, row 1"),
    "below 0": ({"gpus": [8], "rate": [-1.0]}, "column rate, row 0"),
    "half a GPU": ({"gpus": [1.5], "rate": [1.0]}, "column gpus, row 0"),
    "more nodes than GPUs": (ways({(2, 3): 1.0}), "column nodes, row 0"),
    "twice": ({"gpus": [8, 8], "rate": [1.0, 2.0]}, "twice"),
    "an unknown type": ({"gpus": 8, "rate": 1.0, "gpu_type": "H100"}, "H100"),
    "rows": ([{"gpus": 8, "rate": 1.0}], "a data frame, or columns by name"),
    "ways": ({8: 1.0}, "unknown column 8"),
    "a function itself": (lambda *_: 1.0, "a data frame, or columns by name"),
    "less than idle": ({"gpus": 8, "rate": 1.0, "watts": 399.0}, "column watts, row 0"),
    "nothing runs": ({"gpus": 8, "rate": 0.0}, "no rate above 0"),
    "nothing": ({}, "no column"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_errors_name_the_job_and_the_column(case):
    """One line, with the place."""
    rates, said = BAD[case]
    with pytest.raises(InputError) as caught:
        ronda.make_round(CLUSTER, [{"id": "left-handed", "rates": rates}])
    assert said in str(caught.value)
    assert "left-handed" in str(caught.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"gpus": "many"}, "gpus"),
        ({"gpu": 3}, "gpu"),
        ({"gpus": 3, "min_gpus": 4}, "min_gpus"),
        ({"gpus": 25}, "at most 24"),
        ({"profile": "bert"}, "bert"),
        ({"work": -1.0}, "work"),
        ({"work": float("inf")}, "work"),
        ({"work_sd": 3.0}, "work_sd"),
        ({"weight": float("inf")}, "weight"),
        ({"costs": {"restart_s": float("inf")}}, "restart_s"),
        ({"application": object}, "application"),
        ({"clock": "slow"}, "clock"),
        ({"done": "much"}, "done"),
        ({"rates": ways(ROWS), "nodes": {0: 4}}, "4 GPUs of 1 nodes"),
        ({"rates": ways(ROWS), "nodes": {7: 8}}, "a node of the cluster"),
    ],
)
def test_errors_name_the_job_and_the_field(row, said):
    """One line, with the place."""
    with pytest.raises(InputError) as caught:
        ronda.make_round(CLUSTER, [{"id": "j1"} | row])
    assert said in str(caught.value)
    assert "j1" in str(caught.value)


@st.composite
def hosts(draw):
    """Return rows of jobs with tables of random ways, some of which run."""
    free = dict.fromkeys(range(3), 8)
    rows = []
    for j in range(draw(st.integers(1, 3))):
        counts = draw(st.sets(st.integers(1, 24), min_size=1, max_size=5))
        rates = {n: draw(st.floats(0.1, 30.0)) for n in sorted(counts)}
        row = {"id": f"j{j}", "submit_s": float(draw(st.integers(0, 9))), "rates": ways(rates)}
        if draw(st.booleans()):
            row["work"] = draw(st.floats(1.0, 1e5))
        node = next((k for k in free if free[k] >= min(counts)), None)
        if draw(st.booleans()) and min(counts) <= 8 and node is not None:
            row["nodes"] = {node: min(counts)}
            free[node] -= min(counts)
        rows.append(row)
    return rows


@settings(max_examples=8, deadline=None)
@given(hosts())
def test_any_host_gets_a_plan_in_order(rows):
    """Prices certify what the MILP finds on the same options, and no plan breaks a rule."""
    round_ = ronda.make_round(CLUSTER, rows, now_s=10.0)
    exact, priced = (
        policy(f"{name}(gap=1e-6)").plan(round_, deadline=Deadline(), seed=0)
        for name in ("milp", "prices")
    )
    assert ronda.check(round_, exact) == ronda.check(round_, priced) == []
    assert exact.bound >= priced.objective * (1 - 1e-6)
    assert priced.bound >= exact.objective * (1 - 1e-6)


def hosts_of_all_kinds():
    """Return a round in which jobs run, wait, and are not known yet, on clocks and batches."""
    gpu = GpuType(name="A100", memory_gib=40, idle_w=50, clocks=(0.5, 1.0))
    odd = {n: (n**0.8, 120.0 * n) for n in (1, 3, 6, 8, 12, 24)}
    slow = {(n, -(-n // 8), 0.5): (0.6 * rate, 80.0 * n) for n, (rate, _) in odd.items()}
    full = {(n, -(-n // 8), 1.0): told for n, told in odd.items()}
    jobs = [
        {
            "id": "runs",
            "work": 900.0,
            "rates": ways(full | slow),
            "nodes": {0: 8, 1: 4},
            "done": 30.0,
        },
        {"id": "waits", "submit_s": 5.0, "gpus": 3, "work": 50.0, "rates": ways(full | slow)},
        {"id": "endless", "submit_s": 6.0, "gpus": 6, "rates": ways(full)},
        {"id": "unknown", "submit_s": 7.0, "gpus": 2},
    ]
    cluster = uniform_cluster(gpu, 3, 8, host_idle_w=100)
    return ronda.make_round(cluster, jobs, now_s=60.0, power_cap_w=3800.0)


@pytest.mark.parametrize("name", sorted({name.partition("+")[0] for name in POLICIES}))
def test_every_policy_decides_what_a_host_hands_over(name):
    """And keeps every rule: rates as they are, GPUs that are no powers of two, a power cap."""
    round_ = hosts_of_all_kinds()
    plan = ronda.solve(round_, f"{name}(generations=3)" if name == "genetic" else name)
    assert ronda.check(round_, plan) == []
    assert "refused" not in plan.record.message
    assert plan.allocations


def test_an_unknown_field_is_answered_with_all_of_a_row():
    """What a running job has among them."""
    with pytest.raises(InputError, match=r"work.*nodes.*done"):
        ronda.make_round(CLUSTER, [{"id": "a", "xyzzy": 1}])
