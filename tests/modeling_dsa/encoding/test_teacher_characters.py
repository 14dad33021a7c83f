"""modeling_dsa.encoding.teacher_characters: what a teacher reads is known, whatever its tokenizer is."""

import pytest
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer, models, pre_tokenizers

from modeling_dsa.encoding.teacher_characters import characters_of, in_words
from modeling_dsa.text.word_rules import emoji

VOCABULARY = {"<UNK>": 0, "a": 1, "ж": 2, "жж": 3}


def sentence_pieces() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("▁", -1.0), ("a", -2.0), ("ж", -2.0)], unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    return tokenizer


def bytes_of_characters() -> Tokenizer:
    alphabet = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "Ð¶"]  # ж
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(alphabet)}, [("Ð", "¶")]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


@pytest.mark.parametrize(
    "tokenizer",
    [
        Tokenizer(models.WordLevel(VOCABULARY, unk_token="<UNK>")),
        Tokenizer(models.WordPiece(VOCABULARY, unk_token="<UNK>")),
        sentence_pieces(),
        bytes_of_characters(),
    ],
    ids=["words", "word-pieces", "sentence-pieces", "bytes"],
)
def test_a_character_is_known_that_the_teacher_reads_as_one_token(tokenizer: Tokenizer) -> None:
    tokenizer.enable_padding(length=3)
    teacher = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=4)], device="cpu")
    found = characters_of(teacher, lowercase=True)
    assert found == sorted(found)
    assert set(found) - emoji() == {"ж"}


def test_emoji_have_names_and_are_as_texts_have_them() -> None:
    assert in_words("😀") == "grinning face"
    assert in_words("a") == "a"
    assert all(in_words(character) != character for character in emoji())
    assert {"❤", "👍", "🏁", "ⓜ"} <= emoji()
    assert not {"©", "Ⓜ", "5", "🏽", "🇫"} & emoji()
