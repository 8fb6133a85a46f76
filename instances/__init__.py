"""The problem and its answers: clusters, jobs, rounds, plans and schedules, files and checks."""
