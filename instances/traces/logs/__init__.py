"""Readers of what schedulers logged, which keep all that a log says of a job.

A reader yields a `runs.LogRun` for each run of a job; `instance.log_instance` makes an instance of
the runs, with a record of what ran when and where. ``sacct`` reads Slurm's accounting and ``swf``
the Standard Workload Format. Tables without a format of their own are read by the room above.
"""
