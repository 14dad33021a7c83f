"""The model of a run that starts from a saved one."""

import json
from pathlib import Path

import pytest
import torch
from small_models import EXAMPLE_PAIRS, join_pair, pad_rows, randomize, small_config
from small_runs import small_tokenizer

from modeling_dsa import DSAForSequenceClassification, DSAModel
from run_glue_style.run_classification import DataArguments, make_task
from run_glue_style.tasks.distinct_texts import distinct_texts
from run_glue_style.training.model import make_model
from run_glue_style.training.recipe import ModelArguments


@pytest.mark.parametrize("pooling", ["dynamic", "variational"])
def test_a_head_for_the_same_classes_in_another_order_keeps_what_it_knows(pooling: str, tmp_path: Path) -> None:
    names = {0: "soso", 1: "bad", 2: "good"}
    settings = {"pooling": pooling, "id2label": names, "problem_type": "single_label_classification"}
    config = small_config(vocab_size=len(small_tokenizer()), **settings)
    saved = randomize(DSAForSequenceClassification(config)).eval().bfloat16()
    saved.save_pretrained(tmp_path / "saved")
    saved.float()  # as it is trained, whatever the file holds
    small_tokenizer().save_pretrained(tmp_path / "saved")
    rows = [json.dumps({"text": f"a dog {number}", "label": names[number % 3]}) for number in range(12)]
    (tmp_path / "train.jsonl").write_text("\n".join(rows))
    task = make_task(DataArguments(train_file=tmp_path / "train.jsonl", validation_split=0.25))
    assert task.class_names == ("bad", "good", "soso")
    start = ModelArguments(model_name_or_path=str(tmp_path / "saved"))
    model, _ = make_model(task, start, {}, distinct_texts(task.load(), task.text_columns), 0, show_progress=False)
    ids, mask = pad_rows([join_pair(*pair) for pair in EXAMPLE_PAIRS])
    with torch.no_grad():
        expected = saved(ids, attention_mask=mask).logits[:, [1, 2, 0]]
        torch.testing.assert_close(model.eval()(ids, attention_mask=mask).logits, expected, rtol=0, atol=0)
        losses = []
        for kind, labels in ((saved, [0, 1, 2, 0, 1, 2]), (model, [2, 0, 1, 2, 0, 1])):  # what a posterior is told
            torch.manual_seed(0)
            losses.append(kind.train()(ids, attention_mask=mask, labels=torch.tensor(labels)).loss)
        torch.testing.assert_close(*losses)


def test_a_wider_sentence_vector_begins_with_the_saved_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    config = small_config(vocab_size=len(small_tokenizer()), projection_size=6, word_shortcut=True)
    saved = randomize(DSAModel(config)).eval()
    saved.save_pretrained(tmp_path / "saved")
    small_tokenizer().save_pretrained(tmp_path / "saved")
    (tmp_path / "train.jsonl").write_text('{"text": "a dog", "label": "good"}\n{"text": "a cat", "label": "bad"}\n' * 4)
    task = make_task(DataArguments(train_file=tmp_path / "train.jsonl", validation_split=0.25))
    texts = distinct_texts(task.load(), task.text_columns)
    start = ModelArguments(model_name_or_path=str(tmp_path / "saved"))
    model, _ = make_model(task, start, {"projection_size": 10}, texts, 0, show_progress=False)
    ids, mask = pad_rows([first for first, _ in EXAMPLE_PAIRS])
    with torch.no_grad():
        vectors = model.eval().dsa(ids, attention_mask=mask).pooler_output  # (batch, 10)
        torch.testing.assert_close(vectors[:, :6], saved(ids, attention_mask=mask).pooler_output)
    assert (vectors[0, 6:] != 0).all()
    assert model.config.projection_size == 10
    assert f"that of {tmp_path / 'saved'}, its vectors' 6 numbers and 4 that are drawn;" in caplog.messages[-1]
    with pytest.raises(ValueError, match="other parts or sizes than --projection_size 4"):
        make_model(task, start, {"projection_size": 4}, texts, 0, show_progress=False)
