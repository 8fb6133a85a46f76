"""One table for every medium, and one report of a command for people and for programs."""

import json

import click
import pytest
from click.testing import CliRunner

from ronda.cli.output import show
from ronda.instances.tables.table import Best, Numbered, Report, Table

ROWS = [
    {
        "policy": "fifo",
        "knows": "nothing",
        "mean JCT (s)": Numbered("12 ± 1", {"s": 12.0, "half": 1}),
    },
    {"policy": "srtf", "knows": "sizes", "mean JCT (s)": Best("9", {"s": 9.0})},
]


def test_rows_name_their_columns_and_say_their_numbers():
    """The heading is that of the first row; a text without numbers stands for itself."""
    table = Table.of("t", ROWS, left=(0, 1))
    assert table.header == ("policy", "knows", "mean JCT (s)")
    assert table.rows == (("fifo", "nothing", "12 ± 1"), ("srtf", "sizes", "9"))
    assert table.records == (
        {"policy": "fifo", "knows": "nothing", "s": 12.0, "half": 1},
        {"policy": "srtf", "knows": "sizes", "s": 9.0},
    )


def test_words_stand_on_the_left_and_numbers_on_the_right():
    """Wherever the table is shown; the last column may hold words, too."""
    table = Table.of("", ROWS, left=(0, 1))
    assert table.markdown().split("\n")[1] == "|---|---|--:|"
    assert "{llr}" in table.latex()
    assert table.html().count("text-align: left") == 6
    assert Table.of("", ROWS, left=(-1,)).left == (2,)


def test_the_best_stands_out_everywhere():
    """Also after the texts were made safe to show."""
    table = Table.of("", ROWS)
    assert "**9**" in table.markdown()
    assert "\\textbf{9}" in table.latex()
    assert "<strong>9</strong>" in table.html()
    assert "**12" not in table.markdown()


def test_facts_have_no_heading():
    """Names with their texts, a line each."""
    table = Table.facts({"policy": "fifo", "jobs": 12}, numbers=True)
    assert (table.header, table.left) == (("", ""), (0,))
    assert table.rows == (("policy", "fifo"), ("jobs", "12"))


@pytest.fixture
def printed():
    """Print a report in a command, into a file."""

    def call(report, *, as_json=False):
        command = click.command()(
            lambda: click.get_current_context().exit(show(report, as_json=as_json))
        )
        return CliRunner().invoke(command)

    return call


def test_one_report_for_people_and_for_programs(printed):
    """Sentences stay whole lines, notes go to stderr, and the code ends the process, either way."""
    sentence = "word " * 60 + "end"
    report = Report({"mean_jct_s": 12.0}, [sentence, Table.of("", ROWS)], ["warning: one"], 3)
    done = printed(report)
    assert (done.exit_code, done.stderr) == (3, "warning: one\n")
    assert done.stdout.split("\n")[0] == sentence
    assert " fifo     nothing         12 ± 1" in done.stdout
    done = printed(report, as_json=True)
    assert (done.exit_code, done.stderr) == (3, "warning: one\n")
    assert json.loads(done.stdout) == {"mean_jct_s": 12.0}
