"""A suite that is killed: the same command goes on and ends with the same results."""

import json
import os
import signal
import subprocess
import sys
import time

SUITE = """
about = "Two policies at three costs."
instances = ["two-nodes.json"]
policies = ["srtf", "prices"]
change.restart_s = [0, 5, 30]

[ratio]
to = { policy = "srtf" }

[table]
rows = ["restart_s", "policy"]
columns = ["mean_jct_s", "mean_jct_s/interval", "restarts"]
"""


def test_a_killed_suite_goes_on_and_ends_with_the_same_results(folder, ronda, runs_here):
    """Runs that ended are not made again; table and numbers are those of an unbroken suite.

    What is killed runs in processes, the rest in this one.
    """
    (folder / "s.toml").write_text(SUITE)
    words = ("compare", "s.toml", "--jobs", "1", "--no-figures", "--out")
    results = folder / "killed" / "results.jsonl"
    command = [sys.executable, "-m", "ronda", *words, "killed"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True) as process:
        until_s = time.monotonic() + 300
        while not (results.exists() and results.read_bytes().count(b"\n")):
            assert process.poll() is None
            assert time.monotonic() < until_s
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    kept = results.read_bytes()
    ended = kept.count(b"\n")
    assert 1 <= ended < 6
    assert not (folder / "killed" / "table.md").exists()
    made = ronda(*words, "killed", "--json")
    assert made.exit_code == 0
    assert f"{ended} of 6 runs are in killed already" in made.stderr
    assert results.read_bytes().startswith(kept)
    assert results.read_bytes().count(b"\n") == 6
    whole = ronda(*words, "whole", "--json")
    killed, unbroken = (json.loads(done.stdout.splitlines()[-1]) for done in (made, whole))
    for name in ("mean_jct_s", "mean_jct_s/interval", "restarts", "energy_j"):
        assert [row[name] for row in killed["rows"]] == [row[name] for row in unbroken["rows"]]
    tables = [(folder / name / "table.md").read_text() for name in ("killed", "whole")]
    assert tables[0] == tables[1]
