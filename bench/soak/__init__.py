"""Whether ronda holds for months, and whatever happens to it: ``python -m ronda.bench.soak``.

`world` makes days of a cluster at random, `mischief` policies that break their contract, `endure`
drives one through the other and watches memory. What is fed nonsense (`fuzz`), stopped at random
moments (`interrupts`), short of time (`deadlines`) or in a world where nodes and jobs fail
(`faults`), and whether every job gets its turn (`starvation`), are studies:
``python -m ronda.bench.study fuzz``. How good or fast plans are is elsewhere.
"""

__all__: list[str] = []
