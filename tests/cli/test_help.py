"""Help, completion and versions: quick, and with something to copy."""

import json
import subprocess
import sys

import click
import pytest

from ronda.cli.app import cli

START = "import sys; from ronda.cli import main\nsys.argv[0] = 'ronda'\n"


def every_command():
    """Return all commands as (words, command), groups included."""
    ctx = click.Context(cli, info_name="ronda")
    found = [((), cli)]
    for words, group in found:
        if isinstance(group, click.Group):
            found += [
                ((*words, name), group.get_command(ctx, name)) for name in group.list_commands(ctx)
            ]
    return found


@pytest.mark.parametrize("words", [words for words, _ in every_command()], ids=" ".join)
def test_help(words, ronda):
    """Every command says what it does, and exits with 0."""
    done = ronda(*words, "--help")
    assert done.exit_code == 0
    assert done.stdout.startswith(f"Usage: {' '.join(('ronda', *words))}")
    assert done.stderr == ""


@pytest.mark.parametrize(
    "name",
    [" ".join(w) for w, _ in every_command() if len(w) == 1 or (len(w) == 2 and "instances" in w)],
)
def test_help_shows_examples(name, ronda):
    """Every command shows at least one example of itself."""
    text = ronda(*name.split(), "--help").stdout
    _, _, examples = text.partition("Examples:\n")
    assert f"ronda {name}" in examples


def test_every_example_can_be_parsed():
    """Options and arguments of every example exist (the files need not)."""
    for _, command in every_command():
        for example in getattr(command, "examples", ()):
            line = example.split("   ")[0].split(" > ")[0].split(" < ")[0].split(" >> ")[0]
            line = line.replace("'", "")
            words = line.split()[1:]
            group, ctx = cli, cli.make_context("ronda", ["--help"], resilient_parsing=True)
            while isinstance(group, click.Group):
                group = group.get_command(ctx, words.pop(0))
                assert group is not None, example
                ctx = click.Context(group, parent=ctx, info_name=group.name)
            group.make_context("x", words, parent=ctx.parent)


def test_every_command_with_a_result_has_json():
    """Programs can use every command but those that print a script, or speak a protocol."""
    for words, command in every_command():
        if not isinstance(command, click.Group) and words not in {("completion",), ("mcp",)}:
            assert "--json" in {o for p in command.params for o in p.opts}, words


def test_only_commands_that_are_used_are_loaded():
    """The words of a group complete, and a command decides, without what only others need."""
    code = START + (
        "import ronda.cli.commands.solve, ronda.cli.commands.compare, ronda.cli.commands.run\n"
        "import ronda.cli.commands.frontier, ronda.cli.commands.anytime\n"
        "import ronda.horizon.driver\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"pandas", "pyomo", "highspy", "deap", "matplotlib", "distributed", "rich"}
    assert set(done.stdout.split()) & {*heavy, "networkx", "scipy"} == set()


def test_no_words_show_the_help(ronda):
    """``ronda`` alone is a question."""
    done = ronda()
    assert done.exit_code == 0
    assert "Commands:" in done.stdout


def test_a_group_without_a_word_shows_its_help_as_an_error(ronda):
    """Programs notice that nothing was done."""
    done = ronda("instances")
    assert done.exit_code == 2
    assert "Commands:" in done.stderr


def test_help_loads_nothing_heavy():
    """Help must come at once: no numbers, no models, no tables."""
    code = START + (
        "sys.argv[1:] = ['--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "import json; print(json.dumps(sorted(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}
    assert "click" in loaded
    assert loaded & {"numpy", "pandas", "pyomo", "highspy", "deap", "matplotlib", "rich"} == set()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_script(shell, ronda):
    """The script names the command and the variable that asks for completion."""
    text = ronda("completion", shell).stdout
    assert "_RONDA_COMPLETE" in text
    assert "ronda" in text


@pytest.mark.parametrize(
    ("words", "number", "expected"),
    [
        ("ronda ", "1", {"solve", "run", "compare", "instances"}),
        ("ronda run venus", "2", {"venus-vcvgl", "venus-vcvly"}),
        ("ronda run venus-vcvly --policy s", "4", {"sjf", "srtf"}),
        ("ronda compare venus-vcvly --policies fifo,s", "4", {"fifo,sjf", "fifo,srtf"}),
        ("ronda instances generate ", "3", {"round", "horizon"}),
    ],
)
def test_completion(words, number, expected, ronda, monkeypatch):
    """Commands, packaged instances and policies complete."""
    monkeypatch.setenv("_RONDA_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", number)
    offered = {line.partition(",")[2] for line in ronda().stdout.splitlines()}
    assert expected <= offered


def test_versions(ronda):
    """A bug report gets all versions, for people and for programs."""
    fields = json.loads(ronda("show-versions", "--json").stdout)
    assert fields["versions"]["ronda"] == "0.1.0"
    assert {"cpu", "cores", "python", "machine"} <= fields["host"].keys()
    assert "highspy" in ronda("show-versions").stdout
    assert ronda("--version").stdout.startswith("ronda 0.1.0")
