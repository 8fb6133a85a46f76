"""Any table of jobs: mappings, units, dates, and what is dropped and why."""

from dataclasses import replace

import numpy as np
import pytest

from ronda.instances.errors import InputError
from ronda.instances.traces.columns import ALL, columns_of
from ronda.instances.traces.mapped import read_mapped
from ronda.instances.traces.rigid import V100_NODE

PLAIN = "submit=t,gpus=n,duration=d"


def read(tmp_path, text, mapping, name="jobs.csv", **more):
    """Return what a table becomes, on 64 GPUs if nothing else is said."""
    path = tmp_path / name
    path.write_text(text)
    given = {"nodes": 8} | more
    return read_mapped(path, columns_of(mapping), machine=V100_NODE, **given)


def jobs(found):
    """Return (id, submission, GPUs, seconds) of each job."""
    return [(j.id, j.submit_s, j.gpus, j.truth.work) for j in found.instance.jobs]


def test_units_and_offsets(tmp_path):
    """Milliseconds; and dates that say how far from Greenwich they are."""
    found = read(tmp_path, "t,n,d\n1000,1,5000\n3000,2,500\n", f"{PLAIN},unit=ms")
    assert jobs(found) == [("0", 0.0, 1, 5.0), ("1", 2.0, 2, 0.5)]
    dated = "t,n,d\n2024-01-01T00:00:00+01:00,1,5\n2023-12-31T23:00:30Z,1,5\n"
    assert [submit for _, submit, _, _ in jobs(read(tmp_path, dated, PLAIN))] == [0.0, 30.0]


def test_every_row_is_a_job_or_counted(tmp_path):
    """The reasons add up to the rows that are missing."""
    rows = ["0,1,9", "1,,9", "2,0.5,9", "3,0,9", "NA,1,9", "4,1,", "5,1,-3", "6,100,9", "7,2,1"]
    filters = replace(ALL, min_duration_s=2.0, end_s=1e6)
    found = read(tmp_path, "t,n,d\n" + "\n".join(rows) + "\n", PLAIN, filters=filters)
    assert len(found.instance.jobs) + sum(found.dropped.values()) == len(rows)
    assert found.dropped["no run time"] == 2
    assert found.dropped.examples["no run time"] == "row 7"
    assert found.dropped["more than 64 GPUs"] == 1
    assert found.dropped["a run time outside the limits"] == 1


def test_a_cluster_of_a_load(tmp_path):
    """As few nodes as make the load at most what is asked for, but the widest job must fit."""
    rng = np.random.default_rng(1)
    lines = [f"{60 * k},{rng.integers(1, 9)},{rng.integers(60, 6000)}" for k in range(500)]
    text = "t,n,d\n" + "\n".join(lines) + "\n"
    for share in (0.5, 0.9):
        found = read(tmp_path, text, PLAIN, nodes=None, share=share)
        assert found.load == pytest.approx(share, rel=0.1)
    lone = read(tmp_path, "t,n,d\n0,20,1\n9999,1,1\n", PLAIN, nodes=None, share=0.9)
    assert lone.instance.cluster.gpus == 24


@pytest.mark.parametrize(
    ("mapping", "text", "found"),
    [
        ("submit=t,gpus=n", "t,n\n1,1\n", "duration=COLUMN"),
        ("submit=t,gpus=g,duration=d", "t,n,d\n1,1,1\n", "column 'g'"),
        ("submit=t", "t\n1\n", "gpus"),
        ("submit=t,gpus=n,duration=d,colour=c", "t,n,d\n1,1,1\n", "colour"),
        (f"{PLAIN},unit=y", "t,n,d\n1,1,1\n", "'y'"),
        (f"{PLAIN},zone=Mars", "t,n,d\n2024-01-01,1,1\n", "Mars"),
        (PLAIN, "t,n,d\nx,1,1\n", "row 2, t: found 'x', and 1 of 1 rows"),
        (PLAIN, "t,n,d\n,1,1\n", "1 with no time in t \\(row 2\\)"),
        (f"{PLAIN},user=", "t,n,d\n1,1,1\n", "'user='; expected a column, or nothing for one"),
        (f"{PLAIN},optional=x", "t,n,d\n1,1,1\n", "optional: found x"),
        (PLAIN, "", "an empty file"),
        (PLAIN, "t,n,d,n\n1,1,1,2\n", "2 columns 'n'; expected one"),
        (PLAIN, "t,n,d\n1,1,1,7\n", "row 2: found 4 cells; expected 3"),
        (PLAIN, "t,n,d\n1,1,1\n2024-01-01,1,1\n", "1 numbers and 1 dates"),
        (PLAIN, "t,n,d,gpu_milli\n1,1,1,500\n", "share=gpu_milli,whole=1000"),
        (
            f"{PLAIN},vc=v",
            "t,n,d,v\n1,1,1,a\n",
            "'v', which does nothing; expected vc=COLUMN and",
        ),
        (f"{PLAIN},state=s", "t,n,d,s\n1,1,1,a\n", "state=COLUMN and states=A/B"),
        (f"{PLAIN},states=a", "t,n,d\n1,1,1\n", "state=COLUMN and states=A/B"),
        (f"{PLAIN},end_unit=ms", "t,n,d\n1,1,1\n", "a unit of no column; expected end=COLUMN"),
        (f"{PLAIN},colour=w", "t,n,d,w\n1,1,1,1\n", "'colour=w'.*of submit, gpus, requested"),
        (f"{PLAIN},weight=w", "t,n,d,w\n1,1,1,1\n", "weight: found 'w', which does nothing"),
        (f"{PLAIN},submit=u", "t,n,d\n1,1,1\n", "submit twice"),
        (f"{PLAIN},whole=x", "t,n,d\n1,1,1\n", "whole: found 'x'"),
        (f"{PLAIN},separator=||", "t,n,d\n1,1,1\n", "separator: found"),
    ],
)
def test_what_cannot_be_read_is_refused_in_one_line(tmp_path, mapping, text, found):
    """Whether the mapping or the table is wrong."""
    with pytest.raises(InputError, match=found) as caught:
        read(tmp_path, text, mapping)
    assert "\n" not in str(caught.value)


def test_a_mapping_is_kept_in_a_file(tmp_path, monkeypatch):
    """What is not a mapping is refused."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "map.json").write_text('{"submit": "t", "gpus": "n", "duration": "d", "unit": "h"}')
    assert columns_of("map.json") == columns_of(f"{PLAIN},unit=h")
    (tmp_path / "odd.json").write_text('{"submit": "t", "gpus": "n", "colour": "w"}')
    with pytest.raises(InputError, match=r"`colour`; expected a mapping.*of submit, gpus, "):
        columns_of("odd.json")


def test_an_id_may_hold_a_dot_and_not_be_empty(tmp_path):
    """It is a text as any other."""
    found = read(tmp_path, "t,n,d,i\n0,1,9,a.0\n1,1,9,a.1\n2,1,9,\n", f"{PLAIN},id=i")
    assert [j.id for j in found.instance.jobs] == ["a.0", "a.1"]
    assert found.dropped == {"no id": 1}


def test_shares_of_a_gpu_are_counted_and_not_whole_ones(tmp_path):
    """Two halves are no GPU; a column of GPUs may count in hundredths."""
    text = "t,n,d,gpu_milli\n0,8,9,1000\n1,1,9,460\n2,2,9,500\n3,0,9,0\n4,1,9,\n5,1,9,2000\n"
    found = read(tmp_path, text, f"{PLAIN},share=gpu_milli,whole=1000")
    assert jobs(found) == [("0", 0.0, 8, 9.0)]
    no = "no share of a GPU in gpu_milli"
    assert found.dropped == {"no GPUs": 1, no: 2, "a part of a GPU": 2}
    found = read(tmp_path, "t,n,d\n0,25,9\n1,200,9\n", f"{PLAIN},whole=100")
    assert jobs(found) == [("1", 0.0, 2, 9.0)]
    assert found.dropped == {"a part of a GPU": 1}


def test_no_cell_decides_for_its_column(tmp_path):
    """Of many dates and a number the number is none, and the other way round; zones are cells'."""
    days = ("2024-01-01T00:00:00", "2024-01-01T00:00:00-01:00", "2024-01-01T02:00:00Z", "17")
    rest = "".join(f"2024-01-02 00:{k // 60:02}:{k % 60:02},1,5\n" for k in range(97))
    found = read(tmp_path, "t,n,d\n" + "".join(f"{day},1,5\n" for day in days) + rest, PLAIN)
    assert [submit for _, submit, _, _ in jobs(found)][:3] == [0.0, 3600.0, 7200.0]
    assert found.dropped == {"a cell that cannot be read": 1}
    assert found.dropped.examples == {"a cell that cannot be read": "row 5, t: '17'"}
    rest = "".join(f"{k},1,01:00:00\n" for k in range(6, 105))
    found = read(tmp_path, "t,n,d\n5,1,5\n2024-01-01,1,5\n" + rest, PLAIN)
    assert jobs(found)[:2] == [("0", 0.0, 1, 5.0), ("2", 1.0, 1, 3600.0)]


def test_each_column_has_its_unit(tmp_path):
    """Submitted in milliseconds, run for minutes, started and ended in seconds."""
    mapping = "submit=s,gpus=n,duration=d,start=b,end=e,submit_unit=ms,duration_unit=min"
    found = read(tmp_path, "s,n,d,b,e\n1000,1,2,3,123\n61000,1,1,61,121\n", mapping)
    assert jobs(found) == [("0", 0.0, 1, 120.0), ("1", 60.0, 1, 60.0)]


def test_times_that_contradict_each_other_are_no_times(tmp_path):
    """Rounding may set them a second, or a hundredth of the run time, apart."""
    rows = {
        "10,50,60,10.4": "",  # rounded
        "10,9.5,60,50.5": "",
        "10,5,60,55": "a start before the submission",
        "10,60,50,": "an end before the start",
        "10,50,60,100": "a run time that is not from start to end",
        "10,,60,55": "a run time longer than from submission to end",
    }
    text = "s,b,e,d,n\n" + "".join(f"{row},1\n" for row in rows)
    found = read(tmp_path, text, "submit=s,start=b,end=e,duration=d,gpus=n")
    assert [run_s for _, _, _, run_s in jobs(found)] == [10.4, 50.5]
    assert found.dropped == {why: 1 for why in rows.values() if why}


def test_virtual_clusters_become_partitions(tmp_path):
    """With nodes by name; others are dropped, as are jobs larger than their own."""
    text = "t,n,d,v\n0,8,9,a\n1,9,9,a\n2,9,9,b\n3,1,9,c\n"
    found = read(tmp_path, text, f"{PLAIN},vc=v", nodes={"a": 1, "b": 2})
    assert [(j.id, j.partition) for j in found.instance.jobs] == [("0", "a"), ("2", "b")]
    assert found.dropped == {"another virtual cluster": 1, "more GPUs than its cluster has": 1}
    with pytest.raises(InputError, match="no column; expected vc=COLUMN"):
        read(tmp_path, text, PLAIN, nodes={"a": 1})


@pytest.mark.parametrize("odd", ["1e300", "-1e300", "inf", "nan", "1e17", "x", ""])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_one_odd_number_changes_no_other_job(tmp_path, odd, column):
    """Its row is dropped, and its cluster is that of the others."""
    row = ["2", "1", "9"]
    row[column] = odd
    rest = "".join(f"{900 + 100 * k},1,1\n" for k in range(97))
    text = f"t,n,d\n1,2,9\n{','.join(row)}\n5,4,7\n{rest}"
    found = read(tmp_path, text, PLAIN, nodes=None)
    assert jobs(found)[:2] == [("0", 0.0, 2, 9.0), ("2", 4.0, 4, 7.0)]
    assert (found.dropped.total(), found.instance.cluster.gpus) == (1, 8)


def test_a_job_that_no_cluster_could_hold_is_named(tmp_path):
    """One row asks for 4e9 GPU-seconds in a second: 2,000 times more GPUs than there may be."""
    with pytest.raises(InputError, match="row 3: found 1 GPUs for 4e\\+09 s; expected less, or"):
        read(tmp_path, "t,n,d\n0,1,9\n1,1,4e9\n", PLAIN, nodes=None)


def test_what_is_not_read_is_named(tmp_path):
    """A column may say what changes everything."""
    assert read(tmp_path, "t,n,d,e,f\n0,1,9,1,2\n", f"{PLAIN},user=e").unread == ("f",)


def estimates(found):
    """Return (seconds estimated, seconds run) of each job."""
    return [(j.estimate.work, j.truth.work) for j in found.instance.jobs]


def test_users_time_limits_are_the_estimates(tmp_path):
    """As Slurm writes them, too; who has none is as long as he was, and who was longer still is."""
    limits = {"01:00:00": 3600.0, "90:00": 5400.0, "2-12": 216000.0, "UNLIMITED": 60.0, "30": 30.0}
    text = "t,n,d,l\n" + "".join(f"{k},1,60,{limit}\n" for k, limit in enumerate(limits))
    found = read(tmp_path, text, f"{PLAIN},limit=l")
    assert estimates(found) == [(told, 60.0) for told in limits.values()]
    said = "sizes: users' time limits (l); of 1 jobs without one, true run times; 1 of 5"
    assert found.notes[0].startswith(said)
    assert found.instance.made["notes"] == list(found.notes)
    asked = read(tmp_path, text, PLAIN)
    assert estimates(asked) == [(60.0, 60.0)] * len(limits)
    assert asked.notes[0].startswith("sizes: true run times")


TWICE = """\
JobID|User|State|Submit|Start|End|AllocTRES|Elapsed
1|a|COMPLETED|2025-10-26T00:30:00|2025-10-26T01:50:00|2025-10-26T02:10:00|gres/gpu=8|01:20:00
2|a|COMPLETED|2025-10-26T00:31:00|2025-10-26T02:50:00|2025-10-26T02:20:00|gres/gpu=8|00:30:00
3|b|COMPLETED|2025-10-26T02:55:00|2025-10-26T02:05:00|2025-10-26T04:05:00|gres/gpu=8|02:00:00
4|b|COMPLETED|2025-10-26T00:40:00|2025-10-26T01:00:00|2025-10-26T04:00:00|gres/gpu=8|04:00:00
"""


def test_of_an_hour_that_comes_twice_run_time_and_order_decide(tmp_path):
    """Job 1 ends at the second 2:10, job 2 too ends in the second hour, job 3 starts in it."""
    mapping = "id=JobID,submit=Submit,start=Start,end=End,duration=Elapsed,gpus=AllocTRES"
    found = read(tmp_path, TWICE, f"{mapping},separator=|,zone=Europe/Berlin")
    # from 0:30 on: 0:31 is 1 minute, 0:40 10 minutes, the first 2:55 145 minutes later
    assert sorted(jobs(found)) == [
        *(("1", 0.0, 8, 4800.0), ("2", 60.0, 8, 1800.0)),
        *(("3", 8700.0, 8, 7200.0), ("4", 600.0, 8, 14400.0)),
    ]


def test_gpus_may_be_a_product(tmp_path):
    """Instances of a task times their share, in hundredths; a part that says nothing is no GPU."""
    rows = "10,50\n1,200\n4,100\n2,\n3,50\n"
    text = "".join(f"{k},9,{row}\n" for k, row in enumerate(rows.split()))
    named = "submit=t,duration=d,gpus=n*share/100"
    found = read(tmp_path, "t,d,n,share\n" + text, named)
    assert [gpus for _, _, gpus, _ in jobs(found)] == [5, 2, 4]
    assert found.dropped == {"no number of GPUs in n*share": 1, "a part of a GPU": 1}
    assert found.unread == ()
    bare = read(tmp_path, text, "header=none,submit=1,duration=2,gpus=3*4,whole=100")
    assert jobs(bare) == jobs(found)
    with pytest.raises(InputError, match="a column 'x'"):
        read(tmp_path, "t,d,n,share\n" + text, "submit=t,duration=d,gpus=n*x")
    starred = read(tmp_path, "t,d,a*b\n0,9,3\n", "submit=t,duration=d,gpus=a*b")
    assert jobs(starred) == [("0", 0.0, 3, 9.0)]
