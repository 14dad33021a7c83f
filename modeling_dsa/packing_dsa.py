"""Packing: the real words of a padded batch as one list of rows, each distinct sentence once.

Everything between the word table and the sentence vectors runs on packed rows, so padding costs nothing and cannot
change a result, and a sentence that stands in many pairs is encoded once.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """Which packed row belongs to which sentence, and which sentence to which row of the batch.

    A batch of B rows holds B * sentences_per_row sentences; U of them are distinct, with N words in all.

    Attributes:
        lengths: Words of each distinct sentence, in packed order. (U,)
        offsets: Index of each distinct sentence's first word. (U,)
        sentence_of_word: The distinct sentence of each packed word, ascending. (N,)
        sentence_of_row: The distinct sentence at each place of the batch. (B, sentences_per_row)
        places: Index in the flattened (B * words) batch of each real word, copies of a sentence included.
        word_at_place: The packed word at each of these places.
        batch_shape: (B, words).
    """

    lengths: Tensor
    offsets: Tensor
    sentence_of_word: Tensor
    sentence_of_row: Tensor
    places: Tensor
    word_at_place: Tensor
    batch_shape: tuple[int, int]

    def gapped_rows(self, gap: int) -> tuple[Tensor, int]:
        """Rows for the words when `gap` empty rows stand between neighbouring sentences, and the number of rows.

        A window that reaches at most `gap` rows to each side then never sees two sentences.
        """
        words = self.sentence_of_word
        rows = torch.arange(words.shape[0], device=words.device) + gap * words  # (N,)
        return rows, words.shape[0] + gap * (self.lengths.shape[0] - 1)

    def unpack_words(self, packed: Tensor) -> Tensor:
        """Put the rows of packed words (N, width) back in their places; all other places are 0. (B, words, width)"""
        batch, words = self.batch_shape
        flat = packed.new_zeros(batch * words, packed.shape[-1])
        flat = flat.index_copy_(0, self.places, packed.index_select(0, self.word_at_place))
        return flat.view(batch, words, packed.shape[-1])

    def unpack_sentences(self, packed: Tensor) -> Tensor:
        """Give each place of the batch its sentence's vector. (U, width) -> (B, sentences_per_row, width)"""
        return F.embedding(self.sentence_of_row, packed)

    def softmax(self, scores: Tensor) -> Tensor:
        """Softmax over the words of each sentence. (heads, N) -> (heads, N)"""
        heads, sentences = scores.shape[0], self.lengths.shape[0]
        index = self.sentence_of_word.expand_as(scores)  # (heads, N)
        # The shift only guards against overflow and cancels, so no gradient needs to pass through it.
        highest = scores.new_full((heads, sentences), -torch.inf)
        highest = highest.scatter_reduce(1, index, scores.detach(), "amax")  # (heads, U)
        weights = (scores - highest.gather(1, index)).exp()  # (heads, N)
        totals = weights.new_zeros(heads, sentences).scatter_add(1, index, weights)  # (heads, U)
        return weights / totals.gather(1, index)

    def weighted_sum(self, weights: Tensor, values: Tensor) -> Tensor:
        """Sum the words of each sentence under their weights; an empty sentence gives 0.

        (heads, N), (heads, N, width) -> (heads, U, width)
        """
        heads, words, width = values.shape
        starts = torch.arange(heads, device=values.device)[:, None] * words + self.offsets  # (heads, U)
        total = F.embedding_bag(
            torch.arange(heads * words, device=values.device),
            values.reshape(heads * words, width),
            starts.flatten(),
            mode="sum",
            per_sample_weights=weights.flatten(),
        )  # (heads * U, width)
        return total.view(heads, self.lengths.shape[0], width)


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
        `is_word` (B, words) and `is_second` (B, words), both bool.
    """
    if attention_mask is not None:
        is_word = attention_mask.bool()
    elif pad_token_id is not None:
        is_word = input_ids != pad_token_id
    else:
        is_word = torch.ones_like(input_ids, dtype=torch.bool)
    is_second = torch.zeros_like(is_word)
    if sep_token_id is not None:
        is_separator = (input_ids == sep_token_id) & is_word
        is_second = is_separator.cumsum(1) > 0
        is_word = is_word & ~is_separator
    if token_type_ids is not None:
        marked = (token_type_ids > 0) & is_word
        is_second = torch.where(marked.any(1, keepdim=True), marked, is_second)
    return is_word, is_second


def pack(
    input_ids: Tensor | None, is_word: Tensor, is_second: Tensor | None, deduplicate: bool
) -> tuple[Tensor, Packing]:
    """Pack the real words of a batch.

    Args:
        input_ids: Token ids, (B, words); needed only to find equal sentences.
        is_word: Real words, (B, words).
        is_second: Words of the second sentence of a row, (B, words), or None where a row is one sentence.
        deduplicate: Keep the first of several equal sentences only.

    Returns:
        The place in the flattened batch of each packed word, (N,), and the [`Packing`].
    """
    batch, width = is_word.shape
    per_row = 1 if is_second is None else 2
    places = is_word.flatten().nonzero().squeeze(1)  # (all words,)
    sentence = places.div(width, rounding_mode="floor") * per_row
    if is_second is not None:
        sentence = sentence + is_second.flatten()[places]
        # Stable: words keep their order inside a sentence even where the two sentences of a row are interleaved.
        sentence, order = sentence.sort(stable=True)
        places = places[order]
    count = batch * per_row
    lengths = torch.bincount(sentence, minlength=count)
    position = torch.arange(places.shape[0], device=places.device) - (lengths.cumsum(0) - lengths)[sentence]

    numbers = torch.arange(count, device=places.device)
    if deduplicate and input_ids is not None and count > 1:
        # Left-aligned ids make equal sentences equal rows, however they were padded.
        aligned = input_ids.new_full((count, width + 1), -1)  # one column at least
        aligned[sentence, position] = input_ids.flatten()[places]
        distinct, group = torch.unique(aligned, dim=0, return_inverse=True)
        first = numbers.new_full((distinct.shape[0],), count).scatter_reduce(0, group, numbers, "amin")
        original = first[group]  # (count,) the first sentence that is equal to this one
        kept = original == numbers
        number = (kept.cumsum(0) - 1)[original]  # (count,)
        kept_words = kept[sentence]
        packed_places, packed_sentence = places[kept_words], number[sentence[kept_words]]
        lengths = lengths[kept]
    else:
        number, packed_places, packed_sentence = numbers, places, sentence
    offsets = lengths.cumsum(0) - lengths
    packing = Packing(
        lengths=lengths,
        offsets=offsets,
        sentence_of_word=packed_sentence,
        sentence_of_row=number.view(batch, per_row),
        places=places,
        word_at_place=offsets[number[sentence]] + position,
        batch_shape=(batch, width),
    )
    return packed_places, packing
