"""``export`` of schedules; models of rounds are tested with ``solve``."""

import csv
import gzip
import json
import shutil

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from ronda.cli.app import cli
from ronda.instances.files.json import read, write


@pytest.fixture(scope="module")
def a_run(tmp_path_factory, two_nodes):
    """A folder of ``ronda run``."""
    folder = tmp_path_factory.mktemp("run")
    write(two_nodes, folder / "two-nodes.json")
    words = ("run", folder / "two-nodes.json", "--policy", "fifo", "--out", folder / "ran")
    assert CliRunner().invoke(cli, list(map(str, words))).exit_code == 0
    return folder / "ran"


@pytest.fixture
def ran(folder, a_run):
    """A folder of ``ronda run`` beside the instance."""
    shutil.copytree(a_run, folder / "ran")
    return folder


def test_the_suffix_says_the_format(ran, ronda):
    """From the folder of a run or its file; --format tells the two tables apart."""
    for file in ("trace.json", "trace.json.gz", "jobs.csv", "log.swf"):
        done = ronda("export", "two-nodes.json", "ran", "--out", file)
        assert (done.exit_code, done.stdout) == (0, f"{file}: 3 jobs, 3 allocations\n")
    trace = json.loads((ran / "trace.json").read_text())
    assert (
        gzip.decompress((ran / "trace.json.gz").read_bytes()) == (ran / "trace.json").read_bytes()
    )
    assert sum(event["ph"] == "X" for event in trace["traceEvents"]) == 2 + 8 + 1
    assert (ran / "log.swf").read_text().startswith("; Version: 2.2\n")
    words = ("ran/schedule.json.zst", "--format", "batsim", "--out", "batsim.csv", "--json")
    done = ronda("export", "two-nodes.json", *words)
    assert json.loads(done.stdout) == {
        "out": "batsim.csv",
        "instance": "two-nodes",
        "policy": "fifo",
        "jobs": 3,
        "allocations": 3,
    }
    heads = [next(csv.reader((ran / f).open()))[0] for f in ("jobs.csv", "batsim.csv")]
    assert heads == ["id", "job_id"]


BAD = [
    ("two-nodes.json ran --out x.png", "x.png: found another suffix; expected a name that ends in"),
    ("two-nodes.json ran --out x.json --format swf", "a name that ends in .swf"),
    ("two-nodes.json ran --out x.json.zst", ".json or .json.gz or .csv or .swf"),
    (
        "two-nodes.json . --out x.swf",
        "a folder without a schedule; expected one of `ronda run",
    ),
    ("two-nodes.json gone --out x.swf", "gone: found no such file"),
    (
        "two-nodes.json round.json --out x.swf",
        "a round; expected a schedule of two-nodes.json",
    ),
    ("round.json ran --out x.swf", "found a round; expected an instance"),
    ("pollux-1 ran --out x.swf", "found a schedule of another instance (two-nodes)"),
    ("two-nodes.json broken.json --out x.swf", "that breaks 3 rules: end: "),
    ("two-nodes.json ran --out x.swf --policy fifo", "--policy: found a schedule"),
    ("round.json --out x.lp --format csv", "--format: found no schedule"),
    ("two-nodes.json ran --out no/x.swf", "no folder"),
]


@pytest.mark.parametrize(("words", "said"), BAD)
def test_bad_input_is_one_line_and_nothing_is_written(words, said, ran, ronda):
    """Exit code 2; place, what was found, what was expected."""
    schedule = read(ran / "ran" / "schedule.json.zst")
    write(replace(schedule, end_s=schedule.end_s + 1.0), ran / "broken.json")
    before = {path.name for path in ran.iterdir()}
    done = ronda("export", *words.split())
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert {path.name for path in ran.iterdir()} == before


def test_an_existing_file_stays_without_force(ran, ronda):
    """And is replaced with it."""
    (ran / "log.swf").write_text("mine")
    assert ronda("export", "two-nodes.json", "ran", "--out", "log.swf").exit_code == 2
    assert (ran / "log.swf").read_text() == "mine"
    assert ronda("export", "two-nodes.json", "ran", "--out", "log.swf", "--force").exit_code == 0
    assert (ran / "log.swf").read_text() != "mine"


def test_an_exact_model_says_what_each_variable_is(folder, ronda):
    """The head has a line for each way of a job: where it stays, and what it runs at."""
    done = ronda("export", "round.json", "--policy", "milp(placement=exact)", "--out", "m.lp")
    assert done.exit_code == 0, done.output
    head = [line for line in (folder / "m.lp").read_text().splitlines() if line.startswith("\\ ")]
    assert "x(i): job, pool, GPUs, clock, batch, the rack if tied to it, if it stays" in head[4]
    ways = [line for line in head if line.startswith("\\ x(0): ")]
    assert [way.split(", ")[1:3] for way in ways] == [["0", "1"]]
    assert any(line.endswith(", stays") for line in head)
