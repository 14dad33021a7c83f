"""A page that shows what models of the DSA family decide about sentences, where they look, and what is near in meaning.

It offers the models given on the command line or in the environment variable DSA_MODELS (folders, or ids of the Hub,
separated by commas), and without any of these the models in the folders beside its own. It searches with the encoder in
DSA_ENCODER, or without one with dsa-mini-en beside its own folder.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
from panel import ALL_HEADS, LAST_ITERATION, build_panel, not_loaded, show_message
from reading import MOST_ROWS, Reading, classify_table, find_models, load_model, reads_pairs
from searching import CORPUS_SIZE, nearest

from modeling_dsa.explanation.html import GRADIO_CSS
from modeling_dsa.files.model_folder import holds_model

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
.plain .html-container { padding: 0; }
.message { margin: 0; padding: 0.6rem 0.9rem; border-left: 4px solid var(--color-accent); border-radius: 0.3rem;
  background: var(--block-background-fill); color: var(--body-text-color); overflow-wrap: anywhere; }
.nearest { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); gap: 0 2rem; }
.nearest h3 { margin: 0.2rem 0 0.5rem; font-size: 1.05rem; font-weight: 650; }
.nearest ol { margin: 0 0 0.8rem; padding: 0; list-style: none; }
.nearest li { display: flex; gap: 1rem; margin: 0.2rem 0; padding: 0.3rem 0.6rem; border-radius: 0.3rem;
  background: linear-gradient(to right, var(--near) var(--share), transparent var(--share)); overflow-wrap: anywhere; }
.nearest li > span:first-child { flex: 1; }
.nearest .cosine { font-variant-numeric: tabular-nums; }
.note { margin: 0; font-size: 0.85rem; color: var(--block-info-text-color); }
.nearest { --near: #dbeafe; color: var(--body-text-color); }
.dark .nearest { --near: #1e3a5f; }
"""
# The page's address keeps what is read and shown; models by their names and not by their folders.
_KEEP_STATE = """(...values) => {
  const state = new URLSearchParams(location.search), names = %s;
  const [model, other, text, text_pair, ...chosen] = values;
  const kept = {model: names[model], compare: names[other], text, text_pair};
  ["iteration", "head", "compare_iteration", "compare_head"].forEach((name, index) => {
    kept[name] = chosen[index] >= 0 && chosen[index] !== null ? String(chosen[index] + 1) : "";
  });
  for (const [name, value] of Object.entries(kept)) {
    value && value.length <= 2000 ? state.set(name, value) : state.delete(name);
  }
  history.replaceState(null, "", "?" + state);
}"""
FILE_SECONDS = 3600  # that a file is kept
LARGEST_FILE = 2 * 10**6  # bytes
MOST_WAITING = 64  # requests; who comes after them is told at once that the page is busy
_MODEL = "model"  # what uses it waits in one line, as each call changes the tokenizer
NO_OTHER = ""


def build_page(models: Sequence[tuple[str, str]], encoder: str | None) -> gr.Blocks:
    """The page.

    Args:
        models: For each model its name in the list, and its folder or id; at least one.
        encoder: Folder or id of the encoder to search with; None leaves the search out.
    """
    names = {model: name for name, model in models}
    page = gr.Blocks(analytics_enabled=False, title="Dynamic Self-Attention", delete_cache=(600, FILE_SECONDS))
    with page:
        gr.Markdown(
            "# Where does it look?\n"
            "Sentence classifiers with dynamic self-attention: what they decide, and how much attention each word gets."
        )
        pairs = gr.State(True)  # as the page is built
        with gr.Row():
            with gr.Column(scale=3, min_width=280):
                first = gr.Textbox(label="Premise", max_lines=6)
                second = gr.Textbox(label="Hypothesis", max_lines=6)
            with gr.Column(scale=2, min_width=280):
                model = gr.Dropdown(list(models), value=models[0][1], label="Model", filterable=False)
                other = gr.Dropdown(
                    [("no other model", NO_OTHER), *models],
                    value=NO_OTHER,
                    label="Compare with",
                    filterable=False,
                    visible=len(models) > 1,
                )
        button = gr.Button("Classify", variant="primary")
        with gr.Row():
            panels = [build_panel(), build_panel()]
        near = gr.HTML(elem_classes="plain", apply_default_css=False, visible=False)
        pair_examples = gr.Examples(PAIRS, [first, second])
        sentence_examples = gr.Examples(SENTENCES, [first], visible=False)
        _add_table(model, names)

        def fit(model_id: str, other_id: str, asked_pair: bool) -> dict[Any, Any]:
            """Ask for the texts that the models read; where none can be loaded, for those as before."""
            known = [reads for name in (model_id, other_id) if name and (reads := _reads_pairs(name)) is not None]
            asks_pair = any(known) if known else asked_pair
            return {
                pairs: asks_pair,
                first: gr.Textbox(label="Premise" if asks_pair else "Sentence"),
                second: gr.Textbox(visible=asks_pair),
                pair_examples.dataset: gr.Dataset(visible=asks_pair),
                sentence_examples.dataset: gr.Dataset(visible=not asks_pair),
            }

        def answer(model_id: str, text: str, text_pair: str, choice: tuple[int, int], asks_pair: bool) -> Any:
            return panels[0].answer(names, model_id, text, text_pair, choice, asks_pair)

        def answer_other(model_id: str, text: str, text_pair: str, choice: tuple[int, int], asks_pair: bool) -> Any:
            return panels[1].answer(names, model_id, text, text_pair, choice, asks_pair)

        def search(found: Reading | None) -> gr.HTML:
            if encoder is None or found is None:
                return gr.HTML(visible=False)
            try:
                return gr.HTML(_nearest_html(encoder, found), visible=True)
            except (OSError, ValueError) as error:
                return not_loaded(Path(encoder).name, error)

        def restore(request: gr.Request) -> tuple[Any, ...]:
            """What the page's address says, so that a link leads back to what was read."""
            asked = request.query_params
            ids = {name: model_id for model_id, name in names.items()}
            return (
                ids.get(asked.get("model", ""), models[0][1]),
                ids.get(asked.get("compare", ""), NO_OTHER),
                asked.get("text", ""),
                asked.get("text_pair", ""),
                (_number(asked.get("iteration"), LAST_ITERATION), _number(asked.get("head"), ALL_HEADS)),
                (
                    _number(asked.get("compare_iteration"), LAST_ITERATION),
                    _number(asked.get("compare_head"), ALL_HEADS),
                ),
            )

        state = [model, other, first, second]
        for panel in panels:
            state += [panel.iteration, panel.head]
        keeping = {"fn": None, "inputs": state, "js": _KEEP_STATE % json.dumps(names)}
        fitting = {
            "fn": fit,
            "inputs": [model, other, pairs],
            "outputs": [pairs, first, second, pair_examples.dataset, sentence_examples.dataset],
            "show_progress": "hidden",
            "trigger_mode": "always_last",
            "concurrency_id": _MODEL,
        }

        def follow(event: Any) -> Any:
            """After the texts are known: each model's answer, what is near, and the address."""
            for panel, dropdown, respond in zip(panels, (model, other), (answer, answer_other), strict=True):
                event = event.then(
                    respond,
                    [dropdown, first, second, panel.chosen, pairs],
                    panel.outputs,
                    show_progress_on=[panel.classes],
                    concurrency_id=_MODEL,
                )
            if encoder is not None:
                event = event.then(search, [panels[0].reading], [near], show_progress="hidden")
            return event

        restored = [model, other, first, second, *(panel.chosen for panel in panels)]
        follow(page.load(restore, None, restored).then(**fitting))
        follow(gr.on([model.input, other.input, button.click, first.submit, second.submit], **fitting)).then(**keeping)
        for examples in (pair_examples, sentence_examples):
            follow(examples.load_input_event.then(**fitting)).then(**keeping)
        for panel in panels:
            gr.on(
                [panel.iteration.input, panel.head.input],
                panel.choose,
                [panel.reading, panel.iteration, panel.head],
                [panel.attention, panel.chosen],
                show_progress="hidden",
            ).then(**keeping)
    page.queue(max_size=MOST_WAITING, api_open=False)  # an open one lets programs pass the queue
    return page


def _add_table(model: gr.Dropdown, names: dict[str, str]) -> None:
    """The part of the page that classifies a file."""
    with gr.Accordion("Many texts: a CSV file in, the same with classes out", open=False):
        gr.Markdown(
            f"At most {MOST_ROWS:,} rows and {LARGEST_FILE // 10**6} MB, with a column `text`, or `premise` and "
            "`hypothesis` for pairs. Files are deleted after an hour."
        )
        table = gr.File(label="CSV file", file_types=[".csv"], height=140)
        table_button = gr.Button("Classify the file")
        table_message = gr.HTML(elem_id="table-message", apply_default_css=False)
        classified = gr.File(label="With classes", visible=False, height=80)

    def answer_table(model_id: str, path: str | None) -> dict[Any, Any]:
        """Classify the rows of a file."""
        if path is None:
            return {table_message: show_message("Choose a CSV file first."), classified: gr.File(visible=False)}
        output = Path(path).with_name("classified.csv")  # a folder of this file alone, which is deleted with it
        try:
            loaded = load_model(model_id)
        except Exception as error:  # whatever a repository may hold, the page goes on and says what is wrong
            return {table_message: not_loaded(names[model_id], error), classified: gr.File(visible=False)}
        try:
            count = classify_table(*loaded, Path(path), output)
        except ValueError as error:
            return {table_message: show_message(str(error)), classified: gr.File(visible=False)}
        return {
            table_message: show_message(f"{count:,} rows are classified."),
            classified: gr.File(str(output), visible=True),
        }

    table_button.click(answer_table, [model, table], [table_message, classified], concurrency_id=_MODEL)


def _reads_pairs(model_id: str) -> bool | None:
    """Whether a model reads pairs; None of one that cannot be loaded, of which its panel says so."""
    try:
        return reads_pairs(load_model(model_id)[0])
    except Exception:
        return None


def _nearest_html(encoder: str, found: Reading) -> str:
    """What is nearest in meaning to each text that was read."""
    parts = []
    for name, text in found.sentences.items():
        rows = "".join(
            f'<li style="--share: {max(0.0, one.cosine):.0%}"><span>{escape(one.sentence)}</span>'
            f'<span class="cosine">{one.cosine:.2f}</span></li>'
            for one in nearest(encoder, text.text)
        )
        heading = f"Nearest in meaning to the {name.lower()}"
        parts.append(f'<section><h3>{heading}</h3><ol role="list" aria-label="{heading}">{rows}</ol></section>')
    note = (
        f"Of {CORPUS_SIZE} sentences about photographs (SNLI), by the cosine of {escape(Path(encoder).name)}'s vectors."
    )
    return f'<div class="nearest">{"".join(parts)}</div><p class="note">{note}</p>'


def _number(counted: str | None, default: int) -> int:
    """A number that the address counts from 1, from 0."""
    return int(counted) - 1 if counted and counted.isdecimal() and 0 < int(counted) < 1000 else default


def _find_encoder(beside: Path) -> str | None:
    """The encoder to search with, if there is one."""
    named = os.environ.get("DSA_ENCODER", "").strip()
    mini = beside / "dsa-mini-en"
    return named or (str(mini) if holds_model(mini) else None)


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
    build_page(models, _find_encoder(beside)).launch(
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
        max_file_size=LARGEST_FILE,
        footer_links=[],
    )


if __name__ == "__main__":
    main()
