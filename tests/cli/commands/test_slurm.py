"""``ronda slurm``: a dry run of files, as text and JSON, and words that contradict each other."""

import json
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "data" / "slurm"
FILES = tuple(str(DATA / name) for name in ("squeue.json", "sinfo.json"))


def test_a_dry_run_of_files(folder, ronda):
    """Steps, reasons and commands are the same for readers and programs; nothing is written."""
    before = {*folder.iterdir()}
    told = json.loads(ronda("slurm", *FILES, "--policy", "sjf", "--json").stdout)
    text = ronda("slurm", *FILES, "--policy", "sjf").stdout
    assert (told["act"], told["in_scope"]) == (False, 0)
    assert "No job is in its scope" in " ".join(text.split())
    partitions = sorted(
        {job["partition"] for job in json.loads(Path(FILES[0]).read_text())["jobs"]}
    )
    words = [word for name in partitions for word in ("--partition", name)]
    told = json.loads(ronda("slurm", *FILES, "--policy", "sjf", *words, "--json").stdout)
    shown = ronda("slurm", *FILES, "--policy", "sjf", *words).stdout
    lines = [command["line"] for step in told["steps"] for command in step["commands"]]
    assert lines
    assert all(line in shown for line in lines)
    assert {line.split("=")[-2].split()[-1] for line in lines} == {"Priority"}
    assert {*folder.iterdir()} == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--act"], "--act: found no --state"),
        (["--act", "--state", "s", *FILES], "--act: found FILES"),
        (["--interval", "200"], "--interval: found 200 s; expected at most a third of --lease-s"),
        (["--sizes", "limits", "--history", "log.txt"], "--history: found --sizes limits"),
        (["--policy", "nobody", *FILES], "nobody"),
        (["--lease-s", "0", *FILES], "--lease-s"),
        (["none.json", *FILES], "none.json"),
    ],
)
def test_words_that_contradict_each_other(folder, ronda, words, said):
    """One line says so before any work, and nothing is left behind."""
    before = {*folder.iterdir()}
    done = ronda("slurm", *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert {*folder.iterdir()} == before
