"""modeling_dsa.onnx.session: what the model gives, from its ONNX file alone."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from loopback_hub import LoopbackHub
from safetensors.numpy import load_file, save_file
from sklearn.metrics import accuracy_score
from small_repositories import Saved, save_system
from transformers import AutoTokenizer, pipeline

from modeling_dsa import DSAForNLI
from modeling_dsa.cli.main import main
from modeling_dsa.encoding.encoder import SentenceEncoder
from modeling_dsa.onnx.export import export_onnx
from modeling_dsa.onnx.session import OnnxModel, open_session

SHIPPED = Path(__file__).parents[3] / "model_cards" / "dsa-snli"
SENTENCES = ["A man [SEP] plays.", "", "The zqxv plays on the street.", "Nobody sings.", "man " * 70, "\ud800 man"]
PAIRS = [("A man sleeps.", "A man is asleep."), ("", "Nobody sings."), ("A dog.", "")]


@pytest.mark.parametrize("threads", [1, 3, None])
def test_vectors_are_those_of_the_model(exported: Saved, threads: int | None) -> None:
    model = OnnxModel.from_pretrained(exported.folder, threads=threads)
    encoder = SentenceEncoder.from_pretrained(exported.folder)
    expected = encoder.encode(SENTENCES)
    assert np.abs(model.encode(SENTENCES, dtype="int8") - encoder.encode(SENTENCES, dtype="int8")).max() <= 1
    for batch_size in (1, 2, 32):
        np.testing.assert_allclose(model.encode(SENTENCES, batch_size=batch_size), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(model.encode(SENTENCES[0]), expected[0], rtol=1e-4, atol=1e-5)
    assert model.encode([]).shape == (0, expected.shape[1])


def test_a_model_of_the_hub_comes_with_its_tables(
    exported: Saved, memory_mapped: Saved, tmp_path: Path, hub: LoopbackHub
) -> None:
    folders = {name: tmp_path / name for name in ("complete", "mapped")}
    shutil.copytree(exported.folder, folders["complete"])
    shutil.copytree(memory_mapped.folder, folders["mapped"])
    hub.add_user("ada", "hf_ada")
    with hub.connected("hf_ada"):
        for name, folder in folders.items():
            assert main(["push", str(folder), f"ada/{name}"]) == 0
    code = (
        "import json; from modeling_dsa.onnx.session import OnnxModel\n"
        "models = [OnnxModel.from_pretrained(f'ada/{name}') for name in ('complete', 'mapped')]\n"
        "print(json.dumps([model.encode('A man sleeps.').tolist() for model in models]))"
    )
    environment = hub.environment(tmp_path / "home")
    done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    expected = OnnxModel.from_pretrained(exported.folder).encode("A man sleeps.")
    np.testing.assert_array_equal(np.array(json.loads(done.stdout), np.float32), [expected, expected])


def test_normalised_vectors_have_length_1(exported: Saved) -> None:
    model = OnnxModel.from_pretrained(exported.folder)
    vectors = model.encode(SENTENCES, normalize=True, dtype="float16", progress=True)
    assert vectors.dtype == np.float16
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(float), axis=1), [1, 0, 1, 1, 1, 1], atol=2e-3)


def test_classes_are_those_of_the_pipeline(exported: Saved) -> None:
    model = OnnxModel.from_pretrained(exported.folder)
    assert model.labels == ["entailment", "neutral", "contradiction"]
    pairs = [{"text": first, "text_pair": second} for first, second in PAIRS]
    classify = pipeline("text-classification", model=str(exported.folder))
    expected: list[Any] = [classify(pair) for pair in pairs]
    for given in (PAIRS, pairs, [f"{first} [SEP] {second}" for first, second in PAIRS]):
        found = model.classify(given, batch_size=2)
        assert [one["label"] for one in found] == [one["label"] for one in expected]
        assert [one["score"] for one in found] == pytest.approx([one["score"] for one in expected], abs=1e-5)
    assert model.classify(PAIRS[0]) == model.classify(pairs[0])
    assert model.classify([]) == []


def test_largest_products_of_int8_are_exact_on_every_processor(tmp_path: Path) -> None:
    # The first and second, third and fourth, ... are added in 16 bits, the fourth and fifth, 254 together, are not.
    largest = np.tile([127, 1, 1, 127], 16).astype(np.int8)  # (64,)
    weight = onnx.numpy_helper.from_array(np.repeat(largest[:, None], 64, axis=1), "weight")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMulInteger", ["tokens", "weight"], ["products"])],
        "largest_products",
        [onnx.helper.make_tensor_value_info("tokens", onnx.TensorProto.UINT8, ["count", 64])],
        [onnx.helper.make_tensor_value_info("products", onnx.TensorProto.INT32, ["count", 64])],
        [weight],
    )
    opset = onnx.helper.make_opsetid("", 18)
    onnx.save(onnx.helper.make_model(graph, opset_imports=[opset], ir_version=10), tmp_path / "products.onnx")
    (products,) = open_session(tmp_path / "products.onnx").run(None, {"tokens": np.full((8, 64), 255, np.uint8)})
    assert (products == 32 * 128 * 255).all()


def test_int8_is_asked_for_by_a_word(exported: Saved) -> None:
    exact, quantized = (OnnxModel.from_pretrained(exported.folder, quantized=asked) for asked in (False, True))
    found, expected = quantized.encode(SENTENCES, normalize=True), exact.encode(SENTENCES, normalize=True)
    assert np.abs(found - expected).max() > 1e-4
    assert (found * expected).sum(1)[[0, 2, 3, 4, 5]].min() > 0.97


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


def test_it_works_without_torch_and_transformers(exported: Saved) -> None:
    code = (
        "import json, sys; sys.modules['torch'] = sys.modules['transformers'] = None; "
        "from modeling_dsa.onnx.session import METADATA, OnnxModel; "
        f"print(json.dumps(OnnxModel.from_pretrained({str(exported.folder)!r}).classify({PAIRS!r})))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == OnnxModel.from_pretrained(exported.folder).classify(PAIRS)


def test_what_sentence_transformers_does_besides_is_told(
    exported: Saved, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = Path(shutil.copytree(exported.folder, tmp_path / "model"))
    (folder / "config_sentence_transformers.json").write_text('{"truncate_dim": 3}')
    OnnxModel.from_pretrained(folder)
    assert "sentence-transformers keeps the first 3 numbers of a vector, and this encoder does not" in caplog.text


def test_the_file_of_an_earlier_training_is_refused(exported: Saved, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(exported.folder, folder)
    weights = load_file(folder / "model.safetensors")
    save_file(dict(reversed(weights.items())), folder / "model.safetensors")
    OnnxModel.from_pretrained(folder)  # the same weights
    (folder / "model.safetensors").unlink()
    DSAForNLI.from_pretrained(exported.folder).save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    OnnxModel.from_pretrained(folder)
    shard = max(folder.glob("model-*.safetensors"))
    shard.unlink()
    with pytest.raises(ValueError, match=r"made from other weights than .*model-00001-of-.*: make it again by"):
        OnnxModel.from_pretrained(folder)
    weights["classifier.2.bias"][0] += 1e-6
    save_file(weights, folder / "model.safetensors")
    told = r"made from other weights than .*model.safetensors: make it again by `dsa onnx .* --overwrite --int8`"
    for quantized in (False, True):
        with pytest.raises(ValueError, match=told):
            OnnxModel.from_pretrained(folder, quantized=quantized)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"id2label": {"0": "yes", "1": "maybe", "2": "no"}},
            "with id2label {'0': 'entailment', .* and not {'0': 'yes'",
        ),
        ({"sep_token_id": 4}, "with sep_token_id 2 and not 4"),
        ({"routing_iterations": 4}, "with routing_iterations 2 and not 4, as .*config.json says: make it again by"),
        ({"embedding_size": None}, "with embedding_size .* and not 300"),  # None: its line is taken out
    ],
)
def test_the_file_of_an_earlier_config_is_refused(
    change: dict[str, Any], told: str, exported: Saved, tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(exported.folder, folder)
    OnnxModel.from_pretrained(folder)
    config = json.loads((folder / "config.json").read_text("utf-8")) | change
    written = {name: value for name, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(written), encoding="utf-8")
    with pytest.raises(ValueError, match=told):
        OnnxModel.from_pretrained(folder)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda model: model.encode(["a", 5]), "The sentence at index 1 is 5, which is no string."),
        (lambda model: model.encode(["a"], batch_size=0), "batch_size must be at least 1, got 0."),
        (lambda model: model.encode(["a"], dtype="int4"), "no vectors of dtype 'int4': give one of float32, float16"),
        (lambda model: model.classify("A man sleeps."), "The model reads pairs, and 'A man sleeps.' is one text: give"),
        (lambda model: model.classify({"One. [SEP] Two."}), "Sentences are a string or a list of them, got a set"),
        (lambda model: model.classify({"text_pair": "a"}), "{'text_pair': 'a'} has no \"text\""),
        (lambda model: model.classify([("a", None)]), r"at index 0 is \('a', None\), which is neither a string nor a"),
    ],
)
def test_mistakes_are_told(exported: Saved, call: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        call(OnnxModel.from_pretrained(exported.folder))


def test_broken_files_are_told(exported: Saved, tmp_path: Path) -> None:
    names = ("onnx/model.onnx", "tokenizer.json")
    files = [tmp_path / Path(name).name for name in names]
    for broken, message in enumerate((r"model.onnx cannot be loaded \(", r"tokenizer.json is no tokenizer \(")):
        for name, file in zip(names, files, strict=True):
            file.write_bytes((exported.folder / name).read_bytes())
        files[broken].write_bytes(files[broken].read_bytes()[:100])
        with pytest.raises(ValueError, match=message):
            OnnxModel(*files)


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
