"""The commands of tools, as functions."""

from typing import NamedTuple

import pytest

from lab.program import run_program
from tools import versions
from tools.registry.__main__ import command


class Ended(NamedTuple):
    """How a command ended, and what it printed."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self):
        """All that it printed."""
        return self.stdout + self.stderr


@pytest.fixture
def program(monkeypatch, capsys):
    """Return a command as a function of its words, on a wide terminal."""
    monkeypatch.setenv("COLUMNS", "200")

    def made(command):
        def call(*words):
            code = run_program(command, "tool", [str(word) for word in words])
            return Ended(code, *capsys.readouterr())

        return call

    return made


@pytest.fixture
def registry(program):
    """``python -m tools.registry`` in this process."""
    return program(command)


@pytest.fixture
def by_version(program):
    """``python -m tools.versions`` in this process."""
    return program(versions.command)
