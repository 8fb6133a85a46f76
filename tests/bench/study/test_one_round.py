"""The comparison of rules on one round: lines, resume, table, picture, bad input."""

import json

import msgspec
import pytest

from ronda.bench.study import one_round
from ronda.bench.study.one_round import compare, main, size
from ronda.bench.study.one_round_figure import draw, table
from ronda.bench.study.one_round_lines import Line, read_lines
from ronda.instances.errors import InputError


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Rounds of 5 to 8 jobs."""
    monkeypatch.setattr(one_round, "FEWEST", 5)
    monkeypatch.setattr(one_round, "MOST", 8)


def line(share=1.0, optimum_s=100.0, relative_s=130.0, prices_s=101.0, **fields):
    """Return a line of results."""
    given = {"seed": 0, "jobs": 2, "gpus": 4, "options": 8, "status": "proven"} | fields
    means = {"optimum_s": optimum_s, "relative_s": relative_s, "prices_s": prices_s}
    return Line(share=share, budget_j=1.0, reference_j=1.0, bound_s=optimum_s, **means, **given)


def test_sizes_are_as_the_page_says():
    """5 to 8 jobs here; 1.6 and 3.2 GPUs a job in turn, in nodes of 8."""
    for seed in range(20):
        jobs, gpus = size(seed)
        assert 5 <= jobs <= 8
        assert gpus % 8 == 0
        assert gpus - 8 < jobs * (1.6, 3.2)[seed % 2] + 0.5
        assert gpus >= jobs * (1.6, 3.2)[seed % 2] - 0.5


def test_lines_are_resumed(tmp_path, monkeypatch):
    """A cut line is computed again, whole ones are not."""
    out = tmp_path / "r.jsonl"
    first = compare(2, (1.0, 0.8), 30.0, out)
    assert [(r.seed, r.share) for r in first] == [(0, 1.0), (0, 0.8), (1, 1.0), (1, 0.8)]
    for result in first:
        assert result.status == "proven"
        assert result.excess("relative") >= -1e-4
        assert result.excess("prices") >= -1e-4
    text = out.read_bytes()
    out.write_bytes(text[:-20])
    asked = []
    measure = one_round.measure
    monkeypatch.setattr(
        one_round,
        "measure",
        lambda seed, *rest: (asked.append((seed, *rest)), measure(seed, *rest))[1],
    )
    again = compare(2, (1.0, 0.8), 30.0, out)
    assert [seed for seed, shares, _ in asked if shares] == [1]
    assert [r.optimum_s for r in again] == pytest.approx([r.optimum_s for r in first])
    assert len(read_lines(out)) == 4


def test_table_by_hand():
    """Excesses of 30 and 10 %: mean and median 20 %; an infeasible round counts as such."""
    lines = [
        line(),
        line(relative_s=110.0, seed=1),
        line(1.0, None, None, None, seed=2, status="infeasible"),
    ]
    relative, prices = table(lines)
    assert relative["rounds"] == 2
    assert relative["infeasible"] == 1
    assert relative["mean_percent"] == pytest.approx(20.0)
    assert relative["median"] == pytest.approx(20.0)
    assert prices["most"] == pytest.approx(1.0)


def test_program_writes_table_and_picture(tmp_path, capsys):
    """One JSON object per budget and rule; a PNG."""
    picture = tmp_path / "p.png"
    out = ["--out", str(tmp_path / "r.jsonl"), "--picture", str(picture)]
    assert main(["--rounds", "2", "--budgets", "1.0", *out]) == 0
    rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [(row["budget"], row["rule"]) for row in rows] == [(1.0, "relative"), (1.0, "prices")]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_picture_of_a_budget_without_any_round(tmp_path):
    """No box, and no error."""
    draw([line(optimum_s=None, status="infeasible")], tmp_path / "p.png")
    assert (tmp_path / "p.png").exists()


@pytest.mark.parametrize(
    "words", [["--rounds", "0"], ["--budgets", "a"], ["--budgets", "0"], ["--limit", "0"]]
)
def test_numbers_that_make_no_sense_are_refused(words, tmp_path, capsys):
    """One line, exit code 2."""
    assert main([*words, "--out", str(tmp_path / "r.jsonl")]) == 2
    assert "expected" in capsys.readouterr().err


def test_a_file_of_something_else_is_refused(tmp_path, capsys):
    """The line is named."""
    out = tmp_path / "r.jsonl"
    out.write_text('{"seed": 1}\n')
    assert main(["--rounds", "1", "--out", str(out)]) == 2
    assert "line 1" in capsys.readouterr().err
    with pytest.raises(InputError):
        read_lines(out)


def test_a_round_without_a_proof_is_computed_again(tmp_path):
    """Time was up before; the later line counts."""
    out = tmp_path / "r.jsonl"
    (first,) = compare(1, (1.0,), 30.0, out)
    out.write_bytes(msgspec.json.encode(msgspec.structs.replace(first, status="limit")) + b"\n")
    (again,) = compare(1, (1.0,), 30.0, out)
    assert again.status == "proven"
    assert len(read_lines(out)) == 2
    assert compare(1, (1.0,), 30.0, out) == [again]
