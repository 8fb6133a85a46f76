"""Reading suites: what parts leave out, what options replace, and what is refused."""

import pytest

from ronda.bench.suites.suite import Ratio, Suite, SuitePart, read
from ronda.instances.errors import InputError

WHOLE = """
about = "All there is."
instances = ["one-gpu", { make = "sweep", trials = 4 }]
policies = ["fifo", { policy = "prices", patience = [3, 1] }]
knowledge = ["oracle", "history"]
seeds = "0-4"
by_seed = ["instance"]
time_limit_s = 2
predictor = "sizes.json"
timeout_s = 60.0
memory_mib = 100
figure = ["mean_jct_s", "jobs"]

[change]
restart_s = [0, 30]

[[runs]]
policies = ["srtf"]
change.load = 0.5

[[runs]]
seeds = "7"

[ratio]
to = { policy = "fifo" }
mean = "of means"
floor = 60
lost_above = 1.1

[table]
rows = ["policy"]
across = "restart_s"
cells = ["mean_jct_s"]
columns = ["jobs"]
"""


@pytest.fixture
def suite(tmp_path):
    """Read a suite from a text."""

    def of(text):
        (tmp_path / "s.toml").write_text(text, encoding="utf-8")
        return read(tmp_path / "s.toml")

    return of


def test_parts_have_what_they_leave_out_from_the_whole(suite):
    """Changes are joined; all else is replaced."""
    first, second = suite(WHOLE).parts()
    assert (first.policies, second.policies[0]) == (("srtf",), "fifo")
    assert (first.seeds, second.seeds) == ("0-4", "7")
    assert first.change == {"restart_s": [0, 30], "load": 0.5}
    assert second.change == {"restart_s": [0, 30]}
    assert {first.time_limit_s, second.time_limit_s} == {2.0}


def test_what_nobody_says():
    """Declared sizes, and seed 0."""
    (part,) = Suite(instances=("one-gpu",), policies=("fifo",)).parts()
    assert (part.knowledge, part.seeds, part.change) == (("declared",), "0", {})


def test_options_replace_what_all_parts_say():
    """A policy that others are held against runs all the same."""
    whole = Suite(
        policies=("fifo", "srtf"),
        runs=(SuitePart(seeds="1"), SuitePart()),
        ratio=Ratio(to={"policy": "srtf"}),
    )
    asked = whole.asked(policies=("sjf",), seeds="5", timeout_s=9.0)
    assert asked.timeout_s == 9.0
    assert [(p.policies, p.seeds) for p in asked.parts()] == [(("srtf", "sjf"), "5")] * 2


def test_parts_with_policies_of_their_own_take_no_others():
    """Nobody could say which part another policy belongs to."""
    whole = Suite(runs=(SuitePart(policies=("fifo",)), SuitePart(policies=("srtf",))))
    assert len(whole.asked(seeds="1").parts()) == 2
    with pytest.raises(InputError, match="--policies: found a suite whose parts have policies"):
        whole.asked(policies=("sjf",))


@pytest.mark.parametrize(
    ("text", "place", "found", "expected"),
    [
        ("polices = []", "", 'unknown field "polices"', '"policies"? of instances, policies, know'),
        ("[table]\nrow = []", ", table", 'unknown field "row"', '"rows"? of rows, across, cells'),
        ("[[runs]]\nfoo = 1", ", runs[0]", 'unknown field "foo"', "one of instances, policies"),
        ("[ratio]\nmean = 'x'", ", ratio.mean", '"x"', 'one of "geometric", "of means"'),
        ("[ratio]\nfloor = 1", ", ratio", 'no field "to"', "that field"),
        ("seeds = 5", ", seeds", "5", "a string"),
        ("knowledge = ['all']", ", knowledge[0]", '"all"', 'one of "oracle", "declared"'),
        ("time_limit_s = 0", ", time_limit_s", "0", "> 0"),
        ("time_limit_s = nan", ", time_limit_s", "NaN", "a finite number"),
        ("figure = ['a']", ", figure", '["a"]', "length 2"),
        ("instances = [7]", ", instances[0]", "7", "a string or an object"),
        ("x = @\n", ", line 1 column 5", '"x = @"', "TOML (Invalid value"),
        ("a = 1\na = 2", ", line 2", '"a = 2"', "TOML (Cannot overwrite a value"),
        ("\n[table", ", line 2", '"[table"', "TOML (Expected ']' at the end of a table decl"),
        ("x = " + "[" * 5000, "", "brackets nested too deeply", "a suite"),
    ],
)
def test_bad_suites_are_one_line(suite, text, place, found, expected):
    """The file, the place, what stands there, and what should; fields that there are."""
    with pytest.raises(InputError) as error:
        suite(text)
    assert error.value.place.endswith(f"s.toml{place}")
    assert error.value.found.startswith(found)
    assert expected in error.value.expected
    assert "\n" not in str(error.value)


def test_bytes_that_are_no_text(tmp_path):
    """And a file that is not there."""
    (tmp_path / "s.toml").write_bytes(b"about = '\xff'")
    with pytest.raises(InputError, match=r"s.toml: found byte 0xff .*expected TOML text in UTF-8"):
        read(tmp_path / "s.toml")
    with pytest.raises(InputError, match=r"t.toml: found no such file"):
        read(tmp_path / "t.toml")
