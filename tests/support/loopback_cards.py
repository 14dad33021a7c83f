"""What the Hub reads from a repository's README: the check of its metadata, and the tags on its page."""

import re
from typing import Any

import yaml
from huggingface_hub.repocard import REGEX_YAML_BLOCK

# As lists, these would take a line for every word.
LICENSES = (  # noqa: SIM905
    "apache-2.0 mit openrail bigscience-openrail-m creativeml-openrail-m bigscience-bloom-rail-1.0 bigcode-openrail-m "
    "afl-3.0 artistic-2.0 bsl-1.0 bsd bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda cc cc0-1.0 cc-by-2.0 "
    "cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 cc-by-nc-4.0 cc-by-nd-4.0 "
    "cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 cdla-sharing-1.0 "
    "cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 eupl-1.2 agpl-3.0 gfdl "
    "gpl gpl-2.0 gpl-3.0 lgpl lgpl-2.1 lgpl-3.0 isc h-research intel-research lppl-1.3c ms-pl apple-ascl apple-amlr "
    "mpl-2.0 odc-by odbl openmdw-1.0 openrail++ osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib pddl lgpl-lr "
    "deepfloyd-if-license fair-noncommercial-research-license llama2 llama3 llama3.1 llama3.2 llama3.3 llama4 "
    "grok2-community gemma unknown other"
).split()
TASKS = (  # noqa: SIM905
    "text-classification token-classification table-question-answering question-answering zero-shot-classification "
    "translation summarization feature-extraction text-generation fill-mask sentence-similarity text-ranking "
    "text-to-speech text-to-audio automatic-speech-recognition audio-to-audio audio-classification "
    "audio-text-to-text voice-activity-detection depth-estimation image-classification object-detection "
    "image-segmentation text-to-image image-to-text image-to-image image-to-video unconditional-image-generation "
    "video-classification reinforcement-learning robotics tabular-classification tabular-regression "
    "tabular-to-text table-to-text multiple-choice text-retrieval time-series-forecasting text-to-video "
    "image-text-to-text image-text-to-image image-text-to-video visual-question-answering "
    "document-question-answering zero-shot-image-classification graph-ml mask-generation "
    "zero-shot-object-detection text-to-3d image-to-3d image-feature-extraction video-text-to-text "
    "keypoint-detection visual-document-retrieval any-to-any video-to-video other"
).split()
SDKS = ("gradio", "docker", "static", "streamlit")
COLOURS = ("red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray")
REPOSITORY = re.compile(r"[\w.-]+(/[\w.-]+)?")
LANGUAGE = re.compile(r"[a-z]{2,3}|code|multilingual")
NO_METADATA = "empty or missing yaml metadata in repo card"
INVALID = "The YAML metadata of your README.md is invalid."


def read_card(text: str) -> dict[str, Any]:
    """A README's metadata; empty where there is none or it cannot be read."""
    block = REGEX_YAML_BLOCK.search(text)
    try:
        card = yaml.safe_load(block[2]) if block else None
    except yaml.YAMLError:
        return {}
    return card if isinstance(card, dict) else {}


def check_card(text: str, repo_type: str) -> tuple[list[str], list[str]]:
    """Errors, for which the Hub refuses a README, and warnings."""
    block = REGEX_YAML_BLOCK.search(text)
    if block is None:
        return [], [NO_METADATA]
    try:
        card = yaml.safe_load(block[2])
    except yaml.YAMLError as error:
        return [f"Invalid YAML in README.md: {error}"], []
    if isinstance(card, list):
        return ['"value" must be of type object'], []
    if not isinstance(card, dict):
        return [INVALID], []
    errors = [*_wrong_names(card), *_wrong_texts(card)]
    if repo_type == "model":
        errors += _wrong_results(card.get("model-index"))
    if repo_type == "space":
        errors += _wrong_space(card)
    return errors, _unknown_tasks(card, repo_type)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _wrong_names(card: dict[str, Any]) -> list[str]:
    errors = []
    if "license" in card and not all(name in LICENSES for name in _listed(card["license"])):
        errors.append(f'"license" must be one of [{", ".join(LICENSES)}, array]')
    hints = {
        "language": (LANGUAGE, "It must be an ISO 639-1, 639-2 or 639-3 code (two/three letters), or a special value."),
        "base_model": (REPOSITORY, "Use a model id from https://hf.co/models."),
        "datasets": (REPOSITORY, "If possible, use a dataset id from https://hf.co/datasets."),
    }
    for key, (pattern, hint) in hints.items():
        for index, value in enumerate(_listed(card.get(key, []))):
            if not isinstance(value, str) or not pattern.fullmatch(value):
                location = f"{key}[{index}]" if isinstance(card[key], list) else key
                errors.append(f'"{location}" with value "{value}" is not valid. {hint}')
    return errors


def _wrong_texts(card: dict[str, Any]) -> list[str]:
    single = ("pipeline_tag", "library_name", "license_name", "license_link", "thumbnail", "title")
    errors = [f'"{key}" must be a string' for key in single if not isinstance(card.get(key, ""), str)]
    for key in ("tags", "metrics"):
        for index, value in enumerate(_listed(card.get(key, []))):
            if not isinstance(value, str) and not (key == "metrics" and isinstance(value, dict)):
                errors.append(f'"{key}[{index}]" must be a string')
    for index, example in enumerate(_listed(card.get("widget", []))):
        if not isinstance(example, dict):
            errors.append(f'"widget[{index}]" must be of type object')
    return errors


def _wrong_results(index: Any) -> list[str]:
    if index is None:
        return []
    if not isinstance(index, list):
        return ['"model-index" must be an array']
    errors: list[str] = []

    def need(location: str, owner: Any, *keys: str) -> bool:
        if not isinstance(owner, dict):
            errors.append(f'"{location}" must be of type object')
            return False
        missing = [key for key in keys if owner.get(key) is None]
        errors.extend(f'"{location}.{key}" is required' for key in missing)
        return not missing

    for first, model in enumerate(index):
        location = f"model-index[{first}]"
        if need(location, model, "name", "results"):
            for second, result in enumerate(_listed(model["results"])):
                inner = f"{location}.results[{second}]"
                if need(inner, result, "task", "dataset", "metrics"):
                    need(f"{inner}.task", result["task"], "type")
                    need(f"{inner}.dataset", result["dataset"], "type", "name")
                    for third, metric in enumerate(_listed(result["metrics"])):
                        need(f"{inner}.metrics[{third}]", metric, "type", "value")
    return errors


def _wrong_space(card: dict[str, Any]) -> list[str]:
    errors = []
    for key, choices in {"sdk": SDKS, "colorFrom": COLOURS, "colorTo": COLOURS}.items():
        if card.get(key, choices[0]) not in choices:
            errors.append(f'"{key}" must be one of [{", ".join(choices)}]')
    if len(str(card.get("short_description", ""))) > 60:
        errors.append('"short_description" length must be less than or equal to 60 characters')
    return errors


def _unknown_tasks(card: dict[str, Any], repo_type: str) -> list[str]:
    key = {"model": "pipeline_tag", "dataset": "task_categories"}.get(repo_type)
    unknown = [task for task in _listed(card.get(key, [])) if task not in TASKS] if key else []
    return [f'The {key} "{task}" is not in the official list: {", ".join(TASKS)}' for task in unknown]


def page_tags(card: dict[str, Any], config: dict[str, Any], files: list[str]) -> list[str]:
    """The tags that the Hub shows for a repository, from its card, its config.json and its files' names."""
    formats = {"safetensors": ".safetensors", "onnx": ".onnx", "pytorch": "pytorch_model.bin"}
    found = [
        library_of(card, config),
        *(name for name, ending in formats.items() if any(file.endswith(ending) for file in files)),
        config.get("model_type"),
        *_listed(card.get("tags", [])),
        card.get("pipeline_tag"),
        "model-index" if card.get("model-index") else None,
        "custom_code" if config.get("auto_map") else None,
        *_listed(card.get("language", [])),
    ]
    for key, prefix in {"datasets": "dataset", "base_model": "base_model", "license": "license"}.items():
        found += [f"{prefix}:{value}" for value in _listed(card.get(key, []))]
    return list(dict.fromkeys(tag for tag in [*found, "region:us"] if isinstance(tag, str)))


def library_of(card: dict[str, Any], config: dict[str, Any]) -> str | None:
    """The library that a page offers to load a model with."""
    return card.get("library_name") or ("transformers" if config.get("model_type") else None)
