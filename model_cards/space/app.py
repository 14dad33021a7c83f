"""A page that shows what models of the DSA family decide about sentences, where they look, and what is near in meaning.

It offers the models given on the command line or in the environment variable DSA_MODELS (folders, or ids of the Hub,
separated by commas), and without any of these the models in the folders beside its own. It searches with the encoder in
DSA_ENCODER, or without one with dsa-mini-en beside its own folder.
"""

import argparse
import os
from pathlib import Path

import gradio as gr
from page import Page
from reading import find_models
from table import LARGEST_FILE

from modeling_dsa.explanation.html import GRADIO_CSS
from modeling_dsa.files.model_folder import holds_model

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
    Page(models, _find_encoder(beside)).blocks.launch(
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
