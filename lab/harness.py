"""What all studies do alike: options, results that are kept, tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pandas as pd
from rich.console import Console
from rich.progress import track

from lab.program import CONTEXT, Above0
from ronda.bench.runs.folder import claim
from ronda.bench.runs.provenance import host
from ronda.bench.runs.results import RESULTS, SealedLines
from ronda.bench.runs.specs import parse_seeds, split_policies
from ronda.instances.errors import InputError
from ronda.instances.files.storage import write_bytes
from ronda.solvers.versions import versions


@dataclass(frozen=True, slots=True)
class Folder:
    """The output folder of a study."""

    path: Path

    def measure(
        self,
        cases: Sequence[dict[str, Any]],
        measure: Callable[..., dict[str, Any]],
        final: Callable[[dict[str, Any]], bool] = bool,
    ) -> pd.DataFrame:
        """Return a row for each case: what was asked, and what `measure` found.

        Cases are keyword arguments of `measure`: strings and numbers, the same names for all.
        Every result is a line of ``results.jsonl`` before the next case begins; a later call
        measures what has no `final` line. Progress goes to stderr.
        """

        def key(line: dict[str, Any]) -> tuple[Any, ...]:
            return tuple(line[name] for name in cases[0])

        try:
            kept = SealedLines[dict[str, Any]](self.path / RESULTS, "a line of this study", key)
        except KeyError as error:
            lacks = f"a line without {error.args[0]!r}"
            raise InputError(str(self.path / RESULTS), lacks, "lines of this study") from None
        missing = [case for case in cases if not final(kept.get(key(case)) or {})]
        for case in track(missing, "cases", console=Console(stderr=True), transient=True):
            found = measure(**case)
            kept.append(case | found | {"versions": versions(), "host": host()})
        return pd.DataFrame([kept.get(key(case)) for case in cases])

    def write(self, table: str) -> None:
        """Print a table and keep it as ``table.md``."""
        write_bytes(self.path / "table.md", table.encode())
        click.echo(table, nl=False)


def study(
    name: str,
    about: str | None,
    experiment: Callable[..., int | None],
    options: Sequence[click.Parameter] = (),
) -> click.Command:
    """Return the command of a study, helped by its module's docstring; `name` marks its folders.

    The experiment gets the `Folder` and the options by name, and may return an exit code.
    """

    def run(out: Path, **given: Any) -> int | None:
        with claim(out, "study", {"study": name}):
            return experiment(Folder(out), **given)

    folder = option(
        "--out",
        type=click.Path(path_type=Path),
        default=Path(f"{name}-out"),
        help="Folder of results; a later call goes on from them.",
    )
    # Click wraps paragraphs, except for those that begin with a \b: formulas stay as they are.
    parts = (part if part[0] != " " else f"\b\n{part}" for part in (about or "").split("\n\n"))
    return click.Command(name, CONTEXT, run, params=[*options, folder], help="\n\n".join(parts))


def option(*names: str, **given: Any) -> click.Option:
    """Return an option whose help shows its default."""
    return click.Option(names, show_default=True, **given)


def seeds(default: str) -> click.Option:
    """Return ``--seeds``: a tuple of numbers."""
    return _listed("--seeds", default, parse_seeds, "As in 0-19 or 0,3,5.")


def policies(default: str) -> click.Option:
    """Return ``--policies``: a tuple of specifications."""
    return _listed("--policies", default, split_policies, "As in fifo,prices(gap=1e-3).")


def words(flag: str, default: Sequence[str], meaning: str) -> click.Option:
    """Return an option that takes some of the default's words: a tuple."""

    def parse(text: str) -> tuple[str, ...]:
        found = tuple(part.strip() for part in text.split(","))
        unknown = [part for part in found if part not in default]
        if unknown:
            raise click.BadParameter(
                f"found {unknown[0]!r}; expected one of {', '.join(default)}", param_hint=flag
            )
        return found

    return _listed(flag, ",".join(default), parse, meaning)


def numbers(flag: str, default: str, meaning: str) -> click.Option:
    """Return an option that takes numbers above 0: a tuple."""
    kind = Above0()

    def parse(text: str) -> tuple[float, ...]:
        return tuple(kind.convert(part, None, None) for part in text.split(","))

    return _listed(flag, default, parse, meaning)


def jobs(default: int) -> click.Option:
    """Return ``--jobs``: how many each workload has."""
    return option("--jobs", type=click.IntRange(1), default=default, help="Of each workload.")


def limit(default: float, meaning: str) -> click.Option:
    """Return ``--limit``, as `limit_s`."""
    return option("--limit", "limit_s", type=Above0(), default=default, help=meaning)


def _listed(
    flag: str, default: str, parse: Callable[[str], tuple[Any, ...]], meaning: str
) -> click.Option:
    def callback(_context: click.Context, _option: click.Parameter, text: str) -> tuple[Any, ...]:
        return parse(text)

    return option(flag, default=default, callback=callback, help=meaning)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]], *, words: int = 1) -> str:
    """Return a Markdown table; all columns after the first `words` are aligned to the right."""
    rule = ["---" if k < words else "--:" for k in range(len(header))]
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, rule, *rows))
