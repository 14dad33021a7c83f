"""A saved model's folder is a complete Hub repository: it loads where this package is not installed."""

import ast
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from loopback_hub import LoopbackHub
from repository_clients import (
    PAIRS,
    SENTENCES,
    TEMPLATE,
    TOPICS,
    Result,
    outputs_of,
    publish,
    run_repository_client,
    vectors_of,
    visit,
    visit_hub,
)
from small_repositories import NLI_LABELS, SYSTEMS, Saved, offline_environment, save_system
from small_runs import small_tokenizer
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer
from transformers.dynamic_module_utils import get_relative_imports

import modeling_dsa
from modeling_dsa import DSAForSequenceClassification, DSAModel
from modeling_dsa.repository_dsa import write_repository_files

PACKAGE = Path(modeling_dsa.__file__).parent
CODE = {path.name for path in PACKAGE.glob("*_dsa.py")} | {"handler.py"}
SENTENCE_TRANSFORMERS = {"modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"}
TOKENIZER = {"tokenizer.json", "tokenizer_config.json"}
CLASSIFIERS = [name for name, (kind, _) in SYSTEMS.items() if kind is not DSAModel]
TOKEN = "hf_ana"


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Saved]:
    folder = tmp_path_factory.mktemp("saved")
    return {name: save_system(folder, name) for name in SYSTEMS}


@pytest.fixture(scope="module")
def visited(saved: dict[str, Saved], tmp_path_factory: pytest.TempPathFactory) -> Result:
    """What a process without this package and without a network makes of the folders."""
    folder = tmp_path_factory.mktemp("stranger")
    environment = offline_environment(folder / "home")
    sources = {name: str(system.folder) for name, system in saved.items()}
    return run_repository_client(environment, folder, visit, sources=sources, resaved="resaved") | {"folder": folder}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackHub]:
    with LoopbackHub(tmp_path_factory.mktemp("hub")) as running:
        running.add_user("ana", TOKEN, orgs=["org"])
        yield running


@pytest.fixture(scope="module")
def published(hub: LoopbackHub, saved: dict[str, Saved], tmp_path_factory: pytest.TempPathFactory) -> Result:
    folder = tmp_path_factory.mktemp("writer")
    folders = {"nli": str(saved["nli"].folder), "encoder": str(saved["encoder"].folder), "folder": str(folder / "new")}
    return run_repository_client(hub.environment(folder / "home"), folder, publish, **folders, token=TOKEN)


@pytest.fixture(scope="module")
def visitor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where somebody lives who starts with an empty cache."""
    return tmp_path_factory.mktemp("visitor")


@pytest.fixture(scope="module")
def visited_hub(hub: LoopbackHub, published: Result, visitor: Path) -> Result:
    environment = hub.environment(visitor / "home")
    return run_repository_client(environment, visitor, visit_hub, resaved="resaved", token=TOKEN)


def differences(first: Path, second: Path) -> set[str]:
    """Names of the files that are not the same, byte for byte, in both folders."""
    contents = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in (first, second)]
    return {name for name in contents[0] | contents[1] if contents[0].get(name) != contents[1].get(name)}


def probabilities(model: Any, *texts: str) -> dict[str, float]:
    with torch.no_grad():
        scores = model(**small_tokenizer()(*texts, return_tensors="pt")).logits[0].softmax(-1).tolist()
    return {model.config.id2label[number]: score for number, score in enumerate(scores)}


def as_shares(answers: list[list[Result]]) -> list[dict[str, float]]:
    return [{answer["label"]: answer["score"] for answer in classes} for classes in answers]


# What lies in a folder


@pytest.mark.parametrize("name", SYSTEMS)
def test_files_of_a_repository(saved: dict[str, Saved], name: str) -> None:
    files = {path.name for path in saved[name].folder.iterdir()}
    assert files == {"config.json", "model.safetensors"} | CODE | SENTENCE_TRANSFORMERS | TOKENIZER


def test_what_sentence_transformers_wrote_stays(tmp_path: Path) -> None:
    """Its own `save` writes prompts and modules before it saves the model."""
    (tmp_path / "modules.json").write_text("of the user")
    write_repository_files(tmp_path)
    assert (tmp_path / "modules.json").read_text() == "of the user"
    assert (tmp_path / "config_sentence_transformers.json").is_file()


def test_code_is_the_packages(saved: dict[str, Saved]) -> None:
    for name in CODE:
        assert (saved["nli"].folder / name).read_bytes() == (PACKAGE / name).read_bytes()


@pytest.mark.parametrize("file", sorted(CODE))
def test_imports_resolve_in_the_folder(saved: dict[str, Saved], file: str) -> None:
    path = saved["nli"].folder / file
    siblings = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            assert node.level == 1, ast.unparse(node)
            assert f"{node.module}.py" in CODE, ast.unparse(node)
            siblings.add(node.module)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            packages = {module.partition(".")[0] for module in modules}
            # What transformers itself needs.
            needed = {"torch", "transformers", "huggingface_hub", "numpy", "tokenizers", "tqdm"}
            known = needed | set(sys.stdlib_module_names)
            assert packages <= known, ast.unparse(node)
    # The search that transformers makes, line by line, misses whatever shares a line.
    assert set(get_relative_imports(path)) == siblings


def test_the_model_file_imports_every_other(saved: dict[str, Saved]) -> None:
    """transformers 4.57 takes from a folder only what the first file itself names."""
    assert {f"{name}.py" for name in get_relative_imports(saved["nli"].folder / "modeling_dsa.py")} == CODE - {
        "modeling_dsa.py"
    }


@pytest.mark.parametrize("name", SYSTEMS)
def test_config_names_the_classes(saved: dict[str, Saved], name: str) -> None:
    config = json.loads((saved[name].folder / "config.json").read_text("utf-8"))
    kind = SYSTEMS[name][0]
    classifier = DSAForSequenceClassification if kind is DSAModel else kind
    assert config["architectures"] == [kind.__name__]
    assert config["auto_map"] == {
        "AutoConfig": "configuration_dsa.DSAConfig",
        "AutoModel": "modeling_dsa.DSAModel",
        "AutoModelForSequenceClassification": f"modeling_dsa.{classifier.__name__}",
    }


@pytest.mark.parametrize("name", SYSTEMS)
def test_saving_again_with_the_package_gives_the_same(saved: dict[str, Saved], name: str, tmp_path: Path) -> None:
    folder, kind = saved[name].folder, SYSTEMS[name][0]
    auto: Any = AutoModel if kind is DSAModel else AutoModelForSequenceClassification
    model = auto.from_pretrained(folder)
    assert type(model) is kind
    model.save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(folder).save_pretrained(tmp_path)
    assert differences(folder, tmp_path) == {"tokenizer_config.json"}
    check_tokenizer_configs(folder, tmp_path)


def check_tokenizer_configs(first: Path, second: Path) -> None:
    """AutoTokenizer of transformers 5 gives back its own class, and writes how it loaded it."""
    saved, resaved = [json.loads((path / "tokenizer_config.json").read_text("utf-8")) for path in (first, second)]
    assert {key for key in saved | resaved if saved.get(key) != resaved.get(key)} == {
        "tokenizer_class",
        "is_local",
        "local_files_only",
    }
    assert (saved["tokenizer_class"], resaved["tokenizer_class"]) == ("PreTrainedTokenizerFast", "TokenizersBackend")


# A folder, where this package is not installed


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_stranger_gets_the_same_numbers(saved: dict[str, Saved], visited: Result, name: str) -> None:
    assert visited["package"][0] == "ModuleNotFoundError"
    model, loaded = saved[name].model, visited[name]["loaded"]
    assert loaded["classes"] == ["DSAConfig", type(model).__name__, "DSAModel"]
    assert loaded["packages"] == ["transformers_modules"]
    assert loaded["problems"] == []
    assert loaded["training"] == [False, False]
    assert loaded["outputs"] == outputs_of(model, small_tokenizer())
    assert loaded["base_outputs"] == outputs_of(saved[name].base, small_tokenizer())
    assert ("logits" in loaded["outputs"]) == (name in CLASSIFIERS)
    assert "pooler_output" in loaded["base_outputs"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_frozen_table_stays_frozen(visited: Result, name: str) -> None:
    trains = not SYSTEMS[name][1].get("freeze_embeddings", True)
    assert visited[name]["loaded"]["table_trains"] == [trains, trains]
    assert visited[name]["loaded"]["others_train"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_a_stranger_saves_the_same_repository(saved: dict[str, Saved], visited: Result, name: str) -> None:
    folder, resaved = saved[name].folder, visited["folder"] / "resaved" / name
    assert differences(folder, resaved) == {"tokenizer_config.json"}
    check_tokenizer_configs(folder, resaved)


@pytest.mark.slow
def test_classes_of_pairs(saved: dict[str, Saved], visited: Result) -> None:
    found = visited["nli"]["pipelines"]
    expected = [probabilities(saved["nli"].model, *pair.values()) for pair in PAIRS]
    for shares, right in zip(as_shares(found["pairs"]), expected, strict=True):
        assert shares == pytest.approx(right, abs=1e-6)
    for shares, right in zip(as_shares(found["pairs_batched"]), expected, strict=True):
        assert shares == pytest.approx(right, abs=1e-6)
    assert found["pairs_as_texts"] == found["pairs"]
    assert found["pair"] == found["pairs"][0][0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vsam", "bilstm"])
def test_classes_of_sentences(saved: dict[str, Saved], visited: Result, name: str) -> None:
    shares = as_shares(visited[name]["pipelines"]["sentences"])
    for given, text in zip(shares, SENTENCES, strict=True):
        assert given == pytest.approx(probabilities(saved[name].model, text), abs=1e-6)


@pytest.mark.slow
def test_topics_without_training(saved: dict[str, Saved], visited: Result) -> None:
    topics = visited["nli"]["pipelines"]["topics"]
    batch = small_tokenizer()([SENTENCES[0]] * 3, [TEMPLATE.format(topic) for topic in TOPICS], padding=True)
    with torch.no_grad():
        logits = saved["nli"].model(**batch.convert_to_tensors("pt")).logits
    expected = dict(zip(TOPICS, logits[:, 0].softmax(0).tolist(), strict=True))  # 0 is entailment
    assert dict(zip(topics["labels"], topics["scores"], strict=True)) == pytest.approx(expected, abs=1e-6)
    assert topics["scores"] == sorted(topics["scores"], reverse=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_vectors_of_words(saved: dict[str, Saved], visited: Result, name: str) -> None:
    with torch.no_grad():
        outputs = saved[name].base(**small_tokenizer()(SENTENCES[0], return_tensors="pt"))
    assert visited[name]["pipelines"]["features"] == outputs.last_hidden_state.tolist()


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_vectors_of_sentences(saved: dict[str, Saved], visited: Result, name: str) -> None:
    found = visited[name]["pipelines"]
    expected = torch.tensor(vectors_of(saved[name].base, small_tokenizer()))
    assert found["class"] == "SentenceEmbeddingPipeline"
    torch.testing.assert_close(torch.tensor(found["vectors"]), expected)
    torch.testing.assert_close(torch.tensor(found["vectors_batched"]), expected)
    lengths = expected.norm(dim=-1, keepdim=True)
    torch.testing.assert_close(torch.tensor(found["vectors_normalized"]), expected / lengths)
    assert found["vector"] == pytest.approx(found["vectors"][0], abs=1e-6)
    assert found["tensors"] == [["torch.float32", vector] for vector in found["vectors"]]


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_sentence_transformers(saved: dict[str, Saved], visited: Result, name: str) -> None:
    model, found = saved[name].base, visited[name]["encoded"]
    expected = torch.tensor(vectors_of(model, small_tokenizer()))
    torch.testing.assert_close(torch.tensor(found["vectors"]), expected)
    normalized = torch.nn.functional.normalize(expected)
    torch.testing.assert_close(torch.tensor(found["normalized"]), normalized)
    torch.testing.assert_close(torch.tensor(found["similarity"]), normalized @ normalized[0])
    assert found["dimension"] == expected.shape[1] == model.config.sentence_embedding_size


# The Hub, where this package is not installed


@pytest.mark.slow
def test_pushed_repositories_hold_everything(hub: LoopbackHub, published: Result) -> None:
    assert hub.commits("org/nli") == ["Train more", "Upload tokenizer", "Upload DSAForNLI", "initial commit"]
    assert hub.commits("org/encoder") == ["Upload tokenizer", "Encoder", "initial commit"]


@pytest.mark.slow
def test_a_stranger_gets_the_same_numbers_from_the_hub(
    saved: dict[str, Saved], published: Result, visited_hub: Result
) -> None:
    found = visited_hub["nli"]
    assert found["loaded"]["packages"] == ["transformers_modules"]
    assert found["loaded"]["classes"] == ["DSAConfig", "DSAForNLI", "DSAModel"]
    assert found["loaded"]["problems"] == []
    assert found["loaded"]["outputs"] == published["after"]
    assert found["loaded"]["table_trains"] == [False, False]
    expected = torch.tensor(vectors_of(saved["nli"].base, small_tokenizer()))
    torch.testing.assert_close(torch.tensor(found["pipelines"]["vectors"]), expected)
    torch.testing.assert_close(torch.tensor(found["encoded"]["vectors"]), expected)
    assert found["encoded"]["dimension"] == expected.shape[1]
    for shares, logits in zip(
        as_shares(found["pipelines"]["pairs"]), torch.tensor(published["after"]["logits"]), strict=True
    ):
        right = dict(zip(NLI_LABELS.values(), logits.softmax(-1).tolist(), strict=True))
        assert shares == pytest.approx(right, abs=1e-6)
    assert found["pipelines"]["pairs_as_texts"] == found["pipelines"]["pairs"]


@pytest.mark.slow
def test_a_revision_of_the_hub(saved: dict[str, Saved], published: Result, visited_hub: Result, visitor: Path) -> None:
    assert published["before"] == outputs_of(saved["nli"].model, small_tokenizer())
    assert published["before"] != published["after"]
    assert visited_hub["v1"]["outputs"] == published["before"]
    resaved = visitor / "resaved" / "v1"
    assert differences(saved["nli"].folder, resaved) == {"tokenizer_config.json"}


@pytest.mark.slow
def test_a_config_from_the_hub_is_saved_without_the_hubs_name(visited_hub: Result, visitor: Path) -> None:
    config = json.loads((visitor / "resaved" / "nli" / "config.json").read_text("utf-8"))
    assert config["auto_map"]["AutoModel"] == "modeling_dsa.DSAModel"
    assert "org/nli" not in json.dumps(config)


@pytest.mark.slow
def test_a_private_repository_asks_for_a_token(saved: dict[str, Saved], visited_hub: Result) -> None:
    kind, sentence = visited_hub["without_token"]
    assert kind == "OSError"
    assert "org/encoder is not a local folder and is not a valid model identifier" in sentence
    assert "If this is a private repository, make sure to pass a token" in sentence
    model = saved["encoder"].model
    assert visited_hub["encoder"]["outputs"] == outputs_of(model, small_tokenizer())
    expected = torch.tensor(vectors_of(model, small_tokenizer()))
    torch.testing.assert_close(torch.tensor(visited_hub["encoder_pipelines"]["vectors"]), expected)


@pytest.mark.slow
def test_what_was_loaded_once_loads_offline(hub: LoopbackHub, visited_hub: Result, visitor: Path) -> None:
    environment = hub.environment(visitor / "home") | {"HF_HUB_OFFLINE": "1"}
    before = len(hub.requests)
    offline = run_repository_client(environment, visitor, visit, sources={"nli": "org/nli"})
    assert offline["nli"] == visited_hub["nli"]
    assert len(hub.requests) == before
