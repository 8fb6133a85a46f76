"""The packaged profiles: what the issue asks of them, that they can be made again, their docs."""

import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from ronda.cli.commands.profile.list import families
from ronda.formulations.models.power import gpu_power_w
from ronda.instances.files.fits import fitted
from ronda.solvers.fitting.packaged import packed
from ronda.solvers.fitting.power import fit_power
from ronda.solvers.fitting.reading import Reading, read_steps, read_watts
from ronda.solvers.fitting.sources import ZEUS_NAMES, all_fits
from ronda.solvers.fitting.throughput import fit_throughput

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / ".." / "shared" / "data"
real = pytest.mark.skipif(not SOURCE.is_dir(), reason="the shared data are not beside the checkout")

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


def odd(fit):
    """Return whether power does not follow speed, or not steadily."""
    return bool({r.code for r in fit.remarks} & {"power-without-speed", "non-monotone"})


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
    assert all(fit.source and fit.licence == "Apache-2.0" and fit.citation for fit in fitted())


@pytest.mark.parametrize("model", A100)
def test_a100_tables_fit_to_three_and_a_half_per_cent(model):
    """And rows that the others surround are predicted at most twice as badly as fitted."""
    errors = fit(f"elasticflow-{model}-A100").errors
    assert errors.mape <= 0.035
    assert errors.held_out_mape <= 2.0 * errors.mape


def test_zeus_curves_fit_to_two_and_a_half_per_cent():
    """167 of 218 do; of the 51 others in 34 power does not follow speed steadily, and says so."""
    curves = [fit for fit in fitted() if fit.kind == "power"]
    good = [fit for fit in curves if fit.errors.mape <= 0.025]
    bad = [fit for fit in curves if fit.errors.mape > 0.025]
    assert (len(curves), len(good)) == (218, 167)
    assert sum(odd(fit) for fit in bad) == 34
    assert max(fit.errors.mape for fit in bad if not odd(fit)) < 0.05


def test_zeus_rows_left_out_are_predicted_at_most_twice_as_badly():
    """207 of the 217 curves that have rows inside; the other ten carry the warning."""
    known = [f for f in fitted() if f.kind == "power" and f.errors.ratio is not None]
    worse = [f for f in known if f.errors.ratio > 2.0]
    assert (len(known), len(worse)) == (217, 10)
    assert all("held-out-error" in {r.code for r in f.remarks} for f in worse)


# Our earlier fits to these curves, each with a knee of its own: a, b, c, s0, error in per cent.
EARLIER = {
    "zeus-resnet50-V100-b256": (26, 140, 222, 0.88, 0.5),
    "zeus-bert-squad-V100-b32": (23, 157, 200, 0.87, 0.5),
    "zeus-bert-sentiment140-V100-b128": (24, 143, 177, 0.81, 0.7),
    "zeus-deepspeech2-V100-b32": (0, 135, 227, 0.86, 1.7),
    "zeus-shufflenetv2-V100-b1024": (0, 130, 194, 0.86, 2.3),
    "zeus-resnet50-A40-b256": (87, 93, 803, 0.98, 1.4),
    "zeus-bert-squad-A40-b32": (76, 122, 303, 0.91, 1.4),
    "zeus-bert-sentiment140-A40-b128": (76, 124, 285, 0.88, 0.2),
}


@real
@pytest.mark.parametrize("name", EARLIER)
def test_curves_of_their_own_are_those_known_before(name):
    """Fitted alone, each curve has the error that was found before, to a tenth of a per cent."""
    packaged = fit(name)
    job = next(long for long, short in ZEUS_NAMES.items() if short == packaged.application)
    tables = read_watts(SOURCE / "zeus" / "summary_power_4gpus.csv.gz", Reading(model=job))
    table = next(t for t in tables if t.gpu_type.upper() == packaged.gpu_type)
    alone = fit_power(table, shared=False, held_out=False)
    own = next(f for f in alone if f.batch == packaged.batch)
    assert 100 * own.errors.mape == pytest.approx(EARLIER[name][4], abs=0.16)
    assert packaged.errors.mape <= own.errors.mape + 0.01


@real
def test_throughput_is_fitted_again_to_the_packaged_numbers():
    """Two of the A100 tables: the same errors and parameters."""
    path = SOURCE / "elasticflow" / "throughputs_A100.csv"
    for model in ("bert", "vgg16"):
        (steps,) = read_steps(path, Reading(model=model, gpu_type="A100", gpus_per_node=8))
        again, packaged = fit_throughput(steps), fit(f"elasticflow-{model}-A100")
        assert again.errors.mape == pytest.approx(packaged.errors.mape, rel=1e-2)
        assert again.errors.held_out_mape == pytest.approx(packaged.errors.held_out_mape, rel=5e-2)
        assert again.throughput.beta_c_s == pytest.approx(packaged.throughput.beta_c_s, rel=1e-2)


@real
def test_power_is_fitted_again_to_the_packaged_numbers():
    """BERT on a V100: the same errors, and the same watts at every speed."""
    path = SOURCE / "zeus" / "summary_power_4gpus.csv.gz"
    tables = read_watts(path, Reading(model="squad"))
    for again in fit_power(next(t for t in tables if t.gpu_type == "v100")):
        packaged = fit(f"zeus-bert-squad-V100-b{again.batch:g}")
        assert again.errors.mape == pytest.approx(packaged.errors.mape, rel=1e-2)
        for speed in (0.5, 0.8, 1.0):
            watts = float(gpu_power_w(packaged.power, speed))
            assert float(gpu_power_w(again.power, speed)) == pytest.approx(watts, rel=1e-3)


@real
@pytest.mark.slow
def test_the_recipe_makes_the_packaged_file():
    """Every fit again from the data: names, and errors to a hundredth of themselves."""
    again = {fit.name: packed(fit) for fit in all_fits(SOURCE, lambda _: None)}
    assert set(again) == {fit.name for fit in fitted()}
    for old in fitted():
        new = again[old.name]
        assert new.errors.mape == pytest.approx(old.errors.mape, rel=1e-2, abs=1e-5), old.name
        assert {r.code for r in new.remarks} == {r.code for r in old.remarks}, old.name


def test_the_recipe_without_data_fails_in_one_line(tmp_path):
    """Exit code 2, the missing file named, nothing written."""
    command = [sys.executable, "-m", "ronda.solvers.fitting.packaged"]
    command += ["--source", str(tmp_path), "--out", str(tmp_path / "profiles.json")]
    done = subprocess.run(command, cwd=ROOT.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "throughputs_A100.csv: found No such file" in done.stderr
    assert list(tmp_path.iterdir()) == []


# --- the manual ----------------------------------------------------------------------------------


def manual():
    """Return docs/fitting.md."""
    return (ROOT / "docs" / "fitting.md").read_text(encoding="utf-8")


def percent(share):
    """Write a share as the manual does."""
    return f"{100 * share:.2f}"


@pytest.mark.parametrize(
    "fit", [f for f in fitted() if f.kind == "throughput"], ids=lambda f: f.name
)
def test_the_manual_has_the_packaged_throughput_errors(fit):
    """Its table is that of `ronda profile list`."""
    e = fit.errors
    cells = [f"`{fit.name}`", str(e.rows), percent(e.mape), percent(e.largest)]
    cells += ["" if e.held_out_mape is None else percent(e.held_out_mape)]
    cells += ["" if e.ratio is None else f"{e.ratio:.2f}"]
    cells += ["" if e.edge_mape is None else percent(e.edge_mape)]
    assert f"| {' | '.join(cells)} |" in manual()


def test_the_manual_explains_every_warning():
    """Each code that the modules can give stands in its table, and no other."""
    code = re.compile(r'code=(?:f?)"([a-z{}-]+)"')
    modules = (ROOT / "solvers" / "fitting").glob("*.py")
    found = {m for path in modules for m in code.findall(path.read_text(encoding="utf-8"))}
    filled = {m.replace("{code}", where) for m in found for where in ("in-node", "across")}
    assert filled == set(re.findall(r"^\| `([a-z-]+)` \|", manual().split("## Warnings")[1], re.M))


@pytest.mark.parametrize("name", families([f for f in fitted() if f.kind == "power"]))
def test_the_manual_has_the_packaged_power_errors(name):
    """One line for all batch sizes of an application on a GPU."""
    found = [f.errors for f in families(fitted())[name]]
    means = [e.mape for e in found]
    out = [e.held_out_mape for e in found if e.held_out_mape is not None]
    ratios = [e.ratio for e in found if e.ratio is not None]
    cells = [f"`{name}`", str(len(found)), percent(median(means)), percent(max(means))]
    cells += [str(sum(mean <= 0.025 for mean in means)), percent(median(out))]
    cells += [f"{sum(ratio <= 2.0 for ratio in ratios)} of {len(ratios)}"]
    assert f"| {' | '.join(cells)} |" in manual()
