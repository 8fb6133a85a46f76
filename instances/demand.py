"""Demand series: the number of nodes that jobs need over time, without the jobs themselves."""

from functools import cached_property
from typing import Any, Literal

import numpy as np

from ronda.instances.base import Index, Ints, Name, Positive, Record

DAY_S = 86_400.0


class Demand(Record, frozen=True, kw_only=True, dict=True):
    """A series of nodes needed by jobs in steps of equal length, the input of sleep controllers.

    Attributes
    ----------
    format
        Version of the file format.
    name
        The name in catalogues and results.
    start
        Local date and time at which the first step begins, such as ``2020-09-01T00:00:00``.
    step_s
        Length of a step.
    needed
        The largest number of nodes with a GPU in use during each step.
    total
        Number of all nodes, per step.
    forecast
        A published forecast of `needed`, per step; empty if there is none.
    active
        Number of nodes that a published controller kept awake, per step; empty if there is none.
    description
        A one-sentence description.
    source, licence, citation
        The source, the terms of use, and the publication to cite.
    reference
        Published or derived reference values, by policy and metric.
    made
        How the series was made (command, seed), for reproduction.
    """

    format: Literal["ronda/demand/1"] = "ronda/demand/1"
    name: Name
    start: str
    step_s: Positive
    needed: tuple[Index, ...]
    total: tuple[Index, ...]
    forecast: tuple[Index, ...] = ()
    active: tuple[Index, ...] = ()
    description: str = ""
    source: str = ""
    licence: str = ""
    citation: str = ""
    reference: dict[str, dict[str, float]] = {}
    made: dict[str, Any] = {}

    @property
    def days(self) -> float:
        """The length of the series in days."""
        return len(self.needed) * self.step_s / DAY_S

    @cached_property
    def needed_nodes(self) -> Ints:
        """`needed` as an array, shape (T,)."""
        return np.array(self.needed, dtype=np.int64)

    @cached_property
    def total_nodes(self) -> Ints:
        """`total` as an array, shape (T,)."""
        return np.array(self.total, dtype=np.int64)
