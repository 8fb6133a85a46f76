"""``instances`` on rounds of tasks: generate, show, check and convert files of arrays."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ronda.instances.generate.tasks import TaskMix, openb_like
from ronda.instances.plan import StopReason
from ronda.instances.tasks.arrays import TaskPlan
from ronda.instances.tasks.files import read_tasks, write_task_plan


@pytest.fixture
def made(ronda, tmp_path, monkeypatch):
    """Make ``r.npz``, a generated round of 300 tasks on 40 nodes, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    size = ("--nodes", "40", "--tasks", "300", "--seed", "4")
    mix = ("--running", "0.4", "--most-disrupted", "9", "--elastic", "0.1")
    return ronda("instances", "generate", "openb-like", *size, *mix, "--out", "r.npz")


def held(round):
    """Return the plan that all goes on as it is."""
    task, node = round.held_task, round.held_node
    pool = round.pool[round.node_kind[node]]
    value = float((round.value[task] * round.speed[round.shape[task], pool]).sum())
    return TaskPlan(
        task=task,
        node=node,
        objective=value,
        bound=value,
        node_price=np.zeros(round.capacity.shape),
        stop=StopReason.COMPLETE,
    )


def test_generate_has_the_parameters_of_the_function(made):
    """The file holds what the function returns, and one line tells its size."""
    mix = TaskMix(running=0.4, most_disrupted=9, elastic=0.1)
    round = read_tasks("r.npz")
    same = openb_like(40, 300, 4, mix)
    assert (round.shape == same.shape).all()
    assert (round.value == same.value).all()
    assert (round.held_node == same.held_node).all()
    assert round.most_disrupted == 9
    assert made.stdout == f"r.npz: a round of {round.tasks} tasks on 40 nodes\n"


def test_show_tells_sizes_and_what_fits_nowhere(ronda, made):
    """Programs get the same as people; jobs are fewer than tasks where some have several ways."""
    fields = json.loads(ronda("instances", "show", "r.npz", "--json").stdout)
    round = read_tasks("r.npz")
    assert (fields["kind"], fields["nodes"], fields["jobs"]) == ("tasks", 40, 300)
    assert fields["tasks"] == round.tasks > 300
    assert fields["running"] == len(set(round.held_task.tolist()))
    assert fields["asked_for"]["gpu_64ths"].endswith(f"of {round.count @ round.capacity[:, 2]:,}")
    text = re.sub(r" +\n", "\n", ronda("instances", "show", "r.npz").stdout)
    assert f"tasks            {round.tasks}\n" in text
    for shape, words in fields["fit_no_node"].items():
        assert words.split(" ")[0] == str((round.shape == int(shape[6:])).sum())
        assert "and no node has more than" in words or "it may run in no pool" in words
    assert fields["fit_no_node"]


def test_check_a_round_and_a_plan(ronda, made):
    """What runs may go on; a value that is not so is a violation, and the exit code 1."""
    assert ronda("instances", "check", "r.npz").stdout == "r.npz: a round of tasks, in order\n"
    plan = held(read_tasks("r.npz"))
    write_task_plan(plan, "p.parquet")
    good = ronda("instances", "check", "r.npz", "p.parquet")
    assert good.stdout == "p.parquet: keeps every rule of r.npz\n"
    write_task_plan(replace(plan, bound=0.0, task=plan.task[10:], node=plan.node[10:]), "p.npz")
    bad = ronda("instances", "check", "r.npz", "p.npz", "--json")
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["counts"] == {"objective": 1, "bound": 1, "disruption": 1}
    odd = ronda("instances", "check", "r.npz", "r.npz")
    assert 'r.npz, head, format: found "ronda/tasks/1"' in odd.stderr


def test_convert_keeps_all(ronda, made):
    """To Parquet and back, the file has the same bytes."""
    ronda("instances", "convert", "tasks", "r.npz", "--out", "r.parquet")
    ronda("instances", "convert", "tasks", "r.parquet", "--out", "again.npz")
    assert Path("r.npz").read_bytes() == Path("again.npz").read_bytes()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (("generate", "blocks", "--out", "r.json"), "a name that ends in .npz or .parquet"),
        (("generate", "blocks", "--nodes", "0", "--out", "n.npz"), "--nodes: found 0"),
        (("generate", "blocks", "--gangs", "2", "--out", "n.npz"), "--gangs: found 2"),
        (("generate", "blocks", "--out", "r.npz"), "--force"),
        (("convert", "tasks", "round.json", "--out", "n.npz"), "round.json: found no such file"),
        (("show", "none.npz"), "no such file"),
        (
            ("show", "r.npz", "--topology"),
            "found a round of tasks; expected an instance or a round",
        ),
        (
            ("demand", "r.npz", "s.json", "--out", "n.json"),
            "found a round of tasks; expected an instance",
        ),
    ],
)
def test_bad_input_is_one_line(ronda, made, words, found):
    """Exit code 2, and nothing is written."""
    done = ronda("instances", *words)
    assert found in done.stderr
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert not Path("n.npz").exists()
