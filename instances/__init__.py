"""What is solved: clusters, jobs, rounds, plans and schedules; their files, checks and sources."""
