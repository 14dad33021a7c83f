"""Ablations: a base, one change each or a product of values, and how they differ over seeds."""
