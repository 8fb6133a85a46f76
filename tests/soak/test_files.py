"""Documents and tables that were changed at random are refused in one line, or can be used.

Wrong is any exception but ronda's own, or one of several lines; an answer that breaks a rule or is
read otherwise than it was written; a case that takes a minute (a run that goes on is cut), or some
GiB.
"""

import json
import resource
import time
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from mutate import NAMES, document, mutant, question_of

import ronda
from ronda.cli.app import cli
from ronda.instances.errors import RondaError
from ronda.instances.plan import SolutionStatus
from ronda.solvers.registry import POLICIES

pytestmark = [pytest.mark.soak, pytest.mark.timeout(60)]

LIMIT_S, LONG_S = 1.0, 5.0
"""Seconds that a decision gets, and after which a run is cut."""

MEMORY, WORDY = 3 << 30, 3000
"""Bytes that the process may come to hold; characters of an error."""

SHORT = {"genetic": "genetic(generations=3)", "evolve": "evolve(generations=3)"}
SPECS = tuple(SHORT.get(name, name) for name in POLICIES)
DATA = Path(__file__).parents[1] / "data"


class CutError(Exception):
    """A run goes on, but for long."""


@pytest.fixture(autouse=True)
def little_memory():
    """Let the process hold no more than that."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_DATA, before)


@pytest.mark.seeds(100)
@pytest.mark.filterwarnings("ignore")
def test_a_changed_document_is_refused_or_used(seed, tmp_path):
    """By two policies each."""
    rng = np.random.default_rng([seed, 11])
    name, path = NAMES[rng.integers(len(NAMES))], tmp_path / "case.json"
    path.write_bytes(mutant(name, rng))
    try:
        found = ronda.read(path)
        for spec in rng.choice(SPECS, 2, replace=False).tolist():
            use(name, found, spec, path)
    except RondaError as error:
        text = str(error)
        assert len(text) <= WORDY
        assert text.isprintable()
    except CutError:
        return


def use(name, found, spec, path):
    """Solve, run or check a document."""
    if isinstance(found, ronda.Plan | ronda.Schedule):
        path.write_bytes(document(question_of(name)))
        ronda.check(ronda.read(path), found)
        return
    if isinstance(found, ronda.Round):
        answer = ronda.solve(found, spec, deadline=LIMIT_S)
        if answer.status is SolutionStatus.NONE:
            return
    else:
        answer = ronda.run(found, spec, time_limit_s=LIMIT_S, progress=cutting())
    assert ronda.check(found, answer) == []
    ronda.write(answer, path)
    assert ronda.read(path) == answer


def cutting():
    """Return what is told of each round, and ends a run that lasts."""
    until_s = time.process_time() + LONG_S

    def told(_completed, _jobs, _now_s):
        if time.process_time() > until_s:
            raise CutError

    return told


MAP = "submit=submit_time,gpus=num_chips,duration=duration_s,vc=tenant"
CELLS = ("", "x", "-1", "0", "1e400", "nan", '"', ",", "\n", "2020-13-01", "é\u202e", "1" * 40)


@pytest.mark.seeds(60)
def test_a_changed_table_is_refused_or_read(seed, tmp_path):
    """With exit code 2 and one line, or 0; in the end ronda reads what it wrote."""
    rng = np.random.default_rng([seed, 12])
    lines = (DATA / "helios/helios_venus_2vc_sept.csv").read_text().splitlines()[8:48]
    for _ in range(int(rng.integers(1, 5))):
        k = int(rng.integers(len(lines)))
        cells = lines[k].split(",")
        at = int(rng.integers(len(cells)))
        match rng.integers(4):
            case 0:
                del cells[at]
            case 1:
                cells.insert(at, str(rng.choice(CELLS)))
            case 2:
                lines.insert(k, lines[int(rng.integers(len(lines)))])
                continue
            case _:
                cells[at] = str(rng.choice(CELLS))
        lines[k] = ",".join(cells)
    converted(tmp_path, "\n".join(lines), "--map", MAP)


ROOM = {
    "gpu_types": [{"name": "a", "memory_gib": 40}, {"name": "b", "memory_gib": 80}],
    "node_groups": [
        {"name": "a", "count": 4, "gpus_per_node": 8, "gpu_type": "a"},
        {"name": "b", "count": 2, "gpus_per_node": 4, "gpu_type": "b", "partition": "b"},
    ],
}
SLURM = (
    *("-1", "1-02:00:00", "30:00", "UNLIMITED", "Unknown", "None", "5,400", "90 min", "7_[0-3%2]"),
    *("7_[1,2,...", "7.batch", "7+0", "PENDING", "CANCELLED by 7", "gres/gpu:b=2", "gres/gpu=9"),
    *("gres/gpu:c=1", "gres/gpu=1,gres/gpu=2", "2025-10-26T02:30:00", "2025-03-30T02:30:00", "|"),
    *("7_[0-999999999]", "9" * 400, "b", "a,b", "0", "1e-9"),
)


def slurm_row(k, rng):
    """Return a row as sacct writes it."""
    kind, hour = ("a", "b")[k % 2], int(rng.integers(1, 4))
    times = (f"2025-10-26T0{hour}:{k % 60:02}:00" for _ in range(3))
    of = ("default", "b")[k % 2]
    ran = f"00:{rng.integers(60):02}:00"
    return [str(k // 2), "u", of, *times, ran, "COMPLETED", "01:00:00", f"gres/gpu:{kind}=2", ""]


HEAD = "JobID|User|Partition|Submit|Start|End|Elapsed|State|Timelimit|AllocTRES|ReqTRES"


@pytest.mark.seeds(60)
def test_a_changed_log_is_refused_or_adds_up(seed, tmp_path):
    """Of Slurm or in the Standard Workload Format, on equal nodes or a cluster of its own."""
    rng = np.random.default_rng([seed, 13])
    slurm, count = bool(rng.integers(2)), int(rng.integers(1, 400))
    rows = [slurm_row(k, rng) for k in range(count)]
    if not slurm:
        limits = rng.integers(-1, 99, count)
        rows = [f"{k + 1} {k} 5 60 2 -1 -1 2 {limits[k]} -1 1 1".split() for k in range(count)]
    for _ in range(int(rng.integers(0, 6))):
        row = rows[int(rng.integers(count))]
        row[int(rng.integers(len(row)))] = str(rng.choice(SLURM + CELLS))
        if rng.integers(12) == 0:
            del row[int(rng.integers(len(row)))]
        if not row:
            row.append("7")
    lines = [("|" if slurm else " ").join(row) for row in rows]
    (tmp_path / "room.json").write_text(json.dumps(ROOM))
    where = ["--cluster", str(tmp_path / "room.json")] if rng.integers(2) else []
    text = "\n".join([HEAD, *lines] if slurm else lines)
    zone = ["--zone", "Europe/Berlin"] if slurm else []
    told = converted(tmp_path, text, *zone, *where, reader="sacct" if slurm else "swf")
    if told is not None:
        folded = sum(told["folded"].get(what, 0) for what in ("steps", "sums of parts"))
        assert told["rows"] == told["runs"] + folded + sum(told["dropped"].values())
        assert told["rows"] <= len(text.split("\n"))
        assert told["dropped"].keys() == told["examples"].keys()


def converted(folder, text, *words, reader="table"):
    """Return what a table becomes, for programs; None if it is refused in one line."""
    table, out = folder / "trace.csv", folder / "out.json"
    table.write_text(text)
    line = ["instances", "convert", reader, str(table), *words, "--out", str(out), "--json"]
    done = CliRunner().invoke(cli, line)
    assert done.exit_code in (0, 2), done.exception
    assert out.exists() == (done.exit_code == 0)
    if done.exit_code == 0:
        ronda.read(out)
        return json.loads(done.stdout.splitlines()[-1])
    assert isinstance(done.exception, RondaError | SystemExit)
    assert len(str(done.exception).splitlines()) == 1
    return None
