"""Whether the tests notice when ronda is wired wrongly: ``python -m ronda.bench.mutants``.

A mutation is one small change of the code and the tests that must fail with it; `mutants.toml`
lists them, `mutation` reads them, `hunt` applies them one at a time to a copy of the tree. Tests of
a rule stand with the rule's other tests, not here.
"""

__all__: list[str] = []
