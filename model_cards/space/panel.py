"""What one model makes of the text: its part of the page, with its own iteration and head."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr
from reading import CannotRead, Reading, load_model, read, reads_pairs

from modeling_dsa.explanation.html import attention_html

logger = logging.getLogger(__name__)

LAST_ITERATION = ALL_HEADS = -1  # choices beside the iterations' and heads' own numbers


@dataclass(frozen=True)
class Panel:
    """The components that show what a model decides and where it looks.

    Attributes:
        column: All of them.
        reading: What the model made of the text, None where it made nothing of it.
        chosen: Which iteration and head to show, which the page may be slow to say.
        classes: Their probabilities.
        message: What one must know.
        iteration: Which one is shown.
        head: Which one is shown.
        attention: Over the words.
    """

    column: gr.Column
    reading: gr.State
    chosen: gr.State
    classes: gr.Label
    message: gr.HTML
    iteration: gr.Radio
    head: gr.Dropdown
    attention: gr.HTML

    @property
    def outputs(self) -> list[Any]:
        """What `answer` fills."""
        return [getattr(self, name) for name in self.__dataclass_fields__]

    def answer(
        self,
        names: Mapping[str, str],
        model_id: str,
        text: str,
        text_pair: str,
        choice: tuple[int, int],
        pairs: bool,
        beside: Reading | None = None,
    ) -> dict[Any, Any]:
        """Read the text with a model, and show what it says; what was chosen stays chosen while it can.

        Args:
            names: Of each model.
            model_id: A folder or Hub id; an empty one hides the panel.
            text: The sentence, or the premise.
            text_pair: The hypothesis.
            choice: Iteration and head.
            pairs: Whether the page asks for two texts, which the other model may read.
            beside: What the other model makes of them, if that is shown already: the shades have one scale.
        """
        nothing = {
            self.column: gr.Column(visible=bool(model_id)),
            self.reading: None,
            self.classes: gr.Label(None, visible=False),
            self.attention: gr.HTML(visible=False),
            self.iteration: gr.Radio(visible=False),
            self.head: gr.Dropdown(visible=False),
            self.message: show_message(""),
        }
        if not model_id:
            return nothing
        try:
            loaded, tokenizer = load_model(model_id)
        except Exception as error:  # whatever a repository may hold, the page goes on and says what is wrong
            return nothing | {self.message: not_loaded(names[model_id], error)}
        try:
            found = read(loaded, tokenizer, text, text_pair)
        except CannotRead as error:
            return nothing | {self.message: show_message(str(error))}
        notes = found.notes
        if pairs and not reads_pairs(loaded):
            notes = ["This model reads single sentences: it has read the first text alone.", *notes]
        at = _kept_iteration(found, choice[0])
        by = choice[1] if 0 <= choice[1] < found.heads else ALL_HEADS
        return {
            self.column: gr.Column(visible=True),
            self.reading: found,
            self.chosen: (at, by),
            self.classes: gr.Label(found.classes, label=f"Classes by {names[model_id]}", visible=True),
            self.message: show_message(" ".join(notes)),
            self.iteration: gr.Radio(
                _numbered("", found.iterations),
                value=range(found.iterations)[at] if found.iterations else None,
                visible=found.iterations > 1,
            ),
            self.head: gr.Dropdown(
                [("all heads", ALL_HEADS), *_numbered("head ", found.heads)], value=by, visible=found.heads > 1
            ),
            self.attention: gr.HTML(draw(found, at, by, beside), visible=found.heads > 0),
        }

    def choose(
        self, found: Reading | None, iteration: int, head: int, beside: Reading | None
    ) -> tuple[str, tuple[int, int]]:
        """Show another iteration or head."""
        if found is None:  # the page is older than this process
            return "", (LAST_ITERATION, ALL_HEADS)
        return draw(found, iteration, head, beside), (_kept_iteration(found, iteration), head)


def build_panel() -> Panel:
    """An empty panel, hidden until it has something to say."""
    reading = gr.State(None)
    chosen = gr.State((LAST_ITERATION, ALL_HEADS))
    with gr.Column(min_width=320, visible=False) as column:
        message = gr.HTML(elem_classes="plain", apply_default_css=False)
        with gr.Row():
            with gr.Column(scale=2, min_width=260):
                classes = gr.Label(label="Classes", visible=False)
                iteration = gr.Radio(
                    [], label="Routing iteration", info="The first weighs all tokens alike.", visible=False
                )
                head = gr.Dropdown([], label="Head", visible=False, filterable=False)
            with gr.Column(scale=3, min_width=400):
                attention = gr.HTML(elem_classes="plain", apply_default_css=False, visible=False)
    return Panel(column, reading, chosen, classes, message, iteration, head, attention)


def show_message(text: str) -> gr.HTML:
    """A sentence for whoever typed; without one there is nothing."""
    return gr.HTML(f'<p class="message" role="status">{escape(text)}</p>', visible=bool(text))


def not_loaded(name: str, error: Exception) -> gr.HTML:
    """Say that a model cannot be loaded, and why; the whole of it goes into the log."""
    logger.error("The model %s cannot be loaded.", name, exc_info=error)
    reason = str(error).strip().partition("\n")[0]
    return show_message(f"The model {name} cannot be loaded. {reason}")


def draw(found: Reading, iteration: int, head: int, beside: Reading | None) -> str:
    """The words of a text as one model looks at them, on one scale with those of the model beside it."""
    if not found.iterations:
        return ""
    others = beside.sentences if beside and beside.iterations else None
    head_or_all = None if head == ALL_HEADS else head
    return attention_html(found.sentences, range(found.iterations)[iteration], head_or_all, others)


def _kept_iteration(found: Reading, iteration: int) -> int:
    """What is chosen for models with any number of iterations: the last one is the last of each."""
    return iteration if 0 <= iteration < found.iterations - 1 else LAST_ITERATION


def _numbered(word: str, count: int) -> list[tuple[str, int]]:
    """Choices counted from 1 for people, and from 0 for us."""
    return [(f"{word}{number + 1}", number) for number in range(count)]
