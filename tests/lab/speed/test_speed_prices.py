"""The measurements of the price engine, its independent certificate, and the figure of growth."""

import json

import numpy as np
import pytest

from lab.speed.__main__ import main
from lab.speed.cases import FIELDS
from lab.speed.certificate import Claim, bound_of_prices, certify
from lab.speed.engine import reference
from lab.speed.figure import read_lines
from ronda.formulations.allocation.resource_use import Uses
from ronda.formulations.allocation.separable import Separable
from ronda.solvers.prices.dual import Search, bound_at
from ronda.solvers.prices.engine import solve_separable

TINY = Separable(
    start=np.array([0, 2, 3, 3]),
    value=np.array([4.0, 6.0, 1.0]),
    use=Uses.of([np.array([1.0, 2.0, 2.0])]),
    capacity=np.array([3.0]),
    names=("gpus",),
    must=np.array([False, True, False]),
    block_value=np.array([-0.5]),
    block_use=np.array([[-1.0]]),
    block_count=np.array([2.0]),
    block_integer=np.array([True]),
)
"""Job 0: 1 GPU for 4 or 2 for 6; job 1 must have 2 GPUs for 1; job 2 has no option. 3 GPUs, and two
more for 0.5 each. Best: 6 + 1 - 0.5 = 6.5 with one more GPU."""

BEST = Claim(
    chosen=np.array([1, 2, -1]),
    blocks=np.array([1.0]),
    objective=6.5,
    prices=np.array([0.5]),
    dual_bound=6.5,
)
"""At 0.5 a GPU: 3 x 0.5 + max(0, 3.5, 5) + (1 - 1) + 0 + 2 max(0, -0.5 + 0.5) = 6.5: no gap."""


@pytest.mark.parametrize(
    ("price", "bound"),
    [
        (0.0, 7.0),  # 0 + 6 + 1 + 0
        (0.5, 6.5),
        (2.0, 8.0),  # 3 x 2 + max(2, 2) + (1 - 4) + 2 x 1.5
    ],
)
def test_bound_of_prices_by_hand(price, bound):
    """The job that must run counts even at a loss, and blocks only at a gain."""
    assert bound_of_prices(TINY, np.array([price])) == pytest.approx(bound)


def test_bound_of_prices_is_the_engines():
    """Two ways to the same sum, at prices far from the best ones, too."""
    problem = reference(300, seed=4)
    for prices in ([0.0, 0.0], [1.0, 0.0], [0.3, 0.004], [7.0, 1.0]):
        mine = bound_of_prices(problem, np.array(prices))
        assert mine == pytest.approx(bound_at(problem, np.array(prices)), rel=1e-12)


def test_true_claim_has_no_faults():
    """The optimum of the tiny problem, proven by its price."""
    assert certify(TINY, BEST, 1e-9).faults == ()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"chosen": np.array([2, 1, -1])}, "not its own"),
        ({"chosen": np.array([1, 2, 99])}, "not its own"),
        ({"chosen": np.array([1, -1, -1]), "objective": 5.5}, "must run"),
        ({"blocks": np.array([0.0]), "objective": 7.0}, "more gpus"),
        ({"blocks": np.array([1.5]), "objective": 6.25}, "in part"),
        ({"blocks": np.array([3.0]), "objective": 5.5}, "more often"),
        ({"objective": 6.6}, "worth 6.5, not 6.6"),
        ({"objective": float("nan")}, "not nan"),
        ({"dual_bound": 6.4}, "prove 6.5, not 6.4"),
        ({"prices": np.array([-0.5]), "dual_bound": 7.0}, "negative"),
        ({"prices": np.array([np.nan]), "dual_bound": 7.0}, "not finite"),
        ({"prices": np.array([0.0]), "dual_bound": 7.0}, "gap of 0.071"),  # 0.5 / 7
    ],
)
def test_false_claims_are_found_out(change, words):
    """Each rule broken by itself has its own words."""
    faults = certify(TINY, BEST._replace(**change), 1e-9).faults
    assert any(words in fault for fault in faults)


def test_engine_is_certified_at_256_jobs():
    """What the benchmark checks, on an answer of the engine; and a tampered one is refused."""
    problem = reference(256)
    answer = solve_separable(problem, Search(gap=1e-4))
    claim = Claim(
        answer.chosen, answer.blocks, answer.objective, answer.dual.prices, answer.dual.bound
    )
    assert certify(problem, claim, 1e-4).faults == ()
    cheaper = claim._replace(prices=claim.prices * 0.99)
    assert certify(problem, cheaper, 1e-4).faults != ()


def lines_of(capfd):
    """Return the JSON lines that were printed, and what stood on stderr."""
    out, err = capfd.readouterr()
    return [json.loads(line) for line in out.splitlines()], err


def test_prices_line_beside_the_baseline(capfd):
    """All fields; both reach the gap, and the engine is no worse than the model less the gap."""
    assert main(["prices", "--jobs", "72", "--baseline", "--seed", "1", "--limit", "60"]) == 0
    lines, err = lines_of(capfd)
    assert [line["jobs"] for line in lines] == [72]
    assert "72 jobs" in err
    for line in lines:
        assert set(FIELDS) <= line.keys()
        assert None not in [line[name] for name in FIELDS]
        assert line["gpus"] == 2 * line["jobs"]
        assert line["options"] == 56 * line["jobs"]
        assert line["certificate"] is True
        assert 0 <= line["gap"] <= line["dual_gap"] * (1 + 1e-9) <= 1e-4
        assert line["baseline_gap"] <= 1.001e-4
        assert line["objective"] >= line["baseline_objective"] * (1 - 1e-4)
        assert line["objective"] <= line["baseline_bound"] * (1 + 1e-6)
        assert line["baseline_objective"] <= line["dual_bound"] * (1 + 1e-9)
        assert line["ratio"] == pytest.approx(line["baseline_s"] / line["total_s"])
        assert line["total_s"] == pytest.approx(line["build_s"] + line["solve_s"])
        assert line["seed"] == 1


def test_gap_is_handed_on(capfd):
    """A wider gap reaches the measuring process."""
    assert main(["prices", "--jobs", "20", "--gap", "0.02"]) == 0
    (line,), _ = lines_of(capfd)
    assert line["gap_asked"] == 0.02
    assert line["baseline_s"] is None
    assert line["ratio"] is None


def test_baseline_stops_at_its_limit(capfd):
    """With a hundredth of a second the model has no optimum, and the line says so."""
    assert main(["prices", "--jobs", "256", "--baseline", "--limit", "0.01", "--here"]) == 0
    (line,), _ = lines_of(capfd)
    assert line["baseline_stop"] == "time_limit"
    assert line["certificate"] is True


@pytest.mark.parametrize(
    "words",
    [
        ["prices", "--gap", "2"],
        ["prices", "--gap", "nan"],
        ["prices", "--gap", "small"],
        ["prices", "--jobs", "0"],
        ["prices", "--jobs", "99999999"],
        ["prices", "--seed", "-1"],
        ["prices", "--baseline", "--limit", "0"],
        ["prices", "--jobs", "many"],
        ["stages", "--baseline"],
        ["import", "--seed", "1"],
        ["policy", "--severity", "awful"],
        ["policy", "--gpus", "0"],
        ["nothing"],
    ],
)
def test_bad_arguments(words, capfd):
    """One line, exit code 2, before anything is measured."""
    assert main(words) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert err.startswith("error: ")


def result(**fields):
    """Return a line of results."""
    line = {"case": "prices", "jobs": 64, "total_s": 0.1, "baseline_s": None, "gap_asked": 1e-4}
    return json.dumps(line | fields) + "\n"


def test_figure_reads_its_own_case_in_order_of_size(tmp_path):
    """Lines of other cases and blank ones are passed over."""
    path = tmp_path / "results.jsonl"
    path.write_text(
        result(jobs=256, baseline_s=9.0, baseline_stop="time_limit")
        + '{"case": "read"}\n\n'
        + result(baseline_s=2.0, baseline_stop="gap")
        + result(jobs=1024)
    )
    points = read_lines(path, "prices")
    assert [(p["jobs"], p["baseline_s"]) for p in points] == [(64, 2.0), (256, 9.0), (1024, None)]
    out = tmp_path / "new" / "growth.png"
    assert main(["figure", str(path), "--out", str(out)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    assert [p.name for p in out.parent.iterdir()] == ["growth.png"]


@pytest.mark.parametrize(
    "text", [None, "", '{"case": "read"}\n', "[]\n", "{\n", result(total_s=-1.0), result(jobs="a")]
)
def test_figure_refuses_what_is_no_result(text, tmp_path, capsys):
    """One line, exit code 2, and no picture."""
    path = tmp_path / "results.jsonl"
    if text is not None:
        path.write_text(text)
    assert main(["figure", str(path), "--out", str(tmp_path / "f.png")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (tmp_path / "f.png").exists()
