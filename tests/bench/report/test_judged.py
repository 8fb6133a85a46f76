"""The section of a judged log on the page, in a folder of its own and beside policies."""

import re

import pytest
from click.testing import CliRunner

from made_judgement import MADE
from ronda.bench.figures.answers.judge import causes_panel, judge
from ronda.bench.report.judged import judged_section
from ronda.bench.report.page import write_report
from ronda.bench.report.section import keep_section, kept_sections
from ronda.bench.runs.folder import claim
from ronda.cli.app import cli
from ronda.instances.errors import InputError
from ronda.instances.files.json import write
from run_here import run_here


def test_a_judged_log_is_kept_as_it_was(tmp_path):
    """And has a page, on which names are data."""
    section = judged_section(MADE)
    keep_section(tmp_path / "out", "judgement", {}, section)
    assert kept_sections(tmp_path / "out") == {"judge": section}
    done = CliRunner().invoke(cli, ["report", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    page = (tmp_path / "out" / "report.html").read_text()
    assert "In hindsight, between 34.0 % and 44.0 % of the waiting could have been spared" in page
    assert "Start job 77 (8 on n4), which started 3 h later, before job 76." in page
    assert "<b>cpu</b>" not in page
    assert "All runs" not in page
    assert [chart.choice for chart in section.charts] == [
        "causes of waiting",
        "gpu",
        "<b>cpu</b>",
    ]


def test_a_comparison_shows_it_beside_policies(tmp_path, two_nodes, monkeypatch):
    """In the folder of the comparison, which stays one; others have no such section."""
    monkeypatch.chdir(tmp_path)
    run_here(monkeypatch)
    write(two_nodes, tmp_path / "own.json")
    words = "compare own.json --policies fifo --no-figures --out out"
    assert CliRunner().invoke(cli, words.split()).exit_code == 0
    sections = re.compile(r'<section id="(\w+)">')
    before = sections.findall(write_report(tmp_path / "out").read_text())
    keep_section(tmp_path / "out", "judgement", {}, judged_section(MADE))
    after = sections.findall(write_report(tmp_path / "out").read_text())
    assert "judge" not in before
    assert set(after) == {*before, "judge"}


def test_other_folders_and_damaged_files_are_refused(tmp_path):
    """A folder of another log, of a single run, and half a file."""
    section = judged_section(MADE)
    keep_section(tmp_path / "out", "judgement", {"log": "a"}, section)
    with pytest.raises(InputError, match="log 'a'; expected those of log 'b'"):
        keep_section(tmp_path / "out", "judgement", {"log": "b"}, section)
    with claim(tmp_path / "run", "run", {}):
        pass
    with pytest.raises(InputError, match="a folder of 'ronda/run/1'"):
        keep_section(tmp_path / "run", "judgement", {}, section)
    file = tmp_path / "out" / "judgement.json"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(InputError, match="cut off or was changed"):
        write_report(tmp_path / "out")


def test_bars_add_up_and_what_is_below_zero_stands_to_the_left():
    """Of 100 job-hours 15, 20, 6, 4 and 56 to the right, and 1 to the left."""
    marks = causes_panel(MADE.queues).marks
    gpu = [
        (mark.name, left, right)
        for mark in marks
        for left, right, low in zip(mark.x, mark.x_end, mark.y, strict=True)
        if low < 0
    ]
    assert sum(right - left for _, left, right in gpu if right > 0) == pytest.approx(1.01)
    assert ("known order", -0.01, 0.0) in gpu
    assert sorted(left for _, left, _ in gpu)[1:] == pytest.approx([0, 0.15, 0.35, 0.41, 0.45])
    assert len(judge(MADE).panels) == 3
    assert [row[2] for row in judge(MADE).rows][:6] == pytest.approx([15, -1, 20, 6, 4, 56])
