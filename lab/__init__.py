"""What the figures of the docs are made with and no user needs; it is not in the wheel.

`speed` times ronda itself (``python -m lab.speed CASE``), ``suites`` holds comparisons that
``ronda compare`` runs, and the other modules are experiments (``python -m lab NAME``). All of it
needs a checkout; nothing in `ronda` imports it.
"""
