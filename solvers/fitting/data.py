"""Measurements to fit: rows of a table as parallel arrays that know where they came from."""

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import numpy as np

from ronda.instances.arrays import Floats, Mask, Rows


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """Measured iterations of one application on one type of GPU; arrays of shape (R,).

    Attributes
    ----------
    place
        File, for messages.
    application, gpu_type
        Of what, on which GPU.
    row
        Line in the file.
    gpus, nodes
        GPUs, and nodes that they were spread over.
    local_batch
        Samples per GPU and gradient pass.
    passes
        Gradient passes per iteration, 1 without accumulation.
    clock
        Clock as a fraction of the maximum.
    step_s
        Seconds of a whole iteration, all passes included.
    sync_s
        Seconds of `step_s` that did nothing but synchronise; None: not measured.
    skipped
        Rows of the file that say 0 for "not measured" and are not among these.
    """

    place: str
    application: str
    gpu_type: str
    row: Rows
    gpus: Floats
    nodes: Floats
    local_batch: Floats
    passes: Floats
    clock: Floats
    step_s: Floats
    sync_s: Floats | None = None
    skipped: int = 0

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.row)

    @property
    def compute_s(self) -> Floats | None:
        """Seconds of computing in a pass, ``(step - sync) / passes``; None: not measured."""
        return None if self.sync_s is None else (self.step_s - self.sync_s) / self.passes

    @property
    def single(self) -> Mask:
        """Rows without synchronisation: one GPU."""
        return np.asarray(self.gpus == 1)

    @property
    def in_node(self) -> Mask:
        """Rows that synchronise within a node."""
        return np.asarray((self.gpus > 1) & (self.nodes == 1))

    @property
    def across(self) -> Mask:
        """Rows that synchronise across nodes."""
        return np.asarray((self.gpus > 1) & (self.nodes > 1))


@dataclass(frozen=True, slots=True, eq=False)
class Watts:
    """Measured power of one application on one type of GPU; arrays of shape (R,).

    Attributes
    ----------
    place
        File, for messages.
    application, gpu_type
        Of what, on which GPU.
    row
        Line in the file.
    batch
        Batch size: rows of one batch size make one curve; 0 where the table has none.
    speed
        Speed relative to that without a power cap.
    power_w
        Watts of one busy GPU.
    """

    place: str
    application: str
    gpu_type: str
    row: Rows
    batch: Floats
    speed: Floats
    power_w: Floats

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.row)


Table = TypeVar("Table", Steps, Watts)


def take(table: Table, which: Mask | Rows) -> Table:
    """Return some rows of a table, as a mask or as positions."""
    chosen: dict[str, Any] = {
        f.name: value[which]
        for f in fields(table)
        if isinstance(value := getattr(table, f.name), np.ndarray)
    }
    return replace(table, **chosen)


def row_list(rows: Rows, limit: int = 5) -> str:
    """Return lines of a file in words: ``row 3``, ``rows 3, 5 and 9``, at most so many."""
    shown = [str(row) for row in rows[:limit].tolist()]
    if len(rows) > limit:
        return f"rows {', '.join(shown)} and {len(rows) - limit} more"
    if len(shown) == 1:
        return f"row {shown[0]}"
    return f"rows {', '.join(shown[:-1])} and {shown[-1]}"
