"""A demand series: the number of nodes that jobs need over time, without the jobs."""

from functools import cached_property
from typing import Any, Literal

import numpy as np

from ronda.instances.arrays import Ints
from ronda.instances.base import Index, Name, Positive, Record

DAY_S = 86_400.0


class Demand(Record, frozen=True, kw_only=True, dict=True):
    """The nodes that jobs need over time, in steps of equal length: the input of sleep controllers.

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
        The most nodes with a GPU in use at any time of each step.
    total
        All nodes, by step.
    forecast
        A published forecast of `needed`, by step; empty if there is none.
    active
        Nodes that a published controller kept awake, by step; empty if there is none.
    description
        A description in a sentence.
    source, licence, citation
        The source, the terms of use, and the publication to cite.
    reference
        Published or derived values to compare with, by policy and metric.
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
        """The length in days."""
        return len(self.needed) * self.step_s / DAY_S

    @cached_property
    def needed_nodes(self) -> Ints:
        """(T,) `needed` as an array."""
        return np.array(self.needed, dtype=np.int64)

    @cached_property
    def total_nodes(self) -> Ints:
        """(T,) `total` as an array."""
        return np.array(self.total, dtype=np.int64)
