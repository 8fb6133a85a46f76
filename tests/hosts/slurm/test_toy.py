"""The toy cluster itself: it starts, and leaves nothing behind."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tools import toy_slurm

ROOT = Path(__file__).parents[3]


def left(folder):
    """Return the processes whose environment names a folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(folder).encode() in entry.read_bytes() and int(entry.parts[2]) != os.getpid():
                found.append(entry.parts[2])
        except OSError:
            pass  # it has just ended
    return found


def test_nothing_is_left_of_a_cluster_whose_owner_is_killed(toy, tmp_path):
    """Daemons, steps and jobs end, also one that ignores signals; another cluster goes on."""
    program = (
        "import sys; from pathlib import Path; from tools.toy_slurm import toy_slurm\n"
        "with toy_slurm(Path(sys.argv[1]), nodes=1) as toy:\n"
        "    job = toy.submit(command='trap \"\" TERM; touch begun; sleep 600; sleep 600')\n"
        "    toy.wait((toy.folder / 'begun').exists)\n"
        "    print('up', flush=True); sys.stdin.read()\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "own")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, cwd=ROOT, **pipes) as owner:
        assert owner.stdout.readline() == b"up\n"
        assert len(left(tmp_path / "own")) >= 7  # munged, 2 of slurmctld, slurmd, step, job, watch
        owner.send_signal(signal.SIGKILL)
    toy.wait(lambda: not left(tmp_path / "own"))
    assert "is UP" in toy.run("scontrol", "ping").stdout


def test_a_reader_brings_a_cluster_up_and_down(toy, tmp_path):
    """The commands of the docs; a setting that Slurm refuses is told in one line."""

    def tool(command, *words):
        said = [sys.executable, "-m", "tools.toy_slurm", command, str(tmp_path / "own"), *words]
        return subprocess.run(said, cwd=ROOT, capture_output=True, text=True)

    assert tool("up", "--nodes", "2", "--gpus", "4", "--set", "SlurmdTimeout=30").returncode == 0
    asked = tool("env").stdout + "sinfo --noheader --Node --format '%N %G %T'"
    shown = subprocess.run(["sh", "-c", asked], capture_output=True, text=True, env=toy.env)
    assert shown.stdout == "n1 gpu:a100:4 idle\nn2 gpu:a100:4 idle\n"
    assert tool("down").returncode == 0
    assert left(tmp_path / "own") == []
    wrong = tool("up", "--set", "Colour=red")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    assert "unrecognized key: Colour" in wrong.stderr
    assert left(tmp_path / "own") == []


def test_what_is_missing_is_told_in_one_line(monkeypatch):
    """A test that is skipped says why."""
    monkeypatch.setattr(toy_slurm, "PROGRAMS", ("sh", "no-such-program"))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert toy_slurm.missing() == (
        "a toy Slurm needs no-such-program of Debian's packages slurm-wlm and munge"
    )
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "needs root" in toy_slurm.missing()
