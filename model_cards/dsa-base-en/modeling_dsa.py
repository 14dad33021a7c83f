"""The DSA model family: sentence encoders over a frozen table of word vectors, and their classification heads."""

import itertools
import math
import stat
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import CONFIG_NAME, SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME, logging
from transformers.utils.generic import ModelOutput, can_return_tuple

from .classifier_dsa import ClassifierLayer, FoldedClassifierLayer, HighwayLayer
from .compatibility_dsa import init
from .configuration_dsa import DSAConfig
from .encoders_dsa import ENCODERS, DenseCNN
from .folding_dsa import FoldedDenseCNN, FoldedWeights
from .layers_dsa import dropout
from .loading_dsa import refuse_missing_weights, refuse_nonfinite_weights, refuse_oversized_config
from .packing_dsa import Packing, pack, sentence_masks
from .pair_features_dsa import PairFeatures
from .pooled_dsa import Pooled
from .poolings_dsa import POOLINGS, DynamicSelfAttention
from .reinforced_dsa import policy_loss
from .repository_dsa import automatic_classes, write_repository_files
from .shortcut_dsa import FoldedShortcut, WordShortcut
from .systems_dsa import WithStartValues
from .variational_dsa import prediction_samples

if TYPE_CHECKING:
    # Not used here: transformers takes along to a saved model what a search for such lines in this one file finds.
    # Three of them import transformers' pipelines, whose own import may be what has loaded this file.
    from .batching_dsa import BATCH_SIZE  # noqa: F401
    from .config_fields_dsa import DSAConfigFields  # noqa: F401
    from .convolution_dsa import convolve  # noqa: F401
    from .directional_dsa import DirectionalEncoder  # noqa: F401
    from .handler import EndpointHandler  # noqa: F401
    from .options_dsa import option  # noqa: F401
    from .overlap_dsa import TokenOverlap  # noqa: F401
    from .pairwise_dsa import PairwiseSelfAttention  # noqa: F401
    from .pipeline_dsa import SentenceEmbeddingPipeline  # noqa: F401
    from .tree_dsa import GumbelTreeLSTM  # noqa: F401
    from .unknown_texts_dsa import unknown_texts  # noqa: F401
    from .vectors_dsa import batch_vectors  # noqa: F401
    from .windows_dsa import Windows  # noqa: F401
    from .zero_shot_dsa import ZeroShotSimilarityPipeline  # noqa: F401


logger = logging.get_logger(__name__)


@dataclass
class DSAModelOutput(ModelOutput):
    """Output of [`DSAModel`].

    Padding, separators and tokens that the model does not read have 0 in every field that is laid out by tokens. The
    width of a sentence vector is `config.sentence_embedding_size`.

    Attributes:
        last_hidden_state: Encoded tokens x_i^c. (batch, tokens, d_c)
        pooler_output: Vector of each example's sentence, of its first where examples are pairs. (batch, width)
        second_pooler_output: Vector of the second sentence, where examples are pairs. (batch, width)
        vector_samples: Vectors under each sample of the latent variable, whose mean the two above are, where there are
            several. (samples, batch, 1 or 2, width)
        hidden_states: When asked: the word vectors, what the encoder computes on the way, and `last_hidden_state`.
            Each (batch, tokens, its width)
        attentions: When asked: the attention weights, one tensor for each routing iteration. Over the tokens of one
            sentence they sum to 1; a pair has both sentences' weights. Of several samples it is the
            mean. Each (batch, heads, tokens)
        attentions_std: When attentions are asked for and there are several samples: their standard deviation over
            these. (batch, heads, tokens)
        shortcut_attention: When attentions are asked for, with `config.word_shortcut`: how much of each word goes past
            encoder and pooling. Over the tokens of one sentence it sums to 1. (batch, tokens)
        kl: KL(q || p) of all latent variables of an example, in training with labels, for variational attention.
            (batch,)
        kl_weight: The factor of `kl` in the loss at this point of the training. ()
        attention_penalty: ||A A^T - I||_F^2, summed over an example's sentences, for structured self-attention.
            (batch,)
        choice_log_probability: In training with labels, for reinforced self-attention: log p of what hard attention
            chose of each sentence. (batch, 1 or 2)
        chosen_share: The same: which share of the pairs of each sentence's tokens it left to soft attention, from 0 to
            1. (batch, 1 or 2)
        weight_vectors: When asked, of dynamic self-attention: the dynamic weight vectors z_j, one tensor for each
            routing iteration. Each (batch, 1 or 2, heads, d_o)
    """

    last_hidden_state: Tensor | None = None
    pooler_output: Tensor | None = None
    second_pooler_output: Tensor | None = None
    vector_samples: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    attentions_std: Tensor | None = None
    shortcut_attention: Tensor | None = None
    kl: Tensor | None = None
    kl_weight: Tensor | None = None
    attention_penalty: Tensor | None = None
    choice_log_probability: Tensor | None = None
    chosen_share: Tensor | None = None
    weight_vectors: tuple[Tensor, ...] | None = None


@dataclass
class DSAClassifierOutput(ModelOutput):
    """Output of the classifiers.

    Attributes:
        loss: With labels. In training: `reconstruction_loss` + kl_weight * mean of `kl` (the negative evidence lower
            bound, Eq. 11) + config.attention_penalty * mean of `attention_penalty`, each where there is one; with
            reinforced self-attention its gradient also holds that of the choices. At
            prediction nothing sees the labels, and the first term is that of the prediction. ()
        logits: Scores of the classes; of several samples the logarithm of the mean probability. (batch, num_labels)
        hidden_states: As in [`DSAModelOutput`].
        attentions: As in [`DSAModelOutput`].
        attentions_std: As in [`DSAModelOutput`].
        shortcut_attention: As in [`DSAModelOutput`].
        probabilities_std: Standard deviation of the classes' probabilities over several samples. (batch, num_labels)
        reconstruction_loss: Where `loss` may have other terms: its first, -log p(y | z), the mean over examples
            and samples. ()
        kl: As in [`DSAModelOutput`]. (batch,)
        kl_weight: As in [`DSAModelOutput`]. ()
        attention_penalty: As in [`DSAModelOutput`]. (batch,)
    """

    loss: Tensor | None = None
    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    attentions_std: Tensor | None = None
    shortcut_attention: Tensor | None = None
    probabilities_std: Tensor | None = None
    reconstruction_loss: Tensor | None = None
    kl: Tensor | None = None
    kl_weight: Tensor | None = None
    attention_penalty: Tensor | None = None


class DSAPreTrainedModel(PreTrainedModel):
    """Initialisation, loading and the frozen word table, shared by the model and its heads."""

    config: DSAConfig
    base_model_prefix = "dsa"
    input_modalities = "text"
    supports_gradient_checkpointing = True  # of the encoder: branches, or layers
    # They read each other's weights, or run on lists of tokens that no hook could move between devices.
    _no_split_modules = [kind.__name__ for kind in (*ENCODERS.values(), *POOLINGS.values())] + [
        "ClassifierLayer",
        "GatedEncoder",
        "HighwayLayer",
        "TokenOverlap",
        "WordShortcut",
    ]

    def __init__(self, config: DSAConfig) -> None:
        refuse_oversized_config(config)
        super().__init__(config)
        # And not `load_state_dict`, which torch does not call for a part of the module that is loaded.
        self.register_load_state_dict_pre_hook(_forget_tables)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """He initialisation, scaled by each layer's dropout as `config.initializer_scaling` says (Appendix A).

        What starts otherwise in a module of an encoder or a pooling, it says itself, after its layers.
        """
        if isinstance(module, WithStartValues):
            module.init_own_weights()
        elif isinstance(module, nn.Linear | nn.Conv1d | ClassifierLayer):
            rate = getattr(module, "dropout_rate", 0.0)
            scaling = {"keep_prob": 1 - rate, "dropout_rate": rate or 1.0, "none": 1.0}[self.config.initializer_scaling]
            gain = nn.init.calculate_gain("leaky_relu", self.config.negative_slope)
            init.normal_(module.weight, std=gain * math.sqrt(scaling / module.weight[0].numel()))
            if module.bias is not None:
                init.zeros_(module.bias)
            base = cast(DSAModel, self.base_model)
            if module is base.projection and base.shortcut is not None:  # nothing is added to that mean
                init.zeros_(module.weight)
        elif isinstance(module, nn.Embedding):
            init.uniform_(module.weight, -self.config.unknown_init_range, self.config.unknown_init_range)
            if module.padding_idx is not None and not getattr(module.weight, "_is_hf_initialized", False):
                module.weight[module.padding_idx].zero_()
        elif isinstance(module, nn.LSTM | nn.LSTMCell):  # as in torch
            for weight in module.parameters():
                init.uniform_(weight, -1 / math.sqrt(module.hidden_size), 1 / math.sqrt(module.hidden_size))
        else:
            super()._init_weights(module)

    @classmethod
    def from_pretrained(cls, *args: Any, **kwargs: Any) -> Any:
        """As in transformers; the word table stays frozen as the config says (loading makes every tensor trainable).

        Raises:
            ValueError: Weights are missing or not finite. Who asks for `output_loading_info`, or gives `state_dict`,
                decides alone about missing ones.
        """
        if kwargs.get("state_dict") is None:
            kwargs.setdefault("use_safetensors", True)  # a pickle is code
        shows_info = kwargs.pop("output_loading_info", False)
        loaded: Any = super().from_pretrained(*args, **kwargs, output_loading_info=True)
        model, loading_info = loaded
        if not shows_info and kwargs.get("state_dict") is None:
            missing = loading_info["missing_keys"]
            if model.base_model is not model:
                has_saved_head = model.config.is_classifier and isinstance(model, DSAForSequenceClassification)
                is_new = kwargs.get("ignore_mismatched_sizes") or not has_saved_head
                parts = (f"{cls.base_model_prefix}.", *(() if is_new else ("pair_features.", "classifier.")))
                missing = {name for name in missing if name.startswith(parts)}
            refuse_missing_weights(model.name_or_path, missing)
        refuse_nonfinite_weights(model.name_or_path, model)
        model.apply_freezing()
        if model.config.fold_embeddings:
            if model._lies_on_one_device():
                model.fold_embeddings()
            else:
                logger.warning(f"{model.name_or_path} is not folded, as it is offloaded or lies on several devices.")
        return (model, loading_info) if shows_info else model

    def save_pretrained(  # type: ignore[override]  # the other options come by name
        self,
        save_directory: str | PathLike[str],
        is_main_process: bool = True,
        state_dict: dict[str, Tensor] | None = None,
        push_to_hub: bool = False,
        **kwargs: Any,
    ) -> None:
        """As in transformers; the folder is a complete Hub repository, which loads where this package is not installed.

        Beside weights and config stand the code and the files of sentence-transformers and of Inference Endpoints. The
        tokenizer saves itself.

        Raises:
            ValueError: What is pushed would be other than what is saved.
        """
        if push_to_hub:  # transformers would commit before the code is there
            if state_dict is not None or kwargs.get("variant") is not None:
                raise ValueError(
                    "push_to_hub sends the model's own weights, under their usual name: with state_dict or variant "
                    "save the folder, and send it by `dsa push FOLDER ORG/NAME`."
                )
            names = ("commit_message", "commit_description", "private", "token", "revision", "create_pr", "tags")
            to_push = {name: kwargs.pop(name) for name in names if name in kwargs}
            repo_id = kwargs.pop("repo_id", Path(save_directory).name)
        is_classifier = isinstance(self, DSAForSequenceClassification)
        # A user's class, and what FSDP makes of one of these, are not in the code that travels along.
        classes = [kind.__name__ for kind in type(self).__mro__ if kind.__name__ in __all__]
        classifier = classes[0] if is_classifier else DSAForSequenceClassification.__name__
        for name, entry in automatic_classes(classifier).items():
            setattr(self.config, name, entry)
        super().save_pretrained(save_directory, is_main_process, state_dict, **kwargs)
        if is_main_process and (Path(save_directory) / CONFIG_NAME).is_file():  # an adapter alone has none
            if is_classifier and self.config.architectures != classes[:1]:  # by it a folder is known for a classifier's
                self.config.architectures = classes[:1]
                self.config.save_pretrained(save_directory)
            write_repository_files(Path(save_directory))
            if kwargs.get("variant") is None:
                _remove_other_form(Path(save_directory))
            _let_others_read(Path(save_directory))
        if is_main_process and push_to_hub:
            self.push_to_hub(repo_id, **to_push, max_shard_size=kwargs.get("max_shard_size", "50GB"))

    def fold_embeddings(self) -> None:
        """Make prediction faster: what depends on one token alone becomes a table, and batch normalisation a product.

        Half of the encoder's multiplications go; vectors and logits stay the same to about 1e-6. The tables need
        memory: 2,700 numbers a token for single DSA ([`FoldedDenseCNN`]), and with
        `config.word_shortcut` those of a sentence vector. They are not saved, but the config remembers,
        and `from_pretrained` folds again. `unfold_embeddings()` undoes it; `train()`, an update of the weights in
        place, as by an optimizer (but not by `.data`), and new weights or tokens that come through a method of the
        model, and not of a part such as `classifier`, drop the tables. Adapters count as they are when it is called.
        Without effect where gradients are recorded, and on `inputs_embeds`, hidden states, compilation and export.

        Raises:
            ValueError: The encoder has nothing to fold, or the model is in training mode, is offloaded or lies on
                several devices.
        """
        base = cast(DSAModel, self.base_model)
        if not ENCODERS[self.config.encoder].can_fold:
            foldable = ", ".join(f"'{name}'" for name, kind in ENCODERS.items() if kind.can_fold)
            raise ValueError(f"Only encoder {foldable} can be folded; this is '{self.config.encoder}'.")
        if self.training:
            raise ValueError("Folding is for prediction: call model.eval() first.")
        if not self._lies_on_one_device():
            raise ValueError("A model that is offloaded or lies on several devices cannot be folded: load it whole.")
        with torch.no_grad():  # and not the weight, to which an adapter adds
            table = base.embed_tokens(torch.arange(self.config.vocab_size, device=self.device))  # (V, d_0)
        base.folded = FoldedDenseCNN(cast(DenseCNN, base.encoder), table, FoldedWeights(base))
        if base.shortcut is not None:
            base.shortcut.folded = FoldedShortcut(base.shortcut, table)
        for module in self.modules():
            if isinstance(module, ClassifierLayer) and module.norm is not None:
                module.folded = FoldedClassifierLayer(module, module.norm)
        self.config.fold_embeddings = True

    def unfold_embeddings(self) -> None:
        """Undo `fold_embeddings`; nothing, where it was not called."""
        self.config.fold_embeddings = False
        self._drop_tables()

    def _drop_tables(self) -> None:
        for module in self.modules():
            if isinstance(module, DSAModel | WordShortcut | ClassifierLayer):
                module.folded = None

    def _lies_on_one_device(self) -> bool:
        devices = {weight.device for weight in self.parameters()}
        return len(devices) == 1 and torch.device("meta") not in devices

    def train(self, mode: bool = True) -> Any:
        """As in torch; training drops the tables of `fold_embeddings`, as they would be those of the old weights."""
        if mode:
            self._drop_tables()
        return super().train(mode)

    if not hasattr(PreTrainedModel, "activation_checkpointing_enable"):  # transformers 4.57

        def gradient_checkpointing_enable(self, gradient_checkpointing_kwargs: Any = None, **kwargs: Any) -> Any:
            """As in transformers 5, without reentrance, which trains nothing behind frozen word vectors."""
            given = {"use_reentrant": False} | (gradient_checkpointing_kwargs or {})
            return super().gradient_checkpointing_enable(given, **kwargs)

    def apply_freezing(self) -> None:
        """Make the word table trainable or not, as `config.freeze_embeddings` says."""
        self.get_input_embeddings().requires_grad_(not self.config.freeze_embeddings)


class DSAModel(DSAPreTrainedModel):
    """Sentence encoder: word table, encoder and pooling, the last two by their names in the config; then a projection,
    where the config has one.
    """

    # A head's folder is a model's folder too.
    _keys_to_ignore_on_load_unexpected = [r"^(classifier|pair_features)\."]  # noqa: RUF012

    def __init__(self, config: DSAConfig) -> None:
        config.validate_bounds()  # of fields that were set since the config was made, as `from_pretrained` does
        config.validate_encoder()
        config.validate_pooling()
        config.validate_projection()
        super().__init__(config)
        self.embed_tokens: nn.Module = nn.Embedding(config.vocab_size, config.embedding_size, config.pad_token_id)
        self.encoder = ENCODERS[config.encoder](config)
        self.pooling = POOLINGS[config.pooling](config, config.encoded_size)
        self.projection: nn.Linear | None = None
        self.shortcut: WordShortcut | None = None
        if config.projection_size is not None:
            self.projection = nn.Linear(config.pooled_size, config.projection_size, bias=False)
            if config.word_shortcut:
                self.shortcut = WordShortcut(config.embedding_size, config.projection_size)
        self.folded: FoldedDenseCNN | None = None
        self.post_init()
        self.apply_freezing()

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the word table; the new one is frozen if the old one was, and the model is not folded any more."""
        self._drop_tables()
        value.requires_grad_(all(weight.requires_grad for weight in self.embed_tokens.parameters()))
        self.embed_tokens = value
        self.config.vocab_size = getattr(value, "num_embeddings", self.config.vocab_size)

    def sentence_vectors(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """The vectors of sentences, the same ones each time: a variational pooling takes its prior's mean.

        A row is one sentence, also for a model of pairs: a separator in it is left out, and splits nothing.

        (batch, tokens) twice -> (batch, width)

        Raises:
            ValueError: The two do not fit together, or the mask is one to be added to scores.
        """
        _check_shapes(input_ids, None, self.config.embedding_size, attention_mask, None)
        if self.config.sep_token_id is not None:
            attention_mask = attention_mask.bool() & (input_ids != self.config.sep_token_id)
        with prediction_samples(0):
            outputs = self(input_ids, attention_mask=attention_mask, output_tokens=False, return_dict=True)
        return cast(Tensor, outputs.pooler_output)

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
        output_tokens: bool = True,
        output_weight_vectors: bool = False,
        **_: Any,
    ) -> DSAModelOutput:
        """Encode the sentences of a batch. Each is encoded as if it were alone.

        Args:
            input_ids: Token ids. (batch, tokens)
            attention_mask: 1 for real tokens, 0 for padding on any side; without it, `pad_token_id` is padding.
                (batch, tokens)
            token_type_ids: 1 for the tokens of a pair's second sentence. Read where `config.sentences_per_example` is
                2; an example without a 1 is split at its first separator. (batch, tokens)
            inputs_embeds: Word vectors in place of `input_ids`. They do not tell separators, which need a 0 in the
                mask, nor where a pair's second sentence begins, which `token_type_ids` must say. (batch, tokens, d_0)
            labels: Classes. In training the posterior of variational attention sees them, and reinforced self-attention
                draws what it chooses where they are given; nothing else reads them. (batch,)
            output_attentions: Also return the attention weights.
            output_hidden_states: Also return all layers' tokens.
            output_tokens: Return `last_hidden_state`; without it nothing is as large as the padded batch.
            output_weight_vectors: Also return the vectors z of each iteration, of dynamic self-attention (Figure 2).
            **_: Taken for transformers' sake and not used.

        Returns:
            [`DSAModelOutput`]

        Raises:
            ValueError: Not exactly one of `input_ids` and `inputs_embeds` is given, or weight vectors are asked of
                another pooling.
        """
        if output_attentions is None:
            output_attentions = bool(self.config.output_attentions)
        if output_hidden_states is None:
            output_hidden_states = bool(self.config.output_hidden_states)
        if (input_ids is None) == (inputs_embeds is None):
            raise ValueError("Give either input_ids or inputs_embeds, and not both.")

        index, packing = self._pack(input_ids, attention_mask, token_type_ids, inputs_embeds)
        if self._can_look_up(inputs_embeds, output_hidden_states):
            encoded, shortcut = self._look_up(cast(Tensor, input_ids).flatten().index_select(0, index), packing)
            states: list[Tensor] = []
        else:
            encoded, states = self._encode(input_ids, inputs_embeds, index, packing, output_hidden_states)
            shortcut = None if self.shortcut is None else self.shortcut(states[0], packing)  # (U, width), (1, N)
        if self.config.normalize_tokens:
            encoded = self._normalize(encoded)
        pooled = self.pooling(encoded, packing, labels)
        added = None if shortcut is None else shortcut[0]
        samples = self._sentence_vectors(pooled, added, packing)  # (samples, batch, 1 or 2, width)

        last_hidden_state = packing.unpack_tokens(encoded) if output_tokens else None
        hidden_states = None
        if output_hidden_states:
            hidden_states = tuple(packing.unpack_tokens(hidden) for hidden in (*states, encoded))
        shortcut_attention = None
        if output_attentions and shortcut is not None:
            shortcut_attention = _unpack_weights(shortcut[1], packing).squeeze(1)
        weight_vectors = self._weight_vectors(encoded, pooled) if output_weight_vectors else None
        return _model_output(
            pooled,
            samples,
            output_attentions,
            # By the constructor: transformers 4.57 makes no key of what is set later.
            last_hidden_state=last_hidden_state,
            hidden_states=hidden_states,
            shortcut_attention=shortcut_attention,
            weight_vectors=weight_vectors,
        )

    def _weight_vectors(self, encoded: Tensor, pooled: Pooled) -> tuple[Tensor, ...]:
        """The vectors z of each iteration by example, each (batch, 1 or 2, heads, d_o)."""
        if not isinstance(self.pooling, DynamicSelfAttention):
            raise ValueError(f"Pooling '{self.config.pooling}' has no dynamic weight vectors: only 'dynamic' has.")
        packing = pooled.packing
        found = self.pooling.weight_vectors(encoded, pooled.attentions, packing)  # each (U, heads, d_o)
        return tuple(packing.unpack_sentences(of.flatten(1)).unflatten(2, of.shape[1:]) for of in found)

    def _pack(
        self,
        input_ids: Tensor | None,
        attention_mask: Tensor | None,
        token_type_ids: Tensor | None,
        inputs_embeds: Tensor | None,
    ) -> tuple[Tensor, Packing]:
        """The index in the flattened batch of each token that the model reads, (N,), and the [`Packing`]."""
        ids = input_ids
        if ids is None:  # only the mask and the token types can say what an example holds; NaN equals no id
            embeds = cast(Tensor, inputs_embeds)
            ids = embeds.new_full(embeds.shape[:2], math.nan)
        _check_shapes(ids, inputs_embeds, self.config.embedding_size, attention_mask, token_type_ids)
        masks = sentence_masks(self.config, ids, attention_mask, token_type_ids)  # (batch, 1 or 2, tokens)
        if self.training and self.config.token_dropout and input_ids is not None:
            left_out = (torch.rand(self.config.vocab_size, device=ids.device) < self.config.token_dropout)[input_ids]
            masks = masks & ~left_out[:, None]
        return pack(input_ids, masks, self.config.deduplicate_sentences)

    def _can_look_up(self, inputs_embeds: Tensor | None, output_hidden_states: bool) -> bool:
        """Whether the folded tables give all that is asked for: they have neither hidden states nor gradients."""
        needs_encoder = inputs_embeds is not None or output_hidden_states or torch.is_grad_enabled()
        if self.folded is None or needs_encoder or torch.compiler.is_compiling():
            return False
        if self.folded.made_of.have_changed():
            self._drop_tables()
        return self.folded is not None

    def _look_up(self, ids: Tensor, packing: Packing) -> tuple[Tensor, tuple[Tensor, Tensor] | None]:
        """Ids of packed tokens (N,) -> encoded tokens (N, d_c) and what the shortcut gives, (U, width) and (1, N)"""
        encoded = cast(FoldedDenseCNN, self.folded)(ids, packing)
        if self.shortcut is None:
            return encoded, None
        return encoded, cast(FoldedShortcut, self.shortcut.folded)(ids, packing)

    def _encode(
        self,
        input_ids: Tensor | None,
        inputs_embeds: Tensor | None,
        index: Tensor,
        packing: Packing,
        output_hidden_states: bool,
    ) -> tuple[Tensor, list[Tensor]]:
        """The encoded tokens, (N, d_c), and when asked the word vectors and the intermediate hidden states."""
        if inputs_embeds is None:
            if getattr(self.embed_tokens, "neftune_noise_alpha", None) is not None:
                raise ValueError(
                    "neftune_noise_alpha takes word vectors with padding, and these have none: leave it out; "
                    "config.embedding_dropout and config.token_dropout are such noise."
                )
            embedded = self.embed_tokens(cast(Tensor, input_ids).flatten().index_select(0, index))  # (N, d_0)
        else:
            embedded = inputs_embeds.flatten(0, 1).index_select(0, index)  # (N, d_0)
        tokens = dropout(embedded, self.config.embedding_dropout, self.training)
        encoded, states = self.encoder(tokens, packing, output_hidden_states)
        return encoded, [tokens, *states]

    def _sentence_vectors(self, pooled: Pooled, shortcut: Tensor | None, packing: Packing) -> Tensor:
        """The pooling's vectors, projected, with what the shortcut adds, by example. (samples, batch, 1 or 2, width)"""
        if self.projection is not None:
            pooled.vectors = self.projection(pooled.vectors)
        samples = pooled.unpack()
        # The pooling may tell copies of a sentence apart; their words are the same.
        return samples if shortcut is None else samples + packing.unpack_sentences(shortcut)

    def _normalize(self, encoded: Tensor) -> Tensor:
        """Give every encoded token the length `config.token_norm`. (N, d_c) -> (N, d_c)"""
        # Not in place, as a hook may hold what the encoder gave. The usual 1e-12 is 0 in half precision, and a word
        # vector may be 0.
        normalized = F.normalize(encoded, dim=-1, eps=1e-6)
        return normalized if self.config.token_norm == 1 else normalized * self.config.token_norm


def _forget_tables(model: DSAPreTrainedModel, *_: Any) -> None:
    """Before weights are loaded into a model: its tables are those of others."""
    model._drop_tables()


def _model_output(pooled: Pooled, samples: Tensor, output_attentions: bool, **others: Any) -> DSAModelOutput:
    """What a pooling gave, by example, its vectors already so, (samples, batch, 1 or 2, width); and other outputs."""
    vectors = samples[0] if samples.shape[0] == 1 else samples.mean(0)  # (batch, 1 or 2, width)
    attentions = attentions_std = None
    if output_attentions:
        attentions = tuple(_unpack_weights(weights, pooled.packing) for weights in pooled.attentions)
        if pooled.attentions_std is not None:
            attentions_std = _unpack_weights(pooled.attentions_std, pooled.packing)
    return DSAModelOutput(
        pooler_output=vectors[:, 0],
        second_pooler_output=vectors[:, 1] if vectors.shape[1] == 2 else None,
        vector_samples=samples if samples.shape[0] > 1 else None,
        attentions=attentions,
        attentions_std=attentions_std,
        kl=_sum_by_example(pooled.kl, pooled.packing),
        kl_weight=pooled.kl_weight,
        attention_penalty=_sum_by_example(pooled.penalty, pooled.packing),
        choice_log_probability=_by_example(pooled.choice_log_probability, pooled.packing),
        chosen_share=_by_example(pooled.chosen_share, pooled.packing),
        **others,
    )


def _unpack_weights(weights: Tensor, packing: Packing) -> Tensor:
    """(heads, N) -> (batch, heads, tokens)"""
    return packing.unpack_tokens(weights.t()).transpose(1, 2)


def _by_example(values: Tensor | None, packing: Packing) -> Tensor | None:
    """A figure of sentences, for those of each example. (U,) -> (batch, 1 or 2)"""
    return None if values is None else packing.unpack_sentences(values[:, None]).squeeze(2)


def _sum_by_example(values: Tensor | None, packing: Packing) -> Tensor | None:
    """Sum a figure of sentences over those of each example. (U,) -> (batch,)"""
    by_example = _by_example(values, packing)
    return None if by_example is None else by_example.sum(1)


def _let_others_read(folder: Path) -> None:
    """Give weights the config's mode: safetensors 0.8 writes files that their owner alone may read (its issue 782)."""
    mode = stat.S_IMODE((folder / CONFIG_NAME).stat().st_mode)
    for weights in folder.glob("model*.safetensors"):
        with suppress(PermissionError):  # of a file of another user, or where files have no mode
            weights.chmod(mode)


def _remove_other_form(folder: Path) -> None:
    """Remove what an earlier save in one file left beside shards, which would be loaded, or the index of shards that
    are gone. transformers removes the shards.
    """
    sharded = any(folder.glob("model-*-of-*.safetensors"))
    (folder / (SAFE_WEIGHTS_NAME if sharded else SAFE_WEIGHTS_INDEX_NAME)).unlink(missing_ok=True)


def _check_shapes(
    ids: Tensor,
    inputs_embeds: Tensor | None,
    embedding_size: int,
    attention_mask: Tensor | None,
    token_type_ids: Tensor | None,
) -> None:
    """Refuse inputs that would be broadcast or read for something else.

    Raises:
        ValueError: They do not fit together, or the mask is one to be added to scores.
    """
    if inputs_embeds is not None and (inputs_embeds.ndim != 3 or inputs_embeds.shape[2] != embedding_size):
        raise ValueError(
            f"inputs_embeds must have the shape (batch, tokens, {embedding_size}), got {tuple(inputs_embeds.shape)}."
        )
    if ids.ndim != 2:
        raise ValueError(f"input_ids must have the shape (batch, tokens), got {tuple(ids.shape)}.")
    for name, found in (("attention_mask", attention_mask), ("token_type_ids", token_type_ids)):
        if found is not None and found.shape != ids.shape:
            raise ValueError(f"{name} must have the shape {tuple(ids.shape)} of its batch, got {tuple(found.shape)}.")
    # Floats alone: a GPU is waited for, and no tokenizer gives them. A graph cannot ask for values.
    if attention_mask is None or not attention_mask.is_floating_point() or torch.compiler.is_compiling():
        return
    if bool((attention_mask < 0).any()):
        raise ValueError("attention_mask must be 1 for tokens and 0 for padding: it is not added to any scores.")


class DSAForSequenceClassification(DSAPreTrainedModel):
    """A classifier of sentences, or of pairs seen as one label, by `config.sentences_per_example`.

    A pair's features are those of heuristic matching, [p; h; |p - h|; p * h] (Section 4.1, there with h first), or what
    the config says.
    """

    accepts_loss_kwargs = False  # a Trainer's num_items_in_batch counts neither samples nor the loss's other terms

    def __init__(self, config: DSAConfig) -> None:
        config.validate_classifier()
        config.validate_labels()
        config.validate_pair_features()
        super().__init__(config)
        self.num_labels = cast(int, config.num_labels)
        self.loss_type = "ForSequenceClassification"  # transformers' guess from the class name fails for DSAForNLI
        self.dsa = DSAModel(config)
        self.pair_features = PairFeatures(config) if config.sentences_per_example == 2 else None
        sizes = [config.classifier_input_size, *config.classifier_hidden_sizes]
        self.classifier = nn.Sequential(
            *(ClassifierLayer(config, *pair) for pair in itertools.pairwise(sizes)),
            *([HighwayLayer(config, sizes[-1])] if config.classifier_highway else []),
            nn.Linear(sizes[-1], self.num_labels),
        )
        self.post_init()
        self.apply_freezing()

    def resize_token_embeddings(self, *args: Any, **kwargs: Any) -> nn.Embedding:
        """As in transformers."""
        table: nn.Embedding = super().resize_token_embeddings(*args, **kwargs)
        if self.pair_features is not None and self.pair_features.overlap is not None:
            self.pair_features.overlap.resize(table.num_embeddings)
        return table

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
    ) -> DSAClassifierOutput:
        """Classify the examples of a batch.

        Args:
            input_ids: As for [`DSAModel`]. (batch, tokens)
            attention_mask: As for [`DSAModel`]. (batch, tokens)
            token_type_ids: As for [`DSAModel`]. (batch, tokens)
            inputs_embeds: As for [`DSAModel`]. (batch, tokens, d_0)
            labels: Classes, or numbers for a regression. (batch,)
            output_attentions: Also return the attention weights.
            output_hidden_states: Also return all layers' tokens.
            **kwargs: Handed to the loss function.

        Returns:
            [`DSAClassifierOutput`]

        Raises:
            ValueError: As [`DSAModel`], the labels are no classes and the pooling learns from these, or
                `config.sentences_per_example` is not what the model was made with.
        """
        if (self.pair_features is None) != (self.config.sentences_per_example == 1):
            raise ValueError(
                "sentences_per_example was changed after the model was made: give it to from_pretrained, whose head is "
                "then one of so many sentences."
            )
        learns_from_classes = POOLINGS[self.config.pooling].learns_from_classes
        if labels is not None and learns_from_classes:
            labels = self._classes(labels)
        outputs = self.dsa(
            input_ids,
            attention_mask=attention_mask,
            token_type_ids=token_type_ids,
            inputs_embeds=inputs_embeds,
            labels=labels,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
            output_tokens=False,
            return_dict=True,
        )
        self._hint_at_pairs(outputs.second_pooler_output, token_type_ids)
        overlap = self.token_overlap(input_ids, attention_mask, token_type_ids)  # (batch, 5)
        sampled_logits = self.sampled_logits(outputs, overlap)  # (samples, batch, num_labels)
        logits, probabilities_std = _mean_prediction(sampled_logits)
        loss = reconstruction_loss = None
        if labels is not None:
            loss, reconstruction_loss = self._loss(labels, logits, sampled_logits, outputs, kwargs)
        elif self.training and (
            learns_from_classes or (self.config.attention_penalty and outputs.attention_penalty is not None)
        ):
            logger.warning_once(
                f"The loss of pooling '{self.config.pooling}' has terms of its own, which the model adds where it gets "
                "the labels: it got none, as with label_smoothing_factor, so these terms are not trained."
            )
        return DSAClassifierOutput(
            loss=loss,
            logits=logits,
            hidden_states=outputs.hidden_states,
            attentions=outputs.attentions,
            attentions_std=outputs.attentions_std,
            shortcut_attention=outputs.shortcut_attention,
            probabilities_std=probabilities_std,
            reconstruction_loss=reconstruction_loss,
            kl=outputs.kl,
            kl_weight=outputs.kl_weight,
            attention_penalty=outputs.attention_penalty,
        )

    def _classes(self, labels: Tensor) -> Tensor:
        """Labels as classes, also where each stands in a row of its own, as transformers takes them. (batch,)"""
        if labels.is_floating_point():
            raise ValueError(
                f"Pooling '{self.config.pooling}' learns from one class an example: labels must be whole numbers, got "
                f"{labels.dtype}."
            )
        return labels.flatten()

    def _loss(
        self, labels: Tensor, logits: Tensor, sampled_logits: Tensor, outputs: DSAModelOutput, options: dict[str, Any]
    ) -> tuple[Tensor, Tensor | None]:
        """The loss and, where it may have other terms, its first.

        (batch,), (batch, num_labels), (samples, batch, num_labels) -> () twice
        """
        scored = logits
        if outputs.kl is not None:  # E_q[log p(y|z)], and not the logarithm of a mean
            labels, scored = labels.repeat(sampled_logits.shape[0]), sampled_logits.flatten(0, 1)
        loss: Tensor = self.loss_function(labels=labels, pooled_logits=scored, config=self.config, **options)
        own_terms = (outputs.kl, outputs.attention_penalty, outputs.choice_log_probability)
        reconstruction_loss = loss if any(term is not None for term in own_terms) else None
        if outputs.kl is not None:
            loss = loss + cast(Tensor, outputs.kl_weight) * outputs.kl.mean()
        if outputs.attention_penalty is not None:
            loss = loss + self.config.attention_penalty * outputs.attention_penalty.mean()
        if outputs.choice_log_probability is not None:
            choice = (outputs.choice_log_probability, cast(Tensor, outputs.chosen_share))
            loss = loss + policy_loss(logits, labels, *choice, self.config.choice_penalty)
        return loss, reconstruction_loss

    def _hint_at_pairs(self, second: Tensor | None, types: Tensor | None) -> None:
        """Say once that an example has a text too few or too many: the answer would sound as sure as ever.

        Args:
            second: Vectors of the second texts, 0 where none of a text is read. (batch, width)
            types: One whose tokens the caller has masked on purpose was given. (batch, tokens)
        """
        if torch.compiler.is_compiling():
            return
        if second is None:
            if types is None or types.is_meta or (self.training and types.device.type != "cpu"):
                return  # a GPU would be waited for: an evaluation tells
            if types.any():
                logger.warning_once(
                    "This model reads single texts, and an example is a pair, which is read as one text: for a model "
                    "of pairs give from_pretrained sentences_per_example=2."
                )
            return
        if second.is_meta or self.training:
            return
        is_given = second.any(-1) if types is None else second.any(-1) | types.any(-1)
        if not is_given.all():
            logger.warning_once(
                "This model reads pairs, and an example has no second text: its classes mean little. Give both texts, "
                'such as {"text": ..., "text_pair": ...} or "first [SEP] second".'
            )

    def token_overlap(
        self, input_ids: Tensor | None, attention_mask: Tensor | None, token_type_ids: Tensor | None
    ) -> Tensor | None:
        """What the tokens of each pair's texts have in common, of those that the model reads without token dropout.

        Returns:
            (batch, 5), or None where nothing in `pair_features` compares tokens.

        Raises:
            ValueError: There are no tokens, but only word vectors, or tokens were added without their counts.
        """
        overlap = None if self.pair_features is None else self.pair_features.overlap
        if overlap is None:
            return None
        if input_ids is None:
            raise ValueError("An overlap in pair_features compares tokens: give input_ids, and not inputs_embeds.")
        masks = sentence_masks(self.config, input_ids, attention_mask, token_type_ids)  # (batch, 2, tokens)
        table = cast(nn.Embedding, self.get_input_embeddings())
        words = table.__call__  # no module, which accelerate's hooks would move to a device
        found: Tensor = overlap(input_ids, *masks.unbind(1), words, table.weight.shape[0])
        return found

    def sampled_logits(self, outputs: DSAModelOutput, overlap: Tensor | None) -> Tensor:
        """Scores of the classes under each sample of the sentences' vectors.

        Args:
            outputs: Of the encoder.
            overlap: What the texts of each pair have in common, as of `token_overlap`. (batch, 5)

        Returns:
            (samples, batch, num_labels)
        """
        vectors = outputs.vector_samples  # (samples, batch, 1 or 2, width)
        if vectors is None:
            pair = (outputs.pooler_output, outputs.second_pooler_output)
            vectors = torch.stack([vector for vector in pair if vector is not None], dim=1)[None]
        features = vectors[:, :, 0].flatten(0, 1)  # (samples * batch, width)
        if self.pair_features is not None:
            overlap = None if overlap is None else overlap.repeat(vectors.shape[0], 1)  # (samples * batch, 5)
            features = self.pair_features(features, vectors[:, :, 1].flatten(0, 1), overlap)
        if not self.config.classifier_hidden_sizes:
            features = dropout(features, self.config.classifier_dropout, self.training)
        logits: Tensor = self.classifier(features)  # (samples * batch, num_labels)
        by_sample: Tensor = logits.unflatten(0, (vectors.shape[0], -1))  # (samples, batch, num_labels)
        return by_sample


def _mean_prediction(sampled_logits: Tensor) -> tuple[Tensor, Tensor | None]:
    """The logarithm of the mean probabilities over samples and, of several, their spread; one keeps its logits.

    (samples, batch, num_labels) -> (batch, num_labels) twice
    """
    samples = sampled_logits.shape[0]
    if samples == 1:
        return sampled_logits[0], None
    log_probabilities = sampled_logits.log_softmax(-1)
    return log_probabilities.logsumexp(0) - math.log(samples), log_probabilities.exp().std(0)


class DSAForNLI(DSAForSequenceClassification):
    """Natural language inference: the relation of a premise and a hypothesis."""

    def __init__(self, config: DSAConfig) -> None:
        if config.sentences_per_example != 2:
            raise ValueError(f"DSAForNLI reads pairs: set sentences_per_example=2, got {config.sentences_per_example}.")
        super().__init__(config)


__all__ = [
    "DSAClassifierOutput",
    "DSAForNLI",
    "DSAForSequenceClassification",
    "DSAModel",
    "DSAModelOutput",
    "DSAPreTrainedModel",
]
