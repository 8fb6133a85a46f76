"""Run the code that README and docs show: ``python docs/blocks.py [--short] [PAGE ...]``.

Each page is one story in an empty folder: its blocks run in order, Python in one namespace.

* ``python`` runs in this process, and so do commands of ``ronda`` without redirection;
* ``sh``, ``bash``, ``console``, and indented blocks that begin with a program, run in a shell;
* under a command of a ``console`` block stands what it prints: these lines in this order, others
  between them; ``...`` stands for any text. A command that shows ``error:`` ends with exit code 2;
* a block with a name behind its language (``csv jobs.csv``) is that file.

A comment just before a block changes that:

* ``<!-- slow: why -->``: it takes longer than some seconds, so ``make docs`` runs it, no test does;
* ``<!-- not run: why -->``: nothing runs it. Its commands must still parse, with their options.
* ``<!-- run: commands -->`` is a block that no reader sees, for files that a page needs;
* ``<!-- output -->``: the block shows lines of what the last one printed, as a ``console`` does.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.testing import CliRunner
from markdown_it import MarkdownIt

from ronda.cli.app import cli

ROOT = Path(__file__).parents[1]
SHELL = ("sh", "bash", "console")
PROGRAMS = r"(?:[A-Z_]+=\S+ )*(?:ronda|python|pip|make|pytest|pre-commit|curl|scip|\.venv/|\.ci/)"
MARK = re.compile(r"<!-- (slow|not run|run|output)(?::\s(.*?))? ?-->\s*\Z", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """Code on a page: its language and text, a file's name, where it begins, and its mark."""

    language: str
    text: str
    file: str
    line: int
    mark: str


def pages() -> list[str]:
    """Return the pages, relative to the repository."""
    docs = sorted((ROOT / "docs").rglob("*.md"))
    return ["README.md", "CONTRIBUTING.md", *(str(p.relative_to(ROOT)) for p in docs)]


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page that hold code or files."""
    found: list[Block] = []
    mark = ""
    for token in MarkdownIt().parse((ROOT / page).read_text(encoding="utf-8")):
        line = token.map[0] + 1 if token.map else 0
        comment = MARK.match(token.content) if token.type == "html_block" else None
        if comment and comment[1] == "run":
            found.append(Block("sh", comment[2], "", line, ""))
        elif token.type in ("fence", "code_block") and mark == "output":
            found.append(Block("output", token.content, "", line, ""))
        elif token.type == "fence" and token.info:
            language, _, file = token.info.partition(" ")
            found.append(Block(language, token.content, file.strip(), line, mark))
        elif token.type == "code_block" and re.match(PROGRAMS, token.content):
            found.append(Block("sh", token.content, "", line, mark))
        mark = comment[1] if comment else ""
    return [b for b in found if b.language in (*SHELL, "python", "output") or b.file]


def shown(block: Block) -> list[tuple[str, list[str]]]:
    """Return the commands of a block, each with the lines that it is shown to print."""
    text = block.text.replace("\\\n", " ")
    if block.language != "console":
        return [(line, []) for line in text.splitlines() if line.strip()]
    found: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif line.strip():
            found[-1][1].append(line)
    return found


def parse(words: list[str]) -> None:
    """Let click read a command of ``ronda`` with its options, and run nothing."""
    command: click.Command = cli
    context = click.Context(cli, **cli.context_settings)
    rest = words[1:]
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        below = command.get_command(context, rest[0])
        if below is None:
            raise AssertionError(f"there is no command {' '.join(words)}")
        command, rest = below, rest[1:]
    if not {"-h", "--help", "--version"} & set(rest):
        command.make_parser(click.Context(command, parent=context)).parse_args(rest)


class Story:
    """A page that is run, block by block, in the current folder."""

    def __init__(self, page: str) -> None:
        self.page = page
        self.names: dict[str, Any] = {}
        self.said = ""

    def run(self, block: Block) -> None:
        """Run a block, or make its file; what it does wrong is raised."""
        if block.file:
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "output":
            self.must_have(block.text.splitlines())
        elif block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as stream:
                exec(compile("\n" * block.line + block.text, self.page, "exec"), self.names)
            self.said = stream.getvalue()
        elif block.language == "console":
            for line, lines in shown(block):
                expected = 2 if any(text.startswith("error:") for text in lines) else 0
                self.call([line], expected)
                self.must_have(lines)
        else:
            self.call([line for line, _ in shown(block)])

    def call(self, lines: list[str], expected: int = 0) -> None:
        """Run lines of a shell, and keep what they print; they must end with this exit code."""
        if all(plain(line) for line in lines):
            code, self.said = 0, ""
            for line in lines:
                code, said = in_process(line)
                self.said += said
                if code:
                    break
        else:
            code, self.said = in_shell("\n".join(lines))
        assert code == expected, f"ends with exit code {code}:\n{self.said}"

    def must_have(self, lines: list[str]) -> None:
        """Find these lines in what was printed last, in this order."""
        missing = first_missing(lines, self.said)
        assert missing is None, f"{missing!r} is not printed, not in this place:\n{self.said}"


def plain(line: str) -> bool:
    """Return whether a line is a command of ``ronda`` that needs no shell."""
    return bool(re.match(r"ronda ", line)) and not re.search(
        r"[|&;<>$`]", re.sub("'.*?'", "", line)
    )


def in_process(line: str) -> tuple[int, str]:
    """Run a command of ``ronda`` here; return its exit code and what it printed."""
    result = CliRunner().invoke(cli, shlex.split(line, comments=True)[1:], prog_name="ronda")
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def in_shell(script: str) -> tuple[int, str]:
    """Run a script; return its exit code and what it printed."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        env=os.environ | {"PATH": path},
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout


def first_missing(lines: list[str], said: str) -> str | None:
    """Return the first of some lines that a text does not have, in this order; None: it has all."""
    left = iter([" ".join(line.split()) for line in said.splitlines()])
    for line in lines:
        parts = [re.escape(part) for part in " ".join(line.split()).split("...")]
        if not any(re.fullmatch(".*".join(parts), text) for text in left):
            return line
    return None


@contextlib.contextmanager
def stage() -> Iterator[None]:
    """Work in a new folder, in which the repository's suites and test data are at their places."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in ("lab", "tests", "tools"):
            Path(name).symlink_to(ROOT / name)
        columns = os.environ.get("COLUMNS")
        os.environ["COLUMNS"] = "200"
        try:
            yield
        finally:
            os.environ.pop("COLUMNS") if columns is None else os.environ.update(COLUMNS=columns)


def run_page(page: str, slow: bool = True) -> list[str]:
    """Run a page, and return what went wrong, a text for each block that failed."""
    wrong = []
    with stage():
        story = Story(page)
        for block in sorted(blocks(page), key=lambda b: not b.file):  # files come first
            if block.mark == "not run" or (block.mark == "slow" and not slow):
                continue
            try:
                story.run(block)
            except (Exception, SystemExit):
                wrong.append(f"{page}:{block.line}: {traceback.format_exc(limit=-3)}")
    return wrong


def timed(page: str, slow: bool) -> tuple[list[str], float]:
    """Run a page; return what went wrong, and the seconds."""
    start = time.perf_counter()
    return run_page(page, slow), time.perf_counter() - start


def main(words: list[str]) -> int:
    """Run pages, two at a time; return the exit code."""
    sys.path.insert(0, str(ROOT))  # for pages that import `lab`
    slow = "--short" not in words
    asked = [w for w in words if w != "--short"] or pages()
    failed = 0
    with ProcessPoolExecutor(2) as pool:
        for page, (wrong, seconds) in zip(
            asked, pool.map(timed, asked, [slow] * len(asked)), strict=True
        ):
            print(f"{seconds:6.1f} s  {page}", *wrong, sep="\n", flush=True)
            failed += len(wrong)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
