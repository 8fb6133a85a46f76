"""Models and solutions as files of any solver."""

import highspy
import pyomo.environ as pyo
import pytest

from ronda.instances.errors import InputError
from ronda.solvers.exact.highs import solve
from ronda.solvers.exact.model_file import export, load_solution


@pytest.mark.parametrize("suffix", [".lp", ".mps"])
def test_exported_models_have_the_same_optimum_and_names(tmp_path, suffix):
    """HiGHS reads the file back to the same optimum; rows keep the model's names."""
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
    assert highs.getObjectiveValue() == pytest.approx(solve(model, gap=0).objective)
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
        "objective value: 1.5\nx(a,1,0.5)   1  (obj:1)\nz(n)   0.5 (obj:1)\n",
        "Optimal - objective value 1.5\n  0 x(a,1,0.5)  1  0.2\n  2 z(n)  0.5  1\n",
        "# Objective value = 1.5\nx(a,1,0.5) 0.99999999\nx(b_c,2,1) 1e-9\nz(n) 0.5\n",
        "x(a,1,0.5) 1\nz(n) 0.5\n# Dual\nx(a,1,0.5) 0.7\nx(b_c,2,1) 0.9\n",
    ],
    ids=["HiGHS", "SCIP", "CBC", "Gurobi", "with duals"],
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
        ("y 1\n", "no variable"),
        ("x(a,1,0.5) one\n", "line 1: found 'one'"),
        ("x(a,1,0.5) 0.4\n", "0.4 for x"),
        ("x(a,1,0.5) nan\n", "nan"),
    ],
)
def test_what_is_no_solution_is_refused(tmp_path, text, found):
    """In one line; a relaxation's fractions are no plan."""
    (tmp_path / "model.sol").write_text(text)
    with pytest.raises(InputError, match=found):
        load_solution(items(), tmp_path / "model.sol")
