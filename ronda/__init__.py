"""ronda: each scheduling round of a GPU cluster as an optimisation problem.

``__init__.pyi`` lists the public names. Each is loaded on first use, so ``import ronda`` is quick.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
