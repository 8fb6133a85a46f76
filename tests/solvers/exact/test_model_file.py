"""Models and solutions as files of any solver."""

import highspy
import pyomo.environ as pyo
import pytest

from ronda.instances.errors import InputError
from ronda.solvers.exact.from_pyomo import solve
from ronda.solvers.exact.linear_form import Effort
from ronda.solvers.exact.model_file import export, load_solution


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_exported_models_have_the_same_optimum_and_names(tmp_path, suffix):
    """HiGHS reads the file back to the same optimum; rows keep the model's names.

    In MPS it is the least of minus the objective: there CBC minimises, whatever OBJSENSE says.
    """
    model = pyo.ConcreteModel()
    model.x = pyo.Var(["a b", "c/d#1"], domain=pyo.Binary)
    model.gpus = pyo.Constraint(
        ["default/V100"], rule=lambda m, _: 3 * m.x["a b"] + 2 * m.x["c/d#1"] <= 4
    )
    model.worth = pyo.Objective(expr=2 * model.x["a b"] + model.x["c/d#1"] + 5, sense=pyo.maximize)
    path = tmp_path / f"model{suffix}"
    export(model, path)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    lines = path.read_text().splitlines()
    assert suffix == ".mps" or ("binary" in lines and "bin" not in lines)  # or CBC cuts integers
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    assert highs.readModel(str(path)) == highspy.HighsStatus.kOk
    highs.run()
    sign = -1 if suffix == ".mps" else 1
    assert sign * highs.getObjectiveValue() == pytest.approx(solve(model, Effort(gap=0)).objective)
    assert suffix == ".lp" or "MAX" not in path.read_text()
    row, columns = highs.getLp().row_names_[0], list(highs.getLp().col_names_)
    assert (row, columns) == ("gpus(default_V100)", ["x(a_b)", "x(c_d#1)"])


def test_export_refuses_what_it_cannot_write(tmp_path):
    """Another suffix or a folder that is not there: an error that says so, and no file."""
    model = items()
    with pytest.raises(InputError, match=r"\.lp or \.mps"):
        export(model, tmp_path / "model.txt")
    with pytest.raises(InputError, match="no such folder"):
        export(model, tmp_path / "absent" / "model.lp")
    assert list(tmp_path.iterdir()) == []


def items():
    """Return a model of three items, one of which may be cut."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var([("a", 1, 0.5), ("b c", 2, 1)], domain=pyo.Binary)
    model.z = pyo.Var(["n"], bounds=(0, 4))
    model.room = pyo.Constraint(expr=sum(model.x.values()) + model.z["n"] <= 2)
    model.worth = pyo.Objective(expr=sum(model.x.values()) + model.z["n"], sense=pyo.maximize)
    return model


@pytest.mark.parametrize(
    "text",
    [
        "Optimal\n# Columns 3\nx(a,1,0.5) 1\nx(b_c,2,1) 0\nz(n) 0.5\n# Rows 1\nroom 2\n",
        "Optimal\nObjective 1.5\nObjective_bound 1.5\nMIP_rel_gap 0\n"
        "# Columns -2 sparse\nx(a,1,0.5) 1\nz(n) 0.5\n# Rows 1\nroom 2\n",
        "objective value: 1.5\nx(a,1,0.5)   1  (obj:1)\nz(n)   0.5 (obj:1)\n",
        "Optimal - objective value 1.5\n  0 x(a,1,0.5)  1  0.2\n  2 z(n)  0.5  1\n",
        "# Objective value = 1.5\nx(a,1,0.5) 0.99999999\nx(b_c,2,1) 1e-9\nz(n) 0.5\n",
        "x(a,1,0.5) 1\nz(n) 0.5\n# Dual\nx(a,1,0.5) 0.7\nx(b_c,2,1) 0.9\n",
        "# Columns -2\nx(a,1,0.5) 1 0\nz(n) 0.5 2\n# Rows 1\nroom 2\n",
        "Columns\n    Index Status   Lower   Upper   Primal   Dual  Type        Name\n"
        "        0              0       1        1          Integer     x(a,1,0.5)\n"
        "        1              0       1        0          Integer     x(b_c,2,1)\n"
        "        2              0       4      0.5          Continuous  z(n)\n"
        "Rows\n    Index Status   Lower   Upper   Primal   Dual  Name\n"
        "        0           -inf       2      1.5                   room\n",
        "Columns\n    Index Status   Lower   Upper   Primal   Dual  Name\n"
        "        0     UB       0       1        1      1   x(a,1,0.5)\n"
        "        2     BS       0     inf      0.5      0   z(n)\nRows\n",
    ],
    ids=[
        "HiGHS",
        "HiGHS 1.16, sparse",
        "SCIP",
        "CBC",
        "Gurobi",
        "with duals",
        "sparse",
        "pretty",
        "pretty, with status",
    ],
)
def test_solutions_of_solvers_are_read(tmp_path, text):
    """As each of them writes: what is not named is 0."""
    model = items()
    (tmp_path / "model.sol").write_text(text)
    load_solution(model, tmp_path / "model.sol")
    values = [round(v.value) for v in model.x.values()]
    assert (values, model.z["n"].value) == ([1, 0], 0.5)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no variable"),
        ("Infeasible - objective value 0\n", "no variable"),
        ("y 1\n", "no variable of this model; expected names as `ronda export` writes them"),
        ("x(a,1,0.5) 1\nx(c,1,1) 1\n", "line 2: found 'x(c,1,1)'; expected a variable"),
        ("x(a,1,0.5) one\n", "line 1: found 'one'"),
        ("x(a,1,0.5) 0.4\n", "0.4 for x"),
        ("x(a,1,0.5) nan\n", "nan"),
        ("z(n) inf\n", "line 1: found 'inf'"),
        ("x(a,1,0.5) 2\n", "2 for x[a,1,0.5]; expected 0 to 1"),
        ("z(n) -1\n", "-1 for z[n]; expected 0 to 4"),
        ("x(a,1,0.5) 1\n\nx(a,1,0.5) 0\n", "line 3: found x(a,1,0.5) again; expected each once"),
        ("x(a,1,0.5) 1\nx(b_c,2,1) 1\nz(n) 1\n", "row room: found 3 with x[a,1,0.5], "),
        ("# Columns 3\nx(a,1,0.5) 1\nx(b_c,2,1) 0\n", "found 2 variables; expected 3"),
    ],
)
def test_what_is_no_solution_is_refused(tmp_path, text, found):
    """In one line; a relaxation's fractions are no plan, and limits hold for everybody."""
    (tmp_path / "model.sol").write_text(text)
    with pytest.raises(InputError) as caught:
        load_solution(items(), tmp_path / "model.sol")
    assert found in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_follows_from_other_variables_may_be_missing(tmp_path):
    """Room for one and a blocked one: z = 1 makes it, unless the file says otherwise."""
    model = pyo.ConcreteModel()
    model.x, model.z = pyo.Var([0, 1], domain=pyo.Binary), pyo.Var(bounds=(0, 1))
    model.room = pyo.Constraint(expr=sum(model.x.values()) <= 1 + model.z)
    model.worth = pyo.Objective(expr=sum(model.x.values()), sense=pyo.maximize)
    path = tmp_path / "model.sol"
    path.write_text("x(0) 1\nx(1) 1\n")
    load_solution(model, path, derived=[model.z])
    assert [v.value for v in model.x.values()] == [1, 1]
    with pytest.raises(InputError, match=r"row room: found 2 with x\[0\], x\[1\]; .* most 1"):
        load_solution(model, path)
    path.write_text("x(0) 1\nx(1) 1\nz 0\n")
    with pytest.raises(InputError, match="row room"):
        load_solution(model, path, derived=[model.z])
