"""The columns of rows of options, and the spans that they may have."""

SPANS = ("node", "rack", "cluster")
NODE, RACK, CLUSTER = range(len(SPANS))

COLUMNS, FLOATS_FROM = 8, 4
POOL, GPUS, SPAN, WIDTH, CLOCK, BATCH, RATE, WATTS = range(COLUMNS)
"""Rows of one float array, which is cheap to join; those before `FLOATS_FROM` are whole numbers.
Those before `RATE` say how a job runs, the others what that gives."""
