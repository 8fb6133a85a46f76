"""The soak: days at random, policies that misbehave, and what counts as a failure."""

import pytest

import ronda
from ronda.bench.soak import __main__ as soak
from ronda.bench.soak import endure
from ronda.bench.soak.endure import Lived, growth
from ronda.bench.soak.mischief import KINDS, Mischief, turns
from ronda.bench.soak.world import day
from ronda.formulations.clock import Deadline
from ronda.instances import generate


def test_days_are_those_of_their_seed_and_differ():
    """Some have nodes that sleep, some a cap that drops, some an energy budget, some break."""
    days = [day(seed) for seed in range(12)]
    assert days[3] == day(3)
    assert len({each.cluster.gpus for each in days}) > 1
    assert any(group.wake_s for each in days for group in each.cluster.node_groups)
    assert any(each.budget.power_cap_w for each in days)
    assert any(each.budget.energy for each in days)
    assert {bool(each.faults.outages) for each in days} == {True, False}
    assert any(job.truth.throughput != 1.0 for each in days for job in each.jobs)


def test_mischief_comes_in_turn():
    """At every third call, one kind after the other."""
    turn = turns(3, ("a", "b"))
    assert [turn() for _ in range(9)] == [None, None, "a", None, None, "b", None, None, "a"]


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_mischief_is_a_plan_that_stands(kind):
    """It raises, or what it gives is no plan, or one that nobody could carry out or write."""
    round_ = generate.tiny_round(1)
    policy = Mischief("fifo", turns(1, (kind,)))
    try:
        found = policy.plan(round_, deadline=Deadline(), seed=0)
    except (Exception, SystemExit):
        return
    assert found != ronda.solve(round_, "fifo")
    assert policy.done == [(round_.now_s, kind)]


def test_days_are_lived_and_fallbacks_have_reasons():
    """Plans over capacity never run; nothing is broken."""
    lived = list(endure.endure(40, ("fifo", "prices"), 10, ("capacity",)))
    assert sum(each.rounds for each in lived) >= 40
    assert sum(each.mischief for each in lived) >= 4
    assert sum(each.fallbacks for each in lived) >= 4
    assert [each for each in lived if each.failed] == []


def test_a_run_that_ends_with_an_exception_is_a_failure(monkeypatch):
    """Its words are kept."""

    def broken(*_words, **_more):
        raise ValueError("no")

    monkeypatch.setattr(ronda, "run", broken)
    (lived,) = endure.endure(1, ("fifo",), 50, ("capacity",))
    assert lived.failed
    assert lived.error == "ValueError: no"


def days_of(*memory):
    """Return days of 10 rounds and of some MiB."""
    return [Lived("fifo", k, rounds=10, rss_mib=rss) for k, rss in enumerate(memory)]


def test_growth_leaves_the_warm_up_out():
    """The first fifth of the rounds fills caches; medians forgive a day that stands out."""
    assert growth(days_of(50.0, 80.0, *[100.0] * 8)) == 1.0
    assert growth(days_of(50.0, 80.0, *[100.0] * 4, 400.0, *[106.0] * 3)) == pytest.approx(1.06)
    assert growth(days_of(50.0, 80.0, 100.0)) is None
    others = [Lived(f"policy-{k}", k, rounds=10, rss_mib=50.0) for k in range(6)]
    assert growth([*others, *days_of(100.0, *[100.0] * 4)]) == 1.0


@pytest.mark.parametrize(
    ("last", "wrong", "code"), [(100.0, 0, 0), (106.0, 0, 1), (100.0, 1, 1)], ids=str
)
def test_exit_code(last, wrong, code, monkeypatch, capsys):
    """1 if memory grows or anything failed; a row for each policy and one for all."""
    lived = [*days_of(*[100.0] * 9), Lived("srtf", 9, 10, violations=wrong, rss_mib=last)]
    monkeypatch.setattr(soak, "endure", lambda *_: lived)
    assert soak.main(["--rounds", "100"]) == code
    shown = capsys.readouterr().out
    assert shown.count("| 10 |") + shown.count("| 100 |") >= 2
    assert shown.count("FAILED") == wrong
