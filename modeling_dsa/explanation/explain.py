"""Where a model looks in a text, as an object that shows itself in a notebook, in a terminal and as a file."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import RenderableType
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.batching_dsa import replace_surrogates
from modeling_dsa.command.optional_packages import optional_packages
from modeling_dsa.files.loading import load_model_and_tokenizer
from modeling_dsa.files.replacing import replaced_file
from modeling_dsa.files.shown_paths import last_part, without_folders
from modeling_dsa.modeling_dsa import DSAForSequenceClassification

from .attention import LabelScores, TextAttention, read_attention, require_attention
from .html import explanation_html, explanation_page
from .terminal import explanation_renderable, explanation_text

EXTENSIONS = (".html", ".png", ".svg", ".pdf")
SAMPLES = 64  # of a variational model's latent variable


@dataclass(frozen=True, repr=False)
class Explanation:
    """Where a model looks in a text or a pair. A notebook shows it in colour, and `print` as text.

    Attributes:
        model: Folder, without the folders above it, or Hub id.
        texts: By name: `Sentence`, or `First sentence` and `Second sentence`.
        scores: What a classifier says.
    """

    model: str
    texts: dict[str, TextAttention]
    scores: LabelScores | None

    def __str__(self) -> str:
        return explanation_text(self.texts, self.scores)

    __repr__ = __str__

    def __rich__(self) -> RenderableType:
        return explanation_renderable(self.texts, self.scores)

    def _repr_html_(self) -> str:
        return explanation_html(self.texts, self.scores)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the explanation: every head in every routing iteration.

        Args:
            path: Its extension says what: `.html`, a page that needs nothing else; `.png`, `.svg` or `.pdf`, a picture.
                The folder is made.

        Returns:
            The path written.

        Raises:
            ValueError: The extension is another, or matplotlib is missing for a picture.
        """
        path = Path(path)
        if path.suffix.lower() not in EXTENSIONS:
            raise ValueError(f"{path}: explanations are written as {', '.join(EXTENSIONS)}: give another name.")
        if path.suffix.lower() == ".html":
            with replaced_file(path) as beside:
                beside.write_text(
                    explanation_page(last_part(self.model), self.texts, self.scores), encoding="utf-8", newline=""
                )
            return path
        with optional_packages("Drawing", "evaluation", "matplotlib"):
            from .drawing import draw_attention, drawn_sentences
        title = " · ".join(f"{label} {value}" for label, value in self.scores.shown()[:3]) if self.scores else None
        iterations = range(len(next(iter(self.texts.values())).weights))
        drawn = [sentence for iteration in iterations for sentence in drawn_sentences(self.texts, iteration)]
        return draw_attention(drawn, path, title, columns=len(self.texts))


def explain(
    model: str | os.PathLike[str] | PreTrainedModel,
    text: str,
    text_pair: str | None = None,
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
) -> Explanation:
    """Say where a model looks in a text, or in a pair of texts.

    Args:
        model: Folder or Hub id of an encoder or classifier of this family; or the model itself, with its tokenizer.
        text: The text, or the first of a pair.
        text_pair: The second text of a pair.
        tokenizer: That of a model which is loaded already.

    Returns:
        The weights of every word, head and routing iteration, and a classifier's scores.

    Raises:
        ValueError: The model cannot be loaded, a text is no string or has no words, the model reads pairs and there is
            none, or the other way round, its pooling has no attention, or its attention is not finite.
    """
    for given in [text] if text_pair is None else [text, text_pair]:
        if not isinstance(given, str):
            raise ValueError(f"One text or pair is explained at a time, as strings: {given!r:.80} is none.")
    if not isinstance(model, PreTrainedModel):
        model, tokenizer = load_model_and_tokenizer(os.fspath(model))
    if tokenizer is None:
        raise ValueError("A model that is loaded already needs its tokenizer: give tokenizer too.")
    require_attention(model.config)
    pairs = model.config.sentences_per_example == 2
    if text_pair is not None and not pairs:
        raise ValueError("This model reads single sentences, but two were given: leave out the second.")
    is_classifier = isinstance(model, DSAForSequenceClassification)
    if is_classifier and pairs and text_pair is None and _is_single(tokenizer, text):
        raise ValueError("This model classifies pairs of sentences, but one was given: give the second too.")
    read, scores = read_attention(model, tokenizer, text, text_pair, samples=SAMPLES)
    for part in read:
        if not part.offsets:
            raise ValueError(f"There is no token in the sentence {part.text!r}, so nothing to attend to.")
        if not np.isfinite(part.weights).all():
            raise ValueError(f"The attention to the sentence {part.text[:80]!r} is not finite: give another model.")
    names = ["Sentence"] if text_pair is None else ["First sentence", "Second sentence"]
    return Explanation(without_folders(str(model.name_or_path)), dict(zip(names, read, strict=True)), scores)


def _is_single(tokenizer: PreTrainedTokenizerBase, text: str) -> bool:
    """Whether a text has tokens and is no pair, written as `A [SEP] B`."""
    ids = tokenizer(replace_surrogates(text))["input_ids"]
    return bool(ids) and tokenizer.sep_token_id not in ids
