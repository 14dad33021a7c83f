"""The DSA model family: sentence encoders over a frozen table of word vectors, and their classification heads."""

import itertools
import math
from dataclasses import dataclass
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.utils.generic import ModelOutput, can_return_tuple

from .configuration_dsa import DSAConfig
from .encoders_dsa import ENCODERS
from .packing_dsa import pack, split_pairs
from .poolings_dsa import POOLINGS
from .rows_dsa import dropout


@dataclass
class DSAModelOutput(ModelOutput):
    """Output of [`DSAModel`]. Padding and separators have 0 in every field that is laid out by words.

    Attributes:
        last_hidden_state: Encoded words x_i^c. (batch, words, d_c)
        pooler_output: Vector of each row's sentence, of its first where rows hold pairs. (batch, m * d_o)
        second_pooler_output: Vector of the second sentence, where rows hold pairs. (batch, m * d_o)
        hidden_states: When asked: the word vectors, what the encoder computes on the way, and `last_hidden_state`.
            Each (batch, words, its width)
        attentions: When asked: the attention weights, one tensor for each routing iteration. Over the words of one
            sentence they sum to 1; a row that holds a pair holds both sentences' weights. Each (batch, heads, words)
    """

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    second_pooler_output: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class DSAPreTrainedModel(PreTrainedModel):
    """Initialisation, loading and the frozen word table, shared by the model and its heads."""

    config: DSAConfig
    base_model_prefix = "dsa"
    input_modalities = "text"
    _no_split_modules = ["DenseBranch"]  # noqa: RUF012  (transformers reads it as a plain class attribute)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """He initialisation, scaled by each layer's dropout as `config.initializer_scaling` says (Appendix A)."""
        if isinstance(module, nn.Linear | nn.Conv1d):
            rate = getattr(module, "dropout_rate", 0.0)
            scaling = {"keep_prob": 1 - rate, "dropout_rate": rate or 1.0, "none": 1.0}[self.config.initializer_scaling]
            gain = nn.init.calculate_gain("leaky_relu", self.config.negative_slope)
            init.normal_(module.weight, std=gain * math.sqrt(scaling / module.weight[0].numel()))
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            init.uniform_(module.weight, -self.config.unknown_init_range, self.config.unknown_init_range)
            if module.padding_idx is not None and not getattr(module.weight, "_is_hf_initialized", False):
                module.weight[module.padding_idx].zero_()
        else:
            super()._init_weights(module)

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
        """As in transformers; the word table stays frozen as the config says (loading makes every tensor trainable)."""
        loaded = super().from_pretrained(*args, **kwargs)
        model = loaded[0] if isinstance(loaded, tuple) else loaded  # a tuple with output_loading_info=True
        model.apply_freezing()
        return loaded

    def apply_freezing(self) -> None:
        """Make the word table trainable or not, as `config.freeze_embeddings` says."""
        self.get_input_embeddings().requires_grad_(not self.config.freeze_embeddings)


class DSAModel(DSAPreTrainedModel):
    """Sentence encoder: word table, encoder and pooling, the last two by their names in the config."""

    _keys_to_ignore_on_load_unexpected = [r"^classifier\."]  # noqa: RUF012  (a head's folder is a model's folder too)

    def __init__(self, config: DSAConfig) -> None:
        super().__init__(config)
        self.embed_tokens: nn.Module = nn.Embedding(config.vocab_size, config.embedding_size, config.pad_token_id)
        self.encoder = ENCODERS[config.encoder](config)
        self.pooling = POOLINGS[config.pooling](config)
        self.post_init()
        self.apply_freezing()

    def get_input_embeddings(self) -> nn.Module:
        """The word table."""
        return self.embed_tokens

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the word table; the new one is frozen if the old one was."""
        self.embed_tokens = value
        self.apply_freezing()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **_: Any,
    ) -> DSAModelOutput:
        """Encode the sentences of a batch. Each is encoded as if it were alone.

        Args:
            input_ids: Word ids. (batch, words)
            attention_mask: 1 for real words, 0 for padding on any side; without it, `pad_token_id` is padding.
                (batch, words)
            token_type_ids: 1 for the words of a row's second sentence. Read where `config.sentences_per_row` is 2;
                a row without a 1 is split at its first separator. (batch, words)
            inputs_embeds: Word vectors in place of `input_ids`. (batch, words, d_0)
            output_attentions: Also return the attention weights.
            output_hidden_states: Also return all layers' words.
            **_: Taken for transformers' sake and not used.

        Returns:
            [`DSAModelOutput`]

        Raises:
            ValueError: Not exactly one of `input_ids` and `inputs_embeds` is given.
        """
        if output_attentions is None:
            output_attentions = self.config.output_attentions
        if output_hidden_states is None:
            output_hidden_states = self.config.output_hidden_states

        pad_token_id, sep_token_id = self.config.pad_token_id, self.config.sep_token_id
        if inputs_embeds is None and input_ids is not None:
            ids = input_ids
        elif input_ids is None and inputs_embeds is not None:
            # Without ids only the mask and the token types can say what a row holds.
            ids, pad_token_id, sep_token_id = inputs_embeds.new_zeros(inputs_embeds.shape[:2]), None, None
        else:
            raise ValueError("Give either input_ids or inputs_embeds, and not both.")
        is_word, is_second = split_pairs(ids, attention_mask, token_type_ids, pad_token_id, sep_token_id)
        pairs = self.config.sentences_per_row == 2
        places, packing = pack(
            input_ids, is_word, is_second if pairs else None, deduplicate=self.config.deduplicate_sentences
        )
        if inputs_embeds is None:
            embedded = self.embed_tokens(ids.flatten()[places])  # (N, d_0)
        else:
            embedded = inputs_embeds.flatten(0, 1)[places]  # (N, d_0)
        words = dropout(embedded, self.config.embedding_dropout, self.training)
        encoded, between = self.encoder(words, packing, bool(output_hidden_states))  # (N, d_c)
        vectors, weights = self.pooling(encoded, packing)  # (U, m * d_o)

        sentences = packing.unpack_sentences(vectors)  # (batch, 1 or 2, m * d_o)
        hidden_states = attentions = None
        if output_hidden_states:
            hidden_states = tuple(packing.unpack_words(hidden) for hidden in (words, *between, encoded))
        if output_attentions:
            attentions = tuple(packing.unpack_words(weight.t()).transpose(1, 2) for weight in weights)
        return DSAModelOutput(
            last_hidden_state=packing.unpack_words(encoded),
            pooler_output=sentences[:, 0],
            second_pooler_output=sentences[:, 1] if pairs else None,
            hidden_states=hidden_states,
            attentions=attentions,
        )


class ClassifierLayer(nn.Linear):
    """A hidden layer of the classifier: batch normalisation and dropout on its input, then linear and LeakyReLU."""

    def __init__(self, config: DSAConfig, input_size: int, output_size: int) -> None:
        super().__init__(input_size, output_size)
        self.norm = nn.BatchNorm1d(input_size, eps=config.batch_norm_eps)
        self.dropout_rate = config.classifier_dropout
        self.negative_slope = config.negative_slope

    def forward(self, input: Tensor) -> Tensor:
        """(batch, input_size) -> (batch, output_size)"""
        features = dropout(self.norm(input), self.dropout_rate, self.training)
        return F.leaky_relu(super().forward(features), self.negative_slope)


class DSAForSequenceClassification(DSAPreTrainedModel):
    """A classifier of sentences, or of pairs seen as one label, by `config.sentences_per_row`.

    A pair's features are those of heuristic matching, [p; h; |p - h|; p * h] (Section 4.1).
    """

    def __init__(self, config: DSAConfig) -> None:
        super().__init__(config)
        self.num_labels = cast(int, config.num_labels)
        self.loss_type = "ForSequenceClassification"  # transformers' guess from the class name fails for DSAForNLI
        self.dsa = DSAModel(config)
        sizes = [config.sentence_embedding_size * (4 if config.sentences_per_row == 2 else 1)]
        sizes += config.classifier_hidden_sizes
        self.classifier = nn.Sequential(
            *(ClassifierLayer(config, *pair) for pair in itertools.pairwise(sizes)),
            nn.Linear(sizes[-1], self.num_labels),
        )
        self.post_init()
        self.apply_freezing()

    @can_return_tuple
    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        labels: Tensor | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        **kwargs: Any,
    ) -> SequenceClassifierOutput:
        """Classify the rows of a batch.

        Args:
            input_ids: As for [`DSAModel`]. (batch, words)
            attention_mask: As for [`DSAModel`]. (batch, words)
            token_type_ids: As for [`DSAModel`]. (batch, words)
            inputs_embeds: As for [`DSAModel`]. (batch, words, d_0)
            labels: Classes, or numbers for a regression. (batch,)
            output_attentions: Also return the attention weights.
            output_hidden_states: Also return all layers' words.
            **kwargs: Handed to the loss function.

        Returns:
            `SequenceClassifierOutput` with `logits` (batch, num_labels) and, with labels, the mean `loss`.
        """
        outputs = self.dsa(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            return_dict=True,
        )
        features = outputs.pooler_output  # (batch, m * d_o)
        if outputs.second_pooler_output is not None:
            first, second = features, outputs.second_pooler_output
            features = torch.cat([first, second, (first - second).abs(), first * second], dim=-1)
        logits = self.classifier(features)  # (batch, num_labels)
        loss = None
        if labels is not None:
            loss = self.loss_function(labels=labels, pooled_logits=logits, config=self.config, **kwargs)
        return SequenceClassifierOutput(
            loss=loss, logits=logits, hidden_states=outputs.hidden_states, attentions=outputs.attentions
        )


class DSAForNLI(DSAForSequenceClassification):
    """Natural language inference: the relation of a premise and a hypothesis, which stand in one row."""

    def __init__(self, config: DSAConfig) -> None:
        if config.sentences_per_row != 2:
            raise ValueError(f"DSAForNLI reads pairs: set sentences_per_row=2, got {config.sentences_per_row}.")
        super().__init__(config)


__all__ = ["DSAForNLI", "DSAForSequenceClassification", "DSAModel", "DSAModelOutput", "DSAPreTrainedModel"]
