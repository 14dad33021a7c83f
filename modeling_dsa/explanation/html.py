"""Attention over words as HTML that everybody can read: shaded words, their weights as numbers, and a legend.

Every weight stands under its word, so nothing is said by colour alone. The shades are one hue in steps of lightness,
which every kind of colour vision tells apart; on a dark page they run from dark to light. Nothing is loaded from
elsewhere, and nothing runs: it is HTML and CSS alone.
"""

from collections.abc import Mapping, Sequence
from html import escape

from .attention import UNKNOWN, UNKNOWN_MARK, AttentionRow, LabelScores, TextAttention
from .words import has_direction, runs_right_to_left

_DARK_TEXT, _LIGHT_TEXT = "#0b1524", "#ffffff"
# From no attention to the largest weight on the page. ColorBrewer's Blues, and the like of them for a dark page.
_LIGHT_PAGE = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#08519c", "#08306b")
_DARK_PAGE = ("#1e2a3a", "#1d3a5c", "#1c4c80", "#2171b5", "#4292c6", "#6baed6", "#9ecae1", "#c6dbef", "#f7fbff")
_STRONGEST = len(_LIGHT_PAGE) - 1


def _colours(shades: Sequence[str], dark_text: slice, **others: str) -> str:
    """The CSS variables of one kind of page; `dark_text` are the light shades among them."""
    light = set(range(len(shades))[dark_text])
    values = dict(others)
    for step, shade in enumerate(shades):
        values |= {f"shade-{step}": shade, f"text-{step}": _DARK_TEXT if step in light else _LIGHT_TEXT}
    return " ".join(f"--{name}: {value};" for name, value in values.items())


_LIGHT = _colours(_LIGHT_PAGE, slice(6), edge="#cbd5e1", page="#ffffff", text="#0b1524")
_DARK = _colours(_DARK_PAGE, slice(4, None), edge="#334155", page="#0f172a", text="#e2e8f0")
_SHADES = "\n".join(
    f".attention .shade-{step} {{ background: var(--shade-{step}); color: var(--text-{step}); }}"
    for step in range(_STRONGEST + 1)
)
_WORDS_CSS = f"""
.attention {{ {_LIGHT} font-size: 1.1rem; line-height: 1.25; }}
.attention :is(h2, h3) {{ margin: 1.1rem 0 0.4rem; font-size: 1.05rem; font-weight: 650; }}
.attention .head {{ display: flex; gap: 0.2rem 0.75rem; margin: 0.35rem 0; }}
.attention .name {{ flex: none; width: 4.2rem; padding-top: 0.3rem; font-size: 0.8rem; }}
.attention .head ol {{ display: flex; flex: 1; flex-wrap: wrap; gap: 0.3rem; min-width: 0; margin: 0; padding: 0;
  list-style: none; }}
.attention .head li {{ min-width: 3.3rem; max-width: 100%; margin: 0; padding: 0.2rem 0.5rem 0.15rem;
  box-sizing: border-box; border: 1px solid var(--edge); border-radius: 0.4rem; text-align: center;
  overflow-wrap: anywhere; }}
.attention .head li.unknown, .attention .unknown-sample {{ border: 1px dashed currentColor; }}
.attention .weight {{ display: block; font-size: 0.75rem; font-variant-numeric: tabular-nums; direction: ltr; }}
.attention .legend {{ display: flex; flex-wrap: wrap; align-items: center; gap: 0.3rem 0.5rem; margin: 0;
  font-size: 0.8rem; }}
.attention .scale {{ display: flex; overflow: hidden; border: 1px solid var(--edge); border-radius: 0.3rem; }}
.attention .scale i {{ width: 1rem; height: 0.8rem; }}
.attention .unknown-sample {{ margin-left: 0.75rem; padding: 0 0.4rem; border-radius: 0.3rem; }}
@media (max-width: 480px) {{
  .attention .head {{ flex-direction: column; }}
  .attention .name {{ width: auto; padding-top: 0; }}
}}
{_SHADES}
"""
# For a page of Gradio, which says itself whether it is dark.
GRADIO_CSS = f"""{_WORDS_CSS}
.attention {{ padding: 0.9rem 1rem 1.1rem; border: 1px solid var(--border-color-primary); border-radius: 0.3rem;
  background: var(--block-background-fill); color: var(--body-text-color); }}
.dark .attention {{ {_DARK} }}
"""
_CSS = f"""{_WORDS_CSS}
.attention {{ padding: 1rem; background: var(--page); color: var(--text); font-family: system-ui, sans-serif; }}
@media (prefers-color-scheme: dark) {{ .attention {{ {_DARK} }} }}
.attention .texts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr));
  gap: 0 2rem; }}
.attention .texts > * {{ min-width: 0; }}
.attention details {{ margin: 1rem 0 0; border-top: 1px solid var(--edge); padding-top: 0.7rem; }}
.attention summary {{ cursor: pointer; }}
.attention summary h2 {{ display: inline; }}
.attention table {{ margin: 0 0 1rem; border-collapse: collapse; background: none; color: inherit;
  font-size: 1rem; }}
.attention caption {{ text-align: start; font-weight: 650; padding: 0 0 0.3rem; }}
.attention th, .attention td {{ padding: 0.1rem 1rem 0.1rem 0; border: 0; background: none; color: inherit;
  overflow-wrap: anywhere; }}
.attention th {{ text-align: start; font-weight: 400; }}
.attention td {{ text-align: end; font-variant-numeric: tabular-nums; }}
.attention tr:first-child > * {{ font-weight: 650; }}
.attention .note {{ margin: 1rem 0 0; font-size: 0.85rem; }}
"""
_PAGE_CSS = f"""
body {{ margin: 0; {_LIGHT} background: var(--page); }}
@media (prefers-color-scheme: dark) {{ body {{ {_DARK} }} }}
.attention {{ max-width: 75rem; margin: 0 auto; box-sizing: border-box; }}
.attention h1 {{ margin: 0 0 0.8rem; font-size: 1.4rem; overflow-wrap: anywhere; }}
"""


def attention_html(
    texts: Mapping[str, TextAttention],
    iteration: int,
    head: int | None,
    beside: Mapping[str, TextAttention] | None = None,
) -> str:
    """The words of texts under one iteration of attention, for a page with `GRADIO_CSS`.

    The shades run from 0 to the largest weight of all iterations, heads and the shortcut, so that they stay comparable
    from one picture to the next.

    Args:
        texts: What to show, by name, such as `Premise`; with equal numbers of iterations and of heads.
        iteration: Which iteration, from 0.
        head: Which head, from 0; None shows all of them.
        beside: What another model makes of the texts: the scale is the same for both, so that equal shades are equal
            weights.
    """
    largest = max(_largest(texts), _largest(beside) if beside else 0.0)
    parts = [_legend(texts, largest)]
    for name, text in texts.items():
        rows = text.rows(iteration) if head is None else [text.row(iteration, head)]
        parts.append(_text_html(name, text, rows, iteration, largest))
    return f'<div class="attention">{"".join(parts)}</div>'


def explanation_html(texts: Mapping[str, TextAttention], scores: LabelScores | None) -> str:
    """Texts under every iteration, side by side where there is room, with a classifier's scores; for a notebook.

    Args:
        texts: What to show, by name; with equal numbers of iterations and of heads.
        scores: What the classifier says.
    """
    return f'<style>{_CSS}</style><div class="attention">{_contents(texts, scores)}</div>'


def explanation_page(model: str, texts: Mapping[str, TextAttention], scores: LabelScores | None) -> str:
    """The same as a page of its own.

    Args:
        model: What the model is called.
        texts: As for `explanation_html`.
        scores: As for `explanation_html`.
    """
    title = escape(f"Where {model or 'the model'} looks")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{title}</title>\n<style>{_CSS}{_PAGE_CSS}</style>\n</head>\n"
        f'<body>\n<main class="attention">\n<h1>{title}</h1>\n{_contents(texts, scores)}\n</main>\n</body>\n</html>\n'
    )


def _contents(texts: Mapping[str, TextAttention], scores: LabelScores | None) -> str:
    parts = [] if scores is None else [_scores_html(scores)]
    parts.append(_legend(texts, _largest(texts)))
    count = len(next(iter(texts.values())).weights)
    level = 2 if count == 1 else 3  # below the page's title, or an iteration's
    for iteration in range(count):
        shown = "".join(
            f"<section>{_text_html(name, text, text.rows(iteration), iteration, _largest(texts), level)}</section>"
            for name, text in texts.items()
        )
        shown = f'<div class="texts">{shown}</div>'
        if count > 1:
            is_open = " open" if iteration == count - 1 else ""
            heading = f"<summary><h2>Routing iteration {iteration + 1} of {count}</h2></summary>"
            shown = f"<details{is_open}>{heading}{shown}</details>"
        parts.append(shown)
    if any(len(text.samples) for text in texts.values()):
        parts.append('<p class="note">± is the standard deviation of a weight over samples of the latent variable.</p>')
    return "\n".join(parts)


def _scores_html(scores: LabelScores) -> str:
    rows = "".join(
        f'<tr><th scope="row"><bdi>{escape(label)}</bdi></th><td>{value}</td></tr>' for label, value in scores.shown()
    )
    return f"<table><caption>What the model says</caption>{rows}</table>"


def _text_html(
    name: str, text: TextAttention, rows: Sequence[AttentionRow], iteration: int, largest: float, level: int = 3
) -> str:
    several = len(rows) > 1 or len(text.weights[iteration]) > 1
    parts = [f"<h{level}>{escape(name)}</h{level}>"]
    # The words are isolated from each other, so `dir=auto` would not see them.
    direction = "rtl" if runs_right_to_left(text.text) else "ltr"
    for row in rows:
        label = f"{name}, {row.name}, iteration {iteration + 1} of {len(text.weights)}"
        spread = row.spread.tolist() if row.spread is not None else [None] * len(row.weights)
        words = "".join(
            _word(word, float(weight), deviation, largest, known, "auto" if has_direction(word) else direction)
            for word, weight, deviation, known in zip(text.words, row.weights, spread, text.known, strict=True)
        )
        shown = f'<span class="name">{row.name}</span>' if several else ""
        listed = f'<ol dir="{direction}" role="list" aria-label="{escape(label)}">{words}</ol>'
        parts.append(f'<div class="head">{shown}{listed}</div>')
    return "".join(parts)


def _word(word: str, weight: float, deviation: float | None, largest: float, known: bool, direction: str) -> str:
    share = weight / largest if largest else 0.0
    spread = "" if deviation is None else f" ±{deviation:.1%}"
    title = f"{word}: {weight:.2%}{spread}" + ("" if known else f", {UNKNOWN}")
    shade = f"shade-{round(share * _STRONGEST)}" + ("" if known else " unknown")
    return (
        f'<li class="{shade}" title="{escape(title)}"><bdi class="word" dir="{direction}">{escape(word)}</bdi>'
        f'<span class="weight">{weight:.1%}{spread}{"" if known else UNKNOWN_MARK}</span></li>'
    )


def _legend(texts: Mapping[str, TextAttention], largest: float) -> str:
    scale = "".join(f'<i class="shade-{step}"></i>' for step in range(_STRONGEST + 1))
    unknown = any(not all(text.known) for text in texts.values())
    sample = f'<span class="unknown-sample">{UNKNOWN_MARK} {UNKNOWN}</span>' if unknown else ""
    sample += "".join(f"<span>{escape(name)}: {text.cut}</span>" for name, text in texts.items() if text.cut)
    return (
        f'<p class="legend">attention weight <span>0%</span><span class="scale" aria-hidden="true">{scale}</span>'
        f"<span>{largest:.1%}</span>{sample}</p>"
    )


def _largest(texts: Mapping[str, TextAttention]) -> float:
    return max(text.largest for text in texts.values())
