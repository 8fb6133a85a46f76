"""Progress bars on stderr: for what takes longer than a second, and only on a terminal."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ronda.instances.errors import printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

DELAY_S = 1.0
"""What is over by then needs no bar."""


class Bars:
    """A few progress bars that appear once the work takes longer than `DELAY_S`."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._wanted = sys.stderr.isatty()
        self._shown: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def update(self, name: str, share: float, note: str = "") -> None:
        """Set a bar to a share between 0 and 1; it is made when it is first named."""
        if not self._wanted or time.perf_counter() - self._began < DELAY_S:
            return
        if self._shown is None:
            self._shown = _make()
            self._shown.start()
        if name not in self._tasks:
            self._tasks[name] = self._shown.add_task(printable(name), total=1.0, note=note)
        self._shown.update(self._tasks[name], completed=share, note=printable(note))

    def remove(self, name: str) -> None:
        """Take a bar away."""
        if self._shown is not None and name in self._tasks:
            self._shown.remove_task(self._tasks.pop(name))

    def __enter__(self) -> "Bars":
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown is not None:
            self._shown.stop()


def _make() -> "Progress":
    from rich import progress as parts
    from rich.console import Console

    return parts.Progress(
        parts.TextColumn("{task.description}", markup=False),
        parts.BarColumn(),
        parts.TaskProgressColumn(),
        parts.TextColumn("{task.fields[note]}", markup=False),
        parts.TimeElapsedColumn(),
        parts.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )


@contextmanager
def bar(name: str) -> Iterator[Callable[[int, int, float], None]]:
    """Show one bar; gives a callback of (completed jobs, all jobs, time in the horizon)."""
    next_s = 0.0

    def update(completed: int, jobs: int, now_s: float) -> None:
        """Show how many jobs are complete, ten times a second at most."""
        nonlocal next_s
        if (clock := time.perf_counter()) >= next_s:
            next_s = clock + 0.1
            bars.update(name, completed / max(jobs, 1), f"{completed:,}/{jobs:,} jobs")

    with Bars() as bars:
        yield update
