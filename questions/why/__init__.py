"""Why a job waits, when it can start, and what would help."""
