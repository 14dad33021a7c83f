"""What a classifier makes of texts, in bulk: reading them, scoring them, writing the answers."""
