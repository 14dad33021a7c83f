"""Training scripts on one engine."""
