"""modeling_dsa.text.cut_texts: what a model does not read to its end is what its attention leaves out."""

from small_encoders import SENTENCES, small_encoder

from modeling_dsa.explanation.words import find_words
from modeling_dsa.text.cut_texts import cut_texts


def test_texts_are_cut_where_the_model_leaves_tokens_out() -> None:
    encoder = small_encoder(pieces=("##s", "##x"), max_sentence_tokens=4)
    texts = [*SENTENCES, "a man is", "(a man)", "mansx sx", "A [SEP] b"]
    left_out = [
        find_words(encoder.model.config, encoder.tokenizer, text.replace("[SEP]", ""))[1][0].left_out for text in texts
    ]
    found = cut_texts(encoder.tokenizer, texts, 4)
    assert found == [index for index, count in enumerate(left_out) if count]
    assert len(found) > 3
    assert cut_texts(encoder.tokenizer, [("a man", text) for text in texts], 4) == found
    assert cut_texts(encoder.tokenizer, texts, None) == []
