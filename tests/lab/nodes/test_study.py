"""The case of speed on nodes, and the study that makes tables of its lines."""

import json

import pytest

from lab.__main__ import main
from lab.nodes.study import SECTIONS, cases_of
from lab.speed.__main__ import main as speed


def line_of(capfd, *words):
    """Return the line of a measurement of 120 tasks."""
    assert speed(["nodes", "--here", "--jobs", "120", "--family", "blocks", *words]) == 0
    return json.loads(capfd.readouterr().out)


def test_all_ways_see_the_same_round(capfd):
    """Of 40 nodes: no plan breaks a rule or exceeds our bound, and HiGHS is near it."""
    prices = line_of(capfd, "--solver", "prices")
    assert prices["nodes"] == 40
    assert prices["gap"] == pytest.approx(1 - prices["objective"] / prices["bound"])
    for rule in ("best-fit", "price-greedy"):
        line = line_of(capfd, "--solver", rule)
        assert line["objective"] <= prices["bound"]
        assert (line["violations"], line["bound"], line["gap"]) == (0, None, None)
    highs = line_of(capfd, "--solver", "highs", "--gap", "0.001")
    assert highs["objective"] == pytest.approx(prices["objective"], rel=0.02)
    assert prices["violations"] == 0


def test_what_runs_stays_under_best_fit(capfd):
    """Nothing moves or stops."""
    line = line_of(capfd, "--solver", "best-fit", "--running", "0.5")
    assert (line["moved"], line["stopped"], line["violations"]) == (0, 0, 0)
    assert line["placed"] > 0


def test_an_unknown_solver_is_refused(capfd):
    """In one line, before anything is written."""
    assert speed(["nodes", "--here", "--jobs", "12", "--solver", "bestfit"]) == 2
    assert "expected prices, highs, best-fit, price-greedy" in capfd.readouterr().err


def test_large_rounds_are_measured_for_few_seeds():
    """HiGHS gets few nodes; above 10,000 rules and running jobs have the first seed alone."""
    names, sizes, solvers = ("openb",), (100.0, 1e4, 1e5), ("prices", "best-fit", "highs")
    cases = list(cases_of(names, sizes, (0.5,), 0.05, solvers, (0, 1)))
    assert {case["nodes"] for case in cases if case["solver"] == "highs"} == {100}
    large = [case for case in cases if case["nodes"] == 100_000]
    alone = [case for case in large if case["seed"] == 1]
    assert [(case["solver"], case["running"]) for case in alone] == [("prices", 0.0)]
    assert [case["budget"] for case in large if case["running"] and case["solver"] == "prices"] == [
        -1.0,
        0.05,
    ]


def test_tables_go_into_a_page_and_lines_are_kept(tmp_path, capsys):
    """A later call measures nothing again; a page without marks is refused before any work."""
    page = tmp_path / "nodes.md"
    marks = (f"<!-- {name}: python -m lab nodes -->\n<!-- end of {name} -->\n" for name in SECTIONS)
    page.write_text("".join(marks))
    words = ["nodes", "--nodes", "20", "--families", "blocks", "--seeds", "0", "--limit", "5"]
    words += ["--solvers", "prices", "--out", str(tmp_path / "out")]
    assert main([*words, "--into", str(page)]) == 0
    printed = capsys.readouterr().out
    kept = (tmp_path / "out" / "results.jsonl").read_bytes()
    assert main([*words, "--into", str(page)]) == 0
    assert capsys.readouterr().out == printed
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == kept
    assert "| blocks | 20 | 60 |" in page.read_text()
    assert main([*words, "--into", str(tmp_path / "no.md")]) == 2
