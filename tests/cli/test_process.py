"""The process around the command line: Ctrl-C from its first line on, streams, full disks, -OO."""

import os
import resource
import signal
import subprocess
import sys

import pytest

from ronda.instances.files import json as files

MAIN = "from ronda.cli import main; main()"
INTERRUPTING = """
import os, signal, sys
from importlib.abc import MetaPathFinder

class Finder(MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {name!r}:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                if {masked}:
                    raise ImportError("as C has it")
                raise

sys.meta_path.insert(0, Finder())
"""


def python(*words, code=MAIN, options=(), **more):
    """Run the command line in a process that heeds Ctrl-C, even in the background."""
    return subprocess.run(
        [sys.executable, *options, "-c", code, *words],
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        preexec_fn=more.pop("before", lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)),
        **more,
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("name", ["ronda.cli.app", "click", "numpy"])
def test_an_interrupt_while_modules_load_is_one_line(name, masked, folder):
    """Whatever an import makes of the interrupt."""
    code = INTERRUPTING.format(name=name, masked=masked) + MAIN
    done = python("solve", "round.json", "--policy", "fifo", code=code)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


def test_where_ctrl_c_is_ignored_it_stays_so(folder):
    """As by nohup, or in the background of a script."""
    code = INTERRUPTING.format(name="click", masked=False) + MAIN
    done = python(
        "--version", code=code, before=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    )
    assert done.returncode == 0


def test_an_interrupt_after_the_last_line_changes_nothing(folder):
    """What the command did is done, and its exit code says so while Python shuts down."""
    code = "import atexit, os, signal; "
    code += "atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT)); " + MAIN
    done = python("--version", code=code)
    assert (done.returncode, done.stderr) == (0, "")


def closing(*numbers):
    """Return what closes streams before a program starts."""
    return lambda: [os.close(number) for number in numbers]


def test_closed_stdout_is_an_error_in_one_line(folder):
    """What cannot be said is not taken for said; a file is whole all the same."""
    words = ("solve", "round.json", "--policy", "fifo", "--out", "plan.json")
    done = python(*words, before=closing(0, 1))
    expected = "error: standard output: bad file descriptor\n"
    assert (done.returncode, done.stderr) == (2, expected)
    assert files.read(folder / "plan.json").policy == "fifo"


def test_closed_stdin_is_empty(folder):
    """A round that should come from there is refused; other commands do not notice."""
    done = python("solve", "-", stdout=subprocess.PIPE, before=closing(0))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "standard input" in done.stderr
    words = ("solve", "round.json", "--policy", "fifo")
    assert python(*words, stdout=subprocess.DEVNULL, before=closing(0)).returncode == 0


def test_closed_stderr_hides_only_messages(folder):
    """The exit code stays."""
    done = python("solve", "nothing.json", stdout=subprocess.PIPE, before=closing(2))
    assert (done.returncode, done.stdout) == (2, "")


def test_a_full_disk_under_stdout_is_named(folder):
    """One line."""
    with open("/dev/full", "w") as full:
        done = python("solve", "round.json", "--policy", "fifo", stdout=full)
    expected = "error: standard output: no space left on device\n"
    assert (done.returncode, done.stderr) == (2, expected)


@pytest.mark.parametrize(
    ("command", "most", "named"),
    [
        ("run two-nodes.json --policy fifo --out out", 600, "out/journal.jsonl"),
        ("solve round.json --policy fifo --out plan.json", 100, "plan.json"),
    ],
)
def test_a_full_disk_is_named_by_its_file_and_nothing_half_written_stays(
    command, most, named, folder
):
    """One line, and no draft."""

    def small():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    done = python(*command.split(), before=small, stdout=subprocess.DEVNULL)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {named}")
    assert done.stderr.count("\n") == 1
    assert list(folder.rglob("*.tmp")) == []


def test_without_docstrings_it_says_so(folder):
    """Pyomo cannot be imported under -OO."""
    done = python("solve", "round.json", options=("-OO",), stdout=subprocess.PIPE)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "-OO" in done.stderr
    code = "import ronda; ronda.solve(ronda.load('round.json'), 'milp')"
    library = python(code=code, options=("-OO",))
    assert "InputError" in library.stderr.splitlines()[-1]


def test_what_libraries_note_does_not_reach_the_user(folder):
    """NumPy's overflows, say; with -W they are shown."""
    (folder / "loud.py").write_text(
        "import numpy as np, ronda\n"
        "class Loud:\n"
        "    def plan(self, round, **asked):\n"
        "        np.array([1e308]) * 10\n"
        "        return ronda.policy('fifo').plan(round, **asked)\n"
    )
    words = ("solve", "round.json", "--policy", "./loud.py:Loud")
    assert python(*words, stdout=subprocess.DEVNULL).stderr == ""
    shown = python(*words, options=("-W", "default"), stdout=subprocess.DEVNULL)
    assert "RuntimeWarning" in shown.stderr


def test_a_solver_that_is_late_keeps_no_command_waiting(folder):
    """One that was left alone would go on for ten minutes; all that was printed arrives."""
    code = """
import contextlib, time
from ronda.solvers.exact.threads import apart
with contextlib.suppress(TimeoutError):
    apart(lambda: time.sleep(600), seconds=0.01)
"""
    done = python("--version", code=code + MAIN, stdout=subprocess.PIPE)
    assert done.returncode == 0
    assert done.stdout.startswith("ronda")
