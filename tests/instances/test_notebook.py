"""What notebooks show: short, whole, and without a tag that a name has made."""

from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

import ronda
from ronda.instances import generate

TAGS = {"div", "p", "strong", "table", "thead", "tbody", "tr", "th", "td"}


class Read(HTMLParser):
    """Reads HTML; every tag is closed in its turn, and known."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        """Open a tag."""
        assert tag in TAGS
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        """Close the one that was opened last."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Keep what is read."""
        self.texts += [data.strip()] if data.strip() else []


@pytest.fixture(scope="module")
def shown():
    """A round, its plan, an instance and its schedule, as texts."""
    round_ = generate.round(30, None, "balanced", 0)
    plan = ronda.solve(round_, "prices", deadline=120.0)
    made = ronda.load("gangs")
    documents = {
        "round": round_,
        "plan": plan,
        "instance": made,
        "schedule": ronda.run(made, "fifo"),
    }
    return documents, {name: Read(each._repr_html_()).texts for name, each in documents.items()}


def test_it_says_what_it_is_and_is_short(shown):
    """The figures that are asked for first."""
    documents, texts = shown
    assert texts["round"][0].startswith("Round ")
    waiting, running = len(documents["round"].waiting), len(documents["round"].running)
    assert f"{waiting} jobs wait, {running} run" in texts["round"]
    plan = documents["plan"]
    assert texts["plan"][0] == f"Plan of prices: {len(plan.allocations)} jobs run"
    assert f"and {len(plan.allocations) - 10} more jobs" in texts["plan"]
    assert any(f"objective {plan.objective:,.6g}" in text for text in texts["plan"])
    assert texts["instance"][0] == "Instance gangs"
    mean = ronda.summarise(documents["instance"], documents["schedule"])["mean_jct_s"]
    assert texts["schedule"][texts["schedule"].index("mean JCT (s)") + 1] == f"{mean:,.6g}"
    assert all(len(each._repr_html_()) < 6000 for each in documents.values())


def test_gpus_in_use_count_once(shown):
    """As many as running jobs hold."""
    documents, texts = shown
    held = sum(each.option.gpus for each in documents["round"].held.values())
    rows = texts["round"]
    assert str(held) in rows


@pytest.mark.parametrize("kind", ["round", "instance", "schedule", "plan"])
def test_names_are_data(shown, kind):
    """A name is no tag and steers nothing."""
    documents, _ = shown
    field = {"schedule": "instance", "plan": "policy"}.get(kind, "name")
    evil = replace(documents[kind], **{field: '<script>alert("x")</script>\x1b[31m'})
    html = evil._repr_html_()
    assert "<script" not in html
    assert "\x1b" not in html
    assert '<script>alert("x")</script>\\x1b[31m' in Read(html).texts[0]
