"""A table of jobs on a cluster of its own: what cells say, and how odd ones are refused."""

import pytest

from ronda.instances.cluster import Cluster, GpuType, NodeGroup, Partition
from ronda.instances.errors import InputError
from ronda.instances.files.json import read, write
from ronda.instances.models.configuration import Configuration
from ronda.instances.models.throughput import samples_per_s
from ronda.instances.rules.validate import validate
from ronda.instances.traces.columns import Filters, columns_of
from ronda.instances.traces.own import as_round, read_cluster, read_own, read_rates

KINDS = ("red", "blue", "green")
ROOM = Cluster(
    gpu_types=tuple(GpuType(name=name, memory_gib=40) for name in KINDS),
    node_groups=(
        NodeGroup(name="r", count=2, gpus_per_node=8, gpu_type="red"),
        NodeGroup(name="b", count=1, gpus_per_node=4, gpu_type="blue"),
        NodeGroup(name="g", count=1, gpus_per_node=2, gpu_type="green", partition="gold"),
    ),
    partitions=(Partition(name="gold"),),
)
MAP = "id=id,submit=t,submit_unit=min,gpus=n,duration=d"
RATES = "profile,gpu_type,gpus,rate\nnet,red,1,10\nnet,red,2,18\nnet,blue,2,30\nnet,blue,4,50\n"


def own(tmp_path, text, mapping=MAP, rates=None, **more):
    """Return what a table becomes."""
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    if rates is not None:
        (tmp_path / "rates.csv").write_text(rates)
        more["rates"] = read_rates(tmp_path / "rates.csv", ROOM)
    return read_own(path, columns_of(mapping), ROOM, **more)


def test_each_column_says_its_field(tmp_path):
    """Minutes for one column and seconds for another; empty cells say nothing."""
    text = (
        "id,t,n,d,w,due,k,stop,vc,who\n"
        "b,3,2,60,2.5,8,red/blue,no,,ann\n"
        "a,1,1,90,,,,yes,gold,\n"
        "c,4,8,10,1,,red,,,\n"
    )
    mapping = f"{MAP},weight=w,deadline=due,deadline_unit=min,gpu_types=k,preemptible=stop,vc=vc"
    a, b, c = own(tmp_path, text, f"{mapping},user=who").instance.jobs
    assert [job.id for job in (a, b, c)] == ["a", "b", "c"]  # in order of submission
    assert [job.submit_s for job in (a, b, c)] == [0.0, 120.0, 180.0]
    assert [job.truth.work for job in (a, b, c)] == [90.0, 60.0, 10.0]
    assert (a.weight, b.weight) == (1.0, 2.5)
    assert (a.deadline_s, b.deadline_s) == (None, 420.0)  # minute 8, from minute 1 on
    assert (a.gpu_types, b.gpu_types) == ((), ("red", "blue"))
    assert (a.partition, b.partition) == ("gold", "default")
    assert [job.preemptible for job in (a, b, c)] == [True, False, True]
    assert (a.user, b.user) == (None, "ann")


def test_rates_become_tabular_profiles(tmp_path):
    """Speeds are those measured; jobs may have each number of GPUs that has a row."""
    text = "id,t,n,m,w\na,0,2,net,600\nb,1,4,net,\n"
    mapping = "id=id,submit=t,gpus=n,profile=m,work=w"
    found = own(tmp_path, text, mapping, RATES, sized=False).instance
    profile = found.profiles["net"]
    assert float(samples_per_s(profile, "red", Configuration(2, 1, 1.0))) == pytest.approx(18.0)
    assert float(samples_per_s(profile, "blue", Configuration(4, 1, 1.0))) == pytest.approx(50.0)
    a, b = found.jobs
    assert (a.min_gpus, a.gpus, a.max_gpus) == (1, 2, 4)
    assert (a.estimate.work, b.estimate) == (600.0, None)


def test_a_run_time_is_work_at_the_speed_of_the_fastest_type(tmp_path):
    """60 s on 2 GPUs: 30 a second on blue ones; 18 where only red ones may be used."""
    text = "id,t,n,d,m,k\na,0,2,60,net,\nb,0,2,60,net,red\n"
    jobs = own(tmp_path, text, f"{MAP},profile=m,gpu_types=k", RATES).instance.jobs
    assert [job.truth.work for job in jobs] == pytest.approx([1800.0, 1080.0])


def test_rates_may_be_a_jobs_own(tmp_path):
    """Without a column of profiles a job's id names its rates; those on more nodes are told."""
    rates = "job,gpu_type,gpus,nodes,rate\na,red,8,,10\na,red,8,2,8\n"
    found = own(tmp_path, "id,t,n,d\na,0,8,60\n", MAP, rates).instance
    assert found.jobs[0].profile == "a"
    speeds = [
        float(samples_per_s(found.profiles["a"], "red", Configuration(8, nodes, 1.0)))
        for nodes in (1, 2)
    ]
    assert speeds == pytest.approx([10.0, 8.0])


def test_the_round_shows_no_truth_and_is_valid(tmp_path):
    """All jobs wait at the last submission; both documents are in order."""
    found = own(tmp_path, "id,t,n,d\na,1,1,60\nb,3,2,90\n").instance
    round_ = as_round(validate(found))
    validate(round_)
    assert round_.now_s == 120.0
    assert [(s.job.id, s.since_s, s.job.truth) for s in round_.waiting] == [
        ("a", 0.0, None),
        ("b", 120.0, None),
    ]
    write(round_, tmp_path / "round.json")
    assert read(tmp_path / "round.json") == round_


def test_a_round_needs_no_sizes(tmp_path):
    """An instance does, and says what is missing."""
    mapping = "id=id,submit=t,gpus=n"
    jobs = own(tmp_path, "id,t,n\na,1,1\n", mapping, sized=False).instance.jobs
    assert jobs[0].estimate is None
    with pytest.raises(InputError, match=r"duration: found no run time; .* or work=COLUMN"):
        own(tmp_path, "id,t,n\na,1,1\n", mapping)


def test_what_is_no_job_of_now_is_counted(tmp_path):
    """Rows without GPUs, and those beyond the filters."""
    text = "id,t,n,d\na,1,1,60\nb,1,0,60\nc,1,1,5\n"
    found = own(tmp_path, text, filters=Filters(min_duration_s=10))
    assert [job.id for job in found.instance.jobs] == ["a"]
    assert found.dropped == {"no GPUs": 1, "a run time outside the limits": 1}


FULL = f"{MAP},weight=w,gpu_types=k,vc=p,deadline=due,preemptible=s"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("b,x,1,60,1,red,,,", "row 3, t: found 'x'; expected a time"),
        ("b,1,2.5,60,1,red,,,", "row 3, n: found '2.5'; expected a whole number of GPUs"),
        ("b,1,64,60,1,red,,,", "row 3, n: found 64; expected at most 16"),
        ("b,1,1,-3,1,red,,,", "row 3, d: found '-3'; expected a run time"),
        ("b,1,1,,1,red,,,", "row 3, d: found ''; expected a run time"),
        ("b,1,1,60,high,red,,,", "row 3, w: found 'high'; expected a number above 0"),
        ("b,1,1,60,-1,red,,,", "row 3, w: found '-1'; expected a number above 0"),
        ("b,1,1,60,1,violet,,,", 'row 3, k: found "violet"; expected one of "blue"'),
        ("b,1,1,60,1,green,,,", "row 3, n: found 1 GPUs but no pool that the job may use"),
        ("b,1,1,60,1,red,lead,,", 'row 3, p: found "lead"; expected one of "default", "gold"'),
        ("b,1,1,60,1,red,,30,", "row 3, due: found '30'; expected a time after the submission"),
        ("b,1,1,60,1,red,,soon,", "row 3, due: found 'soon'; expected a time: a number, or a date"),
        ("b,1,1,60,1,red,,,maybe", "row 3, s: found 'maybe'; expected yes or no"),
        ("a,1,1,60,1,red,,,", 'row 3, id: found "a"; expected unique ids: row 2 has it too'),
    ],
)
def test_an_odd_cell_is_refused_by_row_and_column(tmp_path, row, said):
    """In one line; the row before it is in order."""
    with pytest.raises(InputError) as refused:
        own(tmp_path, f"id,t,n,d,w,k,p,due,s\na,0,1,60,1,red,,,\n{row}\n", FULL)
    assert said in str(refused.value)
    assert str(refused.value).startswith(str(tmp_path / "jobs.csv"))


@pytest.mark.parametrize(
    ("rates", "said"),
    [
        ("net,red,2,fast", "row 3, rate: found 'fast'; expected a finite number"),
        ("net,red,2,0", "row 3, rate: found '0'; expected a number above 0"),
        ("net,rot,2,1", "row 3, gpu_type: found 'rot'; expected one of"),
        ("net,red,0.5,1", "row 3, gpus: found 0.5; expected a whole number"),
        ("net,red,1,9", "row 3, gpus: found 1; expected each number of GPUs and nodes once"),
        (",red,2,1", "row 3, profile: found ''; expected a name"),
    ],
)
def test_odd_rates_are_refused_by_row_and_column(tmp_path, rates, said):
    """As the cells of jobs."""
    with pytest.raises(InputError) as refused:
        own(tmp_path, "id,t,n,d\n", MAP, f"profile,gpu_type,gpus,rate\nnet,red,1,10\n{rates}\n")
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("a,0,8,60,net", "row 2, n: found '8'; expected a number that the rates of"),
        ("a,0,2,60,nit", "row 2, m: found 'nit'; expected a name that has rates: \"net\""),
    ],
)
def test_a_job_without_rates_for_it_is_refused(tmp_path, job, said):
    """What it asks for has a row, of a profile that is there."""
    with pytest.raises(InputError) as refused:
        own(tmp_path, f"id,t,n,d,m\n{job}\n", f"{MAP},profile=m", RATES)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"gpu_types": [', "line 1 column 16"),
        ('{"gpu_types": [], "nodes": 3}', '"nodes"'),
        (
            '{"gpu_types": [{"name": "a", "memory_gib": 1}], "node_groups": '
            '[{"name": "g", "count": 1, "gpus_per_node": 1, "gpu_type": "b"}]}',
            'cluster.node_groups[0].gpu_type: found "b"; expected "a"',
        ),
    ],
)
def test_an_odd_cluster_is_refused(tmp_path, text, said):
    """By file and place."""
    path = tmp_path / "room.json"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_cluster(path)
    assert said in str(refused.value)
    assert "room.json" in str(refused.value)


def test_all_odd_cells_are_refused_at_once(tmp_path):
    """Of rows that tell no GPUs or times; then of those that name what there is not."""
    head = "id,t,n,d,w,due,k,p,s\n"
    with pytest.raises(InputError) as refused:
        own(tmp_path, f"{head}a,x,1,60,,,,,\nb,1,1.5,60,,,,,\nc,1,1,,,,,,\n", FULL)
    said = str(refused.value)
    assert "3 problems: row 2, t: found 'x', expected a time" in said
    assert "row 3, n: found '1.5', expected a whole number of GPUs; row 4, d: found ''" in said
    with pytest.raises(InputError) as refused:
        own(tmp_path, f"{head}a,1,1,60,-1,,,,\nb,1,64,60,,,red,,\nc,1,1,60,,,,lead,\n", FULL)
    said = str(refused.value)
    assert "3 problems: row 2, w: found '-1', expected a number above 0; row 4, p: found" in said
    assert "row 3, n: found 64, expected at most 16, its largest pool" in said
    assert "\n" not in said


LOG = """\
id|part|t|b|e|s|n
7|default|0|60|120|NODE_FAIL|gres/gpu:red=8
7|default|0|180|240|COMPLETED|gres/gpu:red=8
9|default|2|60|120|FAILED|gres/gpu:pink=2
10|default|3||60|CANCELLED|gres/gpu=4
11|default|3|||CANCELLED|
12|gold|4|60|120|COMPLETED|gres/gpu=2
13|lead|4|60|120|COMPLETED|gres/gpu=2
14|gold|5|60|120|COMPLETED|gres/gpu=4
15|default|6|||PENDING|gres/gpu=4
"""


def test_of_a_log_what_cannot_be_a_job_is_counted(tmp_path):
    """What says how jobs ended is a log: of a row that never ran, or fits nowhere, one is shown."""
    mapping = "id=id,submit=t,start=b,end=e,gpus=n,vc=part,separator=|"
    found = own(tmp_path, LOG, f"{mapping},state=s,states=COMPLETED/FAILED/NODE_FAIL/CANCELLED")
    assert [(j.id, j.partition, j.gpu_types, j.gpus) for j in found.instance.jobs] == [
        ("7", "default", ("red",), 8),
        ("7#2", "default", ("red",), 8),
        ("9", "default", (), 2),
        ("12", "gold", (), 2),
    ]
    assert found.dropped == {
        "another state: PENDING": 1,
        "no number of GPUs in n": 1,
        "no run time": 1,
        'part is not one of "default", "gold"': 1,
        'n is not at most 2, its largest pool in partition "gold"': 1,
    }
    assert found.dropped.examples["no run time"] == "row 5"
    assert found.rows == 9
    assert found.notes[1] == "jobs by GPU types that the cluster does not have: pink 1"
    validate(found.instance)


def test_partitions_are_those_of_node_groups_where_none_are_listed(tmp_path):
    """A list would say nothing more."""
    path = tmp_path / "room.json"
    path.write_text(
        '{"gpu_types": [{"name": "a", "memory_gib": 1}], "node_groups": [{"name": "g", "count": 1, '
        '"gpus_per_node": 1, "gpu_type": "a", "partition": "p"}]}'
    )
    assert read_cluster(path).partitions == (Partition(name="p"),)
