"""Without the packages of an extra: what can be done goes on, the rest says what it needs."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from ronda.instances.errors import EXTRAS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def core(tmp_path_factory):
    """Return a folder of all that is installed here but the packages of extras."""
    folder = tmp_path_factory.mktemp("core")
    for place in dict.fromkeys(sysconfig.get_path(kind) for kind in ("purelib", "platlib")):
        for entry in Path(place).iterdir():
            if entry.name.partition("-")[0] not in EXTRAS:
                (folder / entry.name).symlink_to(entry)
    return folder


@pytest.fixture
def ronda(core, tmp_path):
    """Run the command line in an empty folder as a core installation would."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(core)))}

    def call(*words):
        command = [sys.executable, "-S", "-m", "ronda", *words]  # -S: without what is installed
        return subprocess.run(
            command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
        )

    return call


def test_a_comparison_without_pictures(ronda, tmp_path):
    """Tables are written; one line says what pictures need."""
    done = ronda("compare", "one-gpu", "--policies", "fifo", "--out", "out")
    assert done.returncode == 0
    assert "one-gpu" in done.stdout
    assert "no pictures: they need matplotlib (pip install 'ronda[plot]')" in done.stderr
    assert (tmp_path / "out" / "table.md").is_file()
    assert not (tmp_path / "out" / "figures").exists()


@pytest.mark.parametrize("policy", ["milp", "genetic"])
def test_a_round_is_decided(ronda, policy):
    """The engines need no extra."""
    done = ronda("instances", "generate", "round", "--jobs", "4", "--out", "r.json")
    assert done.returncode == 0, done.stderr
    done = ronda("solve", "r.json", "--policy", policy)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "place", "package", "extra"),
    [
        (
            "sleep earth-2020-09 --policy ces(forecast=boosted)",
            "this command",
            "lightgbm",
            "predict",
        ),
        ("predict train venus-vcvly --out p.json", "this command", "lightgbm", "predict"),
        ("compare venus-vcvly --predictor p.json", "--predictor", "lightgbm", "predict"),
        ("compare venus-vcvly --policies fifo --dask local", "this command", "dask", "dask"),
        (
            "instances convert helios t.csv --nodes 1 --out x.json",
            "this command",
            "pandas",
            "traces",
        ),
        ("instances detect-sweeps t.csv", "this command", "pandas", "traces"),
        ("profile fit t.csv --out f.json", "this command", "pandas", "traces"),
        ("profile fit t.csv --out f.json --figure f.png", "--figure", "matplotlib", "plot"),
        ("instances show venus-vcvly --topology --out t.png", "--out", "matplotlib", "plot"),
        ("compare venus-vcvly --parquet", "--parquet", "pyarrow", "parquet"),
        ("serve", "ronda serve", "h11", "serve"),
    ],
)
def test_what_needs_an_extra_says_so(ronda, tmp_path, words, place, package, extra):
    """One line names the package and the command that brings it; nothing is written."""
    done = ronda(*words.split())
    assert done.returncode == 2
    assert done.stderr.strip() == (
        f"error: {place}: found no package {package}; "
        f"expected the extra {extra}: pip install 'ronda[{extra}]'"
    )
    assert [path.name for path in tmp_path.iterdir()] == []
