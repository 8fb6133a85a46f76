"""Any table of jobs: mappings, units, dates, and what is dropped and why."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from ronda.instances.errors import InputError
from ronda.instances.traces.mapped import NAMED, columns_of, read_mapped
from ronda.instances.traces.rigid import V100_NODE
from ronda.instances.traces.table import ALL

PLAIN = "submit=t,gpus=n,duration=d"

SACCT = """\
JobID|User|Partition|Submit|Start|End|State|AllocTRES
101|ann|gpu|2024-03-31T01:30:00|2024-03-31T03:10:00|2024-03-31T04:10:00|COMPLETED|cpu=8,gres/gpu=2
101.batch|||2024-03-31T01:30:00|2024-03-31T03:10:00|2024-03-31T04:10:00|COMPLETED|gres/gpu=2
102|bob|gpu|2024-03-31T03:30:00|2024-03-31T03:40:00|2024-03-31T03:45:00|CANCELLED|gres/gpu:a100=4
103|bob|cpu|2024-03-31T03:30:00|2024-03-31T03:40:00|2024-03-31T03:45:00|COMPLETED|billing=8,cpu=8
104|bob|gpu|2024-03-31T03:31:00|Unknown|Unknown|PENDING|
105|bob|gpu|2024-03-31T03:31:00|None|2024-03-31T03:45:00|CANCELLED by 7|gres/gpu=1
"""

SWF = """\
; Version: 2.2
  1  0 10 3600 64 -1 -1 64 7200 -1 1 3 1 1 1 -1 -1 -1
  2 60  0   -1  4 -1 -1  4 7200 -1 5 3 1 1 1 -1 -1 -1
  3 100 5   60  2 -1 -1  2   60 -1 1 4 1 1 1 -1 -1 -1
"""


def read(tmp_path, text, mapping, name="jobs.csv", **more):
    """Return what a table becomes, on 64 GPUs if nothing else is said."""
    path = tmp_path / name
    path.write_text(text)
    given = {"nodes": 8} | more
    return read_mapped(path, columns_of(mapping), machine=V100_NODE, **given)


def jobs(found):
    """Return (id, submission, GPUs, seconds) of each job."""
    return [(j.id, j.submit_s, j.gpus, j.truth.work) for j in found.instance.jobs]


def test_slurm(tmp_path):
    """Steps, CPU jobs, and those that never ran are dropped; clocks go forward that night."""
    found = read(tmp_path, SACCT, "sacct")
    assert jobs(found) == [("101", 0.0, 2, 3600.0), ("102", 7200.0, 4, 300.0)]
    assert [j.user for j in found.instance.jobs] == ["ann", "bob"]
    reasons = {
        "no id of its own, or a step of a job": 1,
        "another state": 1,
        "no GPUs": 1,
        "no run time": 1,
    }
    assert found.dropped == reasons
    berlin = msgspec.structs.replace(NAMED["sacct"], zone="Europe/Berlin")
    there = read_mapped(tmp_path / "jobs.csv", berlin, machine=V100_NODE, nodes=8)
    assert jobs(there)[1][1] == 3600.0  # from 1:30 to 3:30 it was one hour


def test_standard_workload_format(tmp_path):
    """Processors are GPUs; a run time of -1 is none."""
    found = read(tmp_path, SWF, "swf", "log.swf")
    assert jobs(found) == [("1", 0.0, 64, 3600.0), ("3", 100.0, 2, 60.0)]
    assert found.dropped == {"no run time": 1}


def test_units_and_offsets(tmp_path):
    """Milliseconds; and dates that say how far from Greenwich they are."""
    found = read(tmp_path, "t,n,d\n1000,1,5000\n3000,2,500\n", f"{PLAIN},unit=ms")
    assert jobs(found) == [("0", 0.0, 1, 5.0), ("1", 2.0, 2, 0.5)]
    dated = "t,n,d\n2024-01-01T00:00:00+01:00,1,5\n2023-12-31T23:00:30Z,1,5\n"
    assert [submit for _, submit, _, _ in jobs(read(tmp_path, dated, PLAIN))] == [0.0, 30.0]


def test_every_row_is_a_job_or_counted(tmp_path):
    """The reasons add up to the rows that are missing."""
    rows = ["0,1,9", "1,x,9", "2,0.5,9", "3,0,9", "x,1,9", "4,1,", "5,1,-3", "6,100,9", "7,2,1"]
    filters = replace(ALL, min_duration_s=2.0, end_s=1e6)
    found = read(tmp_path, "t,n,d\n" + "\n".join(rows) + "\n", PLAIN, filters=filters)
    assert len(found.instance.jobs) + sum(found.dropped.values()) == len(rows)
    assert found.dropped["no run time"] == 2
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
        (PLAIN, "t,n,d\nx,1,1\n", "no time in t"),
        (PLAIN, "", "No columns"),
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
    (tmp_path / "odd.json").write_text('{"submit": 3}')
    with pytest.raises(InputError, match="mapping"):
        columns_of("odd.json")
