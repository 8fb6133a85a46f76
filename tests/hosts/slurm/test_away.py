"""Programs of Slurm that hang, fail, or say what cannot be: doubles on the PATH show real outputs.

A real Slurm cannot be brought to do so on demand.
"""

import json
import os
import subprocess
import sys
import time

import pytest

from ronda.hosts.slurm import tools
from ronda.hosts.slurm.commands import lease
from ronda.hosts.slurm.tools import SlurmAwayError, SlurmTools
from ronda.instances.errors import InputError
from tests.hosts.clusters.slurm_documents import real

CONFIG = "BOOT_TIME               = 2026-11-25T08:00:00\nPriorityType = priority/basic\n"


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Return a function that makes a program of Slurm: what it prints, or a script."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def make(name, text=b"", script="exit 0"):
        (folder / f"{name}.out").write_bytes(text)
        (folder / name).write_text(f"#!/bin/sh\ncat {folder}/{name}.out\n{script}\n")
        (folder / name).chmod(0o755)

    make("squeue", document("squeue.json"))
    make("sinfo", document("sinfo.json"))
    shows = f'[ "$*" = "show config" ] && printf "{CONFIG}" && exit 0; exit 1'
    make("scontrol", script=shows.replace("\n", "\\n"))
    return make


def document(name, **more):
    """Return one of Slurm's documents, with other fields."""
    return json.dumps(real(name) | more).encode()


def away(within_s=3.0):
    """Return why Slurm counts as absent: one line, soon enough."""
    begin_s = time.monotonic()
    with pytest.raises(SlurmAwayError) as error:
        SlurmTools().read()
    assert time.monotonic() - begin_s < within_s
    assert str(error.value).isprintable()
    return str(error.value)


def test_what_programs_show_is_read(programs):
    """Those that fail and are not needed are counted by name."""
    seen = SlurmTools().read()
    assert len(seen.nodes) == 4
    assert seen.noted.examples["program of Slurm that shows nothing, its rules left out"]


@pytest.mark.parametrize("program", ["squeue", "sinfo", "scontrol"])
def test_a_program_that_hangs_is_given_up(programs, monkeypatch, program):
    """So is one whose own child hangs."""
    monkeypatch.setattr(tools, "READ_S", 0.2)
    programs(program, script="sleep 20")
    assert "no answer in 0.2 s" in away()


def test_a_command_that_hangs_has_failed(programs, monkeypatch):
    """Nobody knows whether Slurm has done it: it counts as refused."""
    monkeypatch.setattr(tools, "GIVE_S", 0.2)
    programs("scontrol", script="sleep 20")
    assert SlurmTools().give(lease("7", 300, "")) == (
        -1,
        "scontrol update JobId=7 StartTime=now+300: no answer in 0.2 s",
    )


@pytest.mark.parametrize(
    ("program", "text"),
    [
        ("squeue", b""),
        ("squeue", b'{"jobs": [{"job_id": 1'),
        ("squeue", b"\xff\xfe\x00"),
        ("squeue", b"<html>502 Bad Gateway</html>"),
        ("squeue", b'{"errors": [{"error": "Unspecified \\u001b[31m error"}], "jobs": []}'),
        ("squeue", b'{"jobs": [{"job_id": 1, "job_state": "\\u202eRUNNING"}]}'),
        ("squeue", b'{"jobs": [{"job_id": 1, "job_state": "RUNNING COMPLETED"}]}'),
        ("squeue", b'{"jobs": [{"name": "\\u001b[2J"}]}'),
        ("sinfo", b'{"nodes": []}'),
        ("sinfo", b'{"nodes": [{"name": "n1", "state": "idle down"}]}'),
    ],
)
def test_garbage_changes_nothing(programs, program, text):
    """One line says which program, and what of it."""
    programs(program, text)
    assert program in away()


def test_a_program_that_fails_says_why(programs):
    """Its own words are in the line, without what could steer a terminal."""
    programs("squeue", script="printf 'slurm_load_jobs error: \\033[31mgone\\n' >&2; exit 1")
    assert away() == "squeue --all --json: slurm_load_jobs error: \\x1b[31mgone"
    programs("scontrol", b"\xff\xff", "exit 1")
    assert "scontrol show config" in away()


def test_documents_of_two_moments_are_refused(programs):
    """A job on a node that is not there, a job twice, and a job of the future."""
    jobs, nodes = real("squeue.json")["jobs"], real("sinfo.json")["nodes"]
    programs("sinfo", document("sinfo.json", nodes=nodes[1:]))
    assert "which no file lists" in away()
    programs("sinfo", document("sinfo.json"))
    programs("squeue", document("squeue.json", jobs=[*jobs, jobs[0]]))
    assert "twice" in away()
    ahead = jobs[0] | {"submit_time": int(time.time()) + 3_600}
    programs("squeue", document("squeue.json", jobs=[ahead, *jobs[1:]]))
    assert "submitted or started after now" in away()


def test_no_programs_at_all(monkeypatch, tmp_path):
    """That is the operator's to mend: exit code 2."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="Slurm's client programs in the PATH"):
        SlurmTools().read()


def test_the_environment_narrows_nothing(programs, monkeypatch):
    """Variables that filter jobs, or name another cluster, do not reach the programs."""
    monkeypatch.setenv("SQUEUE_USERS", "ann")
    monkeypatch.setenv("SLURM_CLUSTERS", "other")
    monkeypatch.setenv("SLURM_CONF", "/etc/own.conf")
    programs("scontrol", script='env | grep -c "^SQUEUE_\\|^SLURM_CLUSTERS" >&2; env >&2; exit 1')
    said = SlurmTools().give(lease("7", 300, "")).said
    assert said.startswith("0;")
    assert "SLURM_CONF=/etc/own.conf" in SlurmTools()._run(("scontrol",), 9).stderr.decode()


def test_once_says_it_in_a_line(programs, tmp_path):
    """Exit code 1, and neither a trace nor a table."""
    programs("sinfo", b"{")
    found = subprocess.run(
        [sys.executable, "-m", "ronda", "slurm", "--once", "--act", "--state", "drive"],
        cwd=tmp_path,
        env=os.environ,
        capture_output=True,
        text=True,
    )
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (1, "", 1)
    assert "sinfo" in found.stderr
