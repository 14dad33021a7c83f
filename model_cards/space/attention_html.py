"""Attention over words as HTML that everybody can read: shaded words, their weights as numbers, and a legend.

Every weight stands under its word, so nothing is said by colour alone. The shades are one hue in steps of lightness,
which every kind of colour vision tells apart; on a dark page they run from dark to light.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

_DARK_TEXT, _LIGHT_TEXT = "#0b1524", "#ffffff"
# From no attention to the largest weight on the page. ColorBrewer's Blues, and the like of them for a dark page.
_LIGHT_PAGE = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")
_DARK_PAGE = ("#1e2a3a", "#1d3a5c", "#1c4c80", "#2171b5", "#4292c6", "#6baed6", "#9ecae1", "#c6dbef", "#f7fbff")
_STRONGEST = len(_LIGHT_PAGE) - 1


def _shades(page: str, colours: Sequence[str], dark_text: slice) -> str:
    """The rules of one kind of page; `dark_text` are the light shades among them."""
    light = set(range(len(colours))[dark_text])
    return "\n".join(
        f"{page}.attention .shade-{step} "
        f"{{ background: {colour}; color: {_DARK_TEXT if step in light else _LIGHT_TEXT}; }}"
        for step, colour in enumerate(colours)
    )


CSS = f"""
.attention {{ --edge: #cbd5e1; --dashes: #475569; padding: 0.9rem 1rem 1.1rem; font-size: 1.1rem; line-height: 1.25;
  border: 1px solid var(--border-color-primary); border-radius: 0.3rem; background: var(--block-background-fill);
  color: var(--body-text-color); }}
.dark .attention {{ --edge: #334155; --dashes: #cbd5e1; }}
.attention h3 {{ margin: 1.1rem 0 0.4rem; font-size: 1.05rem; font-weight: 650; }}
.attention .head {{ display: flex; gap: 0.2rem 0.75rem; margin: 0.35rem 0; }}
.attention .name {{ flex: none; width: 3.6rem; padding-top: 0.3rem; font-size: 0.8rem; }}
.attention ol {{ display: flex; flex-wrap: wrap; gap: 0.3rem; min-width: 0; margin: 0; padding: 0; list-style: none; }}
.attention li {{ min-width: 3.3rem; max-width: 100%; margin: 0; padding: 0.2rem 0.5rem 0.15rem;
  border: 1px solid var(--edge); border-radius: 0.4rem; text-align: center; overflow-wrap: anywhere; }}
.attention li.unknown, .attention .unknown-sample {{ border: 1px dashed var(--dashes); }}
.attention .weight {{ display: block; font-size: 0.75rem; font-variant-numeric: tabular-nums; }}
.attention .legend {{ display: flex; flex-wrap: wrap; align-items: center; gap: 0.3rem 0.5rem; margin: 0;
  font-size: 0.8rem; }}
.attention .scale {{ display: flex; overflow: hidden; border: 1px solid var(--edge); border-radius: 0.3rem; }}
.attention .scale i {{ width: 1rem; height: 0.8rem; }}
.attention .unknown-sample {{ margin-left: 0.75rem; padding: 0 0.4rem; border-radius: 0.3rem; }}
@media (max-width: 480px) {{
  .attention .head {{ flex-direction: column; }}
  .attention .name {{ width: auto; padding-top: 0; }}
}}
{_shades("", _LIGHT_PAGE, slice(6))}
{_shades(".dark ", _DARK_PAGE, slice(4, None))}
"""


@dataclass(frozen=True)
class ReadSentence:
    """A sentence as a model read it.

    Attributes:
        name: what the sentence is, such as `Premise`.
        words: its words, as they were written.
        known: for each word, whether the model has it in its vocabulary.
        weights: the attention weights. (iterations, heads, words), with 0 iterations where there is no attention
    """

    name: str
    words: Sequence[str]
    known: Sequence[bool]
    weights: np.ndarray


def attention_html(sentences: Sequence[ReadSentence], iteration: int, head: int | None) -> str:
    """The words of sentences under one iteration of attention, a row for each head.

    The shades run from 0 to the largest weight of all iterations and heads, so that they stay comparable from one
    picture to the next.

    Args:
        sentences: what to show, with equal numbers of iterations and of heads.
        iteration: which iteration, from 0.
        head: which head, from 0; None shows all of them.
    """
    largest = max(float(sentence.weights.max()) for sentence in sentences)
    iterations, count, _ = sentences[0].weights.shape
    parts = [_legend(largest, any(not all(sentence.known) for sentence in sentences))]
    for sentence in sentences:
        parts.append(f"<h3>{escape(sentence.name)}</h3>")
        for number in range(count) if head is None else [head]:
            label = f"{sentence.name}, head {number + 1} of {count}, iteration {iteration + 1} of {iterations}"
            weights = sentence.weights[iteration, number]  # (words,)
            words = "".join(
                _word(word, float(weight), largest, known)
                for word, weight, known in zip(sentence.words, weights, sentence.known, strict=True)
            )
            name = f'<span class="name">head {number + 1}</span>' if count > 1 else ""
            parts.append(f'<div class="head">{name}<ol role="list" aria-label="{escape(label)}">{words}</ol></div>')
    return f'<div class="attention">{"".join(parts)}</div>'


def _word(word: str, weight: float, largest: float, known: bool) -> str:
    share = weight / largest if largest else 0.0
    title = f"{word}: {weight:.2%}" + ("" if known else ", not in the vocabulary")
    shade = f"shade-{round(share * _STRONGEST)}" + ("" if known else " unknown")
    return (
        f'<li class="{shade}" title="{escape(title)}"><bdi class="word">{escape(word)}</bdi>'
        f'<span class="weight">{weight:.1%}</span></li>'
    )


def _legend(largest: float, unknown: bool) -> str:
    scale = "".join(f'<i class="shade-{step}"></i>' for step in range(_STRONGEST + 1))
    sample = '<span class="unknown-sample">not in the vocabulary</span>' if unknown else ""
    return (
        f'<p class="legend">attention weight <span>0%</span><span class="scale" aria-hidden="true">{scale}</span>'
        f"<span>{largest:.1%}</span>{sample}</p>"
    )
