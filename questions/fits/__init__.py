"""Whether a job that is not submitted yet would run, and at which size.

The job is put into the cluster, and `ronda.questions.why` is asked of it. How a request is written
stands here; what holds a job back and what would help does not.
"""
