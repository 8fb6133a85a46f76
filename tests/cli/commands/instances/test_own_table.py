"""``ronda instances convert table --cluster``: a table of jobs on machines of its own."""

import json
import re
import shlex
from pathlib import Path

import pytest

from ronda.instances.files.json import read

TABLE = ("instances", "convert", "table")
JOBS = range(40)
PAGE = Path(__file__).parents[4] / "docs" / "own_table.md"


@pytest.fixture
def page(tmp_path, monkeypatch):
    """Return the text of the page, with its files in the working directory."""
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    for name, inside in re.findall(r"```(?:csv|json) (\S+)\n(.*?)```", text, re.DOTALL):
        Path(name).write_text(inside)
    return text


def test_commands_of_the_page_run(page, ronda):
    """In order, each after the files above it; they make two rounds and three instances."""
    count = 0
    for name, inside in re.findall(r"```(?:csv |json |sh)(\S*)\n(.*?)```", page, re.DOTALL):
        if name:
            Path(name).write_text(inside)
        for line in inside.splitlines() if not name else ():
            done = ronda(*shlex.split(line)[1:])
            assert done.exit_code == 0, done.output
            count += 1
    assert count == 11
    first = read("queue.json").jobs[0]
    assert (first.weight, first.deadline_s) == (2.0, 10800.0)
    profiles = read("elastic.json").profiles.values()
    assert {type(t).__name__ for p in profiles for t in p.throughput.values()} == {"Tabular"}
    assert len(read("elastic-round.json").waiting) == 3


def test_forty_jobs_on_three_types(page, ronda):
    """Priorities, minutes for one column and seconds for another, an own room of three types."""
    kinds = ("", "blue", "red/blue", "green")
    rows = [f"j{k},{1 + k % 3},{2.5 * k},{600 + k},{2 ** (k % 3)},{kinds[k % 4]}" for k in JOBS]
    Path("forty.csv").write_text("job,prio,min,s,n,kinds\n" + "\n".join(rows) + "\n")
    mapping = "id=job,weight=prio,submit=min,submit_unit=min,duration=s,gpus=n,gpu_types=kinds"
    made = (*TABLE, "forty.csv", "--map", mapping, "--cluster", "room.json")
    done = ronda(*made, "--round", "--out", "round.json", "--json")
    assert json.loads(done.stdout.splitlines()[-1])["jobs"] == 40
    assert ronda(*made, "--out", "forty.json").exit_code == 0
    waiting = read("round.json").waiting
    assert [s.job.weight for s in waiting] == [1.0 + k % 3 for k in JOBS]
    assert [s.job.submit_s for s in waiting] == [150.0 * k for k in JOBS]
    assert [s.job.estimate.work for s in waiting] == [600.0 + k for k in JOBS]
    assert [j.id for j in read("forty.json").jobs] == [s.job.id for s in waiting]


def test_energy_is_not_known_without_busy_watts(page, ronda):
    """A run says so, and what was assumed; there is no frontier of energies."""
    mapping = "id=job,submit=asked_min,gpus=gpus,duration=run_s"
    made = ronda(*TABLE, "queue.csv", "--map", mapping, "--cluster", "room.json", "--out", "q.json")
    notes = ("sizes: true run times", "restarts: 7 s on 1 GPU", "energy: not known")
    assert all(note in made.stderr for note in notes)
    done = ronda("run", "q.json", "--policy", "fifo")
    assert re.search(r"energy +–", done.stdout)
    assert all(note in done.stdout for note in notes)
    told = json.loads(ronda("run", "q.json", "--policy", "fifo", "--json").stdout.splitlines()[-1])
    assert told["energy_j"] is None
    assert re.search(r"limits\);\s+restarts", ronda("instances", "show", "q.json").stdout)
    round_ = ("--cluster", "room.json", "--round", "--out", "r.json")
    assert ronda(*TABLE, "queue.csv", "--map", mapping, *round_).exit_code == 0
    assert re.search(r"net-1 .* –\n", ronda("solve", "r.json", "--policy", "fifo").stdout)
    refused = ronda("frontier", "q.json", "--policies", "fifo", "--out", "f")
    assert (refused.exit_code, Path("f").exists()) == (2, False)
    assert "found no watts of busy GPUs" in refused.stderr


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--round",), "--round: found no --cluster"),
        (("--rates", "rates.csv"), "--rates: found no --cluster"),
        (("--cluster", "room.json", "--nodes", "3"), "--nodes: found --cluster as well"),
        (("--cluster", "room.json", "--load", "0.5"), "--load: found --cluster as well"),
        (("--cluster", "none.json"), "none.json: found no such file"),
        (("--cluster", "rates.csv"), "rates.csv, line 1 column 1"),
    ],
)
def test_odd_options_are_refused_and_nothing_is_written(page, ronda, more, said):
    """In one line, with exit code 2."""
    mapping = "id=job,submit=asked_min,gpus=gpus,duration=run_s"
    done = ronda(*TABLE, "queue.csv", "--map", mapping, *more, "--out", "x.json")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert said in done.stderr
    assert not Path("x.json").exists()


def test_fields_of_an_own_table_need_its_cluster(page, ronda):
    """A weight that nothing would read is refused."""
    mapping = "submit=asked_min,gpus=gpus,duration=run_s,weight=prio"
    done = ronda(*TABLE, "queue.csv", "--map", mapping, "--out", "x.json")
    assert done.exit_code == 2
    assert "weight: found 'prio', which does nothing; expected --cluster FILE too" in done.stderr
