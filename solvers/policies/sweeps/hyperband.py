"""Hyperband: brackets of trials, halved together at every rung."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec.structs import replace

from ronda.formulations.clock import Deadline, checkpoint
from ronda.formulations.sleeping.standby import rest
from ronda.formulations.sweeps.brackets import Bracket, bracket_of, brackets
from ronda.formulations.sweeps.halving import survivors
from ronda.formulations.sweeps.trials import Search, Trial, searches
from ronda.instances.plan import Plan
from ronda.instances.round import Round
from ronda.solvers.contract import Capability
from ronda.solvers.greedy.in_time import in_time
from ronda.solvers.greedy.room import Clocked
from ronda.solvers.policies.sweeps.order import in_order


@dataclass(frozen=True)
class Hyperband(Clocked):
    """Run brackets of trials one after another; at each rung the best 1 / eta go on.

    Hyperband (Li et al., JMLR 2018). The rest is given up, once all of the bracket have come to the
    rung; until then trials wait there. Trials fill brackets in order of submission, and begin again
    with the first bracket after the last. Where GPUs are left the next bracket begins. Trials keep
    their progress from rung to rung. The plan's details carry the order.

    Parameters
    ----------
    eta
        One in eta goes on.
    """

    eta: Annotated[int, msgspec.Meta(ge=2)] = 3

    name: ClassVar[str] = "hyperband"
    capabilities: ClassVar[Capability] = Capability.PREEMPTS | Capability.SLEEPS

    @in_time
    def plan(
        self, round: Round, *, deadline: Deadline, seed: int, initial: Plan | None = None
    ) -> Plan:
        """Order the trials that may go on; give up those that fail at a rung."""
        before: Mapping[str, Any] = {} if initial is None else initial.details.get("places", {})
        places: dict[str, dict[str, int]] = {}
        ranked: list[tuple[tuple[int, int, int], Trial]] = []
        discarded: list[str] = []
        for name, search in searches(round).items():
            checkpoint()
            own = dict(before.get(name, {}))
            for trial in sorted(search.live, key=lambda t: (t.state.job.submit_s, t.name)):
                own.setdefault(trial.name, len(own))
            places[name] = own
            able, lost = self._sorted_out(search, own)
            ranked += able
            discarded += lost
        ranked.sort(key=lambda pair: pair[0])
        plan = in_order(round, [trial for _, trial in ranked], self.clocks(round))
        plan = replace(
            plan, policy=self.name, discarded=tuple(discarded), details={"places": places}
        )
        return rest(round, plan, initial)

    def _sorted_out(
        self, search: Search, places: Mapping[str, int]
    ) -> tuple[list[tuple[tuple[int, int, int], Trial]], list[str]]:
        """Return the trials that may run with their ranks, and those that are given up."""
        all_ = brackets(search.sweep.reports, self.eta)
        groups: dict[int, tuple[Bracket, dict[str, tuple[float, ...]]]] = {}
        numbers = {}
        for name, place in places.items():
            number, bracket = bracket_of(place, all_)
            numbers[name] = number
            groups.setdefault(number, (bracket, {}))[1][name] = search.losses.get(name, ())
        able, lost = [], []
        stopped: set[str] = set()
        gone: set[str] = set()
        for bracket, members in groups.values():
            live = {t.name for t in search.live} & members.keys()
            waits, out = survivors(members, live, bracket.rungs, self.eta)
            stopped |= waits
            gone |= out
        for trial in search.live:
            if trial.name in gone and trial.state.job.preemptible:
                lost.append(trial.name)
            elif trial.name not in stopped | gone:
                rank = (1 - trial.runs, numbers[trial.name], places[trial.name])
                able.append((rank, trial))
        return able, lost
