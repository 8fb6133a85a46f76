"""Who is on which nodes, for jobs with nodes to themselves and for neighbourhoods."""

from collections import Counter
from collections.abc import Iterable
from typing import Self

import numpy as np

from ronda.formulations.topology import regions
from ronda.instances.base import Mask
from ronda.instances.job import Job
from ronda.instances.round import Round


class Neighbours:
    """The jobs on nodes while they are placed, as far as others may not join them."""

    def __init__(self, round: Round) -> None:
        nodes = len(round.cluster.topology.node_gpus)
        self._jobs, self._owners = np.zeros((2, nodes), dtype=np.int64)
        self._rules = {
            rule.name: (rule.rule == "apart", regions(round.cluster, rule.within))
            for rule in round.site.neighbourhoods
        }
        self._there: dict[str, Counter[int]] = {name: Counter() for name in self._rules}

    @classmethod
    def of(cls, round: Round) -> Self | None:
        """Return the empty nodes of a round, or None if nobody minds others."""
        minds = round.site.neighbourhoods or any(state.job.exclusive for state in round.jobs)
        return cls(round) if minds else None

    def copy(self) -> Self:
        """Return an independent copy."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._jobs, twin._owners = self._jobs.copy(), self._owners.copy()
        twin._there = {name: there.copy() for name, there in self._there.items()}
        return twin

    def take(self, job: Job, placement: Iterable[tuple[int, int]], sign: int = 1) -> None:
        """Add a job on its nodes (negative: remove it)."""
        nodes = [node for node, _ in placement]
        self._jobs[nodes] += sign
        self._owners[nodes] += sign * job.exclusive
        for name in job.neighbourhoods:
            self._there[name].update(dict.fromkeys(set(self._rules[name][1][nodes].tolist()), sign))

    def open_to(self, job: Job) -> Mask:
        """Return the nodes (N,) that others leave open to a job."""
        able: Mask = (self._jobs if job.exclusive else self._owners) == 0
        for name in job.neighbourhoods:
            apart, region = self._rules[name]
            there = [r for r, jobs in self._there[name].items() if jobs > 0]
            if apart:
                able &= ~np.isin(region, there) | (region < 0)
            else:
                able &= region >= 0
                if there:
                    able &= (region == there[0]) & (len(there) == 1)
        return able

    def wholes(self, job: Job) -> list[np.ndarray]:
        """Return the regions of the nodes, each (N,), one of which must hold all of a job."""
        return [self._rules[name][1] for name in job.neighbourhoods if not self._rules[name][0]]

    def welcome(self, job: Job, placement: Iterable[tuple[int, int]]) -> bool:
        """Return whether a job may come to its nodes."""
        nodes = [node for node, _ in placement]
        together = all(len(set(region[nodes].tolist())) == 1 for region in self.wholes(job))
        return bool(together and self.open_to(job)[nodes].all())
