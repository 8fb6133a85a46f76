"""How fast ronda is for other schedulers: in their process, in AdaptDL's place, and over HTTP.

Each module has a case of ``python -m ronda.bench.speed``; what they time is in `ronda.solvers`.
"""
