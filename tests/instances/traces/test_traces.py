"""Readers of public traces: what they keep, and how they refuse."""

import gzip

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ronda.instances.errors import InputError
from ronda.instances.rules.validate import problems
from ronda.instances.traces.columns import ALL, Dropped, Filters
from ronda.instances.traces.published import read_helios, read_itp, read_philly
from ronda.instances.traces.table import clean_jobs

HEADER = "job_id,submit_s,num_gpus,duration_s,vc,user,status"


def test_jobs_come_in_order_of_submission_and_ties_keep_the_file_s_order(write, jobs_of):
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


def test_cpu_jobs_are_left_out(write, jobs_of):
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
        ("b,1,1,1e-320,,,", "duration_s", "9.99989e-321"),
        ("b,1,1,1e300,,,", "duration_s", "1e+300"),
        ("b,1e300,1,5,,,", "submit_s", "1e+300"),
        ("b,1,1e300,5,,,", "num_gpus", "1e+300"),
        ("a,1,1,5,,,", "job_id", "'a'"),
        (",1,1,5,,,", "job_id", "''"),
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


def test_rows_that_are_left_out_are_counted_by_reason(write):
    """With the jobs they are all rows; a row counts once, for the first reason."""
    rows = ("a,0,1,59,x,,", "b,1,0,59,y,,", "c,2,0,59,x,,", "d,3,1,1,x,,", "e,4,2,70,x,,")
    dropped = Dropped()
    keep = Filters(min_duration_s=2, max_duration_s=60)
    instance = read_helios(write(HEADER, *rows), nodes={"x": 1}, filters=keep, dropped=dropped)
    assert [j.id for j in instance.jobs] == ["a"]
    assert dropped == {
        "another virtual cluster": 1,
        "no GPUs": 1,
        "a run time outside the limits": 2,
    }


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
        (b"a,b\n1,2\n1,2,3\n", "row 3: found 3 cells; expected 2, as in the header"),
        (gzip.compress(b"x" * 999)[:20], "end too early"),
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
    with pytest.raises(InputError, match="no such file"):
        read_philly(tmp_path / "none.csv", nodes=1)
    with pytest.raises(InputError, match="directory"):
        read_philly(tmp_path, nodes=1)


def test_an_unknown_virtual_cluster_is_answered_with_the_known_ones(write):
    """Nothing is left, so the error lists what there is."""
    with pytest.raises(InputError, match=r"\['x', 'y'\]"):
        read_helios(write(HEADER, "a,0,1,5,x,,", "b,1,1,5,y,,"), nodes={"q": 1})


def test_the_three_forms_of_helios_are_the_same_jobs(write, jobs_of):
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


def test_a_deadline_before_the_submission_is_refused(write):
    """Times are held against each other."""
    path = write("cluster,submission_time,deadline,num_gpu,duration", "c1,1000,900,1,600")
    with pytest.raises(InputError, match="row 2, deadline: found '900'; expected a time after"):
        read_itp(path, cluster="c1", nodes=1)


def test_itp_without_clusters_is_refused(write):
    """The column that tells the cluster is needed."""
    with pytest.raises(InputError, match="'vc' or 'cluster'"):
        read_itp(write("job_id,submit_s,num_gpus,duration_s", "a,0,1,5"), cluster="c1")
