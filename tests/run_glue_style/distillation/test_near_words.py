"""Words that are near in meaning."""

from pathlib import Path

from modeling_dsa.encoding.encoder import SentenceEncoder
from run_glue_style.distillation.near_words import near_words

MODEL = Path(__file__).parents[3] / "model_cards" / "dsa-mini-en"


def test_frequent_words_have_their_nearest() -> None:
    encoder = SentenceEncoder.from_pretrained(MODEL)
    sentences = ["A dog, a puppy and a car.", "Dog: puppy (car)!", "dog puppy car truck", "Truck, truck; rare"]
    near = near_words(encoder, sentences, 2)
    assert set(near) == {"dog", "puppy", "car", "truck"}
    nearest = {word: found[0] for word, found in near.items()}
    assert nearest == {"dog": "puppy", "puppy": "dog", "car": "truck", "truck": "car"}
    assert all(len(found) == 2 for found in near.values())
    assert near_words(encoder, ["dog dog dog"], 2) == {}
