"""The programs of Slurm that ronda runs: those that show a cluster, and ``scontrol``."""

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ronda.hosts.clusters.read import Text, read_texts
from ronda.hosts.clusters.slurm.amounts import moment
from ronda.hosts.slurm.commands import SlurmCommand
from ronda.instances.errors import InputError, RondaError, printable, short
from ronda.instances.snapshots.snapshot import Snapshot

NEEDED = (("squeue", "--all", "--json"), ("sinfo", "--all", "--json"))
MORE = (
    ("scontrol", "show", "partition", "-o"),
    ("scontrol", "show", "reservation", "-o"),
    ("scontrol", "show", "licenses"),
    ("scontrol", "show", "assoc_mgr"),
)
"""What else is read, where a Slurm has it: limits of partitions, outages, licences, accounts."""

READ_S, GIVE_S = 60.0, 30.0
"""Seconds after which a program that shows the cluster, or a command, is given up."""


class SlurmAwayError(RondaError):
    """Slurm does not answer, or shows a state that contradicts itself."""


class _Errors(msgspec.Struct):
    errors: list[object] = []


class SlurmAnswer(NamedTuple):
    """The answer of Slurm to a command: its exit status, and what it said."""

    status: int
    said: str


class SlurmTools:
    """The programs of the Slurm that ``SLURM_CONF`` names, or of this machine.

    Attributes
    ----------
    began_s
        When its slurmctld was started, as of the last reading.
    ages
        Whether it works out priorities as jobs age, unless somebody has set them.
    """

    began_s, ages = 0.0, False

    def read(self) -> Snapshot:
        """Return the cluster as it is now.

        Raises
        ------
        InputError
            If Slurm's programs are not installed.
        SlurmAwayError
            If Slurm does not answer, or if what it shows contradicts itself.
        """
        config = self._run(("scontrol", "show", "config"), READ_S)
        began = re.search(
            r"^BOOT_TIME\s*=\s*(\S+)", config.stdout.decode(errors="replace"), re.MULTILINE
        )
        began_s = None if began is None else moment(began[1])
        if began_s is None:
            raise SlurmAwayError(f"scontrol show config: {_words(config)}")
        self.began_s, self.ages = began_s, b"priority/multifactor" in config.stdout
        texts, silent = [], []
        for words in (*NEEDED, *MORE):
            found = self._run(words, READ_S)
            told = _words(found) if found.returncode else ""
            if words in NEEDED and (told := told or _errors(found.stdout)):
                raise SlurmAwayError(f"{' '.join(words)}: {told}")
            if found.returncode == 0 and found.stdout.strip():
                texts.append(Text(" ".join(words), found.stdout))
            else:
                silent.append(" ".join(words))
        try:
            seen = read_texts("slurm", texts, time.time())
            for each in silent:
                seen.noted.add("program of Slurm that shows nothing, its rules left out", each)
            return seen
        except InputError as error:
            raise SlurmAwayError(str(error)) from None

    def give(self, command: SlurmCommand) -> SlurmAnswer:
        """Give a command, and return what Slurm said."""
        try:
            found = self._run(("scontrol", *command.words), GIVE_S)
        except SlurmAwayError as error:
            return SlurmAnswer(-1, str(error))
        return SlurmAnswer(found.returncode, _words(found) if found.returncode else "")

    def _run(self, words: Sequence[str], most_s: float) -> "subprocess.CompletedProcess[bytes]":
        if (path := shutil.which(words[0])) is None:
            raise InputError(words[0], "no such program", "Slurm's client programs in the PATH")
        try:
            return subprocess.run(
                [path, *words[1:]],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=_environment(),
                timeout=most_s,
                check=False,
                start_new_session=True,  # a signal that stops ronda does not reach it
            )
        except subprocess.TimeoutExpired:
            raise SlurmAwayError(f"{' '.join(words)}: no answer in {most_s:g} s") from None
        except OSError as error:
            raise SlurmAwayError(f"{' '.join(words)}: {error.strerror}") from None


def _environment() -> dict[str, str]:
    """Return the environment without what narrows or changes the output of Slurm's programs."""
    own = ("SQUEUE_", "SINFO_", "SCONTROL_", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(own)}
    return kept | {"SLURM_BITSTR_LEN": "0"}  # all tasks of arrays


def _errors(text: bytes) -> str:
    """Return the errors in a JSON document, which lists no jobs if slurmctld does not answer."""
    try:
        errors = msgspec.json.decode(text, type=_Errors).errors
    except msgspec.DecodeError as error:
        return str(error)
    return printable(short("; ".join(map(str, errors)), 300))


def _words(found: "subprocess.CompletedProcess[bytes]") -> str:
    text = (found.stderr or found.stdout).decode(errors="replace")
    words = "; ".join(line.strip() for line in text.splitlines() if line.strip())
    return printable(short(words, 300)) or f"exit status {found.returncode}"
