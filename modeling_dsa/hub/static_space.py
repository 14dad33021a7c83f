"""A static Space for a model: one page that runs the model's int8 ONNX file in the browser, with no server behind it.

The page itself is built from model_cards/widget, by the command that `BUILD` names; a model's files come beside it.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import constants

from modeling_dsa.files.card_sections import CARD, read_card
from modeling_dsa.files.hashing import file_hash
from modeling_dsa.files.model_folder import read_config
from modeling_dsa.files.outputs import require_folder
from modeling_dsa.files.replacing import filled_folder
from modeling_dsa.onnx.session import FOLDER, QUANTIZED_FILE, OnnxModel, data_file
from modeling_dsa.shipped.files import MODEL_CARDS
from modeling_dsa.shipped.nli import NLI_CLASS_NAMES, NLI_PAIRS
from modeling_dsa.text.special_tokens import SEP
from modeling_dsa.text.word_rules import whole_word_pattern

BUNDLE = MODEL_CARDS / "widget" / "dist"
BUILD = "npm ci && npm run build"
DESCRIPTION, TOKENIZER = "widget.json", "tokenizer.json"
_BUILT = "bundle.json"
_SIMILARITY_EXAMPLES = [
    ["A man plays the guitar.", "Somebody makes music."],
    ["A man plays the guitar.", "The central bank raised interest rates."],
    ["How do I reset my password?", "I forgot my login details."],
]
_MOST_NAMED = 6  # classes that one sentence names


def write_static_space(
    model: Path, output: Path, *, model_id: str | None = None, bundle: Path = BUNDLE
) -> dict[str, Any]:
    """Write a folder that is a static Space, and that every server of files serves as it is.

    Args:
        model: A model's folder with `onnx/model_quantized.onnx`.
        output: Where the page goes: a new folder, an empty one, or one that this function wrote before.
        model_id: The model's id on the Hub, which page and Space then lead to.
        bundle: The page as it was built.

    Returns:
        What the page's description `widget.json` holds; `sizes` are those of its files, in bytes.

    Raises:
        FileNotFoundError: The model has no int8 file, or the page is not built.
        ValueError: The ONNX file is not that of the model or not complete, its tokenizer is not one of this package's,
            or `output` is a file or a URL or holds something else.
    """
    require_folder(output, "OUTPUT")
    built = _read_bundle(bundle)
    config = read_config(model)
    onnx_file = model / FOLDER / QUANTIZED_FILE
    if not onnx_file.is_file():
        raise FileNotFoundError(f"There is no file {onnx_file}: write it by `dsa onnx {model} --int8`.")
    if onnx_file.with_name(data_file(QUANTIZED_FILE)).is_file():
        raise ValueError(
            f"{onnx_file} keeps its tables in a file of their own, and the page needs one file: write it by "
            f"`dsa onnx {model} --int8 --overwrite`, without --memory_mapped."
        )
    about = OnnxModel.from_pretrained(model, quantized=True, threads=1).about
    _check_tokenizer(model / TOKENIZER)
    old = _old_files(output)
    card = read_card(model).data.to_dict() if (model / CARD).is_file() else {}
    # None of these changes under its name, so that a browser may keep it.
    model_name, tokenizer_name = _hashed("model", onnx_file), _hashed("tokenizer", model / TOKENIZER)
    sources = {name: bundle / name for name in built["files"]}
    sources |= {model_name: onnx_file, tokenizer_name: model / TOKENIZER}
    sizes = {name: path.stat().st_size for name, path in sources.items()}
    name = model_id.rpartition("/")[2] if model_id else (model.resolve().name or str(about["name"]))
    content = {
        **_description(config, about, card),
        "name": name,
        "model_url": f"{constants.ENDPOINT}/{model_id}" if model_id else None,
        "wasm": built["wasm"],
        "model": model_name,
        "tokenizer": tokenizer_name,
        "words": whole_word_pattern(),
        "sizes": sizes,
        "files": ["./", *sources, DESCRIPTION],
    }
    digest = hashlib.sha256(json.dumps(content).encode())
    for path in (*sources.values(), bundle / built["worker"]):
        digest.update(path.read_bytes())
    content["version"] = digest.hexdigest()[:16]
    with filled_folder(output, last="index.html") as beside:
        for file, path in (sources | {built["worker"]: bundle / built["worker"]}).items():
            shutil.copyfile(path, beside / file)
        (beside / DESCRIPTION).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        (beside / CARD).write_text(_card(name, content["purpose"], model_id, card), encoding="utf-8")
    for file in old - sources.keys():
        (output / file).unlink(missing_ok=True)
    return content


def _read_bundle(bundle: Path) -> dict[str, Any]:
    path = bundle / _BUILT
    built = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    if not built or not all((bundle / name).is_file() for name in (*built["files"], built["worker"])):
        raise FileNotFoundError(
            f"The widget's page is not in {bundle}: build it in model_cards/widget of a clone of this project by "
            f"`{BUILD}`, and name its folder `dist` with --bundle where you work elsewhere."
        )
    return dict(built)


def _check_tokenizer(path: Path) -> None:
    """Refuse what the page's reader of tokenizers does not know."""
    saved = json.loads(path.read_text(encoding="utf-8"))
    normalizer, split, model = saved.get("normalizer"), saved.get("pre_tokenizer"), saved.get("model") or {}
    steps = normalizer["normalizers"] if normalizer and normalizer["type"] == "Sequence" else [normalizer]
    kinds = {step["type"] for step in steps if step}
    if not (
        kinds <= {"Replace", "NFC", "Lowercase"}
        and split
        and split["type"] == "Split"
        and model.get("type") in ("WordLevel", "WordPiece")
    ):
        raise ValueError(f"{path} is no tokenizer that this package made: a widget can show no other model.")


def _old_files(output: Path) -> set[str]:
    """The files of an earlier page in a folder."""
    if not output.exists() or (output.is_dir() and not any(output.iterdir())):
        return set()
    if not (output / DESCRIPTION).is_file():
        raise ValueError(f"{output} is there already and holds no widget: give another folder.")
    try:
        names = json.loads((output / DESCRIPTION).read_text(encoding="utf-8"))["sizes"]
    except (ValueError, TypeError, KeyError):
        return set()
    return {name for name in names if Path(name).name == name}


def _hashed(name: str, path: Path) -> str:
    return f"{name}-{file_hash(path)[:8]}{path.suffix}"


def _description(config: Mapping[str, Any], about: Mapping[str, Any], card: Mapping[str, Any]) -> dict[str, Any]:
    """What the page must know of a model to ask for its texts and to read its outputs."""
    labels = list(about.get("labels", []))
    pairs = config.get("sentences_per_example") == 2
    if set(labels) == set(NLI_CLASS_NAMES) and pairs:
        purpose = "Does the premise entail the hypothesis, contradict it, or neither?"
        texts, examples = ["Premise", "Hypothesis"], [list(pair) for pair in NLI_PAIRS]
    elif not labels:
        purpose = "How near are two texts in meaning?"
        texts, examples = ["First text", "Second text"], _SIMILARITY_EXAMPLES
    else:
        read, texts = ("a pair of texts", ["First text", "Second text"]) if pairs else ("a text", ["Text"])
        purpose, examples = _purpose(read, labels, about["scores"]), []
    return {
        "purpose": purpose,
        "texts": texts,
        "pairs": pairs,
        "labels": labels,
        "scores": about.get("scores"),
        "pad": config.get("pad_token_id") or 0,
        "separator": config.get("sep_token_id"),
        "longest": config.get("max_sentence_tokens"),
        "examples": (_card_examples(card, len(texts)) if labels else []) or examples,
    }


def _purpose(read: str, labels: list[str], scores: str) -> str:
    if scores == "none":
        return f"Which number does {read} get?"
    if len(labels) > _MOST_NAMED:
        return f"Which of {len(labels)} classes does {read} belong to?"
    return f"Is {read} {' or '.join(filter(None, [', '.join(labels[:-1]), labels[-1]]))}?"


def _card_examples(card: Mapping[str, Any], texts: int) -> list[list[str]]:
    """The examples of a model's card that have as many texts as the model reads."""
    stored = card.get("widget")
    found = [example.get("text") for example in stored if isinstance(example, dict)] if isinstance(stored, list) else []
    split = [[part.strip() for part in text.split(SEP)] for text in found if isinstance(text, str)]
    return [parts for parts in split if len(parts) == texts and all(parts)]


def _card(name: str, purpose: str, model_id: str | None, card: Mapping[str, Any]) -> str:
    """The Space's README.md, whose metadata link it on the model's page."""
    metadata = {
        "title": f"{name} in your browser",
        "emoji": "🔎",
        "colorFrom": "blue",
        "colorTo": "indigo",
        "sdk": "static",
        "app_file": "index.html",
        "pinned": False,
        "short_description": "A DSA model that runs in your browser, offline too",
        **({"license": card["license"]} if isinstance(card.get("license"), str) else {}),
        **({"models": [model_id]} if model_id else {}),
    }
    of = f"[{model_id}]({constants.ENDPOINT}/{model_id})" if model_id else f"`{name}`"
    return (
        f"---\n{yaml.safe_dump(metadata, allow_unicode=True, sort_keys=False)}---\n\n# {name} in your browser\n\n"
        f"{purpose} The page runs the int8 ONNX file of {of} by onnxruntime-web. There is no server behind it: what is "
        "typed stays on the device, and after the first visit it works without a connection.\n\n"
        "It was written by `dsa widget` of dsa-transformers; `LICENSES.txt` names the packages that it is built from.\n"
    )
