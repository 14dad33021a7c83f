"""What a finished run writes for its readers beside the model: a picture of its attention, and its card."""

import logging
from collections.abc import Sequence

from modeling_dsa.explanation.drawing import DrawnSentence, draw_attention, drawn_sentences
from modeling_dsa.explanation.explain import explain
from run_glue_style.training.run import FinishedRun, Reporter

from .model_card import PICTURE, write_card

logger = logging.getLogger(__name__)


def draw_attention_of_examples(run: FinishedRun) -> None:
    """Draw where the model's attention looks in some examples of the validation split."""
    try:
        drawn = [sentence for texts in run.shown_texts for sentence in _drawn(run, texts)]
        draw_attention(drawn, run.folder / PICTURE, columns=max(map(len, run.shown_texts), default=1))
    except ValueError as error:  # such as a sentence without words: the model is what counts
        logger.warning(f"There is no picture of the attention: {error}")


def _drawn(run: FinishedRun, texts: Sequence[str]) -> list[DrawnSentence]:
    """Where the model looks in an example, with what it says."""
    explanation = explain(run.model, *texts, tokenizer=run.tokenizer)
    decision = None if explanation.scores is None else explanation.scores.decision
    return drawn_sentences(explanation.texts, decision=decision)


def write_card_of_run(run: FinishedRun) -> None:
    """Write the model's card."""
    try:
        write_card(run.folder, run.model_id, earlier=run.replaced)
    except ValueError as error:  # such as a folder's name that is none on the Hub: the model is what counts
        logger.warning(f"There is no model card: {error}")


REPORTERS: tuple[Reporter, ...] = (draw_attention_of_examples, write_card_of_run)
