"""modeling_dsa.onnx.session: what the model gives, from its ONNX file alone."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import accuracy_score
from small_repositories import Saved, save_system
from transformers import AutoTokenizer, pipeline

from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.onnx.export import export_onnx
from modeling_dsa.onnx.session import OnnxModel, score_function

SHIPPED = Path(__file__).parents[3] / "model_cards" / "dsa-snli"
SENTENCES = ["A man sleeps.", "", "The zqxv plays a guitar on the street.", "Nobody sings.", "man " * 70]
PAIRS = [("A man sleeps.", "A man is asleep."), ("", "Nobody sings."), ("A dog.", "")]


@pytest.fixture(scope="module")
def nli(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """A classifier of pairs and its ONNX files."""
    saved = save_system(tmp_path_factory.mktemp("onnx"), "nli")
    export_onnx(saved.folder, saved.folder / "onnx", quantize=True)
    return saved


@pytest.mark.parametrize("threads", [1, 3, None])
def test_vectors_are_those_of_the_model(nli: Saved, threads: int | None) -> None:
    model = OnnxModel.from_pretrained(nli.folder, threads=threads)
    expected = SentenceEncoder.from_pretrained(nli.folder).encode(SENTENCES)
    for batch_size in (1, 2, 32):
        np.testing.assert_allclose(model.encode(SENTENCES, batch_size=batch_size), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.encode(SENTENCES[0]), expected[0], rtol=1e-4, atol=1e-5)
    assert model.encode([]).shape == (0, expected.shape[1])


def test_normalised_vectors_have_length_1(nli: Saved) -> None:
    model = OnnxModel.from_pretrained(nli.folder)
    vectors = model.encode(SENTENCES, normalize=True, dtype="float16", progress=True)
    assert vectors.dtype == np.float16
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(float), axis=1), [1, 0, 1, 1, 1], atol=2e-3)


def test_classes_are_those_of_the_pipeline(nli: Saved) -> None:
    model = OnnxModel.from_pretrained(nli.folder)
    assert model.labels == ["entailment", "neutral", "contradiction"]
    pairs = [{"text": first, "text_pair": second} for first, second in PAIRS]
    classify = pipeline("text-classification", model=str(nli.folder))
    expected: list[Any] = [classify(pair) for pair in pairs]
    for given in (PAIRS, pairs, [f"{first} [SEP] {second}" for first, second in PAIRS]):
        found = model.classify(given, batch_size=2)
        assert [one["label"] for one in found] == [one["label"] for one in expected]
        assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-5)
    assert model.classify(PAIRS[0]) == model.classify(pairs[0])
    assert model.classify([]) == []


def test_int8_is_asked_for_by_a_word(nli: Saved) -> None:
    exact, quantized = (OnnxModel.from_pretrained(nli.folder, quantized=asked) for asked in (False, True))
    found, expected = quantized.encode(SENTENCES, normalize=True), exact.encode(SENTENCES, normalize=True)
    assert np.abs(found - expected).max() > 1e-4
    assert (found * expected).sum(1)[[0, 2, 3, 4]].min() > 0.97


@pytest.mark.slow
@pytest.mark.parametrize("name", ["encoder", "bilstm"])
def test_other_models(name: str, tmp_path: Path) -> None:
    saved = save_system(tmp_path, name)
    export_onnx(saved.model, saved.folder / "onnx")
    model = OnnxModel.from_pretrained(saved.folder)
    expected = SentenceEncoder.from_pretrained(saved.folder).encode(SENTENCES)
    np.testing.assert_allclose(model.encode(SENTENCES), expected, rtol=1e-4, atol=1e-5)
    if name == "encoder":
        with pytest.raises(ValueError, match="is no classifier: it has vectors only"):
            model.classify("A man sleeps.")


@pytest.mark.parametrize(
    ("problem_type", "num_labels", "expected"),
    [
        (None, 1, "sigmoid"),
        (None, 3, "softmax"),
        ("single_label_classification", 2, "softmax"),
        ("multi_label_classification", 3, "sigmoid"),
        ("regression", 1, "none"),
    ],
)
def test_scores_are_made_as_the_pipeline_makes_them(problem_type: str | None, num_labels: int, expected: str) -> None:
    assert score_function(problem_type, num_labels) == expected


def test_it_works_alone_without_torch(nli: Saved, tmp_path: Path) -> None:
    found = importlib.util.find_spec("modeling_dsa.onnx.session")
    assert found is not None
    assert found.origin is not None
    (tmp_path / "onnx_session.py").write_bytes(Path(found.origin).read_bytes())
    code = (
        "import json, sys; from onnx_session import OnnxModel; "
        f"model = OnnxModel.from_pretrained({str(nli.folder)!r}); "
        f"print(json.dumps([model.classify({PAIRS!r}), 'torch' in sys.modules, 'modeling_dsa' in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    classes, *imported = json.loads(done.stdout)
    assert imported == [False, False]
    assert [one["label"] for one in classes] == [
        one["label"] for one in OnnxModel.from_pretrained(nli.folder).classify(PAIRS)
    ]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda model: model.encode(["a", 5]), "The text at position 1 is 5, which is no string."),
        (lambda model: model.encode(["a"], batch_size=0), "batch_size must be at least 1, got 0."),
        (lambda model: model.encode(["a"], dtype="int8"), "no vectors of dtype 'int8' here: give float32 or float16."),
        (lambda model: model.classify([("a", None)]), r"The text at position 0 is \('a', None\), which is no string."),
    ],
)
def test_mistakes_are_told(nli: Saved, call: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        call(OnnxModel.from_pretrained(nli.folder))


def test_a_folder_without_a_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*onnx/model.onnx; `dsa onnx FOLDER` writes"):
        OnnxModel.from_pretrained(tmp_path)


@pytest.mark.slow
def test_int8_costs_at_most_0_3_points_of_nli_accuracy(tmp_path: Path) -> None:
    path = Path(__file__).parents[4] / "shared" / "data" / "snli" / "snli_1.0_dev.jsonl"
    if not path.is_file():
        pytest.skip("needs SNLI's complete dev set in ../shared")
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    rows = [row for row in rows if row["gold_label"] != "-"]
    export_onnx(SHIPPED, tmp_path / "onnx", quantize=True)
    AutoTokenizer.from_pretrained(SHIPPED).save_pretrained(tmp_path)
    accuracies = []
    for quantized in (False, True):
        found = OnnxModel.from_pretrained(tmp_path, quantized=quantized).classify(
            [(row["sentence1"], row["sentence2"]) for row in rows]
        )
        accuracies.append(accuracy_score([row["gold_label"] for row in rows], [one["label"] for one in found]))
    assert accuracies[1] >= accuracies[0] - 0.003, accuracies
    results = json.loads((SHIPPED / "all_results.json").read_text("utf-8"))
    assert accuracies[0] == pytest.approx(results["metrics"]["validation"]["accuracy"], abs=0.002)
