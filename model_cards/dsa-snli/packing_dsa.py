"""Packing: the real words of a padded batch as one list of rows, each distinct sentence once.

Everything between the word table and the sentence vectors runs on packed rows, so padding costs nothing and cannot
change a result, and a sentence that stands in many pairs is encoded once.

torch.compile and torch.export need shapes that do not depend on the words. For them padding is packed as well, as one
more sentence behind all others, and copies of a sentence stay: the results are the same, the cost is that of the padded
batch.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

_RECTANGLE_TOKENS = (1 << 16) - 1  # CUDA's longest batch, too; of one rectangle, a single longer sentence apart


@dataclass(frozen=True)
class Packing:
    """Which packed row belongs to which sentence, and which sentence to which row of the batch.

    A batch of B rows holds B * sentences_per_example sentences; U of them are distinct, with N words in all.

    Attributes:
        lengths: Words of each distinct sentence, in packed order. (U,)
        offsets: Index of each distinct sentence's first word. (U,)
        sentence_of_token: The distinct sentence of each packed word, ascending. (N,)
        sentence_of_example: The distinct sentence at each place of the batch. (B, sentences_per_example)
        flat_index: Index in the flattened (B * words) batch of each real word, copies of a sentence included.
        segment_of_token: Which of the batch's B * sentences_per_example sentences each of these words belongs to.
        packed_index: The packed word at each of these places.
        batch_shape: (B, words).
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
        """Place of each packed word in its sentence, from 0. (N,)"""
        return torch.arange(self.sentence_of_token.shape[0], device=self.offsets.device) - self.offsets.index_select(
            0, self.sentence_of_token
        )

    def split_by_class(self, classes: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor, "Packing"]:
        """Tell copies of a sentence apart by the class of the row in which they stand.

        Args:
            classes: Class of each row, from 0. (B,)
            count: Number of classes.

        Returns:
            The class of each sentence of the new packing, (V,); which sentence of this one it is, (V,); for each of its
            words the word of this packing, (M,); and the new packing.
        """
        if self.has_padding_segment:  # copies are apart already
            new = torch.arange(self.lengths.shape[0], device=classes.device)
            words = torch.arange(self.sentence_of_token.shape[0], device=classes.device)
            of_slots = classes.repeat_interleave(self.sentence_of_example.shape[1])
            return torch.cat([of_slots, of_slots.new_zeros(1)]), new, words, self
        keys, new_of_row = torch.unique(self.sentence_of_example * count + classes[:, None], return_inverse=True)
        sentences = keys.div(count, rounding_mode="floor")  # (V,)
        lengths = self.lengths.index_select(0, sentences)
        offsets = lengths.cumsum(0) - lengths
        sentence_of_token = torch.repeat_interleave(lengths)  # (M,)
        shift = self.offsets.index_select(0, sentences) - offsets
        words = torch.arange(sentence_of_token.shape[0], device=shift.device) + shift.index_select(0, sentence_of_token)
        old_of_place = self.sentence_of_token.index_select(0, self.packed_index)
        new_of_place = new_of_row.flatten().index_select(0, self.segment_of_token)
        packing = Packing(
            lengths=lengths,
            offsets=offsets,
            sentence_of_token=sentence_of_token,
            sentence_of_example=new_of_row,
            flat_index=self.flat_index,
            segment_of_token=self.segment_of_token,
            packed_index=self.packed_index - self.offsets[old_of_place] + offsets[new_of_place],
            batch_shape=self.batch_shape,
        )
        return keys % count, sentences, words, packing

    def gapped_indices(self, gap: int, block: slice = slice(None)) -> tuple[Tensor, int]:
        """Rows for the words when `gap` empty rows stand between neighbouring sentences, and the number of rows.

        A window that reaches at most `gap` rows to each side then never sees two sentences.

        Args:
            gap: Empty rows between two sentences.
            block: Only these words, one or more; their rows then start from 0.
        """
        words = self.sentence_of_token[block]
        rows = torch.arange(words.shape[0], device=words.device) + gap * words  # (N,)
        if block.stop is None:
            return rows, words.shape[0] + gap * (self.lengths.shape[0] - 1)
        rows = rows - rows[0]
        return rows, int(rows[-1]) + 1

    def rectangles(self) -> list[tuple[Tensor, Tensor]]:
        """The sentences that have words, in groups of similar lengths, for what needs a rectangle.

        Returns:
            For each group the packed words, (sentences, words), and which of them are inside their sentence,
            (sentences, words); outside stands some word of the batch.
        """
        if self.has_padding_segment:
            place = torch.arange(self.batch_shape[1], device=self.lengths.device)
            lengths = self.lengths[:-1].clamp(min=1)  # no sentence is empty: a softmax over nothing is no number
            words = self.offsets[:-1, None] + place  # (sentences, words)
            return [(words.clamp(max=self.sentence_of_token.shape[0] - 1), place < lengths[:, None])]
        lengths, order = self.lengths.sort(descending=True)
        sizes = lengths.tolist()
        groups, start = [], 0
        while start < len(sizes) and sizes[start]:
            longest = sizes[start]
            # A third of a rectangle may be empty at the end of a sentence: more of them would be smaller ones.
            shortest = max(1, min(longest * 2 // 3, longest - 4))
            end = start + 1
            while end < len(sizes) and sizes[end] >= shortest and (end + 1 - start) * longest <= _RECTANGLE_TOKENS:
                end += 1
            place = torch.arange(longest, device=lengths.device)
            inside = place < lengths[start:end, None]  # (sentences, words)
            words = self.offsets[order[start:end], None] + place  # (sentences, words)
            groups.append((words.clamp(max=self.sentence_of_token.shape[0] - 1), inside))
            start = end
        return groups

    def rows_of_rectangles(self, rectangles: list[tuple[Tensor, Tensor]], values: list[Tensor]) -> Tensor:
        """Put the words of `rectangles` back in packed order. Each (sentences, words, width) -> (N, width)

        Where all sentences are empty there are no rectangles; then `values` holds one tensor (0, width).
        """
        if not rectangles:
            return values[0]
        if self.has_padding_segment:
            sentences, longest = rectangles[0][0].shape
            # The rest gets some finite values, which nothing reads.
            rows = self.sentence_of_token.clamp(max=sentences - 1) * longest + self.positions.clamp(max=longest - 1)
            return values[0].flatten(0, 1).index_select(0, rows)
        rows = torch.cat([words[inside] for words, inside in rectangles]).argsort()
        found = [value[inside] for value, (_, inside) in zip(values, rectangles, strict=True)]
        return torch.cat(found).index_select(0, rows)

    def unpack_tokens(self, packed: Tensor) -> Tensor:
        """Put the rows of packed words (N, width) back in their places; all other places are 0. (B, words, width)"""
        batch, words = self.batch_shape
        flat = packed.new_zeros(batch * words, packed.shape[-1])
        rows = packed.index_select(0, self.packed_index)
        if self.has_padding_segment:
            rows = rows.masked_fill((self.segment_of_token == self.lengths.shape[0] - 1)[:, None], 0.0)
        flat = flat.index_copy_(0, self.flat_index, rows)
        return flat.view(batch, words, packed.shape[-1])

    def unpack_sentences(self, packed: Tensor) -> Tensor:
        """Give each place of the batch its sentence's vector. (U, width) -> (B, sentences_per_example, width)"""
        return F.embedding(self.sentence_of_example, packed)

    def softmax(self, scores: Tensor) -> Tensor:
        """Softmax over the words of each sentence. (heads, N) -> (heads, N)"""
        heads, sentences = scores.shape[0], self.lengths.shape[0]
        index = self.sentence_of_token.expand_as(scores)  # (heads, N)
        # The shift only guards against overflow and cancels, so no gradient needs to pass through it.
        highest = scores.new_full((heads, sentences), -torch.inf)
        highest = highest.scatter_reduce(1, index, scores.detach(), "amax")  # (heads, U)
        weights = (scores - highest.gather(1, index)).exp()  # (heads, N)
        totals = weights.new_zeros(heads, sentences).scatter_add(1, index, weights)  # (heads, U)
        return weights / totals.gather(1, index)

    def weighted_sum(self, weights: Tensor, values: Tensor) -> Tensor:
        """Sum the words of each sentence under their weights; an empty sentence gives 0.

        (heads, N), (heads, N, width) or, the same for all heads, (N, width) -> (heads, U, width)
        """
        heads, words = weights.shape
        if self.has_padding_segment:
            total = values.new_zeros(heads, self.lengths.shape[0], values.shape[-1])
            return total.index_add(1, self.sentence_of_token, weights[:, :, None] * values)
        rows = torch.arange(heads * words, device=values.device)
        starts = torch.arange(heads, device=values.device)[:, None] * words + self.offsets  # (heads, U)
        total = F.embedding_bag(
            rows if values.ndim == 3 else rows % words if words else rows,
            values.reshape(-1, values.shape[-1]),
            starts.flatten(),
            mode="sum",
            per_sample_weights=weights.flatten(),
        )  # (heads * U, width)
        return total.view(heads, self.lengths.shape[0], values.shape[-1])


def split_pairs(
    input_ids: Tensor,
    attention_mask: Tensor | None,
    token_type_ids: Tensor | None,
    pad_token_id: int | None,
    sep_token_id: int | None,
) -> tuple[Tensor, Tensor]:
    """Find the real words of a batch and those that belong to the second sentence of their row.

    A row's second sentence is what `token_type_ids` marks with 1 or, where a row has no such mark, what follows its
    first separator. Separators and padding belong to no sentence.

    Returns:
        `is_token` (B, words) and `is_second` (B, words), both bool.
    """
    if attention_mask is not None:
        is_token = attention_mask.bool()
    elif pad_token_id is not None:
        is_token = input_ids != pad_token_id
    else:
        is_token = torch.ones_like(input_ids, dtype=torch.bool)
    is_second = torch.zeros_like(is_token)
    if sep_token_id is not None:
        is_separator = (input_ids == sep_token_id) & is_token
        is_second = is_separator.cumsum(1) > 0
        is_token = is_token & ~is_separator
    if token_type_ids is not None:
        marked = (token_type_ids > 0) & is_token
        is_second = marked | (is_second & ~marked.any(1, keepdim=True))  # onnxruntime has no `where` of booleans
    return is_token, is_second


def pack(
    input_ids: Tensor | None,
    is_token: Tensor,
    is_second: Tensor | None,
    deduplicate: bool,
    max_sentence_tokens: int | None = None,
    left_out: Tensor | None = None,
) -> tuple[Tensor, Packing]:
    """Pack the real words of a batch.

    Args:
        input_ids: Token ids, (B, words); needed only to find equal sentences.
        is_token: Real words, (B, words).
        is_second: Words of the second sentence of a row, (B, words), or None where a row is one sentence.
        deduplicate: Keep the first of several equal sentences only.
        max_sentence_tokens: Leave out what stands behind so many words of a sentence.
        left_out: Then leave out these words too, (B, words).

    Returns:
        The place in the flattened batch of each packed word, (N,), and the [`Packing`].
    """
    if torch.compiler.is_compiling():
        return _pack_static_shapes(is_token, is_second, max_sentence_tokens, left_out)
    batch, width = is_token.shape
    per_row = 1 if is_second is None else 2
    places = is_token.flatten().nonzero().squeeze(1)  # (all words,)
    sentence = places.div(width, rounding_mode="floor") * per_row
    if is_second is not None:
        sentence = sentence + is_second.flatten()[places]
        # Stable: words keep their order inside a sentence even where the two sentences of a row are interleaved.
        sentence, order = sentence.sort(stable=True)
        places = places[order]
    count = batch * per_row
    if max_sentence_tokens is not None:
        read = _lay_out(sentence, count)[2] < max_sentence_tokens
        places, sentence = places[read], sentence[read]
    if left_out is not None:
        kept = ~left_out.flatten()[places]
        places, sentence = places[kept], sentence[kept]
    lengths, starts, position = _lay_out(sentence, count)

    number = torch.arange(count, device=places.device)
    packed_places, packed_sentence = places, sentence
    if deduplicate and input_ids is not None and count > 1:
        original = _first_equal(input_ids.flatten()[places], sentence, position, lengths, starts)  # (count,)
        kept = original == number
        number = (kept.cumsum(0) - 1)[original]  # (count,)
        kept_tokens = kept[sentence]
        packed_places, packed_sentence = places[kept_tokens], number[sentence[kept_tokens]]
        lengths = lengths[kept]
    offsets = lengths.cumsum(0) - lengths
    packing = Packing(
        lengths=lengths,
        offsets=offsets,
        sentence_of_token=packed_sentence,
        sentence_of_example=number.view(batch, per_row),
        flat_index=places,
        segment_of_token=sentence,
        packed_index=offsets[number[sentence]] + position,
        batch_shape=(batch, width),
    )
    return packed_places, packing


def _pack_static_shapes(
    is_token: Tensor, is_second: Tensor | None, max_sentence_tokens: int | None, left_out: Tensor | None
) -> tuple[Tensor, Packing]:
    """`pack` with shapes that depend on the batch's shape alone. (B * words,) and the [`Packing`]"""
    batch, width = is_token.shape
    parts = [is_token] if is_second is None else [is_token & ~is_second, is_token & is_second]
    belongs = torch.stack(parts, dim=1)  # (B, sentences_per_example, words)
    if max_sentence_tokens is not None:
        belongs = belongs & (belongs.cumsum(2) <= max_sentence_tokens)
    if left_out is not None:
        belongs = belongs & ~left_out[:, None]
    rest = ~belongs.any(1)  # (B, words)
    lengths = torch.cat([belongs.sum(2).flatten(), rest.sum()[None]])  # (U,)
    offsets = lengths.cumsum(0) - lengths
    slots = torch.arange(batch * len(parts), device=is_token.device).view(batch, len(parts))
    slot = torch.where(rest, batch * len(parts), (belongs * slots[:, :, None]).sum(1)).flatten()  # (B * words,)
    position = torch.where(rest, rest.flatten().cumsum(0).view_as(rest), (belongs.cumsum(2) * belongs).sum(1)) - 1
    packed_index = offsets[slot] + position.flatten()  # (B * words,)
    number = torch.arange(batch * width, device=is_token.device)
    places = torch.zeros_like(number).scatter(0, packed_index, number)  # of each packed word
    if torch.onnx.is_in_onnx_export():  # ONNX has shapes that depend on the words: the rest is left out
        count = offsets[-1].clamp(min=1).item()  # of the rest, one row where there are no words
        torch._check(count >= 1)
        torch._check(count <= places.shape[0])
        places = places[:count]
        lengths = torch.cat([lengths[:-1], (count - offsets[-1])[None]])
        packed_index = packed_index.clamp(max=count - 1)
    packing = Packing(
        lengths=lengths,
        offsets=offsets,
        sentence_of_token=slot[places],
        sentence_of_example=slots,
        flat_index=number,
        segment_of_token=slot,
        packed_index=packed_index,
        batch_shape=(batch, width),
        has_padding_segment=True,
    )
    return places, packing


def _lay_out(sentence: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths (count,) and first words (count,) of sentences, and each word's place in its own, (words,)."""
    lengths = torch.bincount(sentence, minlength=count)
    starts = lengths.cumsum(0) - lengths
    return lengths, starts, torch.arange(sentence.shape[0], device=sentence.device) - starts[sentence]


def _first_equal(ids: Tensor, sentence: Tensor, position: Tensor, lengths: Tensor, starts: Tensor) -> Tensor:
    """The first sentence that is equal to each sentence.

    Found by a hash of words and places, which costs as much as the words and not as the padding; every find is checked
    word by word, so that a collision can only leave a copy unfound.

    (words,), (words,), (words,), (sentences,), (sentences,) -> (sentences,)
    """
    numbers = torch.arange(lengths.shape[0], device=lengths.device)
    hashes = lengths.scatter_add(0, sentence, _hash_tokens(ids, position))  # (sentences,)
    distinct, group = torch.unique(hashes, return_inverse=True)
    first = numbers.new_full(distinct.shape, lengths.shape[0]).scatter_reduce(0, group, numbers, "amin")
    found = first[group]  # (sentences,)
    twins = starts[found][sentence] + position  # (words,) past the end where the lengths differ
    differs = ids[twins.clamp(max=max(ids.shape[0] - 1, 0))] != ids
    unequal = (lengths != lengths[found]).index_put((sentence,), differs, accumulate=True)
    return torch.where(unequal, numbers, found)


def _hash_tokens(ids: Tensor, position: Tensor) -> Tensor:
    """A number for each word at its place, (words,), (words,) -> (words,); int64 wraps around."""
    mixed = ids * 0x2545F4914F6CDD1D + position * 0x5851F42D4C957F2D
    mixed = (mixed ^ (mixed >> 32)) * 0x369DEA0F31A53F85
    return mixed ^ (mixed >> 29)
