"""Folding: the same vectors and logits from tables, and what undoes it."""

import copy
import pickle
from pathlib import Path
from typing import Any, cast

import pytest
import torch
import torch.nn.functional as F
from small_models import FIRST_TOKEN, PROJECTION_CASES, VOCABULARY, join_pair, pad_rows, randomize, small_config
from torch import Tensor, nn
from transformers import AutoModel, AutoModelForSequenceClassification

from modeling_dsa import DSAForNLI, DSAForSequenceClassification, DSAModel

CASES: dict[str, dict[str, Any]] = {
    "two kernels": {},
    "one kernel": {"kernel_sizes": [3]},
    "kernels of one and seven": {"kernel_sizes": [1, 7]},
    "one dense layer": {"num_hidden_layers": 1},
    "four dense layers": {"num_hidden_layers": 4},
    "heads": {"num_attention_heads": 3},
    "static": {"pooling": "static"},
    "tokens of any length": {"normalize_tokens": False},
    **PROJECTION_CASES,
}
ROWS = [
    join_pair([3, 4, 5], [6, 7]),
    join_pair([9], [9, 8, 7, 6, 5, 4, 3, 3, 10]),
    join_pair([], [5]),
    join_pair([5, 5], []),
    [3, 4, 5],
]


def classifier(**changes: Any) -> DSAForNLI:
    model = randomize(DSAForNLI(small_config(sentences_per_example=2, **changes)))
    model.eval()
    return model


def predict(model: DSAForSequenceClassification, rows: Any = ROWS, left: int = 0) -> tuple[Tensor, Tensor]:
    """Logits, and the attention after the last iteration, with that of the shortcut behind it."""
    ids, mask = pad_rows(rows, left=left, right=2)
    with torch.no_grad():
        outputs = model(ids, attention_mask=mask, output_attentions=True)
    past = [] if outputs.shortcut_attention is None else [outputs.shortcut_attention[:, None]]
    return outputs.logits, torch.cat([outputs.attentions[-1], *past], dim=1)


@pytest.mark.parametrize("changes", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("left", [0, 3])
def test_a_folded_model_predicts_the_same(changes: dict[str, Any], left: int) -> None:
    model = classifier(**changes)
    plain = predict(model, left=left)
    model.fold_embeddings()
    encoder_calls: list[Any] = []
    model.dsa.encoder.register_forward_hook(lambda *_: encoder_calls.append(1))
    folded = predict(model, left=left)
    assert not encoder_calls
    for expected, found in zip(plain, folded, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


class Adapted(nn.Module):
    """A word table as peft wraps it: its weight is the old one, and the rows that it gives are others."""

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__()
        self.table, self.shift = table, nn.Parameter(torch.randn_like(table.weight))

    @property
    def weight(self) -> Tensor:
        return self.table.weight

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.table.weight + self.shift)


def test_adapters_of_the_word_table_are_folded() -> None:
    model = classifier(word_shortcut=True, projection_size=5)
    model.dsa.embed_tokens = Adapted(cast(nn.Embedding, model.dsa.embed_tokens))
    plain = predict(model)
    model.fold_embeddings()
    torch.testing.assert_close(predict(model), plain, rtol=1e-5, atol=1e-5)


def test_no_sentence_sees_another() -> None:
    model = classifier()
    model.fold_embeddings()
    together = predict(model)[0]
    alone = torch.cat([predict(model, [row])[0] for row in ROWS])
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)


def test_many_random_sentences() -> None:
    model = classifier(num_hidden_layers=3)
    generator = torch.Generator().manual_seed(1)
    lengths = torch.randint(0, 12, (200, 2), generator=generator).tolist()
    draw = lambda count: torch.randint(FIRST_TOKEN, VOCABULARY, (count,), generator=generator).tolist()  # noqa: E731
    rows = [join_pair(draw(first), draw(second)) for first, second in lengths]
    plain = predict(model, rows)[0]
    model.fold_embeddings()
    torch.testing.assert_close(predict(model, rows)[0], plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("rows", [[[]], [[], []]])
def test_batches_without_tokens(rows: list[list[int]]) -> None:
    model = classifier()
    plain = predict(model, rows)[0]
    model.fold_embeddings()
    torch.testing.assert_close(predict(model, rows)[0], plain)


def test_unfolding_gives_the_same_bits_and_the_tables_back() -> None:
    model = classifier()
    plain = predict(model)[0]
    numbers = sum(buffer.numel() for buffer in model.buffers())
    model.fold_embeddings()
    assert sum(buffer.numel() for buffer in model.buffers()) > numbers
    model.unfold_embeddings()
    model.unfold_embeddings()
    assert model.config.fold_embeddings is False
    assert sum(buffer.numel() for buffer in model.buffers()) == numbers
    assert torch.equal(predict(model)[0], plain)


def test_a_folded_model_is_saved_without_tables_and_loads_folded(tmp_path: Path) -> None:
    model = classifier()
    plain = predict(model)[0]
    names = set(model.state_dict())
    model.fold_embeddings()
    assert set(model.state_dict()) == names
    model.save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert loaded.dsa.folded is not None
    torch.testing.assert_close(predict(loaded)[0], plain, rtol=1e-5, atol=1e-5)
    assert AutoModel.from_pretrained(tmp_path).folded is not None


def test_training_and_new_weights_and_tokens_drop_the_tables() -> None:
    model = classifier()
    model.fold_embeddings()
    model.train()
    assert model.dsa.folded is None
    assert model.config.fold_embeddings is True  # so that the trained model is loaded folded, too
    ids, mask = pad_rows(ROWS)
    model(ids, attention_mask=mask, labels=torch.tensor([0, 1, 2, 0, 1])).loss.backward()
    model.eval().fold_embeddings()
    other = randomize(classifier(), seed=5)
    part_of = nn.ModuleDict({"model": model})
    part_of.load_state_dict(nn.ModuleDict({"model": other}).state_dict())
    assert torch.equal(predict(model)[0], predict(other)[0])
    model.fold_embeddings()
    model.resize_token_embeddings(VOCABULARY + 5)
    assert model.dsa.folded is None
    # The head stayed folded: training and another run of the base must not leave it with its old weights.
    model.train()
    with torch.no_grad():
        for weight in model.classifier.parameters():
            weight.add_(1)
    model.eval()
    with torch.no_grad():
        found = model(ids, attention_mask=mask).logits
    assert torch.equal(found, model(ids, attention_mask=mask).logits)


def test_updates_in_eval_mode_drop_the_tables() -> None:
    model = classifier()
    model.fold_embeddings()
    model = copy.deepcopy(model)  # which counts anew
    optimizer = torch.optim.SGD([weight for weight in model.parameters() if weight.requires_grad], lr=0.1)
    ids, mask = pad_rows(ROWS)
    model(ids, attention_mask=mask, labels=torch.tensor([0, 1, 2, 0, 1])).loss.backward()
    optimizer.step()
    found = predict(model)
    assert model.dsa.folded is None
    model.unfold_embeddings()
    assert all(map(torch.equal, predict(model), found))


def test_what_the_tables_cannot_give_is_computed() -> None:
    model = classifier()
    ids, mask = pad_rows(ROWS)
    embeds = model.get_input_embeddings()(ids)
    second = ((ids == 2).cumsum(1) > 0).long()
    with torch.no_grad():
        plain = model(inputs_embeds=embeds, attention_mask=mask, token_type_ids=second, output_hidden_states=True)
        model.fold_embeddings()
        folded = model(inputs_embeds=embeds, attention_mask=mask, token_type_ids=second, output_hidden_states=True)
    torch.testing.assert_close(folded.logits, plain.logits, rtol=1e-5, atol=1e-5)
    assert all(map(torch.equal, folded.hidden_states, plain.hidden_states))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(dtype: torch.dtype) -> None:
    model = classifier().to(dtype)  # type: ignore[arg-type]
    plain = predict(model)[0]
    model.fold_embeddings()
    found = predict(model)[0]
    assert found.dtype == dtype
    tolerance = 0.1 if dtype == torch.bfloat16 else 1e-9
    torch.testing.assert_close(found, plain, rtol=tolerance, atol=tolerance)


def test_a_folded_model_is_copied_and_pickled() -> None:
    model = classifier()
    model.fold_embeddings()
    folded = predict(model)[0]
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert torch.equal(predict(copied)[0], folded)
        assert copied.dsa.folded is not None


def test_what_cannot_be_folded_is_refused() -> None:
    with pytest.raises(ValueError, match="Only encoder 'dense_cnn' can be folded; this is 'bilstm'"):
        DSAModel(small_config(encoder="bilstm", hidden_size=6)).eval().fold_embeddings()
    with pytest.raises(ValueError, match=r"call model\.eval\(\) first"):
        DSAModel(small_config()).train().fold_embeddings()


def test_a_loss_reaches_the_encoder_of_a_folded_model() -> None:
    """Also the classifier's layers: where gradients are recorded nothing is looked up."""
    model = classifier(freeze_embeddings=False)
    ids, mask = pad_rows(ROWS)

    def gradients() -> dict[str, Tensor | None]:
        model.zero_grad()
        model(ids, attention_mask=mask).logits.square().sum().backward()
        return {name: value.grad for name, value in model.named_parameters()}

    expected = gradients()
    model.fold_embeddings()
    found = gradients()
    assert all(gradient is not None and gradient.any() for gradient in found.values())
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
