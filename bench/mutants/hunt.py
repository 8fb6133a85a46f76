"""Apply mutations one at a time to a copy of the tree, and see whether tests fail."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ronda.bench.mutants.mutation import Mutation
from ronda.instances.errors import InputError, RondaError

_FAILED = 1  # pytest's exit code when tests ran and some failed
_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")


class Fate(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a mutation: whether a test failed, the first that did, and the seconds."""

    name: str
    killed: bool
    by: str
    seconds: float


def hunt(
    mutations: Sequence[Mutation], root: Path, tree: Path, limit_s: float = 600.0
) -> Iterator[Fate]:
    """Copy the tree at `root` to the folder `tree` and yield the outcome of each mutation.

    All of them are read before the first is applied. Tests must pass as long as nothing is changed.
    A mutation with which they take longer than `limit_s` is killed, too.

    Raises
    ------
    InputError
        If a mutation is stale.
    RondaError
        If tests fail without a mutation, or cannot be run.
    """
    changed = [mutation.applied(root) for mutation in mutations]
    shutil.copytree(root, tree, symlinks=True, ignore=_LEFT_OUT, dirs_exist_ok=True)
    named = dict.fromkeys(test for mutation in mutations for test in mutation.tests)
    failed = _first_failure(tree, tuple(named), limit_s * len(mutations))
    if failed:
        raise RondaError(f"{failed} fails without any mutation")
    for number, (mutation, text) in enumerate(zip(mutations, changed, strict=True), 1):
        path, plain = tree / mutation.file, root / mutation.file
        path.write_text(text, encoding="utf-8")
        then = plain.stat().st_mtime + number  # bytecode is kept by time and size
        os.utime(path, (then, then))
        began = time.perf_counter()
        failed = _first_failure(tree, mutation.tests, limit_s)
        seconds = time.perf_counter() - began
        shutil.copy2(plain, path)
        yield Fate(name=mutation.name, killed=bool(failed), by=failed, seconds=round(seconds, 1))


def _first_failure(tree: Path, tests: Sequence[str], limit_s: float) -> str:
    """Return the first test that fails, "time" if they take too long, "" if all pass.

    With CI set, property tests take the same examples each time.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    environment = os.environ | {"CI": "1", "PYTHONPATH": str(tree)}
    try:
        done = subprocess.run(
            [*command, "--tb=no", "-rf", *tests],
            cwd=tree,
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "time"
    if done.returncode not in (0, _FAILED):
        last = (done.stdout + done.stderr).strip().rpartition("\n")[2]
        raise InputError(" ".join(tests), f"pytest's exit code {done.returncode}: {last}", "tests")
    lines = (line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR ")))
    first = next(lines, "FAILED ?").split(" ", 1)[1].partition(" - ")[0]
    return first if done.returncode == _FAILED else ""
