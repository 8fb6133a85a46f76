"""Progress: lines in a log file, nothing in a pipe."""

import subprocess
import sys

PROGRAM = """
import time
from ronda.cli import progress
progress.LINE_S = progress.TICK_S = 0.05
with progress.Bars() as bars:
    for share in (0.25, 0.5):
        time.sleep(0.1)
        bars.update("all runs", share, "1/4 runs")
with progress.waiting("solving", 10.0):
    time.sleep(0.3)
"""


def run(stderr):
    """Run the program with this stderr."""
    return subprocess.run([sys.executable, "-c", PROGRAM], stderr=stderr, check=True)


def test_a_log_gets_lines_with_the_time_left(tmp_path):
    """At a quarter after s seconds 3 s are left; where nobody knows, the share of the limit."""
    with (tmp_path / "log").open("w") as log:
        run(log)
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0].startswith("all runs: 25% 1/4 runs, 0 s, about 0 s left")
    assert any(line.startswith("solving: ") and "of 10 s at most" in line for line in lines)


def test_a_pipe_gets_nothing():
    """Programs that read stderr see errors alone."""
    assert run(subprocess.PIPE).stderr == b""
