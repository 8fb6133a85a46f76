"""Studies of searches for hyper-parameters: ``python -m ronda.bench.study hermes``, and others.

`hermes` compares it with FIFO, round-robin and SLAQ on generated sweeps, `hypersched` meets a
deadline, `sweeps` compares all policies on measured learning curves, `fused-probes` fuses
new trials. Nothing is exported: studies are started by name.
"""

__all__: list[str] = []
