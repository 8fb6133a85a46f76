"""The rules for consistent instances and rounds.

There is one file for each object that can be wrong; a problem has a place, a found value and an
expected one. Nothing here reads files or checks answers.
"""
