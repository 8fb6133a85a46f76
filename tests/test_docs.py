"""What README and docs show must run, and what follows from the code must follow from it."""

import doctest
import importlib
import importlib.util
import re
import shlex
import sys
from pathlib import Path

import click
import pytest

import ronda
import ronda.testing
from ronda.cli.app import cli
from ronda.formulations.allocation import pyomo_model
from ronda.formulations.allocation import rows as allocation_rows
from ronda.formulations.allocation.model_data import make_case
from ronda.formulations.objectives.by_name import values
from ronda.formulations.options.build import build as build_options
from ronda.instances.cluster import Rack
from ronda.instances.errors import InputError
from ronda.solvers.registry import POLICIES

ROOT = Path(__file__).parents[1]
DOCS = [str(p.relative_to(ROOT)) for p in (ROOT / "docs").rglob("*.md")]
PAGES = sorted(["README.md", "CONTRIBUTING.md", *DOCS])


def module(name):
    """Return a module of the folder of the docs."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    made = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = made
    spec.loader.exec_module(made)
    return made


code = module("blocks")
BLOCKS = {page: code.blocks(page) for page in PAGES}


@pytest.fixture(scope="module")
def make():
    """Return the module that makes parts of the docs."""
    return module("make")


@pytest.mark.parametrize("page", [p for p in PAGES if any(not b.mark for b in BLOCKS[p])])
def test_code_runs(page, runs_here):
    """The blocks of a page run, in order, and print what they show.

    `make docs-code` runs all, and starts the processes that comparisons have.
    """
    assert code.run_page(page, slow=False) == []


@pytest.mark.parametrize("page", [p for p in PAGES if any(b.mark for b in BLOCKS[p])])
def test_what_does_not_run_here_parses(page):
    """Commands of blocks that tests leave out exist, with their options."""
    for block in BLOCKS[page]:
        if block.mark and block.language in code.SHELL:
            for line, _ in code.shown(block):
                if code.plain(line):
                    code.parse(shlex.split(line, comments=True))


def test_lines_are_found_in_their_order():
    """Spaces do not count, and three points stand for any text."""
    said = "a  1\nb 2\nc 3 s\n"
    assert code.first_missing(["a 1", "c ... s"], said) is None
    assert code.first_missing(["b 2", "a 1"], said) == "a 1"
    assert code.first_missing(["c 3"], said) == "c 3"


def test_a_wrong_block_fails(tmp_path, monkeypatch):
    """Code that raises, a command that fails, and output that is not there."""
    story = code.Story("page.md")
    monkeypatch.chdir(tmp_path)
    for language, text in [
        ("python", "raise ValueError"),
        ("sh", "ronda solve nothing.json"),
        ("console", "$ ronda --version\nronda 99"),
    ]:
        with pytest.raises((AssertionError, ValueError)):
            story.run(code.Block(language, text, "", 1, ""))


@pytest.mark.parametrize("words", ["ronda solv r.json", "ronda solve r.json --polici prices"])
def test_a_wrong_command_does_not_parse(words):
    """An unknown command, or option."""
    with pytest.raises((AssertionError, click.UsageError, InputError)):
        code.parse(words.split())


def with_examples():
    """Return the modules whose docstrings show how something is used."""
    folders = (
        *("instances", "formulations", "solvers", "horizon"),
        *("systems", "questions", "hosts", "bench", "ronda/cli"),
    )
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    shown = [path.relative_to(ROOT) for path in paths if ">>> " in path.read_text()]
    return [".".join(path.with_suffix("").parts).removeprefix("ronda.") for path in shown]


@pytest.mark.parametrize("module", with_examples())
def test_examples_in_docstrings_run(module):
    """And they print what they show."""
    found = doctest.testmod(importlib.import_module(f"ronda.{module}"))
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize("page", ["architecture.md", "cli.md"])
def test_made_parts_follow_from_the_code(make, page):
    """Run ``python docs/make.py`` if this fails."""
    assert make.made(page) == (ROOT / "docs" / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md"])
def test_links_lead_somewhere(page):
    """Every relative link and picture exists."""
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target


def commands(page):
    """Return the command lines of ronda on a page, as words."""
    text = (ROOT / page).read_text().replace("\\\n", " ")
    shown = re.findall(
        r"^ {4,}((?:[A-Z_]+=\S+ )*(?:python -m )?(?:ronda|lab|tools)[ .].*)$", text, re.MULTILINE
    )
    for block in re.findall(r"```(?:sh|console)\n(.*?)```", text, re.DOTALL):
        shown += re.findall(
            r"^(?:\$ )?((?:python -m )?(?:ronda|lab|tools)[ .].*)$", block, re.MULTILINE
        )
    shown += re.findall(r"`((?:python -m (?:ronda\.|lab|tools)|ronda )[^`]+)`", text)
    return [words for line in shown if (words := split(line))]


def split(line):
    """Return the words of a command line without variables and comments; none for a pattern."""
    if re.search(r"[…\[\\|*]", line.replace("\\|", "|")) or line.count("'") % 2:
        return []
    words = [w for w in shlex.split(line, comments=True) if not re.match(r"[A-Z_]+=", w)]
    return words if len(words) > 1 else []


@pytest.mark.parametrize("page", DOCS)
def test_the_first_line_says_whom_a_page_serves(page):
    """And what it answers, before anything else."""
    first = (ROOT / page).read_text(encoding="utf-8").split("\n\n")[1]
    assert first.startswith("For ")
    assert len(first.split()) >= 10


@pytest.mark.parametrize("page", PAGES)
def test_commands_exist(page):
    """Every command that a page shows exists, with the options that it shows."""
    for words in commands(page):
        if words[0] == "python":
            assert importlib.util.find_spec(words[2]) is not None, words
            continue
        # click remembers the names of the help option as it first met them
        command, context = cli, click.Context(cli, **cli.context_settings)
        rest = words[1:]
        while isinstance(command, click.Group) and rest:
            found = command.get_command(context, rest[0])
            if found is None:
                break
            command, rest = found, rest[1:]
        assert command is not cli or rest[0].startswith("-"), words
        known = {o for p in command.get_params(context) for o in (*p.opts, *p.secondary_opts)}
        asked = {w.partition("=")[0] for w in rest if re.match(r"--[a-z]", w)}
        assert asked <= known | {"--help"}, words


@pytest.mark.parametrize("page", PAGES)
def test_named_modules_exist(page):
    """Every module that a page names, by path or by dots, is there."""
    text = (ROOT / page).read_text()
    for path in re.findall(
        r"`((?:instances|formulations|solvers|horizon|systems|questions|hosts|bench|ronda|lab|tools)"
        r"/[\w/]+\.py)`",
        text,
    ):
        assert (ROOT / path).exists(), path
    for dotted in re.findall(r"`(?:python -m )?((?:ronda|lab|tools)(?:\.[a-z_]\w*)+)", text):
        assert named(dotted), dotted


def named(dotted):
    """Tell whether a dotted name is a module, or a name in one."""
    module, _, name = dotted.rpartition(".")
    try:
        if importlib.util.find_spec(dotted) is not None:
            return True
    except ModuleNotFoundError:
        pass
    return hasattr(importlib.import_module(module), name)


@pytest.mark.parametrize("policy", sorted({name.partition("+")[0] for name in POLICIES}))
def test_every_policy_is_described(policy):
    """The page of policies has a row for each."""
    rows = re.findall(r"^\| (.*?) \|", (ROOT / "docs/policies.md").read_text(), re.MULTILINE)
    assert any(f"`{policy}`" in row for row in rows)


def test_every_public_name_is_described():
    """The page of the Python names has each once."""
    page = (ROOT / "docs/api.md").read_text()
    shown = re.findall(r"auto\w+:: (?:ronda\.)?([A-Za-z_]+)$", page, re.MULTILINE)
    assert set(ronda.__all__) <= set(shown)
    assert len(shown) == len(set(shown))


def formulas():
    """Return the names of constraints beside each function in the table of formulations."""
    page = (ROOT / "docs/formulations.md").read_text()
    rows = re.findall(r"^\| .*? \| (`\S+`.*?) \| `([\w.]+)`.*\|$", page, re.MULTILINE)
    table = page.partition("| symbol |")[0]
    return {f: re.findall(r"`([a-z_]+)", names) for names, f in rows if f"| `{f}`" in table}


def test_the_table_of_formulations_has_the_functions_of_the_model():
    """Each family of rows stands in it, and what else it names exists; so do those of a site."""
    families = {family.__name__ for family in allocation_rows.FAMILIES}
    rooms = ("site.", "tenants.", "node_rules.")
    of_site = {name for name in formulas() if name.startswith(rooms)}
    for name in of_site:
        module, _, function = name.rpartition(".")
        assert hasattr(importlib.import_module(f"ronda.formulations.{module}"), function)
    others = formulas().keys() - families - of_site
    assert families <= formulas().keys()
    assert others == {"pyomo_model.one_option", "pyomo_model.variables"}
    for dotted in others:
        assert hasattr(pyomo_model, dotted.partition(".")[2])


def test_the_rows_of_the_model_have_the_names_of_the_table():
    """In rounds with limits, sleeping nodes, several pools and racks."""
    gpu = ronda.GpuType(name="A100", memory_gib=80.0, idle_w=50.0)
    one_rack = ronda.Cluster(
        gpu_types=(gpu,),
        node_groups=(
            ronda.NodeGroup(name="n", count=3, gpus_per_node=8, gpu_type="A100", rack="r"),
        ),
        racks=(Rack(name="r", power_cap_w=2_000.0),),
    )
    fives = [
        {"id": k, "gpus": 5, "rates": {"gpus": [5], "rate": [1.0], "watts": [1_000.0]}}
        for k in "abc"
    ]
    met = set()
    for round_ in (*ronda.testing.rounds().values(), ronda.make_round(one_rack, fives)):
        table = build_options(round_)
        case = make_case(round_, table, values(round_, table))
        for family in allocation_rows.FAMILIES:
            for row in family(case):
                assert row.name.partition("[")[0] in formulas()[family.__name__]
                met.add(family.__name__)
    assert {"gpus", "power", "energy", "rack_power", "rack_share", "whole_nodes"} <= met


def test_the_picture_shows_every_room(make):
    """A new room cannot be forgotten: it is found by its folder."""
    shown = set(make.imports())
    for layer in make.LAYERS:
        folder = ROOT / ("ronda/cli" if layer == "cli" else layer)
        for init in folder.glob("*/__init__.py"):
            assert f"{layer}/{init.parent.name}" in shown
