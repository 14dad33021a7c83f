"""modeling_dsa.variational_dsa: VSAM against explicit loops at a known noise, its bound, its twin, its two readings."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import reference
import torch
from small_models import SEP, join_pair, pad_rows, randomize, small_config
from torch import Tensor
from torch.distributions import Normal
from torch.distributions import kl_divergence as torch_kl_divergence
from torch.func import functional_call

from modeling_dsa import DSAForSequenceClassification
from modeling_dsa.variational_dsa import INITIAL_LOG_STD, VariationalSelfAttention, kl_divergence

LATENT_CASES: dict[str, dict[str, Any]] = {
    "token": {},
    "token, two heads": {"num_attention_heads": 2},
    "sentence": {"latent": "sentence", "max_sentence_tokens": 8, "num_attention_heads": 2},
}
LATENTS = ["token", "sentence"]
PAIR_ROWS: list[tuple[list[int], list[int]]] = [
    ([5, 6, 7], [8, 9]),
    ([8, 9], [10]),
    ([5, 6, 7], []),
    ([5, 6, 7], [11, 12, 13, 14]),
    ([8, 9], [8, 9]),
]
LABELS = [0, 2, 0, 1, 2]  # [5, 6, 7] stands under two classes, [8, 9] too
ROWS = [[5, 6, 7], [8], [9, 10], [5, 6, 7], [11, 12], [13, 14, 15, 16]]
ROW_LABELS = [0, 1, 2, 1, 0, 2]


def head_of(**changes: Any) -> DSAForSequenceClassification:
    """A classifier in training, but for its batch normalisation, and without dropout: only z is random."""
    no_dropout = {"embedding_dropout": 0.0, "hidden_dropout": 0.0, "classifier_dropout": 0.0}
    settings: dict[str, Any] = {"pooling": "variational", "max_sentence_tokens": 8, **no_dropout, **changes}
    head = randomize(DSAForSequenceClassification(small_config(**settings))).double().train()
    head.classifier.eval()
    return cast(DSAForSequenceClassification, head)


def pooling_of(head: DSAForSequenceClassification) -> VariationalSelfAttention:
    return cast(VariationalSelfAttention, head.dsa.pooling)


def batch_of(rows: Sequence[Sequence[int]], labels: Sequence[int]) -> dict[str, Tensor]:
    ids, mask = pad_rows(rows, left=[row % 3 for row in range(len(rows))], right=1)
    return {"input_ids": ids, "attention_mask": mask, "labels": torch.tensor(labels)}


def noise_of(seed: int, *shape: int) -> Tensor:
    """What the model draws after `torch.manual_seed(seed)`."""
    torch.manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64)


# The equations


def test_kl_divergence_is_that_of_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    mean_q, log_std_q, mean_p, log_std_p = 2 * torch.randn(4, 50, 6, dtype=torch.float64, generator=generator)
    expected = torch_kl_divergence(Normal(mean_q, log_std_q.exp()), Normal(mean_p, log_std_p.exp())).sum(-1)
    torch.testing.assert_close(kl_divergence(mean_q, log_std_q, mean_p, log_std_p), expected, rtol=1e-6, atol=1e-6)
    in_float32 = kl_divergence(*(value.float() / 2 for value in (mean_q, log_std_q, mean_p, log_std_p)))
    halved = torch_kl_divergence(Normal(mean_q / 2, (log_std_q / 2).exp()), Normal(mean_p / 2, (log_std_p / 2).exp()))
    torch.testing.assert_close(in_float32.double(), halved.sum(-1), rtol=1e-5, atol=1e-6)


def test_kl_divergence_of_a_distribution_from_itself_is_zero() -> None:
    mean, log_std = torch.randn(2, 50, 6)
    assert torch.equal(kl_divergence(mean, log_std, mean, log_std), torch.zeros(50))


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("changes", LATENT_CASES.values(), ids=LATENT_CASES.keys())
def test_training_equals_the_paper_at_a_known_noise(changes: dict[str, Any], samples: int) -> None:
    """Posterior, samples, attention, KL divergence, loss and spreads, by loops over examples, samples and tokens."""
    settings: dict[str, Any] = {
        "sentences_per_example": 2,
        "num_training_samples": samples,
        "kl_weight": 0.75,
        **changes,
    }
    head = head_of(**settings)
    config, weights = head.config, reference.read_weights(head)
    batch = batch_of([join_pair(*pair) for pair in PAIR_ROWS], LABELS)
    torch.manual_seed(3)
    outputs = head(**batch, output_attentions=True)

    # The noise is drawn for each distinct sentence under each of its classes, in this order.
    distinct: list[list[int]] = []
    for sentence in (sentence for pair in PAIR_ROWS for sentence in pair):
        distinct += [sentence] if sentence not in distinct else []
    of_rows = [[(distinct.index(s), label) for s in pair] for pair, label in zip(PAIR_ROWS, LABELS, strict=True)]
    variants = sorted({variant for row in of_rows for variant in row})
    by_token = config.latent == "token"
    counts = [len(distinct[number]) if by_token else 1 for number, _ in variants]
    noise = noise_of(3, samples, sum(counts), config.latent_size).split(counts, dim=1)

    attentions, vectors, divergences = {}, {}, {}
    for variant, noise_of_variant in zip(variants, noise, strict=True):
        number, label = variant
        table = weights["embed_tokens.weight"]
        tokens = reference.encode(weights, config, [table[token] for token in distinct[number]]).encoded
        q = reference.posterior(weights, config, tokens, label)
        divergences[variant] = reference.kl_divergence(q, reference.prior(weights, config, tokens))
        latents = [reference.sample(q, list(drawn)) for drawn in noise_of_variant]  # [sample][unit]
        attentions[variant] = [reference.latent_attention(weights, config, z, len(tokens)) for z in latents]
        vectors[variant] = [
            torch.cat([reference.weighted_sum(head_weights, tokens, config.encoded_size) for head_weights in one])
            for one in attentions[variant]
        ]

    likelihoods = []
    for row, ((first, second), label) in enumerate(zip(of_rows, LABELS, strict=True)):
        divergence = divergences[first] + divergences[second]
        torch.testing.assert_close(outputs.kl[row], divergence, rtol=0, atol=1e-9)
        logits = torch.stack(
            [reference.classify(weights, config, vectors[first][s], vectors[second][s]) for s in range(samples)]
        )  # (samples, labels)
        probabilities = logits.softmax(-1)
        likelihoods.append(probabilities[:, label].log().mean())
        if samples > 1:
            torch.testing.assert_close(outputs.logits[row], probabilities.mean(0).log(), rtol=0, atol=1e-10)
            torch.testing.assert_close(outputs.probabilities_std[row], probabilities.std(0), rtol=0, atol=1e-10)
        else:
            torch.testing.assert_close(outputs.logits[row], logits[0], rtol=0, atol=1e-10)
        indices = indices_of(batch, row)
        for variant, span in zip((first, second), indices, strict=True):
            if not span:
                continue
            expected = torch.stack([torch.stack([torch.stack(h) for h in one]) for one in attentions[variant]])
            got = outputs.attentions[0][row][:, span]
            torch.testing.assert_close(got, expected.mean(0), rtol=0, atol=1e-10)
            if samples > 1:
                spread = outputs.attentions_std[row][:, span]
                torch.testing.assert_close(spread, expected.std(0), rtol=0, atol=1e-10)
    reconstruction = -torch.stack(likelihoods).mean()
    torch.testing.assert_close(outputs.reconstruction_loss, reconstruction, rtol=0, atol=1e-10)
    torch.testing.assert_close(outputs.loss, reconstruction + 0.75 * outputs.kl.mean(), rtol=0, atol=1e-10)
    assert (outputs.attentions_std is None) == (outputs.probabilities_std is None) == (samples == 1)


def indices_of(batch: dict[str, Tensor], row: int) -> tuple[list[int], list[int]]:
    """Where the tokens of the first and of the second sentence of an example stand."""
    ids, mask = batch["input_ids"][row].tolist(), batch["attention_mask"][row].tolist()
    separator = ids.index(SEP)
    real = [index for index, seen in enumerate(mask) if seen]
    return [index for index in real if index < separator], [index for index in real if index > separator]


@pytest.mark.parametrize("changes", LATENT_CASES.values(), ids=LATENT_CASES.keys())
def test_prediction_with_samples_equals_the_paper_at_a_known_noise(changes: dict[str, Any]) -> None:
    samples = 4
    head = head_of(num_prediction_samples=samples, **changes).eval()
    config, weights = head.config, reference.read_weights(head)
    torch.manual_seed(5)
    batch = batch_of(ROWS, ROW_LABELS)
    outputs = head(**batch, output_attentions=True)
    distinct = [row for number, row in enumerate(ROWS) if row not in ROWS[:number]]
    counts = [len(sentence) if config.latent == "token" else 1 for sentence in distinct]
    noise = noise_of(5, samples, sum(counts), config.latent_size).split(counts, dim=1)
    for row, sentence in enumerate(ROWS):
        tokens = reference.encode(
            weights, config, [weights["embed_tokens.weight"][token] for token in sentence]
        ).encoded
        p = reference.prior(weights, config, tokens)
        attentions, probabilities = [], []
        for drawn in noise[distinct.index(sentence)]:
            attention = reference.latent_attention(weights, config, reference.sample(p, list(drawn)), len(tokens))
            vector = torch.cat([reference.weighted_sum(one, tokens, config.encoded_size) for one in attention])
            attentions.append(torch.stack([torch.stack(one) for one in attention]))
            probabilities.append(reference.classify(weights, config, vector).softmax(-1))
        mean, spread = torch.stack(probabilities).mean(0), torch.stack(probabilities).std(0)
        torch.testing.assert_close(outputs.logits[row], mean.log(), rtol=0, atol=1e-10)
        torch.testing.assert_close(outputs.probabilities_std[row], spread, rtol=0, atol=1e-10)
        span = batch["attention_mask"][row].nonzero().flatten()
        stacked = torch.stack(attentions)
        torch.testing.assert_close(outputs.attentions[0][row][:, span], stacked.mean(0), rtol=0, atol=1e-10)
        torch.testing.assert_close(outputs.attentions_std[row][:, span], stacked.std(0), rtol=0, atol=1e-10)
    expected_loss = torch.nn.functional.nll_loss(outputs.logits, batch["labels"])  # logits are log-probabilities
    torch.testing.assert_close(outputs.loss, expected_loss)
    torch.testing.assert_close(outputs.logits.exp().sum(1), torch.ones(len(ROWS), dtype=torch.float64))
    assert outputs.kl is None
    assert outputs.reconstruction_loss is None


@pytest.mark.slow
@pytest.mark.parametrize("latent", LATENTS)
def test_gradients_are_those_of_finite_differences_at_a_fixed_noise(latent: str) -> None:
    settings: dict[str, Any] = {"attention_hidden_size": 2, "latent_size": 2, "encoder": "none", "embedding_size": 3}
    head = head_of(latent=latent, num_training_samples=2, kl_weight=0.7, classifier_hidden_sizes=[], **settings)
    names = [name for name, _ in head.named_parameters() if "embed_tokens" not in name]
    parameters = [head.get_parameter(name) for name in names]
    tokens = torch.randn(3, 3, 3, dtype=torch.float64, requires_grad=True)
    arguments = {"attention_mask": torch.tensor([[1, 1, 0], [0, 1, 0], [1, 1, 1]]), "labels": torch.tensor([0, 2, 2])}

    def loss(tokens: Tensor, *weights: Tensor) -> Tensor:
        torch.manual_seed(0)
        state = dict(zip(names, weights, strict=True))
        value: Tensor = functional_call(head, state, (), {"inputs_embeds": tokens, **arguments}).loss
        return value

    assert torch.autograd.gradcheck(loss, (tokens, *parameters))


# The deterministic twin


def twin_of(head: DSAForSequenceClassification) -> DSAForSequenceClassification:
    """The model with pooling "pairwise" and the same weights."""
    settings = head.config.to_dict() | {"pooling": "pairwise"}
    twin = DSAForSequenceClassification(type(head.config)(**settings)).double()
    missing, unexpected = twin.load_state_dict(head.state_dict(), strict=False)
    assert not missing
    variational = ("log_std", "posterior", "class_vectors", "step")
    assert all(name.removeprefix("dsa.pooling.").startswith(variational) for name in unexpected)
    twin.train()
    twin.classifier.eval()
    return twin


@torch.no_grad()
def shrink_sigma(head: DSAForSequenceClassification) -> None:
    pooling_of(head).log_std.weight.zero_()
    pooling_of(head).log_std.bias.fill_(-40.0)


@torch.no_grad()
def make_posterior_the_prior(head: DSAForSequenceClassification) -> None:
    for layer in (pooling_of(head).posterior_mean, pooling_of(head).posterior_log_std):
        layer.weight.zero_()
        layer.bias.zero_()


@pytest.mark.parametrize("samples", [1, 3])
@pytest.mark.parametrize("latent", LATENTS)
def test_without_sigma_and_kl_training_is_the_twins(latent: str, samples: int) -> None:
    head = head_of(latent=latent, kl_weight=0, num_training_samples=samples)
    shrink_sigma(head)
    make_posterior_the_prior(head)
    twin = twin_of(head)
    batch = batch_of(ROWS, ROW_LABELS)
    ours, theirs = head(**batch), twin(**batch)
    assert torch.all(ours.kl == 0)
    torch.testing.assert_close(ours.loss, theirs.loss, rtol=0, atol=1e-12)
    expected = theirs.logits if samples == 1 else theirs.logits.log_softmax(-1)
    torch.testing.assert_close(ours.logits, expected, rtol=0, atol=1e-12)
    # The prior learns from the likelihood as the twin does.
    ours.loss.backward()
    theirs.loss.backward()
    gradients = {name: weight.grad for name, weight in head.named_parameters()}
    for name, weight in twin.named_parameters():
        if weight.requires_grad:
            torch.testing.assert_close(gradients[name], weight.grad, rtol=0, atol=1e-10)


@pytest.mark.parametrize("latent", LATENTS)
def test_prediction_with_the_priors_mean_is_the_twins(latent: str) -> None:
    head = head_of(latent=latent).eval()
    twin = twin_of(head).eval()
    batch = batch_of(ROWS, ROW_LABELS)
    ours, theirs = head(**batch, output_attentions=True), twin(**batch, output_attentions=True)
    torch.testing.assert_close(ours.logits, theirs.logits, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.attentions, theirs.attentions, rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.loss, theirs.loss, rtol=0, atol=1e-12)
    assert torch.equal(head(**batch).logits, ours.logits)  # nothing is drawn
    assert ours.probabilities_std is None
    assert ours.attentions_std is None


@pytest.mark.parametrize("latent", LATENTS)
def test_prediction_with_samples_of_no_width_is_the_twins(latent: str) -> None:
    head = head_of(latent=latent, num_prediction_samples=5)
    shrink_sigma(head)
    twin = twin_of(head).eval()
    batch = batch_of(ROWS, ROW_LABELS)
    ours = head.eval()(**batch)
    torch.testing.assert_close(ours.logits.exp(), twin(**batch).logits.softmax(-1), rtol=0, atol=1e-12)
    torch.testing.assert_close(ours.probabilities_std, torch.zeros(6, 3, dtype=torch.float64), rtol=0, atol=1e-12)


# The evidence lower bound


@torch.no_grad()
def evidence_and_bound(head: DSAForSequenceClassification) -> tuple[float, float]:
    """log E_prior[p(y|z)] and the evidence lower bound, mean over rows, each from many samples."""
    batch = batch_of(ROWS, ROW_LABELS)
    pooling = pooling_of(head)
    pooling.training_samples, pooling.prediction_samples = 5000, 20_000
    torch.manual_seed(0)
    bound = -head(**batch).loss.item()
    head.eval()
    evidence = -head(**batch).loss.item()
    head.train()
    head.classifier.eval()
    pooling.training_samples = 8
    return evidence, bound


def train(head: DSAForSequenceClassification, names: Sequence[str], steps: int) -> None:
    weights = [weight for name, weight in head.named_parameters() if any(part in name for part in names)]
    optimizer = torch.optim.Adam(weights, lr=0.03)
    for _ in range(steps):
        optimizer.zero_grad()
        head(**batch_of(ROWS, ROW_LABELS)).loss.backward()
        optimizer.step()


@pytest.mark.slow
@pytest.mark.parametrize("latent", LATENTS)
def test_the_bound_lies_below_the_evidence_and_becomes_tighter(latent: str) -> None:
    head = head_of(latent=latent)
    evidence, bound = evidence_and_bound(head)
    assert bound < evidence - 0.5  # a random posterior is far from the true one

    train(head, ["pooling.posterior", "class_vectors"], 120)  # of the posterior alone, so the evidence stays
    again, tighter = evidence_and_bound(head)
    assert again == pytest.approx(evidence, abs=1e-12)
    assert tighter < evidence + 0.005  # the error of the samples' mean
    assert evidence - tighter < 0.2 * (evidence - bound)

    train(head, [""], 15)  # of everything
    raised, last = evidence_and_bound(head)
    assert last < raised + 0.005
    assert last > tighter
    assert raised > evidence


@pytest.mark.parametrize("latent", LATENTS)
def test_the_posterior_of_a_new_model_is_its_prior_with_one_small_sigma(latent: str) -> None:
    """So that a long text does not start with a KL divergence beside which the labels are nothing."""
    head = DSAForSequenceClassification(
        small_config(pooling="variational", latent=latent, max_sentence_tokens=8)
    ).train()
    outputs = head(**batch_of(ROWS, ROW_LABELS))
    assert torch.equal(outputs.kl, torch.zeros(len(ROWS)))
    pooling = pooling_of(head)
    layers = (pooling.log_std, pooling.posterior_mean, pooling.posterior_log_std)
    assert not any(layer.weight.any() for layer in layers)
    assert torch.all(pooling.log_std.bias == INITIAL_LOG_STD)
    assert not pooling.posterior_mean.bias.any()
    assert not pooling.posterior_log_std.bias.any()
    train(head, [""], 30)  # but they leave that state
    assert torch.all(head(**batch_of(ROWS, ROW_LABELS)).kl > 0)


# The weight of the KL divergence


def test_the_kl_weight_rises_over_the_warm_up_and_goes_on_after_loading(tmp_path: Path) -> None:
    head = head_of(kl_weight=0.5, kl_warmup_steps=4)
    batch = batch_of(ROWS, ROW_LABELS)
    for expected in (0.125, 0.25):
        outputs = head(**batch)
        assert outputs.kl_weight.item() == pytest.approx(expected)
        expected_loss = outputs.reconstruction_loss + expected * outputs.kl.mean()
        torch.testing.assert_close(outputs.loss, expected_loss, rtol=0, atol=1e-12)
        head.eval()  # neither prediction counts
        assert head(**batch).kl_weight is None
        head.train()  # nor what has no labels
        assert head(batch["input_ids"], batch["attention_mask"]).kl_weight is None
    head.save_pretrained(tmp_path)
    loaded = DSAForSequenceClassification.from_pretrained(tmp_path).train()
    weights = [loaded(**batch).kl_weight.item() for _ in range(3)]
    assert weights == pytest.approx([0.375, 0.5, 0.5])


def test_without_a_warm_up_the_kl_weight_is_that_of_the_config() -> None:
    head = head_of(kl_weight=0.25)
    assert [head(**batch_of(ROWS, ROW_LABELS)).kl_weight.item() for _ in range(2)] == [0.25, 0.25]


# What the posterior sees


@pytest.mark.parametrize("latent", LATENTS)
def test_a_label_changes_the_posterior_of_its_row_in_training_and_nothing_at_prediction(latent: str) -> None:
    head = head_of(latent=latent)
    outputs = head(**batch_of(ROWS, ROW_LABELS)), head(**batch_of(ROWS, [0, 1, 1, 1, 0, 2]))
    changed = (outputs[0].kl - outputs[1].kl).abs() > 1e-6
    assert changed.tolist() == [False, False, True, False, False, False]
    head.eval()
    asked = {"output_attentions": True, "output_hidden_states": True}
    one, other, none = (
        head(**batch, **asked)
        for batch in (
            batch_of(ROWS, ROW_LABELS),
            batch_of(ROWS, [2] * 6),
            {key: value for key, value in batch_of(ROWS, ROW_LABELS).items() if key != "labels"},
        )
    )
    for name in ("logits", "attentions", "hidden_states"):
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=0)
        torch.testing.assert_close(one[name], none[name], rtol=0, atol=0)
    assert one.kl is None
    assert one.kl_weight is None


@pytest.mark.parametrize("latent", LATENTS)
@pytest.mark.parametrize("deduplicate", [True, False])
def test_copies_of_a_sentence_share_a_posterior_if_their_labels_are_equal(deduplicate: bool, latent: str) -> None:
    head = head_of(latent=latent, deduplicate_sentences=deduplicate)
    batch = batch_of([[5, 6, 7], [8, 9], [5, 6, 7], [5, 6, 7]], [0, 1, 0, 2])
    outputs = head(**batch, output_attentions=True)
    divergences = outputs.kl.tolist()
    assert divergences[0] == pytest.approx(divergences[2], abs=1e-12)
    assert divergences[0] != pytest.approx(divergences[3], abs=1e-3)
    mask = batch["attention_mask"].bool()
    weights = [outputs.attentions[0][row, 0, mask[row]] for row in (0, 2, 3)]
    assert torch.equal(weights[0], weights[1]) == deduplicate  # else each copy has its own samples
    assert not torch.equal(weights[0], weights[2])
    for row, tokens in enumerate(mask):
        assert torch.all(outputs.attentions[0][row, 0, ~tokens] == 0)
        assert outputs.attentions[0][row, 0].sum().item() == pytest.approx(1)


def test_prior_and_posterior_both_learn_in_training_and_only_the_prior_predicts() -> None:
    head = head_of(num_training_samples=2)
    head(**batch_of(ROWS, ROW_LABELS)).loss.backward()
    for name, weight in pooling_of(head).named_parameters():
        assert weight.grad is not None, name
        assert torch.any(weight.grad != 0), name
    head.zero_grad()
    head.eval()
    pooling_of(head).prediction_samples = 2
    head(**batch_of(ROWS, ROW_LABELS)).loss.backward()
    unread = {n for n, weight in pooling_of(head).named_parameters() if weight.grad is None or not weight.grad.any()}
    assert unread == {n for n, _ in pooling_of(head).named_parameters() if n.startswith(("posterior", "class_vectors"))}


# Samples at prediction


def test_one_sample_is_drawn_anew_at_each_prediction_and_has_no_spread() -> None:
    head = head_of(num_prediction_samples=1).eval()
    batch = batch_of(ROWS, ROW_LABELS)
    torch.manual_seed(0)
    one, other = head(**batch), head(**batch)
    torch.manual_seed(0)
    assert torch.equal(head(**batch).logits, one.logits)
    assert not torch.equal(other.logits, one.logits)
    assert one.probabilities_std is None


def test_the_spread_of_the_classes_follows_sigma() -> None:
    """Small when the prior is narrow, larger when it is wide: it is a measure of uncertainty."""
    head = head_of(num_prediction_samples=200).eval()
    spreads = []
    for log_std in (-6.0, -3.0, 0.0):
        with torch.no_grad():
            pooling_of(head).log_std.weight.zero_()
            pooling_of(head).log_std.bias.fill_(log_std)
        torch.manual_seed(0)
        outputs = head(**batch_of(ROWS[2:3], [0]), output_attentions=True)
        spreads.append((outputs.probabilities_std.mean().item(), outputs.attentions_std.max().item()))
    assert spreads[0] < spreads[1] < spreads[2]
    assert spreads[0][1] < spreads[1][1] < spreads[2][1]


def test_the_encoder_returns_the_vectors_of_all_samples_and_their_mean() -> None:
    head = head_of(num_prediction_samples=6, sentences_per_example=2).eval()
    batch = batch_of([join_pair(*pair) for pair in PAIR_ROWS], LABELS)
    outputs = head.dsa(batch["input_ids"], batch["attention_mask"])
    assert outputs.vector_samples.shape == (6, len(PAIR_ROWS), 2, head.config.sentence_embedding_size)
    torch.testing.assert_close(outputs.pooler_output, outputs.vector_samples[:, :, 0].mean(0))
    torch.testing.assert_close(outputs.second_pooler_output, outputs.vector_samples[:, :, 1].mean(0))
    assert outputs.vector_samples.std(0)[0].min() > 0


# One z a sentence


def test_weights_of_the_literal_reading_belong_to_positions() -> None:
    """H is seen as the mean of its tokens, so their order changes no weight; by tokens the weights go with them."""
    rows = [[5, 6, 7], [7, 5, 6]]
    batch = {name: value for name, value in batch_of(rows, [0, 0]).items() if name != "labels"}
    mask = batch["attention_mask"].bool()
    for latent in LATENTS:
        head = head_of(encoder="none", latent=latent).eval()
        attention = head(**batch, output_attentions=True).attentions[0]
        first, second = attention[0, 0, mask[0]], attention[1, 0, mask[1]]
        expected = first if latent == "sentence" else first[[2, 0, 1]]
        torch.testing.assert_close(second, expected, rtol=0, atol=1e-12)
        assert first.std() > 0.001


def test_the_literal_reading_has_a_weight_for_each_position_and_head() -> None:
    pooling = pooling_of(head_of(latent="sentence", num_attention_heads=3, max_sentence_tokens=11))
    assert pooling.score.weight.shape == (3 * 11, 3)
    assert pooling_of(head_of(num_attention_heads=3)).score.weight.shape == (3, 3)


def test_empty_sentences_have_no_kl_divergence_by_tokens() -> None:
    outputs = head_of()(**batch_of([[], []], [0, 1]))
    assert torch.equal(outputs.kl, torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (-100, "learns from the class of each example, but a label is -100: leave"),
        (3, "A label is 3, but the model has the classes 0 to 2"),
    ],
)
def test_an_example_without_a_class_is_refused_in_training(label: int, said: str) -> None:
    model = head_of(sentences_per_example=2)
    for labels in ([label, 1], [1, label]):  # the last sentence has none behind it for which it could pass
        with pytest.raises(ValueError, match=said):
            model(torch.tensor([[5, SEP, 6], [7, SEP, 8]]), labels=torch.tensor(labels))
