"""A real Slurm with made-up GPUs: its own backfill against ronda on the same jobs."""
