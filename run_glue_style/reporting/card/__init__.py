"""The parts of a model card: what is known of its data and task, a run's figures, the page's metadata."""
