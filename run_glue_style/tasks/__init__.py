"""The tasks: their data, their labels and their metrics."""
