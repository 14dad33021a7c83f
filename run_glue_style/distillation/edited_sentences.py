"""Edited copies of sentences, from which a student learns what a small change does to its teacher's vector.

    python -m run_glue_style.distillation.edited_sentences captions.txt edited.txt --copies 4

Similarity is often asked of sentences that differ in little: a word, its place, a "not". Texts as they are found hold
few such pairs. A copy has one edit, drawn anew: words are left out, put in place of others, exchanged or negated, it
has other articles or its halves in the other order, is a part of a sentence, or the beginning of one and the end of
another. With `--near_words`, an encoder, half of the edits put words in place of those that are near in meaning. A copy
need not be good English: the teacher's vector of it says what it still means. The output has a sentence a line, none
twice and none of the input's; distil from both files in one.
"""

import argparse
import logging
import random
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tqdm.auto import tqdm

from modeling_dsa.batching_dsa import replace_surrogates
from modeling_dsa.command.command_line import make_parser, whole_number
from modeling_dsa.command.exit_codes import exit_code_of
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.encoding.sources import open_sentences
from modeling_dsa.files.outputs import refuse_input
from modeling_dsa.files.replacing import replaced_file
from modeling_dsa.shipped.models import model_source

from .near_words import FEWEST_OCCURRENCES, near_words

logger = logging.getLogger(__name__)

Words = list[str]

FEWEST = 4  # words of a sentence that is edited
NEAREST = 11  # of a word, among which another is drawn
ARTICLES = ("a", "the", "some", "one", "two")
_CONTENT = re.compile(r"[^\W\d_]{4,}")  # a word of four letters or more mostly says something
_VERB = re.compile(r"\b(is|are|was|were|has|have|can|will|do|does)\b")
_ARTICLE = re.compile(rf"\b(an|{'|'.join(ARTICLES)})\b", re.IGNORECASE)
_THERE = re.compile(rf"{_ARTICLE.pattern} (?P<subject>.+?) (?P<verb>is|are) ", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+")


class SentenceEditor:
    """Draws edits of the sentences of one text."""

    def __init__(self, sentences: Sequence[str], seed: int, near: Mapping[str, Sequence[str]] | None) -> None:
        """Set up.

        Args:
            sentences: Those that are edited, and whose words and parts stand in for others.
            seed: The same sentences and seed give the same copies.
            near: Of words in lower case those that are near in meaning.
        """
        self._sentences = [words for words in map(str.split, sentences) if len(words) >= FEWEST]
        self._content = [word for words in self._sentences for word in words if _CONTENT.search(word)]
        self._random = random.Random(seed)
        self._near = near or {}
        edits: dict[Callable[[Words], Words], float] = {
            self._without_words: 15,
            self._with_other_words: 25,
            self._with_two_exchanged: 15,
            self._with_another_end: 20,
            self._part: 10,
            self._negated: 10,
            self._denied: 10,
            self._with_other_articles: 10,
            self._with_halves_exchanged: 10,
        }
        if self._near:
            edits[self._with_near_words] = sum(edits.values())
        self._edits, self._weights = list(edits), list(edits.values())

    def __len__(self) -> int:
        return len(self._sentences)

    def copies(self, count: int) -> Iterator[str]:
        """`count` edited copies of each sentence."""
        for words in self._sentences:
            for edit in self._random.choices(self._edits, self._weights, k=count):
                yield " ".join(edit(list(words)))

    def _without_words(self, words: Words) -> Words:
        left_out = set(self._random.sample(range(len(words)), self._random.randint(1, len(words) // 4)))
        return [word for index, word in enumerate(words) if index not in left_out]

    def _with_other_words(self, words: Words) -> Words:
        for index in self._random.sample(range(len(words)), self._random.randint(1, 2)):
            words[index] = self._random.choice(self._content or words)
        return words

    def _with_two_exchanged(self, words: Words) -> Words:
        first, second = self._random.sample(range(len(words)), 2)
        words[first], words[second] = words[second], words[first]
        return words

    def _with_another_end(self, words: Words) -> Words:
        other = self._random.choice(self._sentences)
        return words[: len(words) // 2] + other[len(other) // 2 :]

    def _part(self, words: Words) -> Words:
        length = self._random.randint(FEWEST - 1, len(words) - 1)
        start = self._random.randint(0, len(words) - length)
        return words[start : start + length]

    def _negated(self, words: Words) -> Words:
        sentence = " ".join(words)
        negated = _VERB.sub(r"\1 not", sentence, count=1)
        return (negated if negated != sentence else _ARTICLE.sub("no", sentence, count=1)).split()

    def _denied(self, words: Words) -> Words:
        return _THERE.sub(r"There \g<verb> no \g<subject> ", " ".join(words), count=1).split()

    def _with_other_articles(self, words: Words) -> Words:
        return _ARTICLE.sub(lambda _: self._random.choice(ARTICLES), " ".join(words)).split()

    def _with_halves_exchanged(self, words: Words) -> Words:
        cut = self._random.randint(1, len(words) - 1)
        return words[cut:] + words[:cut]

    def _with_near_words(self, words: Words) -> Words:
        known = [index for index, word in enumerate(words) if self._nearest(word)]
        for index in self._random.sample(known, min(len(known), self._random.randint(1, 2))):
            other = self._random.choice(self._nearest(words[index]))
            words[index] = _WORD.sub(other, words[index], count=1)
        return words

    def _nearest(self, word: str) -> Sequence[str]:
        found = _WORD.search(word)
        return self._near.get(found[0].lower(), ()) if found else ()


def write_edited(
    sentences: Sequence[str], path: Path, copies: int, seed: int, near: Mapping[str, Sequence[str]] | None
) -> int:
    """Write edited copies of sentences, one a line, and return how many there are.

    `seed` and `near` are those of `SentenceEditor`.

    Raises:
        ValueError: No sentence has enough words.
    """
    editor = SentenceEditor(sentences, seed, near)
    if not len(editor):
        raise ValueError(f"No sentence has {FEWEST} words: give others.")
    known = set(sentences)
    with replaced_file(path) as beside, beside.open("w", encoding="utf-8", newline="\n") as file:
        for copy in tqdm(editor.copies(copies), total=len(editor) * copies, unit=" copies", desc="editing"):
            if copy not in known:
                known.add(copy)
                file.write(copy + "\n")
    return len(known) - len(set(sentences))


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line and write the copies; the exit code is that of `exit_code_of`."""
    parser = make_parser(__doc__)
    parser.add_argument("texts", help="What `dsa encode` reads.")
    parser.add_argument("output", type=Path, help="A .txt file.")
    parser.add_argument("--text_column", help="The column of the sentences.")
    parser.add_argument("--copies", type=whole_number(1), default=1, help="Of each sentence; default: %(default)s.")
    parser.add_argument(
        "--near_words",
        type=model_source,
        metavar="MODEL",
        help="An encoder, by whose vectors words are put in place of near ones.",
    )
    parser.add_argument("--seed", type=whole_number(0), default=0, help="Default: %(default)s.")
    parser.add_argument("--overwrite", action="store_true", help="Replace a file that is there.")
    return exit_code_of(partial(_edit, parser.parse_args(argv)), argv, level=logging.INFO)


def _edit(arguments: argparse.Namespace) -> None:
    if arguments.output.suffix != ".txt":
        raise ValueError(f"{arguments.output}: the copies are lines of text: name a .txt file.")
    refuse_input(arguments.output, [arguments.texts], "output")
    if arguments.output.exists() and not arguments.overwrite:
        raise ValueError(f"{arguments.output} exists: give --overwrite to replace it, or another name.")
    sentences = list(map(replace_surrogates, open_sentences(arguments.texts, arguments.text_column).read()))
    near = None
    if arguments.near_words:
        near = near_words(SentenceEncoder.from_pretrained(arguments.near_words), sentences, NEAREST)
        if not near:
            raise ValueError(
                f"--near_words: no two words stand {FEWEST_OCCURRENCES} times in {arguments.texts}: "
                "give more sentences."
            )
    count = write_edited(sentences, arguments.output, arguments.copies, arguments.seed, near)
    logger.info(f"{count:,} edited sentences are in {arguments.output}.")


if __name__ == "__main__":
    sys.exit(main())
