"""What a controller remembers, and its audit log: both outlive a kill at any moment.

Slurm knows nearly everything itself. What it forgets, or what ronda has changed, is written down
*before* a command is given: a kill in between leaves a note of something that has not happened,
which does no harm, and never a change that nobody remembers.
"""

import fcntl
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ronda.hosts.slurm.commands import SlurmCommand
from ronda.hosts.slurm.sizes import PastSizes
from ronda.hosts.slurm.tools import SlurmAnswer
from ronda.instances.base import NonNegative, Record
from ronda.instances.errors import InputError
from ronda.instances.files.json import parse
from ronda.instances.files.storage import label, naming, read_bytes, write_bytes
from ronda.instances.snapshots.snapshot import SeenJob

OWN_S = 60.0
"""How far a begin time may be from the one that was noted and still be ronda's own, in seconds."""

AGAIN_S = 900.0
"""The longest wait, in seconds, that Slurm itself may give to a job which was requeued."""

SAVED = "state.json"


class TouchedJob(Record, frozen=True, kw_only=True):
    """What is remembered of a job.

    Attributes
    ----------
    submit_s
        When it was first submitted (a requeue makes Slurm forget it).
    priority
        Its priority before ronda changed it, or None.
    begins_s
        The begin time that ronda gave it, or None.
    nodes, chosen_s
        The nodes that ronda has ever chosen for it, and when it last did.
    requeued_s
        When ronda last stopped it, or None.
    done_s
        Work that its earlier runs have done, in seconds at speed 1.
    work_s
        Work that its owner's time limit allows, in seconds at speed 1, if ronda has changed the
        limit; else None.
    refused_s
        When Slurm last refused a command about it, or None.
    """

    submit_s: NonNegative = 0.0
    priority: float | None = None
    begins_s: float | None = None
    nodes: tuple[str, ...] = ()
    chosen_s: float = 0.0
    requeued_s: float | None = None
    done_s: NonNegative = 0.0
    work_s: float | None = None
    refused_s: float | None = None

    def delays(self, job: SeenJob) -> bool:
        """Return whether a job waits for a begin time that comes from ronda."""
        begins_s = job.eligible_s or 0.0
        if self.begins_s is not None and abs(begins_s - self.begins_s) <= OWN_S:
            return True
        own = self.requeued_s is not None and job.submit_s >= self.requeued_s - OWN_S
        return own and begins_s <= job.submit_s + AGAIN_S

    def ends(self, job: SeenJob) -> bool:
        """Return whether a job that ronda has stopped still holds its nodes."""
        return bool(job.on) and (self.requeued_s or 0.0) > (job.start_s or 0.0)

    def chose(self, job: SeenJob) -> bool:
        """Return whether the nodes that a waiting job asks for come from ronda."""
        return bool(job.nodes) and {*job.nodes} <= {*self.nodes}

    def spoilt(self, job: SeenJob) -> bool:
        """Return whether Slurm holds a job that can never run on the nodes that ronda chose."""
        return job.reason == "BadConstraints" and self.chose(job)


class SlurmState(Record, frozen=True, kw_only=True):
    """What is remembered of a cluster.

    Attributes
    ----------
    jobs
        Of its live jobs.
    sizes
        Sizes of jobs that have ended.
    plan
        The memory of the policy's last plan.
    band
        The lowest and the highest priority that ronda gives.
    given_s
        When commands were given in the last minute.
    """

    jobs: dict[str, TouchedJob] = {}
    sizes: PastSizes = PastSizes()
    plan: dict[str, Any] = {}
    band: tuple[int, int] | None = None
    given_s: tuple[float, ...] = ()

    def of(self, job: SeenJob) -> TouchedJob:
        """Return what is remembered of a job: nothing of another one that had its id.

        Only a requeue gives a job a new submit time.
        """
        found = self.jobs.get(job.id)
        same = found is not None and (found.submit_s == job.submit_s or job.restarts > 0)
        return found if found and same else TouchedJob(submit_s=job.submit_s)

    def recent(self, now_s: float) -> tuple[float, ...]:
        """Return when commands were given in the last minute; a time ahead is of another clock."""
        return tuple(at_s for at_s in self.given_s if now_s - 60 < at_s <= now_s)


def remembered(folder: Path) -> SlurmState:
    """Return what the controller of a folder remembers: nothing if it has never run."""
    saved = folder / SAVED
    if not saved.exists():
        return SlurmState()
    return parse(read_bytes(saved), label(saved), SlurmState)


class Diary:
    """The folder of a controller: what it remembers, its audit log, and a lock.

    Raises
    ------
    InputError
        If another controller works with the folder, or if the folder cannot be used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with naming(folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            self._log = open(folder / "audit.jsonl", "ab+")  # noqa: SIM115
            try:
                fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                found = "a folder that another controller works with"
                raise InputError(
                    label(folder), found, "one controller, or another --state"
                ) from None
            if self._log.seek(0, os.SEEK_END):
                self._log.seek(-1, os.SEEK_END)
                self._log.write(b"" if self._log.read() == b"\n" else b"\n")  # after a kill
        self.state = remembered(folder)

    def keep(self, state: SlurmState) -> None:
        """Remember a state; it is on disk when this returns."""
        if state != self.state:
            write_bytes(self.folder / SAVED, msgspec.json.encode(state))
            self.state = state

    def ask(self, command: SlurmCommand) -> None:
        """Write down that a command is about to be given."""
        self._write({"command": command.line, "reason": command.reason})

    def answer(self, command: SlurmCommand, answer: SlurmAnswer) -> None:
        """Write down what Slurm answered."""
        said = {"said": answer.said} if answer.said else {}
        self._write({"command": command.line, "status": answer.status, **said})

    def say(self, words: str) -> None:
        """Write down something else that has happened."""
        self._write({"event": words})

    def _write(self, fields: Mapping[str, object]) -> None:
        now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        with naming(self.folder):
            self._log.write(msgspec.json.encode({"time": now, **fields}) + b"\n")
            self._log.flush()
