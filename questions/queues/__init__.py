"""Queues: what each tenant holds, is owed, borrows and waits for, and what quota is worth to it.

Who borrows from whom is arithmetic on the tree of tenants. Worth comes from the prices of a plan.
Why one job waits is asked elsewhere (`ronda.questions.why`).
"""
