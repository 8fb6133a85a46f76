"""Published figures of other systems beside ours: what was claimed, what we measure, the verdict.

The claims are packaged records, ``bench/data/reproduction.toml``. `claims` reads and judges them,
`evidence` measures, and `tables` shows both.
"""
