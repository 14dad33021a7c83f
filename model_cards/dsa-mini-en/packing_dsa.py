"""Packing: the real tokens of a padded batch as one list, each distinct sentence once.

Everything between the word table and the sentence vectors runs on packed tokens, so padding costs nothing and cannot
change a result, and a sentence that stands in many pairs is encoded once.

torch.compile and torch.export need shapes that do not depend on the tokens. For them padding is packed as well, as one
more sentence behind all others, and copies of a sentence stay: the results are the same, the cost is that of the padded
batch.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from .config_fields_dsa import DSAConfigFields

_RECTANGLE_TOKENS = (1 << 16) - 1  # CUDA's longest batch, too; of one rectangle, a single longer sentence apart


@dataclass(frozen=True)
class _Rectangles:
    """Sentences of similar lengths in rectangles, and the way back.

    Attributes:
        groups: As `Packing.rectangles` returns them.
        inside: For each group which of its flattened positions are inside their sentence, sentence by sentence.
            (tokens of the group,)
        order: Which of these, all groups together, each packed token is. (N,)
    """

    groups: list[tuple[Tensor, Tensor]]
    inside: list[Tensor]
    order: Tensor


@dataclass(frozen=True)
class Packing:
    """Which packed token belongs to which sentence, and which sentence to which example of the batch.

    A batch of B examples holds B * sentences_per_example sentences; U of them are distinct, with N tokens in all.

    Attributes:
        lengths: Tokens of each distinct sentence, in packed order. (U,)
        offsets: Index of each distinct sentence's first token. (U,)
        sentence_of_token: The distinct sentence of each packed token, ascending. (N,)
        sentence_of_example: Which distinct sentence each sentence of an example is. (B, sentences_per_example)
        flat_index: Index in the flattened (B * tokens) batch of each real token, copies of a sentence included.
        segment_of_token: Which of the batch's B * sentences_per_example sentences each of these tokens belongs to.
        packed_index: Index of the packed token that each of these tokens is.
        batch_shape: (B, tokens).
        has_padding_segment: Whether the last sentence is none, but collects padding and separators, so that shapes
            depend on the batch's shape alone.
    """

    lengths: Tensor
    offsets: Tensor
    sentence_of_token: Tensor
    sentence_of_example: Tensor
    flat_index: Tensor
    segment_of_token: Tensor
    packed_index: Tensor
    batch_shape: tuple[int, int]
    has_padding_segment: bool = False

    @property
    def positions(self) -> Tensor:
        """Position of each packed token in its sentence, from 0. (N,)"""
        return torch.arange(self.sentence_of_token.shape[0], device=self.offsets.device) - self.offsets.index_select(
            0, self.sentence_of_token
        )

    def split_by_class(self, classes: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, "Packing"]:
        """Tell copies of a sentence apart by the class of the example in which they stand.

        Args:
            classes: Class of each example, from 0. (B,)
            count: Number of classes.

        Returns:
            The class of each sentence of the new packing, (V,); which sentence of this one it is, (V,); for each of its
            tokens the index of that token in this packing, (M,); and the new packing.

        Raises:
            ValueError: A class is below 0, as that of an example without a class, or there is no such one.
        """
        if self.has_padding_segment:  # copies are apart already
            new = torch.arange(self.lengths.shape[0], device=classes.device)
            indices = torch.arange(self.sentence_of_token.shape[0], device=classes.device)
            of_segments = classes.repeat_interleave(self.sentence_of_example.shape[1])
            return torch.cat([of_segments, of_segments.new_zeros(1)]), new, indices, self
        known = classes.clamp(0, count - 1)[:, None]  # any other could point at no sentence before it is refused
        keys, new_of_example = torch.unique(self.sentence_of_example * count + known, return_inverse=True)
        sentences = keys.div(count, rounding_mode="floor")  # (V,)
        lengths = self.lengths.index_select(0, sentences)
        # A GPU is waited for once.
        lowest, highest, tokens = torch.stack([classes.min(), classes.max(), lengths.sum()]).tolist()
        if lowest < 0:
            raise ValueError(
                f"The pooling learns from the class of each example, but a label is {lowest}: leave examples without a "
                "class out."
            )
        if highest >= count:  # it would be the first class of the next sentence
            raise ValueError(f"A label is {highest}, but the model has the classes 0 to {count - 1}.")
        offsets = lengths.cumsum(0) - lengths
        sentence_of_token = torch.repeat_interleave(lengths, output_size=tokens)  # (M,)
        shift = self.offsets.index_select(0, sentences) - offsets
        indices = torch.arange(sentence_of_token.shape[0], device=shift.device) + shift.index_select(
            0, sentence_of_token
        )
        old_of_token = self.sentence_of_token.index_select(0, self.packed_index)
        new_of_token = new_of_example.flatten().index_select(0, self.segment_of_token)
        packing = Packing(
            lengths=lengths,
            offsets=offsets,
            sentence_of_token=sentence_of_token,
            sentence_of_example=new_of_example,
            flat_index=self.flat_index,
            segment_of_token=self.segment_of_token,
            packed_index=self.packed_index - self.offsets[old_of_token] + offsets[new_of_token],
            batch_shape=self.batch_shape,
        )
        return keys % count, sentences, indices, packing

    def gapped_indices(self, gap: int, block: slice = slice(None)) -> tuple[Tensor, int]:
        """Indices of the tokens when `gap` zeros stand between neighbouring sentences, and the length of the whole.

        A window that reaches at most `gap` to each side then never sees two sentences.

        Args:
            gap: Zeros between two sentences.
            block: Only these tokens, one or more; their indices then start from 0.
        """
        sentences = self.sentence_of_token[block]
        indices = torch.arange(sentences.shape[0], device=sentences.device) + gap * sentences  # (N,)
        if block.stop is None:
            return indices, sentences.shape[0] + gap * (self.lengths.shape[0] - 1)
        indices = indices - indices[0]
        return indices, int(indices[-1]) + 1

    def rectangles(self) -> list[tuple[Tensor, Tensor]]:
        """The sentences that have tokens, in groups of similar lengths, for what needs a rectangle.

        Returns:
            For each group the indices of the packed tokens, (sentences, tokens), and which of them are inside their
            sentence, (sentences, tokens); outside stands the index of some token of the batch.
        """
        if self.has_padding_segment:
            position = torch.arange(self.batch_shape[1], device=self.lengths.device)
            lengths = self.lengths[:-1].clamp(min=1)  # no sentence is empty: a softmax over nothing is no number
            indices = self.offsets[:-1, None] + position  # (sentences, tokens)
            return [(indices.clamp(max=self.sentence_of_token.shape[0] - 1), position < lengths[:, None])]
        return self._rectangles.groups

    @cached_property
    def _rectangles(self) -> _Rectangles:
        """Made once for all layers: a GPU is waited for."""
        lengths, order = self.lengths.sort(descending=True)
        sizes = lengths.tolist()
        # The tokens of the longest sentence, then those of the next.
        row = torch.repeat_interleave(lengths, output_size=self.sentence_of_token.shape[0])  # (N,)
        position_in_row = torch.arange(row.shape[0], device=row.device) - (lengths.cumsum(0) - lengths)[row]  # (N,)
        groups, inside_groups, start, first = [], [], 0, 0
        while start < len(sizes) and sizes[start]:
            longest = sizes[start]
            # A third of a rectangle may be empty at the end of a sentence: more of them would be smaller ones.
            shortest = max(1, min(longest * 2 // 3, longest - 4))
            end = start + 1
            while end < len(sizes) and sizes[end] >= shortest and (end + 1 - start) * longest <= _RECTANGLE_TOKENS:
                end += 1
            position = torch.arange(longest, device=lengths.device)
            inside = position < lengths[start:end, None]  # (sentences, tokens)
            indices = self.offsets[order[start:end], None] + position  # (sentences, tokens)
            groups.append((indices.clamp(max=self.sentence_of_token.shape[0] - 1), inside))
            last = first + sum(sizes[start:end])
            inside_groups.append((row[first:last] - start) * longest + position_in_row[first:last])
            start, first = end, last
        return _Rectangles(groups, inside_groups, (self.offsets[order][row] + position_in_row).argsort())

    def pack_rectangles(self, rectangles: list[tuple[Tensor, Tensor]], values: list[Tensor]) -> Tensor:
        """Put the tokens of `rectangles` back in packed order. Each (sentences, tokens, width) -> (N, width)

        Where all sentences are empty there are no rectangles; then `values` holds one tensor (0, width).
        """
        if not rectangles:
            return values[0]
        if self.has_padding_segment:
            sentences, longest = rectangles[0][0].shape
            # The rest gets some finite values, which nothing reads.
            indices = self.sentence_of_token.clamp(max=sentences - 1) * longest + self.positions.clamp(max=longest - 1)
            return values[0].flatten(0, 1).index_select(0, indices)
        inside = self._rectangles.inside
        found = [value.flatten(0, 1).index_select(0, index) for value, index in zip(values, inside, strict=True)]
        return torch.cat(found).index_select(0, self._rectangles.order)

    def unpack_tokens(self, packed: Tensor) -> Tensor:
        """Lay packed tokens out as in the batch, with 0 everywhere else. (N, width) -> (B, tokens, width)"""
        batch, tokens = self.batch_shape
        flat = packed.new_zeros(batch * tokens, packed.shape[-1])
        values = packed.index_select(0, self.packed_index)
        if self.has_padding_segment:
            values = values.masked_fill((self.segment_of_token == self.lengths.shape[0] - 1)[:, None], 0.0)
        flat = flat.index_copy_(0, self.flat_index, values)
        return flat.view(batch, tokens, packed.shape[-1])

    def unpack_sentences(self, packed: Tensor) -> Tensor:
        """Give each sentence of the batch its vector. (U, width) -> (B, sentences_per_example, width)"""
        return F.embedding(self.sentence_of_example, packed)

    def softmax(self, scores: Tensor) -> Tensor:
        """Softmax over the tokens of each sentence. (heads, N) -> (heads, N)"""
        heads, sentences = scores.shape[0], self.lengths.shape[0]
        index = self.sentence_of_token.expand_as(scores)  # (heads, N)
        # The shift only guards against overflow and cancels, so no gradient needs to pass through it.
        highest = scores.new_full((heads, sentences), -torch.inf)
        highest = highest.scatter_reduce(1, index, scores.detach(), "amax")  # (heads, U)
        weights = (scores - highest.gather(1, index)).exp()  # (heads, N)
        totals = weights.new_zeros(heads, sentences).scatter_add(1, index, weights)  # (heads, U)
        return weights / totals.gather(1, index)

    def weighted_sum(self, weights: Tensor, values: Tensor) -> Tensor:
        """Sum the tokens of each sentence under their weights; an empty sentence gives 0.

        (heads, N), (heads, N, width) or, the same for all heads, (N, width) -> (heads, U, width)
        """
        heads, tokens = weights.shape
        if self.has_padding_segment:
            total = values.new_zeros(heads, self.lengths.shape[0], values.shape[-1])
            return total.index_add(1, self.sentence_of_token, weights[:, :, None] * values)
        indices = torch.arange(heads * tokens, device=values.device)
        starts = torch.arange(heads, device=values.device)[:, None] * tokens + self.offsets  # (heads, U)
        total = F.embedding_bag(
            indices if values.ndim == 3 else indices % tokens if tokens else indices,
            values.reshape(-1, values.shape[-1]),
            starts.flatten(),
            mode="sum",
            per_sample_weights=weights.flatten(),
        )  # (heads * U, width)
        return total.view(heads, self.lengths.shape[0], values.shape[-1])


def whole_sentences(
    config: DSAConfigFields, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None
) -> Tensor:
    """Which tokens each sentence of an example has, whether a model reads all of them or not.

    A pair's second sentence is what `token_type_ids` marks with 1 or, where it has no such mark, what follows its first
    separator. Separators and padding belong to no sentence.

    (B, tokens) each -> (B, 1 or 2, tokens), bool
    """
    if attention_mask is not None:
        is_token = attention_mask.bool()
    elif config.pad_token_id is not None:
        is_token = input_ids != config.pad_token_id
    else:
        is_token = torch.ones_like(input_ids, dtype=torch.bool)
    is_second = torch.zeros_like(is_token)
    if config.sep_token_id is not None:
        is_separator = (input_ids == config.sep_token_id) & is_token
        is_second = is_separator.cumsum(1) > 0
        is_token = is_token & ~is_separator
    if config.sentences_per_example == 1:
        return is_token[:, None]
    if token_type_ids is not None:
        marked = (token_type_ids > 0) & is_token
        is_second = marked | (is_second & ~marked.any(1, keepdim=True))  # onnxruntime has no `where` of booleans
    return torch.stack([is_token & ~is_second, is_token & is_second], dim=1)


def sentence_masks(
    config: DSAConfigFields, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None
) -> Tensor:
    """Which tokens of each sentence of an example a model reads, without token dropout.

    (B, tokens) each -> (B, 1 or 2, tokens), bool
    """
    masks = whole_sentences(config, input_ids, attention_mask, token_type_ids)
    limit = config.max_sentence_tokens
    if limit is None or (not torch.compiler.is_compiling() and limit >= masks.shape[2]):
        return masks
    return masks & (masks.cumsum(2) <= limit)


def pack(input_ids: Tensor | None, masks: Tensor, deduplicate: bool) -> tuple[Tensor, Packing]:
    """Pack the tokens of a batch that are read, sentence by sentence, in which they keep their order.

    A GPU is waited for where a shape depends on the tokens: once, and twice more where copies are looked for.

    Args:
        input_ids: Token ids, (B, tokens); needed only to find equal sentences.
        masks: Which tokens are read of each sentence of an example, (B, 1 or 2, tokens).
        deduplicate: Keep the first of several equal sentences only.

    Returns:
        The index in the flattened batch of each packed token, (N,), and the [`Packing`].

    Raises:
        ValueError: The model is traced.
    """
    if torch.compiler.is_compiling():
        return _pack_static_shapes(masks)
    if torch.jit.is_tracing():  # type: ignore[attr-defined]  # which torch documents, but does not export
        raise ValueError(
            "torch.jit.trace would keep the lengths of its example's sentences for all others: use torch.compile, "
            "torch.export, or torch.onnx.export with dynamo=True."
        )
    batch, per_example, width = masks.shape
    sentence, column = masks.flatten(0, 1).nonzero().unbind(1)  # (tokens,)
    sentence = sentence.contiguous()
    indices = sentence.div(per_example, rounding_mode="floor") * width + column  # in the flattened batch
    lengths = masks.sum(2).flatten()  # (B * per_example,)
    starts = lengths.cumsum(0) - lengths
    position = torch.arange(sentence.shape[0], device=sentence.device) - starts.index_select(0, sentence)

    number = torch.arange(lengths.shape[0], device=indices.device)
    packed_indices, packed_sentence = indices, sentence
    if deduplicate and input_ids is not None and lengths.shape[0] > 1:
        ids = input_ids.flatten().index_select(0, indices)
        original = _first_equal(ids, sentence, position, lengths, starts)  # (count,)
        kept = original == number
        number = (kept.cumsum(0) - 1).index_select(0, original)  # (count,)
        kept_tokens = kept.index_select(0, sentence).nonzero().squeeze(1)
        packed_indices = indices.index_select(0, kept_tokens)
        packed_sentence = number.index_select(0, sentence.index_select(0, kept_tokens))
        lengths = lengths[kept]
    offsets = lengths.cumsum(0) - lengths
    packing = Packing(
        lengths=lengths,
        offsets=offsets,
        sentence_of_token=packed_sentence,
        sentence_of_example=number.view(batch, per_example),
        flat_index=indices,
        segment_of_token=sentence,
        packed_index=offsets.index_select(0, number).index_select(0, sentence) + position,
        batch_shape=(batch, width),
    )
    return packed_indices, packing


def _pack_static_shapes(masks: Tensor) -> tuple[Tensor, Packing]:
    """`pack` with shapes that depend on the batch's shape alone. (B * tokens,) and the [`Packing`]"""
    batch, sentences, width = masks.shape
    rest = ~masks.any(1)  # (B, tokens)
    lengths = torch.cat([masks.sum(2).flatten(), rest.sum()[None]])  # (U,)
    offsets = lengths.cumsum(0) - lengths
    segments = torch.arange(batch * sentences, device=masks.device).view(batch, sentences)
    segment = torch.where(rest, batch * sentences, (masks * segments[:, :, None]).sum(1)).flatten()  # (B * tokens,)
    position = torch.where(rest, rest.flatten().cumsum(0).view_as(rest), (masks.cumsum(2) * masks).sum(1)) - 1
    packed_index = offsets[segment] + position.flatten()  # (B * tokens,)
    number = torch.arange(batch * width, device=masks.device)
    indices = torch.zeros_like(number).scatter(0, packed_index, number)  # of each packed token
    if torch.onnx.is_in_onnx_export():  # ONNX has shapes that depend on the tokens: the rest is left out
        count = offsets[-1].clamp(min=1).item()  # of the rest, one where there are no tokens
        torch._check(count >= 1)
        torch._check(count <= indices.shape[0])
        indices = indices[:count]
        lengths = torch.cat([lengths[:-1], (count - offsets[-1])[None]])
        packed_index = packed_index.clamp(max=count - 1)
    packing = Packing(
        lengths=lengths,
        offsets=offsets,
        sentence_of_token=segment[indices],
        sentence_of_example=segments,
        flat_index=number,
        segment_of_token=segment,
        packed_index=packed_index,
        batch_shape=(batch, width),
        has_padding_segment=True,
    )
    return indices, packing


def _first_equal(ids: Tensor, sentence: Tensor, position: Tensor, lengths: Tensor, starts: Tensor) -> Tensor:
    """The first sentence that is equal to each sentence.

    Found by a hash of tokens and positions, which costs as much as the tokens and not as the padding; every find is
    checked token by token, so that a collision can only leave a copy unfound.

    (tokens,), (tokens,), (tokens,), (sentences,), (sentences,) -> (sentences,)
    """
    numbers = torch.arange(lengths.shape[0], device=lengths.device)
    hashes = lengths.scatter_add(0, sentence, _hash_tokens(ids, position))  # (sentences,)
    ordered, order = hashes.sort(stable=True)  # copies follow the first of them
    begins = torch.cat([numbers[:1] == 0, ordered[1:] != ordered[:-1]])
    first = torch.where(begins, numbers, 0).cummax(0).values
    found = torch.empty_like(order).scatter(0, order, order[first])  # (sentences,)
    twins = starts[found].index_select(0, sentence) + position  # (tokens,) past the end where the lengths differ
    differs = ids.index_select(0, twins.clamp(max=max(ids.shape[0] - 1, 0))) != ids
    differences = (lengths != lengths[found]).long().scatter_add_(0, sentence, differs.long())  # (sentences,)
    return torch.where(differences > 0, numbers, found)


def _hash_tokens(ids: Tensor, position: Tensor) -> Tensor:
    """A number for each token at its position, (tokens,), (tokens,) -> (tokens,); int64 wraps around."""
    mixed = (ids.long() * 0x2545F4914F6CDD1D).add_(position, alpha=0x5851F42D4C957F2D)
    mixed = mixed.bitwise_xor_(mixed >> 32).mul_(0x369DEA0F31A53F85)
    return mixed.bitwise_xor_(mixed >> 29)
