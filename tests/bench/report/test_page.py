"""A folder of results as one page: opened, read and used in a real browser."""

import gzip
import re
import shutil
from base64 import b64decode

import msgspec
import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from ronda.bench.report import page as pages
from ronda.bench.report import words
from ronda.bench.report.charts import quality
from ronda.bench.report.folder import find
from ronda.bench.report.page import write_report
from ronda.bench.runs.results import RESULTS
from ronda.bench.runs.variant import Resample
from ronda.cli.app import cli
from ronda.instances.errors import InputError
from ronda.instances.files.json import write
from tests.helpers.run_here import run_here

BROWSER = shutil.which("chromium")
HOSTILE = "<script>alert(1)</script>"
READINESS = """
window.readiness = {};
const look = () => {
  const ready = document.body?.dataset.ready;
  if (ready) readiness[ready] ??= document.querySelectorAll(".js-plotly-plot").length;
};
const watched = { subtree: true, attributes: true, attributeFilter: ["data-ready"] };
new MutationObserver(look).observe(document, watched);
"""
"""Keeps how many charts there are when the page first says how far it is."""


@pytest.fixture
def ronda():
    """Run the command line in this process."""

    def call(*words):
        return CliRunner().invoke(cli, [str(word) for word in words], prog_name="ronda")

    return call


@pytest.fixture(scope="module")
def compared(tmp_path_factory, two_nodes):
    """Return a folder in which two policies were compared on two instances; names are HTML."""
    folder = tmp_path_factory.mktemp("compared")
    jobs = [replace(two_nodes.jobs[0], id=HOSTILE, user="<i>u</i>"), *two_nodes.jobs[1:]]
    write(replace(two_nodes, name="two <b>nodes</b>", jobs=tuple(jobs)), folder / "own.json")
    words = "compare own.json one-gpu --policies fifo,srtf --no-figures --out out"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        run_here(patch)
        done = CliRunner().invoke(cli, words.split(), prog_name="ronda")
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def results(compared, tmp_path, monkeypatch):
    """Return a copy of the comparison's results, which a test may change."""
    shutil.copytree(compared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "out"


@pytest.fixture(scope="module")
def browser():
    """Start a real browser."""
    if BROWSER is None:
        pytest.skip("no chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def written(compared):
    """Return the page of the comparison, written once."""
    return write_report(compared / "out")


@pytest.fixture(scope="module")
def opened(browser, written):
    """Return a browser's page of the results, and what it complained of or asked a host for.

    Tests leave the page as wide and as light as they found it.
    """
    wrong = []
    page = browser.new_page(viewport={"width": 1280, "height": 900}, color_scheme="light")
    page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on(
        "request",
        lambda asked: (
            None if asked.url.startswith(("file:", "blob:", "data:")) else wrong.append(asked.url)
        ),
    )
    page.add_init_script(READINESS)
    page.goto(written.as_uri())
    page.wait_for_selector("body[data-ready=all]", timeout=120_000)
    yield page, wrong
    page.close()


def says(page, words):
    """Wait until the page says words of the run that it shows."""
    page.wait_for_function(f"document.querySelector('#run-said').textContent.includes('{words}')")


def test_the_page_can_be_used(opened):
    """Bars tell of their jobs, filters and tables work, policies switch, it is dark and narrow."""
    from playwright.sync_api import expect

    page, wrong = opened
    bar = page.locator("#gantt .barlayer .point path").first
    bar.hover(force=True)
    told = page.locator("#gantt .hoverlayer").text_content()
    assert "GPUs on node" in told
    page.fill("#f-job", "b")
    page.wait_for_function(
        "document.querySelector('#run-said').textContent.includes('1 of 3 jobs')"
    )
    assert "Job b" in page.locator("#job-card").inner_text()
    page.click("#f-clear")
    page.select_option("#run-policy", "srtf")
    says(page, "srtf: all")
    page.focus("#round")
    page.keyboard.press("ArrowRight")
    assert page.locator("#round-card").inner_text().startswith("Round 1 of")
    policies = page.locator("#runs table.data tbody td:nth-child(2)")
    for order in (["fifo", "fifo", "srtf", "srtf"], ["srtf", "srtf", "fifo", "fifo"]):
        page.locator("#runs table.data thead th").nth(1).click()
        expect(policies).to_have_text(order)
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.click("#theme")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    hint = "getComputedStyle(document.querySelector('#tables .wide.cut'), '::before').content"
    assert "scroll sideways" in page.evaluate(hint)
    assert page.locator("figure[data-section=quality] .modebar:visible").count() == 0
    with page.expect_download() as saved:
        page.locator("figure[data-section=quality] .tools button", has_text="CSV").click()
    assert saved.value.path().read_text().startswith("series,")
    page.set_viewport_size({"width": 1280, "height": 900})
    page.click("#theme")
    assert wrong == []


def test_what_is_in_view_is_drawn_first(opened):
    """The page is ready before the charts further down are drawn; these follow by themselves."""
    page, wrong = opened
    drawn = page.evaluate("readiness")
    assert list(drawn) == ["yes", "all"]
    assert drawn["yes"] < drawn["all"] == page.locator("figure .js-plotly-plot").count()
    assert wrong == []


def test_names_are_data(opened):
    """What looks like HTML in a name is read, not carried out."""
    page, wrong = opened
    page.select_option("#run-workload", label="two <b>nodes</b>")
    page.fill("#f-job", HOSTILE)
    page.wait_for_function("!document.querySelector('#job-card').hidden")
    assert HOSTILE in page.locator("#job-card").inner_text()
    assert page.locator("main b, main i").count() == 0
    assert wrong == []


def test_the_folder_says_all_by_itself(results, tmp_path):
    """An instance of the user's own is kept next to the results: moved, they still have it."""
    (tmp_path / "own.json").unlink()
    found = find(results.rename(tmp_path / "moved"))
    assert {found.question(result).name for result in found.results} == {
        "two <b>nodes</b>",
        "one-gpu",
    }
    assert found.gaps == []


def page_text(folder):
    """Return the page of a folder."""
    return write_report(folder).read_text("utf-8")


def test_sizes_have_a_scale_of_colours(opened):
    """Bars coloured by GPUs held have different colours, and none the grey of what is left."""
    page, wrong = opened
    page.select_option("#run-workload", label="two <b>nodes</b>")
    says(page, "3 jobs")
    page.select_option("#run-colour", "asked")
    page.wait_for_function("document.querySelector('#gantt .legend').textContent.includes('GPU')")
    bars = "document.querySelector('#gantt').plot.data.filter((t) => t.name?.includes(' GPU'))"
    bars += ".filter((t) => t.type === 'bar').map((t) => [t.name, t.marker.color])"
    told = dict(page.evaluate(bars))
    scale = {"1 GPU": "#f2b134", "2 GPUs": "#ee9140", "3–4 GPUs": "#e5714c", "5–8 GPUs": "#d5535f"}
    assert told
    assert told == {name: scale[name] for name in told}
    assert wrong == []


def test_many_tables_of_workloads_are_folded(results, monkeypatch):
    """Over the limit the tables of single workloads are folded; under it they stand open."""
    page = page_text(results)
    assert "<details>" not in page
    assert page.index('<section id="quality">') < page.index('<section id="tables">')
    monkeypatch.setattr(words, "MOST_TABLES", 1)
    assert page_text(results).count("<details><summary>") == 2


def test_what_varies_between_runs_is_said(results):
    """Seeds of one workload, or workloads that are drawn."""
    found = find(results)
    twice = [*found.results, *(replace(r, seed=1) for r in found.results)]
    told = quality(replace_results(found, twice))
    assert any("each with a seed of its own" in chart.caption for chart in told)
    drawn = [replace(r, variant=replace(r.variant, resample=Resample())) for r in twice]
    told = quality(replace_results(found, drawn))
    assert any("each on a workload that is drawn for it" in chart.caption for chart in told)


def test_what_is_missing_is_named(results):
    """A schedule that is gone, an instance that is gone and a line cut off are gaps in the page."""
    key = find(results).results[-1].key
    (results / "runs" / key / "schedule.json.zst").unlink()
    shutil.rmtree(results / "instances")
    with (results / RESULTS).open("ab") as file:
        file.write(b'{"half')
    text = page_text(results)
    assert "no schedule (no such file)" in text
    assert "neither packaged nor in the folder instances" in text
    assert "the last line of results.jsonl is cut off" in text


def test_failed_runs_are_named(results):
    """A page of runs that all failed has their reasons and says what there is not."""
    found = find(results)
    lines = [replace(r, status="ERROR", message="it broke", metrics={}) for r in found.results]
    text = pages.page_of(replace_results(found, lines), lambda share, name: None)
    assert "4 of 4 runs did not end well" in text
    assert "it broke" in text
    assert "Quality against decision time: no run with decisions ended well" in text


def charts(page):
    """Return the charts of a page."""
    text = re.search('id="data-charts">([^<]*)<', page)[1]
    return msgspec.json.decode(gzip.decompress(b64decode(text)))


@pytest.mark.parametrize("bad", [{"status": "TIME"}, {"metrics": {"violations": 1}}])
def test_jobs_of_failed_runs_are_never_complete(results, bad):
    """Of two runs of the same jobs one fails: the curve ends at a half."""
    found = find(results)
    own = [run for run in found.results if run.instance == "one-gpu"]
    failed = [replace(run, seed=1, **bad) for run in own if run.label == "fifo"]
    page = pages.page_of(replace_results(found, [*own, *failed]), lambda share, name: None)
    (chart,) = [chart for chart in charts(page) if chart["section"] == "jct"]
    assert {t["name"]: t["y"][-1] for t in chart["traces"]} == {"fifo": 0.5, "srtf": 1.0}


def test_searches_that_failed_have_a_gap_all_along(tmp_path, ronda, runs_here):
    """Of two runs one fails: the mean of their gaps ends at half of the other's, and a half."""
    words = ("anytime", "round-tight-64", "--policies", "prices", "--out", tmp_path / "out")
    assert ronda(*words).exit_code == 0
    found = find(tmp_path / "out")
    failed = [replace(run, seed=1, status="TIME", metrics={}) for run in found.results]
    page = pages.page_of(replace_results(found, [*found.results, *failed]), lambda *_: None)
    (chart,) = charts(page)
    assert chart["traces"][-1]["y"][-1] >= 0.5


def replace_results(found, lines):
    """Return a folder as found, with other results."""
    return type(found)(found.folder, found.kind, found.about, tuple(lines))


def test_runs_that_do_not_fit_are_named(results, monkeypatch):
    """Over the limit of bytes charts over time are left out, the page says of which runs."""
    monkeypatch.setattr(pages, "MOST_BYTES", 0)
    text = page_text(results)
    assert "charts over time of 4 runs are left out" in text
    assert 'id="data-run-0"' not in text


@pytest.mark.parametrize("kind", ["nothing", "foreign", "sleep", "empty", "file"])
def test_other_folders_are_refused(kind, tmp_path, ronda):
    """In one line, with exit code 2 and without a page."""
    place = tmp_path / "there"
    if kind == "file":
        place.write_text("x")
    elif kind != "nothing":
        place.mkdir()
    if kind in {"sleep", "empty"}:
        form = {"sleep": "ronda/sleep/1", "empty": "ronda/comparison/1"}[kind]
        (place / "ronda.json").write_bytes(msgspec.json.encode({"format": form, "about": {}}))
    done = ronda("report", place)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert not (place / "report.html").exists()


def test_a_damaged_line_is_refused(results):
    """One that is not the last was changed by somebody: it is named."""
    path = results / RESULTS
    path.write_bytes(path.read_bytes().replace(b"fifo", b"FIFO", 1))
    with pytest.raises(InputError, match=r"results\.jsonl line \d"):
        find(results)


def test_a_run_has_a_page(tmp_path, ronda):
    """The folder of a single run."""
    done = ronda("run", "one-gpu", "--policy", "srtf", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.output
    text = page_text(tmp_path / "run")
    assert "One run, from start to end" in text
    assert "Nothing that the folder holds is left out" in text
