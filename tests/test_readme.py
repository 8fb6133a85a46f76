"""What the README shows must run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_python_example_runs(capsys):
    """The six lines, as they stand."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 1
    exec(compile(blocks[0], "README.md", "exec"), {})
    assert "s mean completion time" in capsys.readouterr().out


@pytest.mark.parametrize(
    "page",
    [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        *(str(p.relative_to(ROOT)) for p in sorted((ROOT / "docs").glob("*.md"))),
    ],
)
def test_links_lead_somewhere(page):
    """Every relative link and picture exists."""
    path = ROOT / page
    for target in re.findall(r"\]\(([^)#]+)", path.read_text()):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target
