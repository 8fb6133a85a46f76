"""Rules for consistent instances and rounds.

There is one module for each kind of object. A problem has a place, a found value and an expected
value. This package does not read files or check answers.
"""
