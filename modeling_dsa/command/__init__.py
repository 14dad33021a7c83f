"""What all commands share: how they are typed, what they say, how they end, and on what they run."""
