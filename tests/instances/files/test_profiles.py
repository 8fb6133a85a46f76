"""Fits as files and as profiles of instances."""

import msgspec
import pytest

from ronda.instances.errors import InputError
from ronda.instances.files import fits as profiles
from ronda.instances.models.fits import Fit, FitErrors, FitParameter, Fits
from ronda.instances.profile import Parametric, PowerCurve

SPEED = Fit(
    name="app-G",
    kind="throughput",
    application="app",
    gpu_type="G",
    throughput=Parametric(alpha_c_s=0.1, beta_c_s=0.01),
    measured={"gpus": (1.0, 8.0), "local_batch": (2.0, 64.0)},
    errors=FitErrors(rows=10, mape=0.02, largest=0.05, held_out_rows=9, held_out_mape=0.03),
    parameters=(FitParameter(name="alpha_c_s", value=0.1, std_error=0.01),),
    source="a lab",
)
WATTS = Fit(
    name="app-G-b8",
    kind="power",
    application="app",
    gpu_type="G",
    batch=8.0,
    power=PowerCurve(a_w=20.0, b_w=100.0),
    measured={"speed": (0.5, 1.0)},
    errors=FitErrors(rows=5, mape=0.0, largest=0.0),
    parameters=(),
    source="another lab",
)


def test_errors_in_short():
    """0.03 / 0.02 = 1.5; nothing known."""
    assert SPEED.errors.ratio == pytest.approx(1.5)
    assert WATTS.errors.ratio is None


def test_a_profile_from_two_fits():
    """Speed, power, and no local batch that nobody measured."""
    made = profiles.profile(SPEED, WATTS, name="mine")
    assert made.name == "mine"
    assert made.throughput == {"G": SPEED.throughput}
    assert made.power == {"G": WATTS.power}
    assert made.max_local_batch == 64.0
    assert made.source == "a lab; another lab"
    assert profiles.profile(SPEED).power == {}


def test_a_profile_needs_the_right_kinds():
    """Power is no speed, and the other way round."""
    with pytest.raises(InputError, match="'app-G-b8', a fit of power"):
        profiles.profile(WATTS)
    with pytest.raises(InputError, match="'app-G', a fit of throughput"):
        profiles.profile(SPEED, SPEED)


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".json.zst"])
def test_what_is_written_can_be_read(suffix, tmp_path):
    """By its path, and with the same bytes for the same fits."""
    fits = Fits(fits=(SPEED, WATTS))
    path = tmp_path / f"fits{suffix}"
    profiles.write_fits(fits, path)
    assert profiles.read_fits(path) == fits
    assert profiles.find_fits(path) == (SPEED, WATTS)
    first = path.read_bytes()
    profiles.write_fits(fits, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"mape":0.02', '"mape":-1', "mape"),
        ('"mape":0.02', '"mape":"2 %"', "mape"),
        ('"rows":10', '"rows":10,"colour":1', "colour"),
        ('"format":"ronda/fits/1",', "", "no field format"),
        ("ronda/fits/1", "ronda/plan/1", "format"),
        ('"app-G-b8"', '"app-G"', "'app-G' twice"),
        ('"kind":"power"', '"kind":"throughput"', "fits[1]"),
        ("{", "", "fits.json"),
    ],
)
def test_files_that_cannot_be_used(old, new, words, tmp_path):
    """One line that names file and field."""
    path = tmp_path / "fits.json"
    profiles.write_fits(Fits(fits=(SPEED, WATTS)), path)
    text = msgspec.json.encode(msgspec.json.decode(path.read_bytes())).decode()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as error:
        profiles.read_fits(path)
    assert words in str(error.value)
    assert "fits.json" in str(error.value)
    assert "\n" not in str(error.value)


def test_packaged_fits_by_word_and_name():
    """Some, one, or none with a suggestion."""
    assert {fit.gpu_type for fit in profiles.fitted("resnet50-V100")} == {"V100"}
    assert [fit.name for fit in profiles.find_fits("elasticflow-bert-A100")] == [
        "elasticflow-bert-A100"
    ]
    with pytest.raises(InputError, match="elasticflow-bert-A100"):
        profiles.find_fits("elasticflow-bret-A100")


def test_packaged_fits_are_whole():
    """Unique names, a model each, parameters that are the model's own, and no residuals."""
    fits = profiles.fitted()
    assert len({fit.name for fit in fits}) == len(fits)
    for fit in fits:
        time = fit.sharing and fit.sharing.time
        model = fit.throughput or fit.power or fit.memory or time
        assert {p.name: p.value for p in fit.parameters}.items() <= {
            name: getattr(model, name) for name in model.__struct_fields__
        }.items()
        assert fit.residuals == ()
        assert fit.errors.rows >= (1 if fit.kind in ("sharing", "memory") else 2)
