"""Whatever is wrong with the input: one line on stderr, exit code 2, nothing written."""

import json
import os
import stat
import subprocess
import sys

import pytest

# Words of the command, and words that the one line must hold.
BAD = [
    # names and files
    ("run nothing-like-this", "packaged instance"),
    ("run pollux-11", "pollux-1"),
    ("solve missing.json", "missing.json"),
    ("run .", "directory"),
    ("run cut.json", "cut.json"),
    ("solve cut.json", "cut.json"),
    ("run text.json", "text.json"),
    ("run unknown-field.json", "colour"),
    ("run wrong-type.json", "submit_s"),
    ("run negative.json", "submit_s"),
    ("run too-large.json", "gpus"),
    ("run twice.json", "unique"),
    ("run no-profile.json", "nothing"),
    ("run no-jobs.json", "jobs"),
    ("instances check cut.json", "cut.json"),
    ("instances show cut.json", "cut.json"),
    # the wrong kind of file
    ("run round.json", "ronda solve"),
    ("solve two-nodes.json", "ronda run"),
    ("compare round.json", "ronda solve"),
    ("export two-nodes.json --out m.lp", "ronda run"),
    ("explain two-nodes.json", "ronda run"),
    ("consolidate two-nodes.json", "ronda run"),
    ("instances check two-nodes.json round.json", "a schedule"),
    # policies
    ("run two-nodes.json --policy fofo", '"fifo", "fifo+zeus"'),
    ("run two-nodes.json --policy fifo(x=1)", "'x'"),
    ("run two-nodes.json --policy fifo(", "NAME"),
    ("solve round.json --policy genetic(nothing=1)", "nothing"),
    ("solve round.json --policy prices(gap=x)", 'gap: found "x"; expected a number, as in prices('),
    ("solve round.json --policy genetic(population=2.5)", "found 2.5; expected an integer, as in"),
    ("solve round.json --policy fifo+zeus(eta=2)", "found 2; expected a number <= 1"),
    ("compare two-nodes.json --policies fifo,,sjf", "comma"),
    ("compare two-nodes.json --policies fifo,sjf)", "as many"),
    ("compare two-nodes.json --policies ''", "--policies"),
    # options that would do nothing
    ("solve round.json --policy fifo --force", "--out"),
    ("import-solution round.json m.sol --force", "--out"),
    ("sleep earth-2020-09 --force", "--out"),
    ("instances show round.json --force", "--out"),
    ("instances generate horizon --repair-s 60 --out new.json", "--node-failures"),
    ("instances generate horizon --drains 1 --slowest 0.9 --out new.json", "--stragglers"),
    ("instances generate horizon --checkpoint-s 60 --out new.json", "or --job-failures"),
    # numbers
    ("run two-nodes.json --policy fifo --seed x", "--seed"),
    ("run two-nodes.json --policy fifo --seed 1.5", "--seed"),
    ("run two-nodes.json --policy fifo --seed -1", "--seed"),
    ("solve round.json --policy fifo --time-limit 0", "--time-limit"),
    ("run two-nodes.json --policy fifo --time-limit -3", "--time-limit"),
    ("run two-nodes.json --policy fifo --time-limit nan", "--time-limit"),
    ("run two-nodes.json --policy fifo --time-limit inf", "--time-limit"),
    ("run two-nodes.json --policy fifo --period soon", "--period"),
    ("consolidate round.json --moves -1", "--moves"),
    ("consolidate round.json --lost-gpu-s nan", "--lost-gpu-s"),
    ("consolidate round.json --gap 2", "--gap"),
    ("consolidate round.json --save gpus", "--save"),
    ("consolidate round.json --out round.json", "--force"),
    ("whatif round.json", "at least one, such as --gpus"),
    ("whatif round.json --gpus A100:8", "TYPE:+N"),
    ("whatif round.json --gpus H100:+8", "default/A100"),
    ("whatif round.json --gpus A100:-999", "in service"),
    ("whatif round.json --power-cap -1", "30kW"),
    ("whatif round.json --power-cap 400", "30kW"),
    ("whatif round.json --energy 0", "0.9"),
    ("whatif round.json --remove-rack r9", "--remove-rack"),
    ("whatif round.json --remove-node 99", "--remove-node"),
    ("whatif round.json --remove-job nobody", "--remove-job"),
    ("whatif round.json --job missing.json", "missing.json"),
    ("whatif round.json --job unknown-field.json", "unknown-field.json"),
    ("whatif round.json --gpus A100:+8 --at 5", "--at"),
    ("whatif round.json --gpus A100:+8 --policy fifo", "chooses by values"),
    ("whatif round.json --gpus A100:+8 --force", "--out"),
    ("whatif round.json --gpus A100:+8 --out round.json", "expected one that exists"),
    ("whatif two-nodes.json --gpus T4:+4 --at 1e12 --policy prices", "last decision"),
    ("compare two-nodes.json --seeds 4-0", "--seeds"),
    ("compare two-nodes.json --seeds a", "--seeds"),
    ("compare two-nodes.json --timeout 0", "--timeout"),
    ("compare two-nodes.json --memory lots", "--memory"),
    ("compare two-nodes.json --memory 0", "--memory"),
    ("compare two-nodes.json --jobs 0", "--jobs"),
    ("instances generate round --jobs 0 --out new.json", "--jobs"),
    ("instances generate round --severity mad --out new.json", "--severity"),
    ("instances convert helios trace.csv --nodes 0 --out new.json", "--nodes"),
    ("instances convert helios trace.csv --nodes a=1,a=2 --out new.json", "--nodes"),
    # outputs
    ("solve round.json --policy fifo --out round.json", "--force"),
    ("solve round.json --policy fifo --out no/such/plan.json", "no/such"),
    ("solve round.json --policy fifo --out plan.txt", ".json"),
    ("solve round.json --policy fifo --out .", "folder"),
    ("run two-nodes.json --policy fifo --out thesis", "files that ronda did not make"),
    ("run two-nodes.json --policy fifo --out text.json", "a file"),
    ("compare two-nodes.json --policies fifo --out thesis", "files that ronda did not make"),
    ("compare two-nodes.json --policies fifo --out text.json/x", "text.json"),
    ("instances generate round --out round.json", "--force"),
    ("instances generate round --out new.yaml", ".json"),
    ("instances convert helios trace.csv --nodes 2 --out round.json", "--force"),
    ("instances convert helios missing.csv --nodes 2 --out new.json", "missing.csv"),
    ("instances convert helios empty.csv --nodes 2 --out new.json", "empty.csv"),
    ("instances convert helios trace.csv --nodes 2 --out new.json", "trace.csv"),
    # words
    ("solv round.json", "solv"),
    ("solve", "ROUND"),
    ("solve round.json --polcy fifo", "--policy"),
    ("solve round.json two-nodes.json", "two-nodes.json"),
    ("compare", "INSTANCE"),
    ("completion tcsh", "tcsh"),
    ("instances lst", "lst"),
]


@pytest.fixture
def bad(folder):
    """A working directory full of files that cannot be used."""
    whole = (folder / "two-nodes.json").read_text()
    (folder / "cut.json").write_text(whole[: len(whole) // 2])
    (folder / "text.json").write_text("hello\n")
    for name, old, new in (
        ("unknown-field", '"costs"', '"colour": 1, "costs"'),
        ("wrong-type", '"submit_s": 10.0', '"submit_s": "ten"'),
        ("negative", '"submit_s": 10.0', '"submit_s": -10.0'),
        ("too-large", '"gpus": 8', '"gpus": 9'),
        ("twice", '"id": "b"', '"id": "a"'),
        ("no-profile", '"profile": "rigid"', '"profile": "nothing"'),
    ):
        assert old in whole
        (folder / f"{name}.json").write_text(whole.replace(old, new, 1))
    start, end = whole.index('"jobs": ['), whole.index("]", whole.index('"jobs": ['))
    (folder / "no-jobs.json").write_text(whole[:start] + '"jobs": [' + whole[end:])
    (folder / "empty.csv").write_text("job_id,submit_s,num_gpus,duration_s\n")
    (folder / "trace.csv").write_text("job_id,submit_s,num_gpus,duration_s\n1,0,1,ten\n")
    (folder / "thesis").mkdir()
    (folder / "thesis" / "thesis.tex").write_text("do not touch")
    return folder


def contents(folder):
    """Return every file below a folder with what it holds."""
    return {
        os.path.join(where, name): open(os.path.join(where, name), "rb").read()
        for where, _, names in os.walk(folder)
        for name in names
    }


@pytest.mark.parametrize(("words", "expected"), BAD, ids=[words for words, _ in BAD])
def test_bad_input(words, expected, bad, ronda):
    """One line that names the place, exit code 2, no traceback, and every file as it was."""
    before = contents(bad)
    done = ronda(*(word.strip("'") for word in words.split(" ")))
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("error: ")
    assert expected in done.stderr
    assert contents(bad) == before


# Root may write anywhere, unless it gives up that right for good (prctl PR_CAPBSET_DROP,
# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH) and starts afresh.
WITHOUT_PRIVILEGE = """
import ctypes, os, sys
for capability in (1, 2):
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-c", *sys.argv[1:]])
"""

ONE_BY_ONE = """
import json, sys
from click.testing import CliRunner
from ronda.cli.app import cli
for words in sys.argv[1:]:
    done = CliRunner().invoke(cli, words.split(), prog_name="ronda")
    print(json.dumps((words, done.exit_code, done.stderr)))
"""

FORBIDDEN = (
    "solve round.json --policy fifo --out locked/plan.json",
    "run two-nodes.json --policy fifo --out locked/run",
    "compare two-nodes.json --policies fifo --out locked/results",
    "instances generate round --out locked/new.json",
    "run two-nodes.json --policy fifo --out locked",
    "run secret.json --policy fifo",
)


def test_no_permission(bad):
    """What may not be read or written is told before any work."""
    locked, secret = bad / "locked", bad / "secret.json"
    locked.mkdir()
    locked.chmod(stat.S_IRUSR | stat.S_IXUSR)
    secret.write_bytes((bad / "two-nodes.json").read_bytes())
    secret.chmod(0)
    if os.geteuid() == 0 and not sys.platform.startswith("linux"):
        pytest.skip("root may write anywhere")
    command = [sys.executable, "-c", WITHOUT_PRIVILEGE, ONE_BY_ONE, *FORBIDDEN]
    done = subprocess.run(command, capture_output=True, text=True, cwd=bad, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [words for words, _, _ in told] == list(FORBIDDEN)
    for words, code, said in told:
        assert code == 2, (words, said)
        assert len(said.splitlines()) == 1, (words, said)
        assert "permission" in said, words
    assert os.listdir(locked) == []
