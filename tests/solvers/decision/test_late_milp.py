"""A MILP for which time is short: as many options as HiGHS can return with in time."""

import sys

import pyomo.environ
from msgspec.structs import replace

from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build
from ronda.instances import generate
from ronda.instances.clock import Deadline
from ronda.instances.plan import StopReason
from ronda.solvers.decision.by_milp import SECONDS_PER_OPTION, allocate, judged
from ronda.solvers.exact import highs
from ronda.solvers.exact.linear_form import too_late
from ronda.solvers.prices.core import CLIQUES
from ronda.solvers.prices.dual import Search


def test_time_is_left_for_what_highs_does_without_a_look_at_its_clock(monkeypatch, processor_time):
    """Options are fewer the less time there is, and what HiGHS may be late by is kept for it."""
    asked = []

    def solve(form, effort, start):
        options = sum(name.startswith("x[") for name in form.columns)
        asked.append((options, effort.deadline.left(), effort.blind_s))
        return too_late(form)

    monkeypatch.setattr(highs, "solve_form", solve)
    round_ = generate.round(1024, None, "tight", 7)
    table = build(round_)
    worth = values(round_, table)
    for limit_s in (1.5, 4.0):
        choice = allocate(round_, table, worth, Search(gap=0.0, deadline=Deadline(limit_s)))
        assert choice.incumbents  # that of the prices
    (few, _, _), (many, left_s, blind_s) = asked
    assert few < many < len(table)
    assert SECONDS_PER_OPTION * many + 2 * (many / CLIQUES) ** 2 <= 4.0
    assert blind_s >= (many / CLIQUES) ** 2 * (1 - 1e-9)
    assert left_s > blind_s


def test_packages_that_are_not_loaded_take_the_time_and_that_is_said(monkeypatch):
    """Within 0.4 s Pyomo, which takes 0.5 s, cannot be loaded: the plan is that of the prices."""
    assert pyomo.environ
    monkeypatch.delitem(sys.modules, "pyomo.environ")
    round_ = generate.round(40, None, "tight", 7)
    table = build(round_)
    search = Search(gap=0, deadline=Deadline(0.4), solver="scip")
    choice = allocate(round_, table, values(round_, table), search)
    assert choice.incumbents
    assert "ronda.warm_up does it before time counts" in choice.record.message


def test_a_proven_plan_does_not_say_that_its_time_was_up():
    """Where the bound of prices proves what a search that was cut left, the words say that."""
    round_ = generate.round(12, None, "tight", 7)
    table = build(round_)
    choice = allocate(round_, table, values(round_, table), Search(gap=1e-3, deadline=Deadline()))
    words = replace(choice.record, message="Time limit reached")
    cut = replace(choice, stop=StopReason.TIME_LIMIT, record=words)
    assert judged(cut, 1e-3).record.message == "the bound that prices prove is met"
    unproven = judged(replace(cut, bound=2 * choice.objective), 1e-3)
    assert (unproven.stop, unproven.record.message) == (cut.stop, "Time limit reached")
