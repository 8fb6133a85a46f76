"""``ronda instances audit``: text, fields and picture of a log, and its refusals."""

import json

import pytest

HEAD = "JobID|State|Submit|Start|End|AllocTRES|Partition|User|NodeList"
DAY = "2024-05-01T"
ROWS = [
    f"{k}|COMPLETED|{DAY}08:00:{k:02}|{DAY}{9 + k // 2:02}:00:00|{DAY}{10 + k // 2:02}:00:00"
    f"|gres/gpu:a100=4|main|ann|n1"
    for k in range(8)
]


@pytest.fixture
def log(folder):
    """A folder with a log of eight jobs that one node ran two at a time, and one double."""
    (folder / "log.txt").write_text("\n".join([HEAD, *ROWS, ROWS[0], ""]))
    return folder


def test_text_fields_and_picture(log, ronda):
    """All three tell of the same overload: 8 h of 4 GPUs, at 8 at once."""
    done = ronda("instances", "audit", "log.txt", "--picture", "log.png")
    assert done.exit_code == 0, done.output
    assert "log.txt: 9 rows, 8 jobs" in done.stdout
    assert "the same run once more" in done.stdout
    assert "overload of main: a100: whatever the scheduler does" in done.stdout
    assert (log / "log.png").stat().st_size > 10_000
    head = (log / "log.csv").read_text().splitlines()[0]
    assert head == "pool,time_s,wanted,behind_gpu_s"
    done = ronda("instances", "audit", "log.txt", "--cluster", "2x8", "--json")
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["kinds"]["doubles"] == 1
    (pool,) = told["pools"]
    assert (told["machines"], pool["gpus"], pool["jobs"], pool["most_held"]) == ("given", 16, 8, 8)
    # 32 GPUs are wanted for an hour and 16 are there, so that the last is done within two
    assert pool["overloads"][0]["end_s"] == pytest.approx(2 * 3600, abs=8)
    assert told["sample"] is None


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--cluster 2x8 --slurm nodes.txt", "--slurm: found --cluster as well"),
        ("--cluster 2x", "2x: found no such file"),
        ("--reader lines", "--reader: found 'lines'; expected one of sacct, swf, batsim, openb"),
        ("--reader submit=a", "--reader: found"),
        ("--reader philly --columns a,b", "--columns: found a log for the reader philly"),
        ("--since soon", "--since: found 'soon'"),
    ],
)
def test_a_refusal_is_one_line(log, ronda, words, found):
    """It names the option, and nothing is written."""
    done = ronda("instances", "audit", "log.txt", *words.split(), "--picture", "log.png")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert found in done.stderr
    assert not (log / "log.png").exists()
