"""What names and ids hold reaches no terminal, table or picture as it is."""

import json
import warnings

import msgspec
import pytest

from ronda.bench.figures.chart import Axis, Chart, Marks, Panel
from ronda.bench.figures.draw import save_chart
from ronda.bench.tables import write_tables
from ronda.instances import generate
from ronda.instances.files.json import write
from ronda.instances.tables.table import Best, Table

EVIL = "\x1b[2J\u202eb\x00c\nerror: forged $x^$ |"


@pytest.fixture
def evil(folder, two_nodes):
    """An instance and a round whose names and ids are hostile."""
    job = msgspec.structs.replace(two_nodes.jobs[0], id=EVIL)
    group = msgspec.structs.replace(two_nodes.cluster.node_groups[0], name=EVIL, rack=EVIL)
    cluster = msgspec.structs.replace(two_nodes.cluster, node_groups=(group,))
    cluster = msgspec.convert(
        msgspec.to_builtins(cluster) | {"racks": [{"name": EVIL}]}, type(cluster)
    )
    jobs = (job, *two_nodes.jobs[1:])
    instance = msgspec.structs.replace(
        two_nodes, name=EVIL, jobs=jobs, cluster=cluster, source=EVIL
    )
    write(instance, folder / "evil.json")
    round_ = generate.round(4, 8, "loose", 0)
    (state,) = round_.running
    state = msgspec.structs.replace(state, job=msgspec.structs.replace(state.job, id=EVIL))
    write(msgspec.structs.replace(round_, name=EVIL, running=(state,)), folder / "r.json")
    return folder


def lines_of(done):
    """Return the lines of stdout and stderr; no character in them is hidden."""
    assert done.exit_code == 0, done.output
    lines = (done.stdout + done.stderr).split("\n")
    assert all(line.isprintable() for line in lines)
    assert not any(line.startswith("error") for line in lines)
    return lines


@pytest.mark.parametrize(
    "words",
    [
        "solve r.json --policy prices",
        "solve r.json --policy fifo --json",
        "run evil.json --policy fifo",
        "run evil.json --policy fifo --json",
        "instances show evil.json",
        "instances show evil.json --topology",
        "instances show r.json --json",
    ],
)
def test_commands_hide_nothing(words, evil, ronda):
    """Neither in tables nor in JSON, which says the same to a program."""
    said = lines_of(ronda(*words.split()))
    if "--json" in words and "run" in words:
        assert json.loads(said[-2])["instance"] == EVIL


def test_explanations_and_plans_hide_nothing(evil, ronda):
    """A newline in an id forges no line; a plan on stdout keeps the id for programs."""
    lines_of(ronda("solve", "r.json", "--policy", "prices", "--explain", EVIL))
    text = (evil / "r.json").read_bytes()
    (line, _) = lines_of(ronda("solve", "-", "--policy", "fifo", input=text))
    assert EVIL in json.loads(line)["allocations"]


def test_tables_hide_nothing(tmp_path):
    """Each text is one cell of one line, in Markdown, LaTeX and CSV; the best stays bold."""
    table = Table(EVIL, ("", EVIL), ((EVIL, Best("7")),), (EVIL,))
    write_tables([table], tmp_path, [EVIL])
    for name in ("table.md", "table.tex", "table.csv"):
        lines = (tmp_path / name).read_text().split("\n")
        assert all(line.rstrip("\r").isprintable() for line in lines)
    row = (tmp_path / "table.md").read_text().split("\n")[4]
    assert row.replace("\\|", "").count("|") == 3
    assert "**7**" in row


def test_pictures_hide_nothing(tmp_path):
    """A name is drawn letter by letter: no formula, no warning, no forged line."""
    line = Marks("line", [1, 10], [1, 10], EVIL)
    panels = [Panel([line], Axis(EVIL, "log"), title=f"first\n{EVIL}漢")]
    chart = Chart(EVIL, panels, header=("name",), rows=[(EVIL,)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_chart(chart, tmp_path / "x", svg=True)
    drawn = (tmp_path / "x.svg").read_text("utf-8")
    assert drawn.count(r"<!-- \x1b[2J\u202eb\x00c") >= 3
    assert (tmp_path / "x.csv").read_text().split("\n")[1].rstrip("\r").isprintable()
