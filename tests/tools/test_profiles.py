"""The packaged profiles: what the issue asks of them, that they can be made again, their docs."""

import re
import sys
from itertools import islice
from pathlib import Path
from statistics import median

import pytest

from ronda.instances.files.fits import fitted
from ronda.instances.models.power import gpu_power_w
from ronda.instances.tables.fits import families
from ronda.solvers.fitting.measurements import Reading, read_measurements
from ronda.solvers.fitting.power import fit_power
from ronda.solvers.fitting.throughput import fit_throughput
from tools.profiles import ZEUS_NAMES, elasticflow_a100, main, packed, zeus

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "tests" / "data"

A100 = ("bert", "deepspeech2", "gpt2", "inception3", "resnet50", "resnet50_cifar10", "vgg16")
T4 = ("bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3")
# GPU -> jobs that Zeus measured on it.
ZEUS = {
    gpu: {name for name in ZEUS_NAMES.values() if gpu == "V100" or not name.endswith("-adam")}
    for gpu in ("V100", "A40", "RTX6000", "P100")
}


def fit(name):
    """Return the packaged fit of this very name."""
    (found,) = (fit for fit in fitted(name) if fit.name == name)
    return found


def test_every_application_of_every_source_is_there():
    """ElasticFlow's A100 and T4 tables, Pollux's T4 measurements, Zeus's four GPUs."""
    names = {fit.name for fit in fitted() if fit.kind == "throughput"}
    assert names == {
        *(f"elasticflow-{name}-A100" for name in A100),
        *(f"elasticflow-{name}-T4" for name in T4),
        *(f"pollux-{name}-T4" for name in T4),
    }
    power = {(fit.gpu_type, fit.application) for fit in fitted() if fit.kind == "power"}
    assert power == {(gpu, name) for gpu, names in ZEUS.items() for name in names}
    assert all(fit.source and fit.citation for fit in fitted())
    assert {fit.licence for fit in fitted()} == {"Apache-2.0", "MIT"}
    assert all(fit.name.startswith("hfta-") == (fit.licence == "MIT") for fit in fitted())


@pytest.mark.parametrize("model", A100)
def test_a100_tables_fit_to_three_and_a_half_per_cent(model):
    """And rows that are left out are predicted to 6 %."""
    errors = fit(f"elasticflow-{model}-A100").errors
    assert errors.mape <= 0.035
    assert errors.held_out_mape <= 0.06


def test_zeus_curves_fit_to_two_and_a_half_per_cent():
    """165 of 218 do, and all but 19 predict rows that are left out within twice their error."""
    curves = [fit for fit in fitted() if fit.kind == "power"]
    assert len(curves) == 218
    assert sum(fit.errors.mape <= 0.025 for fit in curves) == 165
    worse = [fit for fit in curves if fit.errors.ratio > 2.0]
    assert len(worse) == 19
    assert all("held-out-error" in {r.code for r in fit.remarks} for fit in worse)


def test_throughput_is_fitted_again_to_the_packaged_numbers():
    """Two of the A100 tables: the same parameters."""
    path = SOURCE / "elasticflow" / "throughputs_A100.csv"
    for model in ("bert", "vgg16"):
        (table,) = read_measurements(path, Reading(model=model, gpu_type="A100", gpus_per_node=8))
        again, packaged = fit_throughput(table, {}).model, fit(f"elasticflow-{model}-A100")
        assert again.beta_c_s == pytest.approx(packaged.throughput.beta_c_s, rel=1e-2)


def test_power_is_fitted_again_to_the_packaged_numbers():
    """BERT on a V100: the same watts at every speed."""
    tables = read_measurements(
        SOURCE / "zeus" / "summary_power_4gpus.csv.gz", Reading(model="squad")
    )
    curves = fit_power(next(t for t in tables if t.gpu_type == "v100"), {})
    for batch, again in curves.items():
        packaged = fit(f"zeus-bert-squad-V100-b{batch:g}").power
        for speed in (0.5, 0.8, 1.0):
            watts = float(gpu_power_w(packaged, speed))
            assert float(gpu_power_w(again.model, speed)) == pytest.approx(watts, rel=1e-3)


def test_the_recipe_makes_the_packaged_fits():
    """A sample of each source again: names, warnings, and errors to a hundredth of themselves."""
    again = packed([*islice(elasticflow_a100(SOURCE), 1), *islice(zeus(SOURCE), 3)]).fits
    packaged = {fit.name: fit for fit in fitted()}
    assert len(again) == 4
    for new in again:
        old = packaged[new.name]
        assert new.errors.mape == pytest.approx(old.errors.mape, rel=1e-2, abs=1e-5), old.name
        assert {r.code for r in new.remarks} == {r.code for r in old.remarks}, old.name


def test_the_recipe_without_data_fails_in_one_line(tmp_path, monkeypatch, capsys):
    """Exit code 2, the missing file named, nothing written."""
    words = ["packaged", "--source", str(tmp_path), "--out", str(tmp_path / "profiles.json")]
    monkeypatch.setattr(sys, "argv", words)
    assert main() == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert "throughputs_A100.csv: found no such file" in errors
    assert list(tmp_path.iterdir()) == []


# --- the manual ----------------------------------------------------------------------------------


def manual():
    """Return docs/fitting.md."""
    return (ROOT / "docs" / "fitting.md").read_text(encoding="utf-8")


def percent(share):
    """Write a share as the manual does."""
    return f"{100 * share:.2f}"


def test_the_manual_has_the_packaged_throughput_errors():
    """Its table is that of `ronda profile list`."""
    for made in (f for f in fitted() if f.kind == "throughput"):
        e = made.errors
        cells = [f"`{made.name}`", str(e.rows), percent(e.mape), percent(e.largest)]
        cells += [percent(e.held_out_mape), f"{e.ratio:.2f}"]
        assert f"| {' | '.join(cells)} |" in manual()


def test_the_manual_explains_every_warning():
    """Each code that the modules can give stands in its table, and no other."""
    code = re.compile(r'(?:code=|warn\(\s*)"([a-z-]+)"')
    modules = [*(ROOT / "solvers/fitting").glob("*.py"), ROOT / "systems/hfta/fit.py"]
    found = {m for path in modules for m in code.findall(path.read_text(encoding="utf-8"))}
    assert found == set(re.findall(r"^\| `([a-z-]+)` \|", manual().split("## Warnings")[1], re.M))


def test_the_manual_has_the_packaged_power_errors():
    """One line for all batch sizes of an application on a GPU."""
    for name, group in families([f for f in fitted() if f.kind == "power"]).items():
        means = [f.errors.mape for f in group]
        out = [f.errors.held_out_mape for f in group]
        cells = [f"`{name}`", str(len(group)), percent(median(means)), percent(max(means))]
        cells += [str(sum(mean <= 0.025 for mean in means)), percent(median(out))]
        cells += [str(sum(f.errors.ratio <= 2.0 for f in group))]
        assert f"| {' | '.join(cells)} |" in manual()
