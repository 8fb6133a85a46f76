"""Readers of public traces."""
