"""Natural language inference: its classes, and pairs that cards and pages show where the data may not be shown."""

NLI_CLASS_NAMES = ("entailment", "neutral", "contradiction")
NLI_PAIRS = (
    ("A man is playing a guitar on stage.", "A man is asleep."),
    ("Two dogs run through the snow.", "Animals are outdoors."),
    ("A woman in a red coat waits at a bus stop.", "A woman is on her way to work."),
)
