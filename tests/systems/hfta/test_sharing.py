"""Models that share a GPU, against HFTA's and Hydro's measurements."""

from pathlib import Path

import pytest

from ronda.instances.errors import InputError
from ronda.instances.files.fits import fitted
from ronda.instances.models.memory import most_models
from ronda.instances.models.sharing import speed_up, step_s
from ronda.instances.profile import MeasuredTime
from ronda.systems.hfta.fit import best_speed_up, fit_sharing
from tools.maxima import Maximum, memory_of, read_maxima
from tools.profiles import hfta, hydro, packed

SOURCE = Path(__file__).resolve().parents[2] / "data"
GIB = {"V100-16GB": 16.0, "RTX6000-24GB": 24.0, "A100-40GB": 40.0, "RTX3090-24GB": 24.0}


def fit(name):
    """Return the packaged fit of this very name."""
    (found,) = (fit for fit in fitted(name) if fit.name == name)
    return found


def table(path, rows):
    """Write a table of fused models: 1 + 0.5 k."""
    path.write_text("mode,models,step_s\n" + rows)
    return path


def test_pointnet_on_a100_and_v100_follows_a_line_to_one_per_cent():
    """From four models on an A100, from two on a V100; on an RTX 6000 to 7 %."""
    for gpu, most in (("A100-40GB", 0.01), ("V100-16GB", 0.01), ("RTX6000-24GB", 0.07)):
        for precision in ("amp", "fp32"):
            found = fit(f"hfta-pointnet_cls-{precision}-{gpu}-fused")
            assert found.errors.largest <= most, found.name
    assert fit("hfta-pointnet_cls-bf16-TPUv3-core-fused").sharing.time.floor_s > 1.0


def test_published_maxima_follow_from_the_model():
    """On an A100, 25 fused models: 11.50 times serial, 4.72 MPS, 4.88 MIG; to 1 %."""
    name = "hfta-pointnet_cls-amp-A100-40GB"
    time = {m: fit(f"{name}-{m}").sharing.time for m in ("fused", "packed", "slices", "exclusive")}
    alone = step_s(time["exclusive"], 1)
    fused = speed_up(time["fused"], 25, alone)
    assert fused == pytest.approx(11.50, rel=0.01)
    assert fused / speed_up(time["packed"], 13, alone) == pytest.approx(4.72, rel=0.01)
    assert fused / speed_up(time["slices"], 7, alone) == pytest.approx(4.88, rel=0.01)


def test_most_models_of_the_poster_follow_from_b_and_p():
    """All ten of them; one p of 1.5 GiB explains seven, with 1 to 1.6 GiB a process."""
    for one in read_maxima(SOURCE / "hfta" / "most_models.csv"):
        memory = fit(f"hfta-{one.application}-{one.gpu_type}-memory").memory
        assert most_models(memory, one.mode, one.gpu_gib) == one.models, one
        assert 0.9 < memory.base_gib < 1.6
    with pytest.raises(InputError, match="maxima"):
        memory_of([Maximum("a", "g", 10.0, m, k) for m, k in (("fused", 3), ("packed", 9))])


def test_hydro_memory():
    """One b and one p for fused and packed ResNet-18 to 0.5 %, and to 0.8 % when it is narrow."""
    assert fit("hydro-resnet18-1-RTX3090-24GB-memory").errors.largest <= 0.005
    assert fit("hydro-resnet18-8-RTX3090-24GB-memory").errors.largest <= 0.008
    wide = fit("hydro-resnet18-1-RTX3090-24GB-memory").memory
    assert most_models(wide, "packed", GIB["RTX3090-24GB"]) == 10  # as measured: 23.3 GB


def test_packing_beats_fusing_resnet18():
    """Five processes reach 2.04 times serial; 25 fused models 1.7."""
    name = "hydro-resnet18-1-RTX3090-24GB"
    alone = step_s(fit(f"{name}-exclusive").sharing.time, 1)
    assert speed_up(fit(f"{name}-packed").sharing.time, 5, alone) == pytest.approx(2.04, abs=0.01)
    assert speed_up(fit(f"{name}-fused").sharing.time, 25, alone) == pytest.approx(1.71, rel=0.02)


def test_the_recipe_makes_the_packaged_fits():
    """Names, models and warnings."""
    again = {fit.name: fit for fit in packed([*hfta(SOURCE), *hydro(SOURCE)]).fits}
    packaged = {fit.name: fit for fit in fitted() if fit.kind in ("sharing", "memory")}
    assert again.keys() == packaged.keys()
    for name, old in packaged.items():
        new = again[name]
        assert new.errors.mape == pytest.approx(old.errors.mape, rel=1e-3, abs=1e-5)
        assert {r.code for r in new.remarks} == {r.code for r in old.remarks}


def test_a_line_is_found_again(tmp_path):
    """1 + 0.5 k, with a step of one model that is given as throughput 0.8."""
    path = tmp_path / "t.csv"
    path.write_text(
        "mode,k,throughput,serial\n"
        + "".join(f"hfta,{k},{k / (1 + k / 2)},0.8\n" for k in (2, 3, 8))
    )
    fits = fit_sharing(path, "m", "G")
    alone, fused = fits.fits
    assert (alone.name, fused.name) == ("m-G-exclusive", "m-G-fused")
    assert fused.sharing.time.alpha_s == pytest.approx(1.0)
    assert fused.sharing.time.beta_s == pytest.approx(0.5)
    assert fused.sharing.time.floor_s == 0.0
    assert best_speed_up(fits, fused) == (8, pytest.approx(8 * 1.25 / 5))


def test_a_floor_is_found(tmp_path):
    """3 s up to four models, then 1 + 0.5 k."""
    rows = "".join(f"fused,{k},{max(3.0, 1 + k / 2)}\n" for k in (1, 2, 3, 4, 6, 8, 10, 12))
    alone, fused = fit_sharing(table(tmp_path / "t.csv", rows)).fits
    time = fused.sharing.time
    assert (time.floor_s, time.alpha_s, time.beta_s) == pytest.approx((3.0, 1.0, 0.5))
    assert step_s(alone.sharing.time, 1) == 3.0  # one fused model stands for one alone


def test_the_error_of_a_floor_counts_its_degrees_of_freedom(tmp_path):
    """Two steps of 2.9 and 3.1 s on it, then 1 + 0.5 k from 3 models on, in relative errors.

    Weights 1/2.9 and 1/3.1: f = sum(w) / sum(w^2) = 2.9933. Residuals f w - 1 are 0.0322 and
    -0.0344, their squares add up to 0.002220, one degree of freedom is left, and
    sqrt(0.002221 / sum(w^2)) = 0.0998.
    """
    tail = [(k, 1 + k / 2) for k in (6, 8, 10, 12, 16)]
    rows = "".join(f"fused,{k},{s}\n" for k, s in [(1, 2.9), (2, 3.1), *tail])
    _, fused = fit_sharing(table(tmp_path / "t.csv", rows)).fits
    (floor,) = (p for p in fused.parameters if p.name == "floor_s")
    assert floor.value == pytest.approx(2.9933, abs=1e-4)
    assert floor.std_error == pytest.approx(0.0998, abs=1e-4)


def test_what_holds_no_law_stays_as_measured(tmp_path):
    """Two numbers of models, or times that follow no line."""
    alone, few = fit_sharing(table(tmp_path / "few.csv", "mps,2,3\nmps,4,5\nserial,1,2\n")).fits
    assert few.sharing.time == MeasuredTime(models=(1, 2, 4), step_s=(2.0, 3.0, 5.0))
    assert [r.code for r in few.remarks] == ["few-widths"]
    (odd,) = fit_sharing(table(tmp_path / "odd.csv", "hfta,2,3\nhfta,4,9\nhfta,8,9\n")).fits
    assert isinstance(odd.sharing.time, MeasuredTime)
    assert [r.code for r in odd.remarks] == ["no-line"]
    assert alone.sharing.mode == "exclusive"


def test_processes_are_never_faster_together_than_one_alone(tmp_path):
    """A line through packed times that would fall below the time alone is held there."""
    rows = "serial,1,2\n" + "".join(f"mps,{k},{k / 2 + 0.1}\n" for k in (6, 8, 10))
    _, packed_ = fit_sharing(table(tmp_path / "t.csv", rows)).fits
    assert step_s(packed_.sharing.time, 2) == 2.0
    assert step_s(packed_.sharing.time, 10) == pytest.approx(5.1)


SHARED = "mode,k,step_s,gpu_mem_MB,serial\n"


@pytest.mark.parametrize("odd", ["nan", "inf", "1e-320", "1e300", "1e400", "0", "-1", "x", ""])
@pytest.mark.parametrize("column", ["k", "step_s", "gpu_mem_MB", "serial"])
def test_numbers_that_no_measurement_has_are_refused(tmp_path, odd, column):
    """File, row and column, in one line, before anything is fitted; memory may be unknown."""
    rows = [["fused", str(k), str(1.0 + k), str(1000 + 100 * k), "0.5"] for k in (1, 2, 4)]
    rows[1][SHARED.strip().split(",").index(column)] = odd
    path = tmp_path / "t.csv"
    path.write_text(SHARED + "".join(",".join(row) + "\n" for row in rows))
    if (column, odd) == ("gpu_mem_MB", ""):
        assert [f.kind for f in fit_sharing(path).fits] == ["sharing", "sharing", "memory"]
        return
    with pytest.raises(InputError) as caught:
        fit_sharing(path)
    assert f"{path}, row 3, {column}: found {odd!r}; expected " in str(caught.value)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("exclusive,2,3,1200,0.5", "k: found '2'; expected 1, as one model"),
        ("slices,8,3,1200,0.5", "k: found '8'; expected at most 7 slices"),
        ("fused,1.5,3,1200,0.5", "k: found '1.5'; expected a whole number"),
        ("fused,2,3,1200,0.6", "serial: found '0.6'; expected the same in all rows"),
        ("mixed,2,3,1200,0.5", "mode: found 'mixed'; expected one of"),
        ("fused,2,3,1200", "row 5: found 4 cells; expected 5"),
    ],
)
def test_rows_that_contradict_the_others_are_refused(tmp_path, row, said):
    """A row counts, or is refused; none decides for the others."""
    rows = "".join(f"fused,{k},{1 + k},{1000 + 100 * k},0.5\n" for k in (1, 2, 4))
    (tmp_path / "t.csv").write_text(f"{SHARED}{rows}{row}\n")
    with pytest.raises(InputError) as caught:
        fit_sharing(tmp_path / "t.csv")
    assert said in str(caught.value)
