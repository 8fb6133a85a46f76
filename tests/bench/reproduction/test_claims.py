"""Claims: verdicts, how figures are written, and that every record names what is there."""

import pytest

from ronda.bench.figures.columns import METRICS
from ronda.bench.reproduction.claims import Claim, ClaimVerdict, Figure, Rule, chosen, claims
from ronda.bench.reproduction.tables import tables_of
from ronda.bench.suites.cells import expand
from ronda.bench.suites.suite import locate, read
from ronda.instances.errors import InputError

ALL = claims()


def made(**fields):
    """Return a claim with fields that do not matter here."""
    usual = {"name": "c", "system": "s", "what": "w", "published": "2×", "source": "p"}
    return Claim(**usual | {"sure": "abstract"} | fields)


@pytest.mark.parametrize(
    ("rule", "value", "met"),
    [
        (Rule(least=1.57), 1.57, True),
        (Rule(least=1.57), 1.56, False),
        (Rule(most=10.0), 10.0, True),
        (Rule(most=10.0), 10.1, False),
        (Rule(near=-4.0, within=0.1), -3.6, True),
        (Rule(near=-4.0, within=0.1), -3.5, False),
        (Rule(near=18497.01, within=1e-6), 18497.0145, True),
        (Rule(least=1.0, most=2.0), 2.5, False),
    ],
)
def test_a_rule_says_what_is_met(rule, value, met):
    """Both ends, and near by a share of the number."""
    verdict = made(rule=rule).verdict(Figure(value=value))
    assert verdict == (ClaimVerdict.MET if met else ClaimVerdict.MISSED)


def test_what_is_not_known_has_no_verdict():
    """Not measured, failed, or not to be known at all, however good the figure."""
    good = Rule(least=0.0)
    assert made(rule=good).verdict(None) == ClaimVerdict.UNKNOWN
    assert made(rule=good).verdict(Figure()) == ClaimVerdict.UNKNOWN
    assert made(rule=good).verdict(Figure(value=1.0, note="1 of 3 TIME")) == ClaimVerdict.UNKNOWN
    assert (
        made(rule=good, unknowable="no data").verdict(Figure(value=1.0)) == ClaimVerdict.UNKNOWABLE
    )


def test_figures_are_written_with_unit_and_interval():
    """Shares in per cent; what failed instead of a figure."""
    between = Figure(value=0.441, low=0.412, high=0.0)
    assert made(shows="cut").write(between) == "44 % [41, 0]"
    assert made(shows="times", digits=1).write(Figure(value=3.84)) == "3.8×"
    assert made(unit="s").write(Figure(value=18497.0145)) == "18,497.01 s"
    assert made().write(Figure(note="1 of 3 OOM", value=2.0)) == "1 of 3 OOM"


def test_names_are_each_their_own():
    """And no system is called like a claim."""
    names = [claim.name for claim in ALL]
    assert len({*names, *(claim.system for claim in ALL)}) == len(names) + 9


@pytest.mark.parametrize("claim", ALL, ids=lambda claim: claim.name)
def test_a_claim_can_be_judged(claim):
    """It has a rule, a reason why it cannot be known, or what it would need."""
    assert claim.rule != Rule() or claim.unknowable or (claim.why and not claim.words)
    assert not (claim.suite and claim.command)
    assert claim.sure != "unconfirmed" or claim.unknowable


@pytest.mark.parametrize("name", sorted({claim.suite for claim in ALL if claim.suite}))
def test_a_suite_has_what_its_claims_name(name, tmp_path):
    """Axes and values, of ours and of the comparator, and the metric."""
    path = locate(name)
    suite = read(path)
    cells = expand(suite.asked(seeds="0"), tmp_path, str(path), path.parent).cells
    for claim in (claim for claim in ALL if claim.suite == name):
        sides = [claim.ours, claim.ours | claim.against]
        assert all(any(side.items() <= cell.at.items() for cell in cells) for side in sides)
        assert claim.metric in METRICS
        assert all(axis in cells[0].at for axis in claim.each)
        assert bool(claim.against) == (claim.shows != "value")


def test_claims_are_chosen_by_system_or_by_name():
    """In their order; an unknown one is told with those that there are."""
    assert [c.name for c in chosen(ALL, ("hermes",))] == [
        "hermes-fifo",
        "hermes-round-robin",
        "hermes-slaq",
    ]
    assert [c.name for c in chosen(ALL, ("sia-gavel", "ones-drl"))] == ["ones-drl", "sia-gavel"]
    assert chosen(ALL, ()) == ALL
    with pytest.raises(InputError, match=r'"helois".*"helios", "hermes".*--list'):
        chosen(ALL, ("helois",))


def test_a_table_says_what_measures_it_once():
    """A row a claim; below, the sources, and each command with its claims."""
    own = chosen(ALL, ("hfta",))
    (table,) = tables_of(
        own, {"hfta-a100": Figure(value=11.46, version="0.1.0", date="2026-11-25")}
    )
    rows = dict(zip((claim.name for claim in own), table.rows, strict=True))
    assert rows["hfta-a100"][4:] == ("11.46×", "fifo", "–", "met", "0.1.0, 2026-11-25")
    assert rows["hfta-v100"][4:] == ("–", "fifo", "–", "unknown", "–")
    assert rows["hfta-tpu"][-2] == "can't be known"
    (by,) = [note for note in table.notes if note.startswith("`ronda")]
    assert by.startswith("`ronda compare hfta.toml`: hfta-a100, hfta-v100 (")
