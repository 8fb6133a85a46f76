"""The benchopt benchmark of the laboratory runs."""

import subprocess
import sys
from pathlib import Path

import pytest

pd = pytest.importorskip("pandas")
pytest.importorskip("benchopt", reason="benchopt is not installed")
ROOT = Path(__file__).parents[2]


def test_a_policy_on_a_packaged_round(tmp_path):
    """The plan of `prices` for the round of one job is the best one, and breaks no rule."""
    folder = tmp_path / "benchmark"
    subprocess.run(["cp", "-r", str(ROOT / "lab" / "benchopt"), str(folder)], check=True)
    words = ["run", str(folder), "-d", "round[packaged=clock-or-gpus]", "-s", "policy[spec=prices]"]
    words += ["--no-plot", "--no-html", "--max-runs", "1", "--n-repetitions", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "benchopt", *words], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (folder / "outputs").glob("*.parquet")
    table = pd.read_parquet(found)
    assert (table.objective_value.abs() < 1e-9).all()
    assert (table.objective_violations == 0).all()
    assert len(table)
