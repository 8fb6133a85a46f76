"""What outlives a controller, and what becomes of it: kills, full disks, other clusters."""

import json
import os
import subprocess
import sys

import pytest

from ronda.hosts.slurm.commands import lease, ranks
from ronda.hosts.slurm.state import Diary, SlurmState, TouchedJob
from ronda.hosts.slurm.tools import SlurmAnswer
from ronda.instances.errors import InputError
from ronda.instances.snapshots.snapshot import SeenJob

NOW_S = 1e6


def seen(**more):
    """Return a waiting job."""
    return SeenJob(**{"id": "7", "submit_s": 9e5} | more)


def lines(folder):
    """Return the audit log, each line of which must be a JSON object."""
    return [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]


def test_a_state_is_found_again(tmp_path):
    """Another controller goes on with it; meanwhile the folder is one controller's alone."""
    state = SlurmState(jobs={"7": TouchedJob(submit_s=9e5, nodes=("n1",))}, given_s=(NOW_S,))
    first = Diary(tmp_path / "deep" / "drive")
    first.keep(state)
    with pytest.raises(InputError, match="a folder that another controller works with"):
        Diary(tmp_path / "deep" / "drive")
    os.close(first._lock)
    assert Diary(tmp_path / "deep" / "drive").state == state
    assert (tmp_path / "deep" / "drive").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "state.json: found an empty file"),
        (b'{"jobs": {"7": {"submit_s": 5', "state.json"),
        (b'{"jobs": {"7": {"submit_s": "x"}}}', 'state.json, jobs.7.submit_s: found "x"'),
        (b'{"jobs": {}, "later": 1}', "state.json: found unknown field"),
        (b"\xff\xfe", "state.json"),
    ],
)
def test_a_damaged_state_is_refused(tmp_path, text, words):
    """Nothing is done by half a memory: one line says where it is."""
    (tmp_path / "state.json").write_bytes(text)
    with pytest.raises(InputError) as error:
        Diary(tmp_path)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


def test_half_a_line_of_the_log_ends_at_the_next_start(tmp_path):
    """A kill, or a full disk, may leave half a line; what follows has lines of its own."""
    (tmp_path / "audit.jsonl").write_bytes(b'{"event": "whole"}\n{"comm')
    diary = Diary(tmp_path)
    diary.say("next")
    first, half, last = (tmp_path / "audit.jsonl").read_text().splitlines()
    assert (json.loads(first)["event"], half) == ("whole", '{"comm')
    assert json.loads(last)["event"] == "next"


def test_a_command_is_written_down_before_and_after(tmp_path):
    """Reason and answer stand there, and hostile words as JSON on one line."""
    diary = Diary(tmp_path)
    (made,) = ranks(["7", "8"], 5, "prices\nstarts \x1b[31m them.")
    diary.ask(made)
    diary.answer(made, SlurmAnswer(1, "Invalid\u202e job"))
    asked, answered = lines(tmp_path)
    assert asked["command"] == "scontrol update JobId=7,8 Priority=5"
    assert asked["reason"].startswith("prices\nstarts")
    assert (answered["status"], answered["said"]) == (1, "Invalid\u202e job")
    assert b"\x1b" not in (tmp_path / "audit.jsonl").read_bytes()


def test_no_command_without_its_line(tmp_path):
    """On a full disk, the command is not even asked."""
    (tmp_path / "audit.jsonl").symlink_to("/dev/full")
    with pytest.raises(InputError, match="No space left on device"):
        Diary(tmp_path).ask(lease("7", 300, "why"))


@pytest.mark.parametrize("where", ["/proc/ronda", "file/drive"])
def test_a_folder_that_cannot_be_used(tmp_path, where):
    """One line, exit code 2, before anything is read."""
    (tmp_path / "file").write_text("")
    words = ["slurm", "--act", "--once", "--state", where]
    found = subprocess.run(
        [sys.executable, "-m", "ronda", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert found.returncode == 2
    assert found.stderr.count("\n") == 1
    assert where in found.stderr


@pytest.mark.parametrize(
    ("job", "same"),
    [
        (seen(), True),
        (seen(submit_s=9e5 + 1), False),
        (seen(submit_s=9.5e5, restarts=1), True),
        (seen(id="8"), False),
    ],
)
def test_a_memory_is_of_the_same_job(job, same):
    """An ID comes again, on another cluster or after a new start: only a requeue changes a job."""
    state = SlurmState(jobs={"7": TouchedJob(submit_s=9e5, priority=5.0, nodes=("n1",))})
    assert (state.of(job).priority == 5.0) is same
    assert state.of(job).submit_s == (9e5 if same else job.submit_s)


@pytest.mark.parametrize(
    ("memory", "job", "own"),
    [
        ({"begins_s": NOW_S}, {"eligible_s": NOW_S + 30}, True),
        ({"begins_s": NOW_S}, {"eligible_s": NOW_S + 300}, False),
        ({"requeued_s": 9e5}, {"submit_s": 9e5 + 5, "eligible_s": 9e5 + 126}, True),
        ({"requeued_s": 9e5}, {"submit_s": 9e5 + 5, "eligible_s": 9e5 + 86_400}, False),
        ({"requeued_s": 9e5}, {"submit_s": 8e5, "eligible_s": 9e5 + 126}, False),
        ({}, {"eligible_s": NOW_S}, False),
    ],
)
def test_begin_times_of_owners_are_told_from_leases(memory, job, own):
    """A begin time far from what ronda or a requeue set is the owner's, and stays."""
    assert TouchedJob(**memory).delays(seen(**job)) is own


def test_a_clock_that_has_jumped_back_does_not_stop_commands():
    """Times of the last minute count, times ahead do not."""
    state = SlurmState(given_s=(NOW_S - 61, NOW_S - 59, NOW_S, NOW_S + 1e5))
    assert state.recent(NOW_S) == (NOW_S - 59, NOW_S)
