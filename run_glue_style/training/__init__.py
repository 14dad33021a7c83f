"""One training engine, and what it needs."""
