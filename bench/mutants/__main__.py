"""The command line of mutants: ``python -m ronda.bench.mutants``."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

import ronda
from ronda.bench.mutants.hunt import Fate, hunt
from ronda.bench.mutants.mutation import LISTED, read
from ronda.bench.program import CONTEXT, Above0, run_program

ROOT = Path(ronda.__file__).resolve().parents[1]
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("mutants", context_settings=CONTEXT)
@click.option("--only", multiple=True, help="Those whose name contains this; may be repeated.")
@click.option("--out", type=_FILE, help="Keep outcomes here; what it says is killed is left out.")
@click.option("--json", "as_json", is_flag=True, help="For programs: one JSON object a line.")
@click.option("--list", "listed", type=_FILE, default=LISTED, help="Another list than ronda's.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=ROOT,
    help="Another tree than ronda's clone.",
)
@click.option("--limit", type=Above0(), default=600.0, show_default=True, help="Seconds for each.")
def mutants(
    only: tuple[str, ...], out: Path | None, as_json: bool, listed: Path, root: Path, limit: float
) -> int:
    """Break ronda in small ways, one at a time, and see whether the tests notice.

    A mutation changes one text of one file in a copy of the tree, and runs the tests that should
    fail. One that no test notices has survived: a rule is wired up, and nothing would tell if it
    were not. The exit code is 1 if any survives, 2 if the list does not fit the code any more.

    \b
    Examples:
      python -m ronda.bench.mutants
      python -m ronda.bench.mutants --only ones --only powerflow
      python -m ronda.bench.mutants --out mutants.jsonl      again: goes on from there
    """  # noqa: D301 (click reads the \b)
    kept = _kept(out)
    chosen = read(listed, only)
    todo = [m for m in chosen if not (m.name in kept and kept[m.name].killed)]
    survived = 0
    with tempfile.TemporaryDirectory() as scratch:
        for outcome in hunt(todo, root, Path(scratch) / "tree", limit) if todo else ():
            survived += not outcome.killed
            line = msgspec.json.encode(outcome)
            if out is not None:
                with out.open("ab") as file:
                    file.write(line + b"\n")
            click.echo(line.decode() if as_json else _words(outcome))
    if not as_json:
        click.echo(f"{len(chosen) - survived} of {len(chosen)} noticed")
    return int(survived > 0)


def _kept(out: Path | None) -> dict[str, Fate]:
    """Return the outcomes of earlier calls, by name."""
    if out is None or not out.exists():
        return {}
    decode = msgspec.json.Decoder(Fate).decode
    return {outcome.name: outcome for outcome in map(decode, out.read_bytes().splitlines())}


def _words(outcome: Fate) -> str:
    """Return the line of an outcome for people."""
    verdict = "killed" if outcome.killed else "SURVIVED"
    return f"{verdict:8} {outcome.seconds:6.1f} s  {outcome.name}  {outcome.by}".rstrip()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    return run_program(mutants, "python -m ronda.bench.mutants", arguments)


if __name__ == "__main__":
    sys.exit(main())
