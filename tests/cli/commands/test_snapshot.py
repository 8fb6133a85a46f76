"""``ronda snapshot``: a cluster from files in any order, and the round of it."""

import json
from pathlib import Path

from ronda.instances.files.json import read

DATA = Path(__file__).parents[2] / "data" / "slurm"
FILES = ("qos.txt", "sinfo.json", "reservations.txt", "squeue.json", "associations.txt")


def test_the_command(folder, ronda):
    """Sentences, tables and JSON with the same numbers, and a round that can be solved."""
    paths = [str(DATA / name) for name in FILES]
    done = ronda("snapshot", "--slurm", *paths, "--out", "cluster.json")
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "4 nodes, 1 of them out of service; 16 GPUs, 13 of them held." in text
    assert "8 jobs run, and 47 wait, 1 of which may not start yet; 4 tenants, 7 limits" in text
    assert "a round of 7 running and 45 waiting jobs" in text
    assert "2 × job without GPUs, left out, such as job 7" in done.stderr
    assert len(read(folder / "cluster.json").jobs) == 52
    fields = json.loads(ronda("snapshot", "--slurm", *paths, "--json").stdout)
    assert fields["gpu_types"] == [
        {"type": "a100", "nodes": 4, "gpus": 16.0, "held": 13.0, "free": 2.0, "out": 1.0}
    ]
    assert (fields["running"], fields["waiting"], fields["blocked"]) == (8, 47, 1)
    assert ronda("solve", "cluster.json", "--policy", "slurm-like").exit_code == 0


def test_what_cannot_be_read_is_one_line(folder, ronda):
    """No scheduler, half a file, a file that exists: exit code 2, and nothing is written."""
    (folder / "half.json").write_text('{"jobs": [')
    for words, told in (
        ((str(DATA / "squeue.json"),), "an option such as --slurm"),
        (("--slurm", "half.json"), "cut off"),
        (("--slurm", str(DATA / "squeue.json")), "no nodes"),
    ):
        done = ronda("snapshot", *words, "--out", "cluster.json")
        assert done.exit_code == 2
        assert told in done.stderr
        assert done.stderr.count("\n") == 1
    assert not (folder / "cluster.json").exists()
