"""A name means one thing: classes in the package, and the words of ``--policy``."""

import ast
from collections import Counter
from pathlib import Path

from ronda.solvers.policies.sleeping.controllers import CONTROLLERS
from ronda.solvers.registry import POLICIES

ROOT = Path(__file__).parents[1]
FOLDERS = ("instances", "formulations", "solvers", "bench", "ronda/cli")

KNOWN = {
    "Answer": 5,
    **dict.fromkeys(("Limits", "Measured"), 4),
    **dict.fromkeys(("Case", "Kind", "Line", "Outcome", "Told"), 3),
    **dict.fromkeys(
        ("Application", "Curves", "Ladder", "Live", "Point", "Prices", "Question", "Saved"), 2
    ),
    **dict.fromkeys(("Settings", "Status", "Supply", "Verdict", "Ways", "World", "Worth"), 2),
}
"""Classes of one name, and how many there are: take out what has got names of its own."""


def public_classes():
    """Yield the name of every public class at the top of a module."""
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name


def test_a_public_class_name_stands_once():
    """But for those of the list, which may only become shorter."""
    assert {name: n for name, n in Counter(public_classes()).items() if n > 1} == KNOWN


def test_a_policy_word_has_one_meaning():
    """No controller of ``ronda sleep`` has the name of a policy."""
    assert not POLICIES.keys() & CONTROLLERS.keys()
