"""A page that shows what models of the DSA family decide about sentences, and where they look.

It offers the models given on the command line or in the environment variable DSA_MODELS (folders, or ids of the Hub,
separated by commas), and without any of these the models in the folders beside its own.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
from reading import (
    MOST_ROWS,
    CannotRead,
    Reading,
    classify_table,
    find_models,
    load_model,
    read,
    reads_pairs,
)

from modeling_dsa.explanation.html import GRADIO_CSS, attention_html

logger = logging.getLogger(__name__)

PAIRS = [
    ["A man is playing a guitar on stage.", "A man is asleep."],
    ["Two dogs are running through the snow.", "Two animals are outside."],
    ["A woman in a red coat is waiting for a bus.", "The woman is late for work."],
]
SENTENCES = [
    ["A warm, funny and beautifully acted film."],
    ["The plot is dull and the jokes are worse."],
    ["It has its charm, but I would not watch it again."],
]
PAGE_CSS = """
#message .html-container, #attention .html-container { padding: 0; }
.message { margin: 0; padding: 0.6rem 0.9rem; border-left: 4px solid var(--color-accent); border-radius: 0.3rem;
  background: var(--block-background-fill); color: var(--body-text-color); overflow-wrap: anywhere; }
"""
# The page's address keeps what is read, by the model's name and not by its folder.
_KEEP_STATE = """(model, text, text_pair) => {
  const state = new URLSearchParams(location.search);
  state.set("model", %s[model]);
  for (const [name, value] of [["text", text], ["text_pair", text_pair]]) {
    value && value.length <= 2000 ? state.set(name, value) : state.delete(name);
  }
  history.replaceState(null, "", "?" + state);
}"""
FILE_SECONDS = 3600  # that a file is kept
ALL_HEADS = -1  # the choice beside the heads' own numbers


def build_page(models: Sequence[tuple[str, str]]) -> gr.Blocks:
    """The page.

    Args:
        models: for each model its name in the list, and its folder or id; at least one.
    """
    names = {model: name for name, model in models}
    page = gr.Blocks(analytics_enabled=False, title="Dynamic Self-Attention", delete_cache=(600, FILE_SECONDS))
    with page:
        gr.Markdown(
            "# Where does it look?\n"
            "Sentence classifiers with dynamic self-attention: what they decide, and how much attention each word gets."
        )
        reading = gr.State(None)
        chosen = gr.State((0, ALL_HEADS))  # iteration and head, which the page may be slow to show
        with gr.Row():
            with gr.Column(scale=3, min_width=280):
                model = gr.Dropdown(list(models), value=models[0][1], label="Model", filterable=False)
                first = gr.Textbox(label="Premise", max_lines=6)
                second = gr.Textbox(label="Hypothesis", max_lines=6)
                button = gr.Button("Classify", variant="primary")
                message = gr.HTML(elem_id="message", apply_default_css=False)
            with gr.Column(scale=2, min_width=280):
                classes = gr.Label(label="Classes")
                iteration = gr.Radio(
                    [], label="Routing iteration", info="The first weighs all words alike.", visible=False
                )
                head = gr.Dropdown([], label="Head", visible=False, filterable=False)
        attention = gr.HTML(elem_id="attention", apply_default_css=False)
        pair_examples = gr.Examples(PAIRS, [first, second])
        sentence_examples = gr.Examples(SENTENCES, [first], visible=False)
        with gr.Accordion("Many texts: a CSV file in, the same with classes out", open=False):
            gr.Markdown(
                f"At most {MOST_ROWS:,} rows, with a column `text`, or `premise` and `hypothesis` for pairs. "
                "Files are deleted after an hour."
            )
            table = gr.File(label="CSV file", file_types=[".csv"], height=140)
            table_button = gr.Button("Classify the file")
            table_message = gr.HTML(elem_id="table-message", apply_default_css=False)
            classified = gr.File(label="With classes", visible=False, height=80)

        def answer(
            model_id: str, text: str, text_pair: str, before: Reading | None, choice: tuple[int, int]
        ) -> dict[Any, Any]:
            """Read the text with the model, and fit the page to both; what was chosen stays chosen while it can."""
            nothing = {
                reading: None,
                classes: None,
                attention: gr.HTML(visible=False),
                iteration: gr.Radio(visible=False),
                head: gr.Dropdown(visible=False),
            }
            try:
                loaded, tokenizer = load_model(model_id)
            except Exception as error:  # whatever a repository may hold, the page goes on and says what is wrong
                return nothing | {message: _not_loaded(names[model_id], error)}
            pairs = reads_pairs(loaded)
            layout = {
                first: gr.Textbox(label="Premise" if pairs else "Sentence"),
                second: gr.Textbox(visible=pairs),
                pair_examples.dataset: gr.Dataset(visible=pairs),
                sentence_examples.dataset: gr.Dataset(visible=not pairs),
            }
            try:
                found = read(loaded, tokenizer, text, text_pair)
            except CannotRead as error:
                return layout | nothing | {message: _message(str(error))}
            at, by = choice
            if before is None or before.iterations != found.iterations:
                at = found.iterations - 1
            if before is None or before.heads != found.heads:
                by = ALL_HEADS
            return layout | {
                reading: found,
                chosen: (at, by),
                classes: found.classes,
                message: _message(" ".join(found.notes)),
                iteration: gr.Radio(_numbered("", found.iterations), value=at, visible=found.iterations > 1),
                head: gr.Dropdown(
                    [("all heads", ALL_HEADS), *_numbered("head ", found.heads)], value=by, visible=found.heads > 1
                ),
                attention: gr.HTML(_attention(found, at, by), visible=found.heads > 0),
            }

        def answer_table(model_id: str, path: str | None) -> dict[Any, Any]:
            """Classify the rows of a file."""
            if path is None:
                return {table_message: _message("Choose a CSV file first."), classified: gr.File(visible=False)}
            output = Path(path).with_name("classified.csv")  # a folder of this file alone, which is deleted with it
            try:
                loaded = load_model(model_id)
            except Exception as error:  # as above
                return {table_message: _not_loaded(names[model_id], error), classified: gr.File(visible=False)}
            try:
                count = classify_table(*loaded, Path(path), output)
            except ValueError as error:
                return {table_message: _message(str(error)), classified: gr.File(visible=False)}
            return {
                table_message: _message(f"{count:,} rows are classified."),
                classified: gr.File(str(output), visible=True),
            }

        def restore(request: gr.Request) -> tuple[str, str, str]:
            """What the page's address says, so that a link leads back to what was read."""
            asked = request.query_params
            ids = {name: model_id for model_id, name in names.items()}
            return ids.get(asked.get("model", ""), models[0][1]), asked.get("text", ""), asked.get("text_pair", "")

        typed = [model, first, second, reading, chosen]
        shown = [reading, chosen, classes, message, iteration, head, attention]
        laid_out = [first, second, pair_examples.dataset, sentence_examples.dataset]
        answering = {
            "fn": answer,
            "inputs": typed,
            "outputs": shown + laid_out,
            "show_progress_on": [classes],
            "trigger_mode": "always_last",
        }
        keeping = {"fn": None, "inputs": [model, first, second], "js": _KEEP_STATE % json.dumps(names)}
        page.load(restore, None, [model, first, second]).then(**answering)
        gr.on([model.input, button.click, first.submit, second.submit], **answering).then(**keeping)
        for examples in (pair_examples, sentence_examples):
            examples.load_input_event.then(**answering).then(**keeping)
        table_button.click(answer_table, [model, table], [table_message, classified])
        gr.on(
            [iteration.input, head.input],
            _choose,
            [reading, iteration, head],
            [attention, chosen],
            show_progress="hidden",
        )
    return page


def _choose(found: Reading, iteration: int, head: int) -> tuple[str, tuple[int, int]]:
    return _attention(found, iteration, head), (iteration, head)


def _attention(found: Reading, iteration: int, head: int) -> str:
    if not found.iterations:
        return ""
    return attention_html(found.sentences, iteration, None if head == ALL_HEADS else head)


def _not_loaded(name: str, error: Exception) -> gr.HTML:
    logger.error("The model %s cannot be loaded.", name, exc_info=error)
    reason = str(error).strip().partition("\n")[0]
    return _message(f"The model {name} cannot be loaded. {reason}")


def _message(text: str) -> gr.HTML:
    return gr.HTML(f'<p class="message" role="status">{escape(text)}</p>', visible=bool(text))


def _numbered(word: str, count: int) -> list[tuple[str, int]]:
    """Choices counted from 1 for people, and from 0 for us."""
    return [(f"{word}{number + 1}", number) for number in range(count)]


def main() -> None:
    """Start the page; GRADIO_SERVER_PORT says on which port."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help="a folder, or an id of the Hub: org/name")
    given = [*parser.parse_args().models, *os.environ.get("DSA_MODELS", "").split(",")]
    beside = Path(__file__).resolve().parents[1]
    models = [(name.strip(), name.strip()) for name in given if name.strip()] or [
        (folder.name, str(folder)) for folder in find_models(beside)
    ]
    if not models:
        parser.error(f"there is no model in {beside}: name folders or ids of the Hub, here or in DSA_MODELS")
    build_page(models).launch(
        theme=gr.themes.Default(
            primary_hue="blue",
            neutral_hue="slate",
            font=("system-ui", "sans-serif"),  # Gradio's own would be fetched
            font_mono=("system-ui", "sans-serif"),
        ).set(  # the theme's own are too pale to read well
            button_primary_background_fill="*primary_600",
            button_primary_background_fill_hover="*primary_700",
            block_info_text_color="*neutral_600",
        ),
        css=PAGE_CSS + GRADIO_CSS,
        ssr_mode=False,
        footer_links=[],
    )


if __name__ == "__main__":
    main()
