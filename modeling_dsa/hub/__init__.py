"""The way to the Hub."""
