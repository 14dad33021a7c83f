"""Where a model looks, and pictures of it."""
