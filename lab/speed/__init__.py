"""Speed of ronda itself, over size: ``python -m lab.speed CASE``.

A case times one thing: a function that `cases.case` enters in the table `cases.CASES`. Each
measurement has a process of its own and prints one JSON line.
"""
