"""``instances detect-sweeps``."""

import csv
import json

import pytest

HEAD = "job_id,submit_time,gpu_num,duration,user,vc,name\n"
LOG = HEAD + "".join(
    f"j{k},2020-09-01 00:0{k}:00,1,3600,ann,vc1,resnet_lr0.{k}\n" for k in range(4)
)
LOG += "j9,2020-09-02 00:00:00,4,3000,bob,vc1,gpt\n"


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """A working directory with a log, and some that cannot be read."""
    monkeypatch.chdir(tmp_path)
    texts = {
        "log": LOG,
        "bare": "job_id,submit_s,num_gpus,duration_s\n1,0,1,5\n2,10,1,5\n",
        "column": "job_id,submit_s,num_gpus\n1,0,1\n",
        "time": HEAD + "j,yesterday,1,5,a,b,c\n",
        "empty": HEAD,
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def test_detect(logs, ronda):
    """Four of five jobs: 4 of 7 1/3 GPU-hours, and each with its group."""
    done = ronda("instances", "detect-sweeps", "log.csv", "--out", "groups.csv")
    assert done.exit_code == 0, done.output
    assert "54.5 %" in done.stdout
    assert "46.2 %" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("log.csv: 4 of 5 jobs")
    assert not done.stderr
    with (logs / "groups.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["group"], row["job_id"]) for row in rows] == [("0", f"j{k}") for k in range(4)]


def test_for_programs(logs, ronda):
    """Options reach the search."""
    done = ronda("instances", "detect-sweeps", "log.csv", "--json", "--least", 5)
    found = json.loads(done.stdout)
    assert (found["jobs"], found["repetitive"], found["groups"]) == (5, 0, 0)
    done = ronda("instances", "detect-sweeps", "log.csv", "--json", "--gap", 30)
    assert json.loads(done.stdout)["repetitive"] == 0


def test_missing_columns_are_told(logs, ronda):
    """Without users and names too much may be found."""
    done = ronda("instances", "detect-sweeps", "bare.csv")
    assert done.exit_code == 0
    assert [line.partition(" in")[0] for line in done.stderr.splitlines()] == [
        "warning: no users",
        "warning: no names",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("missing.csv", "missing.csv"),
        ("column.csv", "'duration_s' or 'duration'"),
        ("time.csv", "row 2, submit_s: found 'yesterday'"),
        ("empty.csv", "no rows"),
        ("log.csv --gap 0", "--gap"),
        ("log.csv --least 1", "--least"),
        ("log.csv --similar 2", "--similar"),
        ("log.csv --out bare.csv", "--force"),
    ],
)
def test_bad_input(words, said, logs, ronda):
    """One line that says where, exit code 2."""
    done = ronda("instances", "detect-sweeps", *words.split())
    assert done.exit_code == 2, done.output
    assert said in done.stderr.strip().splitlines()[-1]
