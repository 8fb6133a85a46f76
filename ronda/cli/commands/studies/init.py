"""``ronda init``: a small study in a new folder, to run unchanged and then adapt."""

from pathlib import Path

import click

from ronda.cli.command import taught
from ronda.cli.options import FOLDER, json_option, seed_option
from ronda.cli.output import show
from ronda.instances import generate
from ronda.instances.errors import InputError
from ronda.instances.files.json import write
from ronda.instances.files.storage import label, write_bytes
from ronda.instances.tables.table import Report

SUITE = """\
# What is compared; every field is described in docs/suites.md.
about = "My policy beside others, at two costs of a restart."
instances = ["instance.json"]
policies = ["fifo", "policy.py:Widest", "prices"]
time_limit_s = 2.0  # for each decision

[change]  # every instance as it is with each of these
restart_s = [10, 120]

[ratio]  # what numbers are held against
to = { policy = "fifo" }

[table]
rows = ["policy", "restart_s"]
columns = ["mean_jct_s", "mean_jct_s/base", "restarts", "violations"]
"""

POLICY = '''\
"""A policy of my own: ``policy.py:Widest`` in suite.toml, and after --policy."""

import ronda
from ronda.formulations.sleeping import rest
from ronda.solvers.greedy.room import Room, start_in_order


class Widest:
    """What runs goes on; of those that wait the widest start first, where there is room."""

    def plan(self, round, *, deadline, seed, initial=None):
        """Return who runs now. `round` holds the jobs, what runs, and the cluster."""
        order = sorted(round.waiting, key=lambda state: -state.job.gpus)
        started = start_in_order(Room(round, round.running), order)
        plan = ronda.Plan(policy=self.name, allocations=round.held | started)
        return rest(round, plan, initial)  # nodes without a job may sleep
'''

MAKEFILE = """\
# `make` checks what is here and runs the comparison; stopped, it goes on where it was.
RONDA ?= ronda
PYTHON ?= python3

compare: check
\t$(RONDA) compare suite.toml --out results

# The instance keeps all rules, and the policy the contract that all policies keep.
check:
\t$(RONDA) instances check instance.json
\t$(PYTHON) -c "import ronda.testing as t; t.check_policy('./policy.py:Widest')"

clean:
\trm -rf results

.PHONY: compare check clean
"""

FILES = {"suite.toml": SUITE, "policy.py": POLICY, "Makefile": MAKEFILE}
"""The files that are written in addition to ``instance.json``."""


@taught("init", "ronda init my-study", "ronda init my-study --seed 7")
@click.argument("out", metavar="FOLDER", type=FOLDER)
@seed_option
@json_option
def command(out: Path, seed: int, as_json: bool) -> None:
    """Create a study in FOLDER, new or empty: an instance, a suite, a policy and a Makefile.

    `make` in FOLDER checks them and runs the comparison. The instance is generated, with 12 jobs on
    16 GPUs; replace it with your own.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        what = "a folder with files" if out.is_dir() else "a file"
        raise InputError(label(out), what, "a new or an empty folder")
    out.mkdir(parents=True, exist_ok=True)
    write(generate.horizon(12, 16, "balanced", seed), out / "instance.json")
    for name, text in FILES.items():
        write_bytes(out / name, text.encode())
    files = ["instance.json", *FILES]
    words = f"{out}: {', '.join(files)}; next: make -C {out}"
    show(Report({"out": str(out), "files": files}, [words]), as_json=as_json)
