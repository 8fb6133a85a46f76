"""Progress on stderr: bars on a terminal, a line a minute in a log file, nothing in a pipe."""

import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

from ronda.instances.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DELAY_S, LINE_S, TICK_S = 1.0, 60.0, 0.5
"""Seconds until a bar appears, between the lines of a log, and between updates of a bar that only
shows time."""


class Bars:
    """Progress bars that appear once the work takes longer than `DELAY_S`.

    If stderr is a file, they are lines, one every `LINE_S`; if it is a pipe, nothing is shown.
    """

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._next_line_s = LINE_S
        self.wanted = sys.stderr.isatty()
        self.logged = _is_a_file()
        self._shown: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._lines: dict[str, str] = {}

    def update(self, name: str, share: float | None, note: str = "") -> None:
        """Set the named bar to a share from 0 to 1 (None: unknown); add the bar if it is new."""
        spent_s = time.perf_counter() - self._began
        if self.logged:
            self._log(printable(name), share, printable(note), spent_s)
        if not self.wanted or spent_s < DELAY_S:
            return
        if self._shown is None:
            from rich import progress as parts
            from rich.console import Console

            self._shown = parts.Progress(
                parts.TextColumn("{task.description}", markup=False),
                parts.BarColumn(),
                parts.TaskProgressColumn(),
                parts.TextColumn("{task.fields[note]}", markup=False),
                parts.TimeElapsedColumn(),
                parts.TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._shown.start()
        if name not in self._tasks:
            self._tasks[name] = self._shown.add_task(printable(name), total=1.0, note=note)
        self._shown.update(
            self._tasks[name],
            total=None if share is None else 1.0,
            completed=share or 0.0,
            note=printable(note),
        )

    def _log(self, name: str, share: float | None, note: str, spent_s: float) -> None:
        done = "" if share is None else f"{share:.0%} "
        left = f", about {spent_s * (1 / share - 1):,.0f} s left" if share else ""
        self._lines[name] = f"{name}: {done}{note}".rstrip() + f", {spent_s:,.0f} s{left}"
        if spent_s >= self._next_line_s:
            self._next_line_s = spent_s + LINE_S
            print("; ".join(self._lines.values()), file=sys.stderr, flush=True)

    def remove(self, name: str) -> None:
        """Remove a bar."""
        self._lines.pop(printable(name), None)
        if self._shown is not None and name in self._tasks:
            self._shown.remove_task(self._tasks.pop(name))

    def __enter__(self) -> "Bars":
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown is not None:
            self._shown.stop()


def _is_a_file() -> bool:
    try:
        return stat.S_ISREG(os.fstat(sys.stderr.fileno()).st_mode)
    except (OSError, ValueError):  # no stderr, or a substitute for it
        return False


@contextmanager
def bar(name: str) -> Iterator[Callable[[int, int, float], None]]:
    """Show one bar; yield a callback of (completed jobs, all jobs, time in the horizon)."""
    next_s = 0.0

    def update(completed: int, jobs: int, now_s: float) -> None:
        """Show how many jobs are complete, at most ten times a second."""
        nonlocal next_s
        if (clock := time.perf_counter()) >= next_s:
            next_s = clock + 0.1
            bars.update(name, completed / max(jobs, 1), f"{completed:,}/{jobs:,} jobs")

    with Bars() as bars:
        yield update


@contextmanager
def waiting(name: str, limit_s: float | None = None) -> Iterator[None]:
    """Show the elapsed time, as a share of a limit if there is one."""
    with Bars() as bars:
        if not (bars.wanted or bars.logged):
            yield
            return
        began, over = time.perf_counter(), Event()

        def tick() -> None:
            """Update the bar until the work is over."""
            while not over.wait(TICK_S):
                spent_s = time.perf_counter() - began
                limit = "" if limit_s is None else f"of {limit_s:g} s at most"
                share = None if limit_s is None else min(spent_s / limit_s, 1.0)
                bars.update(name, share, limit)

        thread = Thread(target=tick, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()
