"""Schedules in hindsight, and how much of the gap between policies and bounds they explain."""
