"""Another processor: powers, exponentials and logarithms are off by a last bit.

Libraries round them as they please, and numpy's kernels depend on the processor. With
``RONDA_TEST_ULP=1`` in the environment ronda's modules are compiled so that each ``a ** b`` and
each of the `FUNCTIONS` gives a number beside its own, or its own, and the tests have to pass, too;
another number draws other bits. The same arguments give the same result, as on a processor. What
all libraries have exact stays exact.
"""

import ast
import os
import sys
import tempfile
from functools import cache, wraps
from importlib.machinery import SourceFileLoader
from pathlib import Path

import numpy as np
import pytest

SEED = int(os.environ.get("RONDA_TEST_ULP") or 0)
"""0: nothing is moved."""

plain_elsewhere = pytest.mark.skipif(
    SEED > 0, reason="powers are moved here, and not in the processes that it compares with"
)

FUNCTIONS = {
    *("exp", "exp2", "expm1", "log", "log10", "log1p", "log2", "logaddexp", "sin", "cos", "tan"),
    *("sinh", "cosh", "tanh", "erf", "erfc", "gamma", "lgamma", "hypot", "cbrt", "ndtr", "digamma"),
}
"""Of numpy, math and scipy.special; there and here ``pow``, ``power``, ``float_power`` as well."""
POWERS = {"pow", "power", "float_power"}
ROOT = Path(__file__).parents[2]
LAYERS = ("formulations", "horizon", "hosts", "instances", "questions", "solvers", "systems")
FOLDERS = tuple(f"{ROOT / name}{os.sep}" for name in LAYERS)


def moved(result, exact=False):
    """Return numbers of which each is one step up, one down or as it was, by its own bits.

    Those that are `exact` stay; so do whole numbers of functions, such as the logarithm of 1.
    """
    values = np.atleast_1d(np.asarray(result))
    if values.dtype != np.float64:
        return result
    bits = np.ascontiguousarray(values).view(np.uint64) ^ np.uint64(SEED)
    bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15)
    way = (bits >> np.uint64(40)) % np.uint64(3)
    beside = np.nextafter(values, np.where(way == 1, -np.inf, np.inf))
    stays = exact | (way == 0) | ~np.isfinite(values)
    found = np.where(stays, values, beside)
    return found if isinstance(result, np.ndarray) and result.ndim else type(result)(found[0])


def moved_power(base, exponent):
    """Return a power, moved; numpy squares arrays exactly, and all know powers of 2 and of 1."""
    result = base**exponent
    if not isinstance(result, float | np.ndarray):
        return result
    a, b = np.asarray(base), np.asarray(exponent)
    exact = (b == 0) | (b == 1) | (a == 0) | (a == 1) | ((a == 2) & (b == np.rint(b)))
    return moved(result, exact | ((b == 2) & (np.ndim(result) > 0)))


@cache
def moving(function):
    """Return a function whose results are moved."""
    if function.__name__ in POWERS:
        return moved_power

    @wraps(function)
    def other(*args, **kwargs):
        result = function(*args, **kwargs)
        return moved(result, np.asarray(result) == np.rint(result))

    return other


class Moving(ast.NodeTransformer):
    """Code in which powers and `FUNCTIONS` are moved."""

    def visit_BinOp(self, node):
        """``a ** b``."""
        self.generic_visit(node)
        return (
            self._call("moved_power", node.left, node.right)
            if isinstance(node.op, ast.Pow)
            else node
        )

    def visit_AugAssign(self, node):
        """``a **= b``."""
        self.generic_visit(node)
        if not isinstance(node.op, ast.Pow):
            return node
        now = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], self._call("moved_power", now, node.value))

    def visit_Attribute(self, node):
        """``np.exp``."""
        self.generic_visit(node)
        known = isinstance(node.value, ast.Name) and node.value.id in {"np", "numpy", "math"}
        return self._call("moving", node) if known and node.attr in FUNCTIONS | POWERS else node

    def visit_ImportFrom(self, node):
        """``from math import exp``."""
        if node.module not in {"math", "numpy", "scipy.special"}:
            return node
        names = [a.asname or a.name for a in node.names if a.name in FUNCTIONS | POWERS]
        made = [
            ast.Assign([ast.Name(n, ast.Store())], self._call("moving", ast.Name(n, ast.Load())))
            for n in names
        ]
        return [node, *made]

    @staticmethod
    def _call(name, *args):
        function = ast.Attribute(ast.Name("_moved", ast.Load()), name, ast.Load())
        return ast.Call(function, list(args), [])


def compiled(text, path):
    """Return the code of a module with moved results."""
    tree = Moving().visit(ast.parse(text))
    after = 1 + max(
        (
            k
            for k, node in enumerate(tree.body)
            if isinstance(node, ast.ImportFrom) and node.module == "__future__"
        ),
        default=0 if ast.get_docstring(tree) is not None else -1,
    )
    tree.body.insert(after, ast.Import([ast.alias("moved", "_moved")]))
    return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def install():
    """Compile ronda's modules so from now on, and let no cache of theirs be read or written."""
    assert not any(name.startswith("ronda.") for name in sys.modules), "ronda is there already"
    sys.pycache_prefix, sys.dont_write_bytecode = tempfile.gettempdir() + "/none", True
    usual = SourceFileLoader.source_to_code

    def source_to_code(self, data, path, **options):
        own = str(Path(path).resolve()).startswith(FOLDERS)
        return compiled(data, path) if own else usual(self, data, path, **options)

    SourceFileLoader.source_to_code = source_to_code
