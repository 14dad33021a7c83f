"""The part of the page that takes a CSV file and returns it with classes."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import gradio as gr
from panel import not_loaded, show_message
from reading import MOST_ROWS, classify_table, load_model

LARGEST_FILE = 2 * 10**6  # bytes


def build_table(model: gr.Dropdown, names: Mapping[str, str], queue: str) -> None:
    """Build the part of the page, which does its work by itself.

    Args:
        model: Where the model is chosen.
        names: Of each model.
        queue: Where whatever uses a model waits.
    """
    with gr.Accordion("Many texts: a CSV file in, its texts with classes out", open=False):
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
        # Equal files of two visitors are in one folder.
        output = Path(mkdtemp(dir=Path(path).parent), "classified.csv")
        try:
            loaded = load_model(model_id)
        except Exception as error:  # whatever a repository may hold, the page goes on and says what is wrong
            return {table_message: not_loaded(names[model_id], error), classified: gr.File(visible=False)}
        try:
            told = classify_table(*loaded, Path(path), output)
        except ValueError as error:
            return {table_message: show_message(str(error)), classified: gr.File(visible=False)}
        return {
            table_message: show_message(told),
            classified: gr.File(str(output), visible=True),
        }

    table_button.click(answer_table, [model, table], [table_message, classified], concurrency_id=queue)
