"""Whether documents that were changed at random are refused in one line, or can be used.

A case is a small real document of some kind with one to three changes. It is read; an instance is
run and a round is solved by some policies, an answer is checked. Right is a plan or schedule that
the checker finds in order, or an error of ronda's own, in one line; a run that goes on round after
round is cut. Wrong is any other exception, 5 s of processor time without an answer or a round, more
than 1 GiB of memory, or a process that dies. Cases come in
batches, each in a process of its own; the exit code is 1 if one is wrong.
"""

import json
import resource
import signal
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from types import FrameType
from typing import Any

import click
import numpy as np
import pandas as pd

import ronda
from ronda.bench.soak.mutate import NAMES, document, mutant, question_of
from ronda.bench.study.harness import Folder, markdown, option, policies, study
from ronda.instances.errors import RondaError
from ronda.instances.plan import SolutionStatus
from ronda.solvers.registry import POLICIES

BATCH = 100
"""Cases of a process."""

LIMIT_S, LONG_S = 1.0, 5.0
"""Seconds that a decision gets, and most processor time of one; a run is cut after as much."""

MEMORY = 1 << 30
"""Most bytes."""

HANGS_S = 600.0
"""Seconds of a batch after which it is taken to hang where no signal reaches it."""

WORDY = 3000
"""Most characters of an error."""


class TooLongError(BaseException):
    """A case has used up its processor time."""


class LongRunError(BaseException):
    """A run goes on, but for long."""


def batch(first: int, cases: int, specs: tuple[str, ...], note: str) -> dict[str, Any]:
    """Try cases, in this process; `note` is a file that says which is under way."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, _too_long)
    counts: Counter[str] = Counter()
    wrong = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for case in range(first, first + cases):
            Path(note).write_text(str(case))
            verdict, why = attempt(case, specs, Path(folder) / "case.json")
            counts[verdict] += 1
            if why:
                wrong.append(f"case {case}: {why}")
    return {**{name: counts[name] for name in VERDICTS}, "warnings": len(said), "why": wrong}


def _too_long(_number: int, _frame: FrameType | None) -> None:
    raise TooLongError


VERDICTS = ("refused", "unsolved", "cut", "good", "wrong")
"""How a case ends: not read, read and then refused, cut, an answer in order, or wrong."""


def attempt(case: int, specs: tuple[str, ...], path: Path) -> tuple[str, str]:
    """Return the verdict on one case, and what is wrong if it is."""
    rng = np.random.default_rng([case, 11])
    name = NAMES[rng.integers(len(NAMES))]
    path.write_bytes(mutant(name, rng))
    asked, verdict = "read", "refused"
    try:
        signal.setitimer(signal.ITIMER_PROF, LONG_S)
        found: Any = ronda.read(path)
        for asked in rng.choice(specs, 2, replace=False).tolist():
            verdict = "unsolved"
            signal.setitimer(signal.ITIMER_PROF, LONG_S)
            if broken := _use(name, found, asked, path):
                return "wrong", f"{name}, {asked}: {broken}"
            verdict = "good"
    except RondaError as error:
        text = str(error)
        if "\n" in text or len(text) > WORDY or not text.isprintable():
            return "wrong", f"{name}, {asked}: an error of {len(text)} characters: {text[:80]!r}"
    except LongRunError:
        return "cut", ""
    except (Exception, TooLongError, SystemExit) as error:
        return "wrong", f"{name}, {asked}: {type(error).__name__}{_where(error)}: {str(error)[:80]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
    return verdict, ""


def _where(error: BaseException) -> str:
    """Return the last place in ronda, outside this room, that an error came through."""
    frames = traceback.extract_tb(error.__traceback__)
    places = [(*frame.filename.rpartition("/ronda/")[1:], frame.lineno) for frame in frames]
    own = [f" at {file}:{line}" for ours, file, line in places if ours and "soak/" not in file]
    return own[-1] if own else ""


def _use(name: str, found: Any, spec: str, path: Path) -> str:
    """Solve, run or check a document; return what is wrong with the answer, if anything."""
    answer: Any
    if isinstance(found, ronda.Plan | ronda.Schedule):
        question: Any = ronda.read(_question(name, path))
        ronda.check(question, found)
        return ""
    if isinstance(found, ronda.Round):
        answer = ronda.solve(found, spec, deadline=ronda.Deadline(LIMIT_S))
        if answer.status is SolutionStatus.NONE:
            return ""
    else:
        answer = ronda.run(found, spec, time_limit_s=LIMIT_S, progress=_alive())
    if broken := ronda.check(found, answer):
        return f"{len(broken)} violations: {broken[0]}"
    ronda.write(answer, path)
    return "" if ronda.read(path) == answer else "it is read otherwise than it was written"


def _alive() -> Callable[[int, int, float], None]:
    """Return what to tell of each round: it starts the timer again, and cuts a run that lasts."""
    until_s = time.process_time() + LONG_S

    def told(_completed: int, _jobs: int, _now_s: float) -> None:
        signal.setitimer(signal.ITIMER_PROF, LONG_S)
        if time.process_time() > until_s:
            raise LongRunError

    return told


def _question(name: str, path: Path) -> Path:
    """Write the round or instance whose answer a document is, and return where."""
    there = path.with_name("question.json")
    there.write_bytes(document(question_of(name)))
    return there


def measure(first: int, cases: int, specs: str) -> dict[str, Any]:
    """Try a batch in a process of its own."""
    began = time.perf_counter()
    with tempfile.NamedTemporaryFile("r") as note:
        context = get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            task = pool.submit(batch, first, cases, tuple(json.loads(specs)), note.name)
            try:
                found = task.result(HANGS_S)
            except (BrokenProcessPool, TimeoutError) as error:
                for process in list((pool._processes or {}).values()):
                    process.kill()
                why = f"case {note.read()}: the process {type(error).__name__}"
                found = dict.fromkeys(VERDICTS, 0) | {"wrong": 1, "warnings": 0, "why": [why]}
    return found | {"seconds": time.perf_counter() - began}


def experiment(folder: Folder, cases: int, first: int, policies: tuple[str, ...]) -> int:
    """Try all cases; return the exit code."""
    specs = json.dumps(policies)
    starts = range(first, first + cases, BATCH)
    asked = [{"first": k, "cases": min(BATCH, first + cases - k), "specs": specs} for k in starts]
    lines = folder.measure(asked, measure)
    folder.write(table(lines))
    for why in lines.why.explode().dropna():
        click.echo(f"WRONG: {why}")
    return int(lines.wrong.sum() > 0)


def table(lines: pd.DataFrame) -> str:
    """Return how many cases ended how, in Markdown."""
    names = ["cases", *VERDICTS, "warnings"]
    return markdown(names, [[f"{lines[name].sum():,}" for name in names]], words=0)


QUICK = {"genetic": "genetic(generations=3)", "evolve": "evolve(generations=3)"}

command = study(
    "fuzz",
    __doc__,
    experiment,
    [
        option("--cases", type=click.IntRange(1), default=50_000, help="Documents."),
        option("--first", type=click.IntRange(0), default=0, help="Number of the first case."),
        policies(",".join(QUICK.get(name, name) for name in POLICIES)),
    ],
)
