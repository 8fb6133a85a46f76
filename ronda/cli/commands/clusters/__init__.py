"""Commands that read a cluster as it is now."""
