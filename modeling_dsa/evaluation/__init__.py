"""What a model is worth: similarity, linear probes on its vectors, and a classifier's answers."""
