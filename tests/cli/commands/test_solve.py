"""``solve``, ``export`` and ``explain``: one round."""

import json
import re
import shlex
import subprocess
import sys
import time

import msgspec
import pytest

from ronda.instances import generate
from ronda.instances.check.checker import check
from ronda.instances.files import json as files
from ronda.instances.plan import Plan
from ronda.solvers.exact.backends import cbc_program
from ronda.testing import sharing


@pytest.mark.parametrize("policy", ["fifo", "srtf", "milp", "genetic(generations=3)"])
def test_json_has_the_promised_fields(policy, folder, ronda):
    """Every policy answers with the same fields, on one line, which is the last one."""
    done = ronda("solve", "round.json", "--policy", policy, "--seed", 7, "--json")
    assert done.exit_code == 0, done.output
    fields = json.loads(done.stdout.splitlines()[-1])
    promised = "policy objective bound gap stop status prices times seed jobs options violations"
    assert set(promised.split()) <= fields.keys()
    assert {"build_s", "solve_s", "extract_s", "total_s"} <= fields["times"].keys()
    assert fields["policy"] == policy.partition("(")[0]
    assert (fields["seed"], fields["jobs"], fields["violations"]) == (7, 12, 0)


def test_milp_has_a_bound_above_its_objective(folder, ronda):
    """The gap is the one between the two numbers beside it."""
    fields = json.loads(ronda("solve", "round.json", "--policy", "milp", "--json").stdout)
    assert fields["bound"] >= fields["objective"] > 0
    expected = (fields["bound"] - fields["objective"]) / fields["bound"]
    assert fields["gap"] == pytest.approx(expected, abs=1e-12)
    assert fields["options"] > 12
    assert fields["dual_bound"] >= fields["bound"]
    assert fields["proven_by"] in ("prices", "highs")


def test_the_watts_of_a_plan_are_shown(folder, ronda):
    """Idle hosts and GPUs, and what each job draws more than its GPUs do idle; also of the cap."""
    round_ = files.read(folder / "round.json")
    files.write(msgspec.structs.replace(round_, power_cap_w=1e6), folder / "capped.json")
    made = ronda("solve", "capped.json", "--policy", "fifo", "--out", "plan.json", "--json")
    (held, topology) = files.read(folder / "plan.json").allocations, round_.cluster.topology
    watts = topology.idle_w + sum(
        a.option.power_w - a.option.gpus * topology.pools[a.option.pool].gpu_type.idle_w
        for a in held.values()
    )
    assert json.loads(made.stdout)["power_w"] == pytest.approx(watts)
    text = ronda("solve", "capped.json", "--policy", "fifo").stdout
    assert f"{watts:,.0f} W of 1,000,000 W" in " ".join(text.split())


REFUSED = """
class Mine:
    def plan(self, round, **how):
        raise ValueError("not today")
"""


def test_the_solver_is_heard_on_stderr_alone(folder, ronda):
    """With --verbose its log comes there, and stdout has the JSON; without it nothing comes."""
    words = ["solve", "round.json", "--policy", "milp(highs.presolve=off, gap=0)", "--json"]
    quiet, loud = ronda(*words), ronda(*words, "--verbose")
    assert (quiet.exit_code, loud.exit_code, quiet.stderr) == (0, 0, "")
    assert "rows; " in loud.stderr
    assert json.loads(loud.stdout)["objective"] == json.loads(quiet.stdout)["objective"]


def test_a_refusal_is_told_once(folder, ronda):
    """On stderr, beside the plan in its place; programs find it in the JSON as well."""
    (folder / "mine.py").write_text(REFUSED)
    done = ronda("solve", "round.json", "--policy", "mine.py:Mine")
    assert done.exit_code == 1
    assert done.output.count("not today") == 1
    assert done.stderr.count("not today") == 1
    fields = json.loads(ronda("solve", "round.json", "--policy", "mine.py:Mine", "--json").stdout)
    assert "not today" in fields["message"]


def test_plan_file_and_embedding_agree(folder, ronda):
    """What --out writes and what stdin-to-stdout prints is the same plan, and it is in order."""
    ronda("solve", "round.json", "--policy", "srtf", "--out", "plan.json")
    text = (folder / "round.json").read_bytes()
    printed = ronda("solve", "-", "--policy", "srtf", input=text)
    plan = files.read(folder / "plan.json")
    assert isinstance(plan, Plan)
    assert len(printed.stdout.splitlines()) == 1
    assert files.decode(printed.stdout.encode(), "stdout").allocations == plan.allocations
    assert check(files.read(folder / "round.json"), plan) == []
    assert ronda("instances", "check", "round.json", "plan.json").exit_code == 0


def test_same_seed_same_plan(folder, ronda):
    """The plan depends on the seed alone."""
    words = ("solve", "-", "--policy", "genetic(generations=3)", "--seed", 5)
    text = (folder / "round.json").read_bytes()
    plans = [json.loads(ronda(*words, input=text).stdout)["allocations"] for _ in range(2)]
    assert plans[0] == plans[1]


def test_table_for_people(folder, ronda):
    """Jobs, pools and nodes can be read off, and names are printed as they are."""
    text = (folder / "round.json").read_text().replace('"j01"', '"[bold]j01"')
    (folder / "marked.json").write_text(text)
    done = ronda("solve", "marked.json", "--policy", "fifo")
    assert done.exit_code == 0, done.output
    assert "default/A100" in done.stdout
    assert "[bold]j01" in done.stdout
    assert "12" not in done.stderr
    assert all(line == line.rstrip() for line in done.stdout.splitlines())


def test_a_large_plan_is_cut_for_people(folder, ronda):
    """The table of hundreds of jobs says how many it leaves out."""
    files.write(generate.round(200, None, "loose", 0), folder / "large.json")
    done = ronda("solve", "large.json", "--policy", "fifo")
    assert "more jobs" in done.stdout
    assert len(done.stdout.splitlines()) < 70


def test_force_replaces_and_only_then(folder, ronda):
    """An existing plan is kept unless --force is given."""
    (folder / "plan.json").write_text("mine")
    words = ("solve", "round.json", "--policy", "fifo", "--out", "plan.json")
    assert ronda(*words).exit_code == 2
    assert (folder / "plan.json").read_text() == "mine"
    assert ronda(*words, "--force").exit_code == 0
    assert isinstance(files.read(folder / "plan.json"), Plan)


def impossible(folder):
    """Write a round whose running jobs draw more than a power cap of 4 kW (3.5 kW are idle)."""
    round_ = files.read(folder / "round.json")
    fixed = tuple(
        msgspec.structs.replace(s, job=msgspec.structs.replace(s.job, preemptible=False))
        for s in round_.running
    )
    assert fixed
    small = msgspec.structs.replace(round_, running=fixed, power_cap_w=4000.0)
    files.write(small, folder / "impossible.json")


def test_explain_names_the_conflicting_limit(folder, ronda):
    """A round without any plan: the power cap is named, in words and as JSON; exit code 1."""
    impossible(folder)
    done = ronda("explain", "impossible.json")
    assert done.exit_code == 1
    assert "power" in done.stdout
    fields = json.loads(ronda("explain", "impossible.json", "--json").stdout)
    assert fields["feasible"] is False
    assert any("power" in name for c in fields["conflicts"] for name in c["constraints"])


def test_a_limit_that_gives_way_to_what_may_not_be_stopped_is_named(folder, ronda):
    """A plan is there, and a line says which limit it cannot keep, and for whom."""
    impossible(folder)
    done = ronda("solve", "impossible.json", "--policy", "milp", "--json")
    assert done.exit_code == 0
    assert "warning: no plan keeps 4000 W and job" in done.stderr
    fields = json.loads(done.stdout.splitlines()[-1])
    assert (fields["status"], fields["violations"]) == ("optimal", 0)
    assert "no plan keeps 4000 W and job" in fields["message"]


def test_solving_the_impossible_points_to_explain(folder, ronda):
    """The exit code is 1 and one line says what to do next."""
    text = "import ronda\ndef many(round, table): return ronda.Limit(table.gpus, '>=', 1e6)\n"
    (folder / "many.py").write_text(text)
    done = ronda("solve", "round.json", "--policy", "milp", "--with", "many.py", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout.splitlines()[-1])["stop"] == "infeasible"
    (hint,) = re.findall(r"limit; ronda (explain .*) says", done.stderr)
    assert hint == "explain round.json --with many.py"
    explained = ronda(*shlex.split(hint))
    assert (explained.exit_code, "rule[many]" in explained.stdout) == (1, True)
    rigid = ronda("solve", "round.json", "--policy", "prices(elastic=false, extra=many.py)")
    words = "ronda explain round.json --policy 'milp(elastic=false)' --with many.py says"
    assert words in rigid.stderr


def test_explain_says_that_all_is_well(folder, ronda):
    """A feasible round has no conflicts; exit code 0."""
    done = ronda("explain", "round.json", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == {
        "round": "generated-balanced-12-0",
        "feasible": True,
        "conflicts": [],
    }


def test_explain_claims_nothing_that_it_does_not_know(folder, ronda):
    """Time is up before anything is tried: neither feasible nor not; exit code 3."""
    done = ronda("explain", "round.json", "--time-limit", "1e-9")
    assert (done.exit_code, "not known in time" in done.stdout) == (3, True)
    fields = json.loads(ronda("explain", "round.json", "--time-limit", "1e-9", "--json").stdout)
    assert (fields["feasible"], fields["conflicts"]) == (None, [])


@pytest.mark.parametrize("suffix", ["mps", "lp"])
@pytest.mark.parametrize("placement", ["aggregate", "exact"])
def test_a_solution_of_the_exported_model_is_a_plan(suffix, placement, folder, ronda):
    """Another run of HiGHS on the file reaches the objective of `solve`; its file is a plan.

    In .mps it is the other way round.
    """
    import highspy

    policy = f"milp(placement={placement},gap=0)"
    done = ronda(
        *("export", "round.json", "--policy", policy, "--out", f"model.{suffix}", "--json")
    )
    assert done.exit_code == 0, done.output
    head = (folder / f"model.{suffix}").read_text().splitlines()[0]
    assert head[1:].startswith(" ronda: round generated-balanced-12-0")
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(folder / f"model.{suffix}"))
    assert highs.getNumCol() == json.loads(done.stdout)["variables"]
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    highs.writeSolution(str(folder / "model.sol"), 1 if suffix == "mps" else 0)
    worth = highs.getObjectiveValue() * (-1 if suffix == "mps" else 1)
    solved = json.loads(ronda("solve", "round.json", "--policy", policy, "--json").stdout)
    assert worth == pytest.approx(solved["objective"], rel=1e-4)
    words = ("import-solution", "round.json", "model.sol", "--policy", policy)
    done = ronda(*words, "--out", "plan.json", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["violations"]) == (0, 0)
    assert found["objective"] == pytest.approx(worth, rel=1e-9)
    if placement == "aggregate":
        assert found["status"] == "optimal"
    assert ronda("instances", "check", "round.json", "plan.json").exit_code == 0


def test_what_an_export_of_the_exact_model_stands_for_is_at_its_head(folder, ronda):
    """Every way has a line, and the model more than the options' variables."""
    counts = {}
    for placement in ("aggregate", "exact"):
        words = ("--policy", f"milp(placement={placement})", "--out", f"{placement}.lp", "--json")
        counts[placement] = json.loads(ronda("export", "round.json", *words).stdout)["variables"]
    text = (folder / "exact.lp").read_text()
    assert re.search(r"^\\ x\(0\): j\d\d, 0, \d+, [\d.]+, \d+$", text, re.MULTILINE)
    assert len(re.findall(r"^\\ x\(\d+\): .*, stays$", text, re.MULTILINE)) > 0
    assert "cut(" in text
    assert counts["exact"] > counts["aggregate"]


@pytest.mark.parametrize("solver", ["cbc", "scip"])
def test_other_solvers_read_both_files_and_are_read(solver, folder, ronda):
    """By default, without a word on the sense: the same objective as `solve`'s."""
    solved = json.loads(ronda("solve", "round.json", "--policy", "milp(gap=0)", "--json").stdout)
    for suffix in ("mps", "lp"):
        ronda("export", "round.json", "--out", f"model.{suffix}", "--force")
        OUTSIDE[solver](folder / f"model.{suffix}", folder / "model.sol")
        done = ronda("import-solution", "round.json", "model.sol", "--json")
        found = json.loads(done.stdout)
        assert (done.exit_code, found["violations"]) == (0, 0)
        assert found["objective"] == pytest.approx(solved["objective"], rel=1e-6)


def by_cbc(model, solution):
    """Let the program CBC solve a file."""
    words = [model, "solve", "solution", solution]
    subprocess.run([cbc_program(), *words], check=True, capture_output=True)


def by_scip(model, solution):
    """Let SCIP solve a file."""
    from pyscipopt import Model

    scip = Model()
    scip.hideOutput()
    scip.readProblem(str(model))
    scip.optimize()
    scip.writeBestSol(str(solution))


OUTSIDE = {"cbc": by_cbc, "scip": by_scip}


def test_solutions_that_break_a_limit_are_refused_by_its_name(folder, ronda):
    """Two options of one job; several jobs of 32 GPUs each on 40."""
    ronda("export", "round.json", "--out", "model.lp")
    names = re.findall(r"x\(j\d\d,[^ ]*\)", (folder / "model.lp").read_text())
    own = [name for name in dict.fromkeys(names) if name.startswith("x(j01,")]
    wide = [name for name in dict.fromkeys(names) if re.match(r"x\(j\d\d,0,32,1,", name)]
    assert len(wide) > 1
    for chosen, row in ((own[:2], "row one_option[j01]: found 2 with x[j01,"), (wide, "row ")):
        (folder / "bad.sol").write_text("".join(f"{name} 1\n" for name in chosen))
        done = ronda("import-solution", "round.json", "bad.sol", "--out", "plan.json")
        assert (done.exit_code, (folder / "plan.json").exists()) == (2, False)
        assert row in done.stderr
        assert "expected at most" in done.stderr


def test_a_poor_solution_is_not_called_optimal(folder, ronda):
    """One job runs: the gap is to the bound of the price engine."""
    ronda("export", "round.json", "--out", "model.lp")
    name = re.search(r"x\(\S+", (folder / "model.lp").read_text().split("obj:")[1])[0]
    (folder / "poor.sol").write_text(f"objective value: 1\n{name} 1\n")
    done = ronda("import-solution", "round.json", "poor.sol", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["running"], found["status"]) == (0, 1, "feasible")
    assert found["gap"] > 0.1
    said = ronda("import-solution", "round.json", "poor.sol").stdout
    assert f"poor.sol, which says 1; its values are worth {found['objective']:g}" in said
    done = ronda("import-solution", "round.json", "round.json")
    assert done.exit_code == 2
    assert "ronda export" in done.stderr


def test_arrays_are_one_thing_to_other_solvers_too(tmp_path, monkeypatch, ronda):
    """Three arrays and a job hold 4 GPUs, a node of 2 wakes for two more jobs: 6 of 6, not 10.

    An array is one variable of the model, and all of its jobs are told.
    """
    import highspy

    monkeypatch.chdir(tmp_path)
    files.write(sharing()["arrays"], tmp_path / "round.json")
    solved = ronda("solve", "round.json", "--policy", "fifo")
    assert "6 of 6" in " ".join(solved.stdout.split())
    assert ronda("explain", "round.json").exit_code == 0
    assert ronda("export", "round.json", "--out", "model.mps").exit_code == 0
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel("model.mps")
    highs.run()
    highs.writeSolution("model.sol", 0)
    done = ronda("import-solution", "round.json", "model.sol", "--out", "plan.json", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["violations"]) == (0, 0), done.output
    assert {"a0", "a1"} <= files.read(tmp_path / "plan.json").allocations.keys()
    assert ronda("instances", "check", "round.json", "plan.json").exit_code == 0


def test_policies_without_a_model_cannot_be_exported(folder, ronda):
    """The remedy is named."""
    done = ronda("export", "round.json", "--policy", "fifo", "--out", "m.mps")
    assert done.exit_code == 2
    assert "milp" in done.stderr
    assert not (folder / "m.mps").exists()


def test_process_keeps_its_time_limit(folder):
    """A limit of one second holds for the whole process, imports included (with slack for CI)."""
    files.write(generate.round(256, None, "tight", 1), folder / "large.json")
    words = ["solve", "large.json", "--policy", "milp(gap=0)", "--time-limit", "1", "--json"]
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", "from ronda.cli import main; main()", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        check=True,
    )
    assert time.perf_counter() - began < 20.0  # without the limit: minutes
    fields = json.loads(done.stdout)
    assert fields["running"] > 0
    if fields["status"] != "fallback":  # on a machine so busy that there was no time
        assert fields["bound"] >= fields["objective"]
