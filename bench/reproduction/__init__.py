"""Published figures of other systems next to ours, with the claim, our measurement and the verdict.

The claims are packaged records in ``bench/data/reproduction.toml``. `claims` reads and judges them,
`evidence` measures, and `tables` shows both.
"""
