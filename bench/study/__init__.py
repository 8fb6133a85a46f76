"""The experiments of the docs, one file each."""
