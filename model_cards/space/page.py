"""The page: its components, what each event does, and in which order."""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import gradio as gr
from panel import ALL_HEADS, LAST_ITERATION, build_panel, draw, not_loaded
from reading import Reading, load_model, reads_pairs
from searching import CORPUS_SIZE, nearest
from table import build_table

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
MOST_WAITING = 64  # requests; who comes after them is told at once that the page is busy
MODEL_QUEUE = "model"  # what uses a model waits in one line, as each call changes the tokenizer
NO_OTHER = ""


class Page:
    """Two texts, one model or two, what they decide, where they look, and what is near in meaning.

    Attributes:
        blocks: The page as Gradio knows it.
    """

    def __init__(self, models: Sequence[tuple[str, str]], encoder: str | None) -> None:
        """Build the page.

        Args:
            models: For each model its name in the list, and its folder or id; at least one.
            encoder: Folder or id of the encoder to search with; None leaves the search out.
        """
        self._models, self._encoder = list(models), encoder
        self._names = {model: name for name, model in models}
        self.blocks = gr.Blocks(
            analytics_enabled=False, title="Dynamic Self-Attention", delete_cache=(600, FILE_SECONDS)
        )
        with self.blocks:
            self._build_components()
            self._connect()
        self.blocks.queue(max_size=MOST_WAITING, api_open=False)  # an open one lets programs pass the queue

    def _build_components(self) -> None:
        gr.Markdown(
            "# Where does it look?\n"
            "Sentence classifiers with dynamic self-attention: what they decide, and how much attention each word gets."
        )
        self._asks_pair = gr.State(True)  # as the page is built
        with gr.Row():
            with gr.Column(scale=3, min_width=280):
                self._first = gr.Textbox(label="Premise", max_lines=6)
                self._second = gr.Textbox(label="Hypothesis", max_lines=6)
            with gr.Column(scale=2, min_width=280):
                self._model = gr.Dropdown(self._models, value=self._models[0][1], label="Model", filterable=False)
                self._other = gr.Dropdown(
                    [("no other model", NO_OTHER), *self._models],
                    value=NO_OTHER,
                    label="Compare with",
                    filterable=False,
                    visible=len(self._models) > 1,
                )
        self._button = gr.Button("Classify", variant="primary")
        with gr.Row():
            self._panels = [build_panel(), build_panel()]
        self._near = gr.HTML(elem_classes="plain", apply_default_css=False, visible=False)
        self._pair_examples = gr.Examples(PAIRS, [self._first, self._second])
        self._sentence_examples = gr.Examples(SENTENCES, [self._first], visible=False)
        build_table(self._model, self._names, MODEL_QUEUE)

    def _connect(self) -> None:
        """Say what follows each event."""
        texts = [self._model, self._other, self._first, self._second]
        choices = [component for panel in self._panels for component in (panel.iteration, panel.head)]
        keeping = {"fn": None, "inputs": [*texts, *choices], "js": _KEEP_STATE % json.dumps(self._names)}
        fitting = {
            "fn": self.fit,
            "inputs": [self._model, self._other, self._asks_pair],
            "outputs": [
                self._asks_pair,
                self._first,
                self._second,
                self._pair_examples.dataset,
                self._sentence_examples.dataset,
            ],
            "show_progress": "hidden",
            "trigger_mode": "always_last",
            "concurrency_id": MODEL_QUEUE,
        }
        restored = [*texts, *(panel.chosen for panel in self._panels)]
        self._follow(self.blocks.load(self.restore, None, restored).then(**fitting))
        asking = [self._model.input, self._other.input, self._button.click, self._first.submit, self._second.submit]
        self._follow(gr.on(asking, **fitting)).then(**keeping)
        for examples in (self._pair_examples, self._sentence_examples):
            self._follow(examples.load_input_event.then(**fitting)).then(**keeping)
        for panel, beside in zip(self._panels, reversed(self._panels), strict=True):
            gr.on(
                [panel.iteration.input, panel.head.input],
                panel.choose,
                [panel.reading, panel.iteration, panel.head, beside.reading],
                [panel.attention, panel.chosen],
                show_progress="hidden",
            ).then(**keeping)

    def _follow(self, event: Any) -> Any:
        """After the texts are known: each model's answer, and what is near."""
        first = self._panels[0]
        ways: tuple[tuple[Any, list[Any], list[Any]], ...] = (
            (self.answer, [], []),
            (self.answer_other, [first.reading, first.chosen], [first.attention]),
        )
        for panel, dropdown, (respond, others, redrawn) in zip(
            self._panels, (self._model, self._other), ways, strict=True
        ):
            event = event.then(
                respond,
                [dropdown, self._first, self._second, panel.chosen, self._asks_pair, *others],
                [*panel.outputs, *redrawn],
                show_progress_on=[panel.classes],
                concurrency_id=MODEL_QUEUE,
            )
        if self._encoder is not None:
            event = event.then(self.search, [self._panels[0].reading], [self._near], show_progress="hidden")
        return event

    def fit(self, model_id: str, other_id: str, asked_pair: bool) -> dict[Any, Any]:
        """Ask for the texts that the models read; where none can be loaded, for those as before."""
        known = [reads for name in (model_id, other_id) if name and (reads := _reads_pairs(name)) is not None]
        asks_pair = any(known) if known else asked_pair
        return {
            self._asks_pair: asks_pair,
            self._first: gr.Textbox(label="Premise" if asks_pair else "Sentence"),
            self._second: gr.Textbox(visible=asks_pair),
            self._pair_examples.dataset: gr.Dataset(visible=asks_pair),
            self._sentence_examples.dataset: gr.Dataset(visible=not asks_pair),
        }

    def answer(self, model_id: str, text: str, text_pair: str, choice: tuple[int, int], asks_pair: bool) -> Any:
        """What the first model says."""
        return self._panels[0].answer(self._names, model_id, text, text_pair, choice, asks_pair)

    def answer_other(
        self,
        model_id: str,
        text: str,
        text_pair: str,
        choice: tuple[int, int],
        asks_pair: bool,
        beside: Reading | None,
        chosen: tuple[int, int],
    ) -> Any:
        """What the model beside it says; the first one's words are drawn again on the scale of both."""
        first, other = self._panels
        said = other.answer(self._names, model_id, text, text_pair, choice, asks_pair, beside)
        found = said[other.reading]
        return said if beside is None or found is None else said | {first.attention: draw(beside, *chosen, found)}

    def search(self, found: Reading | None) -> gr.HTML:
        """What is near in meaning."""
        if self._encoder is None or found is None:
            return gr.HTML(visible=False)
        try:
            return gr.HTML(_nearest_html(self._encoder, found), visible=True)
        except (OSError, ValueError) as error:
            return not_loaded(Path(self._encoder).name, error)

    def restore(self, request: gr.Request) -> tuple[Any, ...]:
        """What the page's address says, so that a link leads back to what was read."""
        asked = request.query_params
        ids = {name: model_id for model_id, name in self._names.items()}
        return (
            ids.get(asked.get("model", ""), self._models[0][1]),
            ids.get(asked.get("compare", ""), NO_OTHER),
            asked.get("text", ""),
            asked.get("text_pair", ""),
            (_number(asked.get("iteration"), LAST_ITERATION), _number(asked.get("head"), ALL_HEADS)),
            (
                _number(asked.get("compare_iteration"), LAST_ITERATION),
                _number(asked.get("compare_head"), ALL_HEADS),
            ),
        )


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
