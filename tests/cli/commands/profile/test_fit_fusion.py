"""``profile fit-fusion``."""

import csv
import json

import pytest

from ronda.instances.files.fits import read_fits

TABLE = "mode,models,epoch_s,gpu_mem_MB\n" + "".join(
    f"{mode},{k},{1 + k / 2},{memory}\n"
    for mode, k, memory in (
        ("serial", 1, 2048),
        ("hfta", 2, 3072),
        ("hfta", 4, 5120),
        ("hfta", 8, 9216),
        ("mps", 2, 4096),
    )
)


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """A working directory with a table, and some that cannot be fitted."""
    monkeypatch.chdir(tmp_path)
    head = "mode,models,step_s,memory_mib\n"
    texts = {
        "good": TABLE,
        "empty": head,
        "mode": head + "hfta,2,1,\nhftb,2,1,\n",
        "part": head + "hfta,2.5,1,\n",
        "many": head + "hfta,1e9,1,\n",
        "slow": "mode,models,throughput\nhfta,2,1e-320\n",
        "zero": head + "hfta,2,0,\n",
        "none": "mode,models\nhfta,2\n",
        "same": head + "hfta,2,1,100\nhfta,2,1,100\n",
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def test_fit(tables, ronda):
    """Laws on disk and on the screen: 1 + 0.5 k, and 1 GiB for the process, 1 for each model."""
    words = ("profile", "fit-fusion", "good.csv", "--model", "m", "--out", "f.json")
    done = ronda(*words, "--figure", "f.png")
    assert done.exit_code == 0, done.output
    found = {fit.name: fit for fit in read_fits("f.json").fits}
    assert set(found) == {f"m-GPU-{kind}" for kind in ("exclusive", "packed", "fused", "memory")}
    assert found["m-GPU-memory"].memory.base_gib == pytest.approx(1.0)
    assert found["m-GPU-memory"].memory.model_gib == pytest.approx(1.0)
    assert "T(k) = 1 + 0.5 k" in done.stdout
    assert "few-widths" in done.stderr
    assert (tables / "f.png").read_bytes().startswith(b"\x89PNG")
    with (tables / "f.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 1 + 3 + 1 + 5
    shown = ronda("profile", "show", "f.json")
    assert shown.exit_code == 0
    assert "base_gib" in shown.stdout
    assert "T(k) = 1.5 (1), 2 (2)" in shown.stdout


def test_for_programs(tables, ronda):
    """One object on the last line."""
    done = ronda("profile", "fit-fusion", "good.csv", "--out", "f.json", "--json")
    assert {f["kind"] for f in json.loads(done.stdout)["fits"]} == {"sharing", "memory"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("missing.csv", "missing.csv"),
        ("empty.csv", "no rows"),
        ("mode.csv", "row 3, mode: found 'hftb'"),
        ("part.csv", "row 2, models: found '2.5'"),
        ("many.csv", "row 2, models: found '1e9'"),
        ("slow.csv", "row 2, throughput: found '1e-320'"),
        ("zero.csv", "row 2, step_s: found '0'"),
        ("none.csv", "'step_s' or 'throughput'"),
        ("same.csv", "memory of one number of models"),
        ("good.csv --from 0", "--from"),
        ("good.csv --figure f.pdf", ".png"),
    ],
)
def test_bad_input(words, said, tables, ronda):
    """One line that says where, exit code 2, nothing written."""
    done = ronda("profile", "fit-fusion", *words.split(), "--out", "f.json")
    assert done.exit_code == 2, done.output
    assert said in done.stderr.strip().splitlines()[-1]
    assert not (tables / "f.json").exists()
