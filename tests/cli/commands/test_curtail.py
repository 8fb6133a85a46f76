"""``ronda curtail``: table, fields, picture, an instance, and what it refuses."""

import json

import pytest

import ronda as library
from ronda.instances import generate


@pytest.fixture
def round_file(tmp_path):
    """A round with a power cap, some of whose jobs run."""
    library.write(generate.round(12, severity="tight", seed=1), tmp_path / "round.json")
    return tmp_path / "round.json"


def test_fields_are_those_of_the_library(ronda, round_file):
    """The same points, with a reduction asked for besides."""
    words = ("--points", 4, "--less", "25%", "--check", 2, "--for", "15min", "--json")
    done = ronda("curtail", round_file, *words)
    assert done.exit_code == 0, done.output
    fields = json.loads(done.stdout.splitlines()[-1])
    found = library.curtail(
        library.read(round_file), points=4, less=[0.25], check_at=2, for_s=900.0
    )
    assert fields["for_s"] == 900.0
    assert fields["drawn_w"] == found.drawn_w
    assert [shed["less_w"] for shed in fields["sheds"]] == [s.less_w for s in found.sheds]
    assert [shed["worth"] for shed in fields["sheds"]] == [s.worth for s in found.sheds]
    assert sum(shed["solved"] is not None for shed in fields["sheds"]) == 2
    assert 0.25 * found.drawn_w in [pytest.approx(s["less_w"]) for s in fields["sheds"]]


def test_table_and_picture(ronda, round_file, tmp_path):
    """Prices are in money if a GPU-hour has one; the numbers of the picture are beside it."""
    picture = tmp_path / "curve.png"
    words = ("--points", 3, "--gpu-hour", 2.5, "--check", 3, "--picture", picture)
    done = ronda("curtail", round_file, *words)
    assert done.exit_code == 0, done.output
    assert "kWh costs (money)" in done.stdout
    assert "none is above the bound" in done.stdout
    assert picture.stat().st_size > 10_000
    header, *rows = picture.with_suffix(".csv").read_text().splitlines()
    assert header.startswith("less_w,worth,most_worth")
    assert len(rows) >= 2


def test_an_instance_is_driven(ronda):
    """The delay that jobs have in the run, with a cap from the decision on."""
    words = ("--at", 50, "--for", 20, "--less", "200W", "--points", 1, "--drive", "--json")
    done = ronda("curtail", "probe-cap-rises", *words)
    assert done.exit_code == 0, done.output
    fields = json.loads(done.stdout.splitlines()[-1])
    assert (fields["now_s"], fields["drawn_w"]) == (50.0, 580.0)
    (run,) = fields["runs"]
    assert run["cap_w"] == 380.0
    assert run["peak_w"] <= 380.0 * (1 + 1e-6)
    assert sum(late["jobs"] for late in run["late"]) == 1


def test_nothing_to_shed_is_said(ronda, tmp_path):
    """A round without jobs and without nodes that sleep for less: exit code 1."""
    gpu = library.GpuType(name="A100", memory_gib=80.0, idle_w=50.0)
    cluster = library.uniform_cluster(gpu, 1, 4, sleep_w=200.0)
    library.write(library.Round(cluster=cluster, profiles={}), tmp_path / "empty.json")
    done = ronda("curtail", tmp_path / "empty.json")
    assert done.exit_code == 1
    assert "no watt can be shed" in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--less", "5"), "25% or watts"),
        (("--less", "200%"), "25% or watts"),
        (("--less", "1000kW"), "may not be stopped"),
        (("--for", "3w"), "15min or 3h"),
        (("--for", "0"), "15min or 3h"),
        (("--at", "5"), "an instance"),
        (("--drive", "--less", "5%"), "an instance"),
        (("--policy", "fifo"), "chooses by values"),
        (("--picture", "curve.jpg"), ".png"),
    ],
)
def test_wrong_words_are_refused_in_one_line(ronda, round_file, words, told):
    """Exit code 2, with what was expected."""
    done = ronda("curtail", round_file, *words)
    assert done.exit_code == 2
    assert told in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
