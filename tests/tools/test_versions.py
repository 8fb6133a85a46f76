"""``python -m tools.versions``: what it keeps and calls a regression, the page, and bad input."""

import json
from pathlib import Path

import pytest

from ronda.bench.runs.results import Result, Status, results_of
from ronda.bench.tables import fill
from ronda.instances.tables.table import Best
from tools import versions

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "versions.md"


@pytest.fixture
def kept(tmp_path, monkeypatch, by_version):
    """Write the results of a version by hand, and let the command take them over."""
    monkeypatch.chdir(tmp_path)
    Path("data").mkdir()

    def keep(version, jct_s, solve_s=0.01, cpu="c", **about):
        """`jct_s` are the mean JCTs by seed, None of a run that was stopped; returns the tables."""
        out = Path(f"results-{len([*Path().iterdir()])}")
        out.mkdir()
        lines = results_of(out)
        about = {"policy": "fifo", "label": "fifo", "fingerprint": "f"} | about
        for seed, value in enumerate(jct_s):
            ended = {"status": Status.TIME, "message": "late"}
            if value is not None:
                told = {"mean_jct_s": value, "median_solve_s": solve_s}
                ended = {"status": Status.OK, "metrics": told}
            made = {"versions": {"ronda": version}, "host": {"cpu": cpu}, "commit": "abc"}
            key = f"{about['policy']}--s{seed}"
            lines.append(Result(instance="x", seed=seed, key=key, **about | made | ended))
        done = by_version(out, "--data", "data")
        assert done.exit_code == 0, done.output
        return versions.tables_of(versions.judged(versions.load(Path("data"))))

    return keep


def test_one_version_has_nothing_to_be_compared_with(kept):
    """And that is said; no verdict is made up."""
    jct, times = kept("0.1.0", [100.0, 110.0, 120.0])
    assert jct.rows == (("x", "fifo", "110 ± 10"),)  # the deviation of 100, 110, 120
    assert times.rows == (("x", "fifo", "10 ± 0"),)
    assert jct.notes[0] == "0.1.0 is the only version measured: nothing to compare with"
    assert jct.notes[1].startswith("0.1.0: 3 runs, 20")
    assert jct.notes[1].endswith(", abc")


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        # Logarithms of 1.1, 1.11, 1.09: mean 0.0953, deviation 0.009: far from 0.
        ([110.0, 111.0, 109.0], "worse"),
        ([90.0, 91.0, 89.0], "better"),
        # Of 1.5, 0.9, 1.1: mean 0.132 -+ 4.303 x 0.258 / sqrt(3) = 0.64.
        ([150.0, 90.0, 110.0], ""),
        ([100.0, 100.0, 100.0], "same"),
    ],
)
def test_a_regression_is_what_is_worse_beyond_noise(kept, after, verdict):
    """It stands out, and is named below; nothing else is."""
    kept("0.1.0", [100.0] * 3)
    jct, times = kept("0.2.0", after)
    assert jct.header == ("instance", "policy", "0.1.0", "0.2.0")
    cell, worse = jct.rows[0][3], verdict == "worse"
    assert cell.endswith(verdict or "]")
    assert isinstance(cell, Best) == worse
    named = "regression: x fifo in 0.2.0, from 0.1.0"
    assert jct.notes[0] == (named if worse else "no regression beyond noise")
    assert times.notes[0] == "no regression beyond noise"


def test_a_run_that_fails_now_is_a_regression(kept):
    """Though the mean of the others is less; one that failed before as well is none."""
    kept("0.1.0", [100.0, 300.0, None])
    jct, _ = kept("0.2.0", [100.0, None, None])
    assert jct.rows[0][2:] == ("200 ± 141; 1 of 3 failed", "100; 2 of 3 failed, 1 new; same")
    assert jct.notes[0] == "regression: x fifo in 0.2.0, from 0.1.0"
    jct, _ = kept("0.3.0", [100.0, None, None])
    assert jct.rows[0][4] == "100; 2 of 3 failed; same"
    assert len([note for note in jct.notes if "regression" in note]) == 1


def test_times_on_another_processor_are_no_regression(kept):
    """On the same one they are, if there is more than one run and they lie apart."""
    kept("0.1.0", [100.0] * 3)
    _, times = kept("0.2.0", [100.0] * 3, solve_s=0.02)
    assert times.rows[0][3].endswith("worse")
    _, times = kept("0.2.0", [100.0] * 3, solve_s=0.02, cpu="d")
    assert times.rows[0][3] == "20 ± 0; 2.000 [2.000, 2.000]"
    assert times.notes[0] == "no regression beyond noise"


@pytest.mark.parametrize("other", [{"fingerprint": "g"}, {"time_limit_s": 1.0}, {"period_s": 9.0}])
def test_other_work_is_not_compared(kept, other):
    """Another instance of that name, or other limits."""
    kept("0.1.0", [100.0])
    jct, _ = kept("0.2.0", [200.0], **other)
    assert jct.rows[0][3] == "200; not compared"
    assert jct.notes[0] == "no regression beyond noise"


def test_a_version_is_replaced_and_others_stay(kept):
    """Rows that a version does not have are held against the one before; 0.10 is after 0.9."""
    kept("0.10.0", [100.0])
    kept("0.9.0", [50.0])
    kept("0.9.0", [100.0], policy="las", label="las [oracle]", level="oracle")
    jct, _ = kept("0.9.0", [80.0])
    assert jct.header[2:] == ("0.9.0", "0.10.0")
    assert jct.rows == (
        ("x", "fifo", "80", "100; 1.250 worse"),
        ("x", "las [oracle]", "100", "–"),
    )
    lines = Path("data/versions.json").read_text().splitlines()
    assert [line[:1] for line in lines] == ["{", "{", "{", "{", "]"]
    jct, _ = kept("0.10.0rc1", [100.0], policy="las", label="las [oracle]", level="oracle")
    assert jct.header[2:] == ("0.9.0", "0.10.0rc1", "0.10.0")


def test_programs_get_the_same(kept, by_version):
    """Runs, and what changed."""
    kept("0.1.0", [100.0])
    kept("0.2.0", [150.0])
    done = by_version("--data", "data", "--json")
    old, new = json.loads(done.stdout.splitlines()[-1])["records"]
    assert (old["before"], old["changes"], old["runs"][0]["mean_jct_s"]) == ("", {}, 100.0)
    assert (new["before"], new["newly_failed"]) == ("0.1.0", 0)
    told = new["changes"]["mean_jct_s"]
    assert told == {"value": 1.5, "low": None, "high": None, "verdict": "worse"}


def test_the_page_follows_from_the_packaged_results(by_version, tmp_path):
    """To write it again changes nothing, and fills a page that is empty."""
    page = tmp_path / "page.md"
    text = PAGE.read_text(encoding="utf-8")
    page.write_text(fill(text, "versions", ""), encoding="utf-8")
    done = by_version("--into", page)
    assert done.exit_code == 0, done.output
    assert page.read_text(encoding="utf-8") == text
    assert versions.load(versions.DATA).records


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("none",), "--data: found none"),
        (("none", "--data", "data"), "none: found no results.jsonl"),
        (("results-1", "--data", "nowhere"), "versions.json: found no such file"),
        (("--data", "bad"), "versions.json"),
        (("results-1", "--data", "data", "--into", "plain.md"), "plain.md: found 0 places"),
    ],
)
def test_bad_input_is_one_line(kept, by_version, words, said):
    """Exit code 2, and what is kept stays as it is."""
    kept("0.1.0", [100.0])
    before = Path("data/versions.json").read_bytes()
    Path("bad").mkdir()
    Path("bad/versions.json").write_text('{"format":"ronda/versions/1","records":[{"x":1}]}')
    Path("plain.md").write_text("no marks\n")
    done = by_version(*words)
    assert (done.exit_code, len(done.output.splitlines())) == (2, 1), done.output
    assert said in done.output
    assert Path("data/versions.json").read_bytes() == before
