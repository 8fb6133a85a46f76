"""Readers of public traces: what they keep, how they refuse, and the real files where present."""

import gzip
import json
from collections import Counter
from datetime import date
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.errors import InputError
from ronda.instances.traces import helios, philly
from ronda.instances.traces.helios import read_helios
from ronda.instances.traces.itp import read_itp
from ronda.instances.traces.ones import ones_workload, read_ones
from ronda.instances.traces.philly import read_philly
from ronda.instances.traces.pollux import read_pollux
from ronda.instances.traces.pollux_tables import batch_grid, noise_curve, tabular
from ronda.instances.traces.table import ALL, Filters, clean_jobs, read_columns
from ronda.instances.validate import problems

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data"
real = pytest.mark.skipif(not DATA.is_dir(), reason="the shared data are not beside the checkout")

HEADER = "job_id,submit_s,num_gpus,duration_s,vc,user,status"


@pytest.fixture
def write(tmp_path):
    """Return a function that writes lines to a file and returns its path."""

    def writer(*lines, name="trace.csv"):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return writer


def jobs_of(instance):
    """Return (id, submission, GPUs, true seconds) of every job."""
    return [(j.id, j.submit_s, j.gpus, j.truth.work) for j in instance.jobs]


def test_jobs_come_in_order_of_submission_and_ties_keep_the_file_s_order(write):
    """Time counts from the first submission; b and c of the same second stay as they are."""
    path = write(HEADER, "a,130,1,5,x,u,", "b,100,2,6,x,,", "c,100,8,7,y,v,done")
    instance = read_helios(path, nodes=1)
    assert jobs_of(instance) == [("b", 0, 2, 6), ("c", 0, 8, 7), ("a", 30, 1, 5)]
    assert [j.user for j in instance.jobs] == [None, "v", "u"]
    assert all(j.estimate.work == j.truth.work for j in instance.jobs)
    assert list(problems(instance)) == []


def test_nodes_by_virtual_cluster_make_partitions_and_drop_the_others(write):
    """Only the jobs of the named virtual clusters are read, each into its own partition."""
    path = write(HEADER, "a,0,1,5,x,,", "b,1,16,6,y,,", "c,2,8,7,z,,")
    instance = read_helios(path, nodes={"x": 1, "y": 2})
    assert [(j.id, j.partition) for j in instance.jobs] == [("a", "x"), ("b", "y")]
    assert {g.partition: g.count * g.gpus_per_node for g in instance.cluster.node_groups} == {
        "x": 8,
        "y": 16,
    }
    assert list(problems(instance)) == []


def test_cpu_jobs_are_left_out(write):
    """A row with 0 GPUs is a CPU job."""
    instance = read_helios(write(HEADER, "a,0,0,5,,,", "b,4,1,6,,,"), nodes=1)
    assert jobs_of(instance) == [("b", 0, 1, 6)]


def test_busy_and_idle_watts_are_those_of_the_machine(write):
    """P(1) = a + b min(1, 1) = 30 + 270 = 300 W for a busy V100, 30 W for an idle one."""
    instance = read_helios(write(HEADER, "a,0,1,5,,,"), nodes=1)
    curve = instance.profiles["rigid"].power["V100"]
    assert curve.a_w + curve.b_w * min(1.0, curve.s0) == 300.0
    assert instance.cluster.gpu_types[0].idle_w == 30.0


def test_restarts_cost_what_helios_says(write):
    """7 s on one GPU, 30 s on 2 to 8, 60 s on more; starts are free."""
    costs = read_helios(write(HEADER, "a,0,1,5,,,"), nodes=1).costs
    assert [costs.restart(n) for n in (1, 2, 8, 9, 128)] == [7, 30, 30, 60, 60]
    assert costs.start_s == 0


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        (ALL, "abcd"),
        (Filters(start_s=10), "bcd"),
        (Filters(end_s=20), "ab"),  # the end itself is out
        (Filters(min_duration_s=60), "bcd"),
        (Filters(max_duration_s=60), "ab"),
        (Filters(max_gpu_hours=1), "ab"),  # c has exactly 1 GPU-hour, which is not less
        (Filters(max_gpus=4), "abc"),
    ],
)
def test_filters(write, filters, kept):
    """Each filter alone, with a row on its border."""
    rows = ("a,0,1,59,,,", "b,10,2,60,,,", "c,20,4,900,,,", "d,30,8,3600,,,")
    instance = read_helios(write(HEADER, *rows), nodes=1, filters=filters)
    assert "".join(j.id for j in instance.jobs) == kept
    first = 0 if filters.start_s is None else 10 * "abcd".index(kept[0]) - filters.start_s
    assert instance.jobs[0].submit_s == first


@given(
    rows=st.lists(
        st.tuples(st.integers(-50, 50), st.integers(0, 16), st.integers(1, 100)), min_size=1
    ),
    start=st.integers(-60, 60),
    length=st.integers(1, 80),
    shortest=st.integers(0, 100),
    most=st.integers(0, 16),
)
def test_filtering_keeps_exactly_the_rows_that_pass(rows, start, length, shortest, most):
    """Against a plain loop over the rows."""
    end = start + length
    frame = pd.DataFrame(rows, columns=["submit_s", "num_gpus", "duration_s"])
    frame["job_id"] = [str(k) for k in range(len(rows))]
    frame["vc"], frame["row"] = "", range(len(rows))
    filters = Filters(start_s=start, end_s=end, min_duration_s=shortest, max_gpus=most)
    expected = [
        (submit - start, gpus, duration)
        for submit, gpus, duration in rows
        if start <= submit < end and 0 < gpus <= most and duration >= shortest
    ]
    expected.sort(key=lambda row: row[0])
    if not expected:
        with pytest.raises(InputError, match="no row that passes the filters"):
            clean_jobs("memory", frame, filters=filters)
    else:
        found = clean_jobs("memory", frame, filters=filters)
        assert list(zip(found.submit_s, found.num_gpus, found.duration_s, strict=True)) == expected


@pytest.mark.parametrize(
    ("row", "column", "found"),
    [
        ("b,-x,1,5,,,", "submit_s", "'-x'"),
        ("b,nan,1,5,,,", "submit_s", "'nan'"),
        ("b,inf,1,5,,,", "submit_s", "'inf'"),
        ("b,1,,5,,,", "num_gpus", "''"),
        ("b,1,-2,5,,,", "num_gpus", "-2"),
        ("b,1,1.5,5,,,", "num_gpus", "1.5"),
        ("b,1,1,-5,,,", "duration_s", "-5"),
        ("b,1,1,0,,,", "duration_s", "0;"),
        ("a,1,1,5,,,", "job_id", "'a'"),
        ("b,1,99,5,,,", "num_gpus", "99"),
    ],
)
def test_bad_rows_are_refused_with_file_and_line(write, row, column, found):
    """The third line of the file (after comment and header) is good, the fourth is bad."""
    path = write("# a comment", HEADER, "a,0,1,5,,,", row)
    with pytest.raises(InputError) as caught:
        read_helios(path, nodes=1)
    assert f"{path}, row 4, {column}" in str(caught.value)
    assert f"found {found}" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


def test_bad_rows_outside_the_window_are_refused_too(write):
    """A file with a broken row is broken, whatever the filters."""
    path = write(HEADER, "a,0,1,5,,,", "b,900,1,oops,,,")
    with pytest.raises(InputError, match="row 3, duration_s"):
        read_helios(path, nodes=1, filters=Filters(end_s=10))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "CSV file with a header"),
        (HEADER.encode() + b"\n", "no rows"),
        (b"job_id,submit_s,num_gpus\n1,2,3\n", "duration_s"),
        (b'{"jobs": [1, 2]}\n', "job_id"),
        (b"\x89PNG\r\n\x1a\n\x00\xff\xfe", "CSV file with a header"),
        (b"a,b\n1,2\n1,2,3\n", "CSV file with a header"),
        (gzip.compress(b"x" * 999)[:20], "readable CSV file"),
    ],
    ids=["empty", "header-only", "missing-column", "json", "png", "ragged", "cut-gzip"],
)
def test_files_that_are_no_trace(tmp_path, data, message):
    """One line that names the file."""
    path = tmp_path / ("trace.csv.gz" if data[:2] == b"\x1f\x8b" else "trace.csv")
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        read_philly(path, nodes=1, filters=ALL)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_missing_file_and_directory(tmp_path):
    """Both are told apart from a broken file by their reason."""
    with pytest.raises(InputError, match="No such file"):
        read_philly(tmp_path / "none.csv", nodes=1)
    with pytest.raises(InputError, match="directory"):
        read_philly(tmp_path, nodes=1)


def test_an_unknown_virtual_cluster_is_answered_with_the_known_ones(write):
    """Nothing is left, so the error lists what there is."""
    with pytest.raises(InputError, match=r"\['x', 'y'\]"):
        read_helios(write(HEADER, "a,0,1,5,x,,", "b,1,1,5,y,,"), nodes={"q": 1})


def test_the_three_forms_of_helios_are_the_same_jobs(write):
    """Dates, microseconds and seconds: 2020-04-01 00:01:40 is second 100 of the first."""
    log = write(
        "job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,duration",
        "a,u,x,2,8,1,COMPLETED,2020-04-01 00:01:40,6",
        "b,u,x,0,8,1,COMPLETED,2020-04-01 00:01:41,6",
        name="cluster_log.csv",
    )
    cut = write(
        "# c",
        "job_id,user,tenant,submit_time,num_chips,duration_s,final_status",
        "a,u,x,100000000,2,6.0,COMPLETED",
        name="slice.csv",
    )
    plain = write(HEADER, "a,100,2,6,x,u,COMPLETED", name="canonical.csv")
    keep = Filters(start_s=40)
    found = [read_helios(p, nodes={"x": 1}, filters=keep) for p in (log, cut, plain)]
    assert [jobs_of(i) for i in found] == [[("a", 60, 2, 6)]] * 3
    assert found[0] == found[1] == found[2]


def test_a_wrong_date_is_refused(write):
    """Only the log's own form of date and time is understood."""
    path = write("job_id,vc,gpu_num,submit_time,duration", "a,x,1,01/04/2020,5")
    with pytest.raises(InputError, match="row 2, submit_s"):
        read_helios(path, nodes=1)


def test_helios_quotas_become_nodes(write):
    """16 GPUs are 2 nodes, 20 are 2, 4 are none."""
    path = write("date,p,q,r,total", "2020-09-09,0,0,0,0", "2020-09-10,16,20,4,40")
    assert helios.vc_nodes(path, date(2020, 9, 10)) == {"p": 2, "q": 2}
    with pytest.raises(InputError, match="a row for 2021-01-01"):
        helios.vc_nodes(path, date(2021, 1, 1))


def test_itp_deadlines_count_from_the_first_submission(write):
    """Submitted at 1,000 and due at 1,500: due 500 s after time 0."""
    path = write(
        "cluster,submission_time,num_iteration,model_name,deadline,batch_size,num_gpu,duration",
        "c2,0,1,bert,9,64,1,9",
        "c1,1100,1,bert,1800,64,2,700",
        "c1,1000,1,bert,1500,64,1,600",
    )
    instance = read_itp(path, cluster="c1", nodes=1)
    assert [(j.id, j.submit_s, j.deadline_s) for j in instance.jobs] == [
        ("4", 0, 500),
        ("3", 100, 800),
    ]
    assert list(problems(instance)) == []


def test_itp_without_clusters_is_refused(write):
    """The column that tells the cluster is needed."""
    with pytest.raises(InputError, match="'vc' or 'cluster'"):
        read_itp(write("job_id,submit_s,num_gpus,duration_s", "a,0,1,5"), cluster="c1")


def test_ones_workload_has_the_pattern_of_trace_1():
    """400 jobs: 40 of each pair, GPU requests 16:160, 4:120, 2:80, 8:40, gaps 0 to 60 s."""
    instance = ones_workload(400, seed=3)
    assert Counter(j.gpus for j in instance.jobs) == {16: 160, 4: 120, 2: 80, 8: 40}
    assert set(Counter(j.profile for j in instance.jobs).values()) == {40}
    gaps = np.diff([j.submit_s for j in instance.jobs])
    assert gaps.min() >= 0
    assert gaps.max() <= 60
    # Uniform on 0..60: mean 30, standard deviation 17.6; 399 gaps: 4 standard errors are 3.5.
    assert abs(gaps.mean() - 30) < 3.5
    assert instance == ones_workload(400, seed=3)
    assert instance != ones_workload(400, seed=4)
    assert list(problems(instance)) == []


def test_ones_trace_of_the_artifact_s_form(write):
    """A BERT job of 2 GPUs: batch 16 x 2, at most 4 x 16 (max_lr / lr = 4) on at most 8 GPUs."""
    path = write(
        "time,model,task,epoch_size,patience,batch_size,lr,max_lr,target_acc,num_gpus",
        "30,resnet50,imagenet,10000,10,32,5e-4,0.008,0.55,16",
        "0,bert,cola,8000,5,16,5e-06,2e-5,0.8,2",
    )
    instance = read_ones(path)
    bert, resnet = instance.jobs
    assert (bert.batch, bert.gpus, bert.max_gpus) == (32, 2, 8)
    assert instance.profiles[bert.profile].batches == (16, 32, 48, 64)
    assert bert.truth.work in (5 * 8000, 6 * 8000)
    assert (bert.estimate.work, bert.estimate.sd) == (5.5 * 8000, 0.5 * 8000)
    assert (resnet.submit_s, resnet.batch, resnet.max_gpus) == (30, 512, 64)
    assert 11 * 10_000 <= resnet.truth.work <= 50 * 10_000
    assert list(problems(instance)) == []


@pytest.mark.parametrize(
    ("row", "place"),
    [
        ("0,bart,cola,8000,5,16,5e-06,2e-5,0.8,2", "row 2, model"),
        ("-1,bert,cola,8000,5,16,5e-06,2e-5,0.8,2", "row 2, time"),
        ("0,bert,cola,0,5,16,5e-06,2e-5,0.8,2", "row 2, epoch_size"),
        ("0,bert,cola,8000,5,16,0,2e-5,0.8,2", "row 2, lr"),
    ],
)
def test_bad_ones_rows(write, row, place):
    """File and row, as everywhere."""
    header = "time,model,task,epoch_size,patience,batch_size,lr,max_lr,target_acc,num_gpus"
    with pytest.raises(InputError, match=place):
        read_ones(write(header, row))


def test_ones_without_jobs():
    """No workload of nothing."""
    with pytest.raises(InputError, match="at least one job"):
        ones_workload(0)


def steps(*rows):
    """Return a frame of steps: gpus, nodes, local batch, step, sync."""
    columns = ["gpus", "nodes", "local_bsz", "step_time", "sync_time"]
    return pd.DataFrame(rows, columns=columns)


def test_nodes_between_measured_ones_are_interpolated():
    """8 GPUs on 2 and 4 nodes take 1 and 2 s: on 3 nodes 1.5 s, of which 0.4 s synchronise."""
    table = tabular(steps((8, 4, 16, 2.0, 0.6), (8, 2, 16, 1.0, 0.2), (8, 2, 32, 3.0, 0.3)))
    rows = list(zip(table.gpus, table.nodes, table.local_batch, strict=True))
    assert rows == [(8, 2, 16), (8, 2, 32), (8, 3, 16), (8, 4, 16)]
    assert table.step_s == (1.0, 3.0, 1.5, 2.0)
    assert table.sync_s == (0.2, 0.3, 0.4, 0.6)


@given(doublings=st.integers(0, 9), low=st.integers(4, 500))
def test_batch_grid_holds_all_validated_sizes_and_ascends(doublings, low):
    """Validated sizes double; the grid has three sizes to a doubling and both ends."""
    sizes = [float(low * 2**k) for k in range(doublings + 1)]
    grid = batch_grid(np.array(sizes))
    assert set(sizes) <= set(grid)
    assert len(grid) == 3 * doublings + 1
    assert all(a < b for a, b in pairwise(grid))


def test_noise_scale_and_stages_by_hand():
    """B0 = 10. Epoch 1: scale 10 x 6/2 = 30 at B0, 10 x 8/1 = 80 at 20; least progress 100 steps.

    At 13 (three to a doubling: 10, 13, 16, 20) grad_var = 6.6 and grad_sqr = 1.7: 38.8235.
    Epoch 2 at B0 has grad_sqr = 0: the scale is the largest allowed.
    """
    runs = pd.DataFrame(
        [
            (10.0, 1.0, 100.0, 2.0, 6.0),
            (20.0, 1.0, 105.0, 1.0, 8.0),
            (10.0, 2.0, 210.0, 0.0, 6.0),
            (20.0, 2.0, 200.0, 1.0, 4.0),
        ],
        columns=["global_bsz", "epoch", "progress", "grad_sqr", "grad_var"],
    )
    runs["app"] = "app"
    curve = noise_curve(runs, 2)
    assert curve.batches == (10, 13, 16, 20)
    assert curve.until == (1000, 2000)
    assert curve.scale[0] == (30.0, 38.8235, pytest.approx(10 * 7.2 / 1.4, rel=1e-5), 80.0)
    assert curve.scale[1][0] == 1e9
    assert curve.scale[1][3] == 40.0
    with pytest.raises(InputError, match="3 at every batch size"):
        noise_curve(runs, 3)


@pytest.fixture
def pollux_folder(write):
    """Write a data folder with one application, measured on 1, 2 and 4 GPUs."""
    gz = "app,placement,local_bsz,step_time,sync_time"
    near = [f"ncf,{p},{b},{t},0" for p, t in (("1", 4), ("2", 3), ("11", 5)) for b in (32, 32768)]
    folder = None
    for name, lines in {
        "placements_aws_t4": [gz, *near],
        "scalability_aws_t4": [
            "app,num_nodes,num_replicas,local_bsz,step_time,sync_time",
            "ncf,6,6,32,9,1",
        ],
        "statistical_efficiency": [
            "app,global_bsz,epoch,progress,iteration,metric,grad_sqr,grad_var",
            "ncf,256,1,100,100,0,1,1",
            "ncf,512,1,100,50,0,1,1",
        ],
        "workloads": [
            "set,seed,name,time,application,num_replicas,batch_size",
            "workloads,1,late,50,ncf,1,32768",
            "workloads,1,early,5,ncf,1,32768",
            "workloads,2,other,5,ncf,1,32768",
        ],
    }.items():
        plain = write(*lines, name=f"{name}.csv")
        folder = plain.parent
        (folder / f"{name}.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    (folder / "app_constants.json").write_text(json.dumps({"ncf": {"max_epochs": 1}, "_": "note"}))
    return folder


def test_pollux_jobs_of_a_tiny_folder(pollux_folder):
    """Work = 100 steps x B0 = 256 samples; ncf stays on one GPU with its batch; 30-s restarts."""
    instance = read_pollux(pollux_folder, seed=1)
    assert jobs_of(instance) == [("early", 5, 1, 25_600), ("late", 50, 1, 25_600)]
    job, profile = instance.jobs[0], instance.profiles["ncf"]
    assert (job.min_gpus, job.max_gpus, job.batch) == (1, 1, 32_768)
    assert profile.batches == ()
    assert (profile.base_batch, profile.max_local_batch) == (256, 16_384)
    assert instance.curves["ncf"].scale == ((256.0,) * 4,)
    assert (instance.costs.start_s, instance.costs.restart_s) == (30, 30)
    assert (instance.cadence.period_s, instance.cadence.on_event) == (60, True)
    assert list(problems(instance)) == []


def test_pollux_workloads_that_are_not_there(pollux_folder):
    """The error lists those that are."""
    with pytest.raises(InputError, match="workloads/1, workloads/2"):
        read_pollux(pollux_folder, seed=9)


def test_pollux_files_that_are_broken(pollux_folder):
    """A bad placement, an application without measurements, and no constants."""
    path = pollux_folder / "placements_aws_t4.csv.gz"
    good = path.read_bytes()
    path.write_bytes(gzip.compress(gzip.decompress(good).replace(b"ncf,11,", b"ncf,1x,")))
    with pytest.raises(InputError, match="row 6, placement"):
        read_pollux(pollux_folder)
    path.write_bytes(gzip.compress(gzip.decompress(good).replace(b"ncf,", b"bert,")))
    (pollux_folder / "scalability_aws_t4.csv.gz").write_bytes(
        gzip.compress(b"app,num_nodes,num_replicas,local_bsz,step_time,sync_time\nbert,6,6,4,1,0\n")
    )
    with pytest.raises(InputError, match="no measurements of 'ncf'"):
        read_pollux(pollux_folder)
    (pollux_folder / "app_constants.json").write_text("{")
    with pytest.raises(InputError, match=r"app_constants\.json"):
        read_pollux(pollux_folder)


@real
def test_real_helios_slice():
    """1,452 jobs of vcvGl and 415 of vcvlY; the header's comments do not shift the rows."""
    path = DATA / "helios" / "helios_venus_2vc_sept.csv"
    instance = read_helios(path, nodes={"vcvGl": 20, "vcvlY": 2}, filters=Filters(start_s=0))
    assert Counter(j.partition for j in instance.jobs) == {"vcvGl": 1452, "vcvlY": 415}
    assert instance.jobs[0].submit_s == 5835.0
    assert list(problems(instance)) == []


@real
def test_real_venus_agrees_with_the_slice():
    """Arrival 14,414,301 s after 2020-04-01 is in September: the slice's jobs are in both files."""
    whole = read_helios(DATA / "helios_venus" / "venus_jobs_canonical.csv.gz", nodes=200)
    assert len(whole.jobs) == 101_574
    cut = read_helios(DATA / "helios" / "helios_venus_2vc_sept.csv", nodes=22)
    known = {j.id: j.gpus for j in whole.jobs}
    assert all(known[j.id] == j.gpus for j in cut.jobs)
    quotas = DATA / "helios" / "Venus_cluster_gpu_number.csv"
    nodes = helios.vc_nodes(quotas, date(2020, 9, 10))
    assert (nodes["vcvGl"], nodes["vcvlY"], nodes["vcJsw"]) == (20, 2, 32)


@real
def test_real_philly_and_itp():
    """73,279 rows in all; the Pollux filters leave what a plain count leaves."""
    path = DATA / "philly" / "jobs_canonical.csv.gz"
    nodes = philly.vc_nodes(DATA / "philly" / "philly_vc.csv")
    assert sum(nodes.values()) == 352
    raw = pd.read_csv(path)
    long = (raw.duration_s >= 60) & (raw.num_gpus * raw.duration_s < 3.6e6)
    late = raw.submit_s >= 21 * 86_400
    assert len(raw) == 73_279
    instance = read_philly(path, nodes=400)
    assert len(instance.jobs) == int((long & late).sum())
    assert len(read_philly(path, nodes=nodes).jobs) < len(instance.jobs)
    annotated = DATA / "ms_itp2021" / "elasticflow_annotated.csv.gz"
    testbed = read_itp(annotated, cluster="195job")
    assert Counter(j.gpus for j in testbed.jobs) == {1: 118, 4: 45, 8: 28, 16: 3, 2: 1}
    assert all(j.deadline_s > j.submit_s for j in testbed.jobs)


@real
def test_real_columns_are_text_until_checked():
    """Ids such as 01-00000 and placements such as 11 must not become numbers."""
    frame = read_columns(DATA / "ms_itp2021" / "jobs_canonical.csv.gz", {"job_id": ("job_id",)})
    assert frame.job_id.iloc[0] == "01-00000"


def test_ones_users_ask_for_the_batch_of_one_gpu_or_of_all():
    """The same jobs: BERT on 2 GPUs with 16 x 2 or 16, all else equal."""
    scaled, base = (ones_workload(20, 1, user_batch=batch) for batch in ("scaled", "base"))
    for one, other in zip(scaled.jobs, base.jobs, strict=True):
        profile = scaled.profiles[one.profile]
        assert other.batch == profile.base_batch
        assert one.batch == min(one.gpus * profile.base_batch, profile.batches[-1])
        assert one.truth == other.truth


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"nodes": 3}, "nodes: found 12 GPUs; expected 16"),
        ({"user_batch": "big"}, "user_batch: found 'big'"),
    ],
)
def test_ones_workloads_that_cannot_be(fields, place):
    """The requests must fit into the cluster, and the batch must be a known one."""
    with pytest.raises(InputError, match=place):
        ones_workload(20, **fields)
