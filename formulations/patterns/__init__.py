"""Nodes in classes, jobs in forms: the model of a round that grows with kinds and not with numbers.

Nodes that are equal are one class. Jobs with equal ways to run are one form, and each way takes
slots on nodes. A pattern is a number of slots of each kind that fit a node together.
"""
