"""Why a job waits, when it can start, and what would help.

All are one question, the earliest start of a job, asked of a cluster and of variants of it.
"""
