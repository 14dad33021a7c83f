"""What fresh processes do with saved models, from a folder and from the Hub.

Run as `python repository_clients.py FUNCTION ARGUMENTS` (JSON); the result comes as JSON on standard output. All but
`publish` run where this package cannot be imported, and some of them under transformers 4.57, too.
"""

import importlib
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub import HfApi
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, AutoTokenizer, pipeline

Result = dict[str, Any]

SENTENCES = ["A man is playing a guitar .", "Nobody sings .", "Two dogs run across a field of qqxyz grass ."]
PAIRS = [{"text": first, "text_pair": second} for first, second in zip(SENTENCES, SENTENCES[::-1], strict=True)]
TOPICS, TEMPLATE = ["music", "sleep", "dogs"], "This is about {} ."


def run_repository_client(
    environment: Mapping[str, str], folder: Path, function: Callable[..., Result], /, **arguments: Any
) -> Result:
    """What a function of this module returns in a process of its own, which starts in `folder`."""
    command = [sys.executable, __file__, function.__name__, json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder, timeout=300)
    assert done.returncode == 0, done.stderr
    result: Result = json.loads(done.stdout)
    return result


def outputs_of(model: Any, tokenizer: Any) -> Result:
    """A model's answers to `PAIRS`, or to `SENTENCES` where its rows hold one."""
    pairs = PAIRS if model.config.sentences_per_example == 2 else [{"text": text} for text in SENTENCES]
    batch = tokenizer(*map(list, zip(*(pair.values() for pair in pairs), strict=True)), padding=True)
    with torch.no_grad():
        outputs = model.eval()(**batch.convert_to_tensors("pt"))
    names = ("logits", "last_hidden_state", "pooler_output", "second_pooler_output")
    return {name: outputs[name].tolist() for name in names if name in outputs}


def vectors_of(model: Any, tokenizer: Any) -> list[list[float]]:
    """The vectors of `SENTENCES`, each of which is a row of its own."""
    with torch.no_grad():
        outputs = model.eval()(**tokenizer(SENTENCES, padding=True, return_tensors="pt"))
    vectors: list[list[float]] = outputs.pooler_output.tolist()
    return vectors


def raised(act: Callable[[], object]) -> list[str]:
    """The class of the error that an act ends in, and what it says."""
    try:
        act()
    except Exception as error:
        return [type(error).__name__, str(error)]
    return []


def load(source: str, resaved: str | None = None, **options: Any) -> Result:
    """Load everything with the automatic classes, and save it again in the folder `resaved`."""
    config = AutoConfig.from_pretrained(source, trust_remote_code=True, **options)
    tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, **options)
    options |= {"trust_remote_code": True, "output_loading_info": True}
    base, base_loading = AutoModel.from_pretrained(source, **options)
    model, loading = base, base_loading
    if config.architectures != ["DSAModel"]:
        model, loading = AutoModelForSequenceClassification.from_pretrained(source, **options)
    if resaved:
        model.save_pretrained(resaved)
        tokenizer.save_pretrained(resaved)
    table = model.get_input_embeddings().weight
    return {
        "classes": [type(part).__name__ for part in (config, model, base)],
        "packages": sorted({type(part).__module__.partition(".")[0] for part in (config, model, base)}),
        "labels": list(config.id2label.values()),
        "problems": [sorted(map(str, names)) for part in (loading, base_loading) for names in part.values() if names],
        "training": [model.training, base.training],
        "table_trains": [table.requires_grad, base.get_input_embeddings().weight.requires_grad],
        "others_train": all(weight.requires_grad for weight in model.parameters() if weight is not table),
        "outputs": outputs_of(model, tokenizer),
        "base_outputs": outputs_of(base, tokenizer),
    }


def run_pipelines(source: str, labels: list[str], **options: Any) -> Result:
    """Run the pipelines that suit a model with these labels; an encoder has none."""
    options |= {"model": source, "trust_remote_code": True}
    embed: Any = pipeline("sentence-embedding", **options)  # type: ignore[call-overload]  # a task of our own
    found: Result = {
        "class": type(embed).__name__,
        "vectors": embed(SENTENCES),
        "vector": embed(SENTENCES[0]),
        "vectors_batched": embed(SENTENCES, batch_size=2),
        "vectors_normalized": embed(SENTENCES, normalize=True),
        "tensors": [[str(vector.dtype), vector.tolist()] for vector in embed(SENTENCES, return_tensors=True)],
        "features": pipeline("feature-extraction", **options)(SENTENCES[0]),
    }
    if labels:
        classify: Any = pipeline("text-classification", **options)
        found |= {
            "sentences": classify(SENTENCES, top_k=None),
            "pair": classify(PAIRS[0]),
            "pairs": classify(PAIRS, top_k=None),
            "pairs_batched": classify(PAIRS, top_k=None, batch_size=2),
            "pairs_as_texts": classify([" [SEP] ".join(pair.values()) for pair in PAIRS], top_k=None),
        }
    if "entailment" in labels:
        ask: Any = pipeline("zero-shot-classification", **options)
        found["topics"] = ask(SENTENCES[0], candidate_labels=TOPICS, hypothesis_template=TEMPLATE)
    return found


def encode(source: str) -> Result:
    """Encode `SENTENCES` with sentence-transformers."""
    from sentence_transformers import SentenceTransformer

    encoder = SentenceTransformer(source, trust_remote_code=True, device="cpu")
    vectors = encoder.encode(SENTENCES)
    return {
        "vectors": vectors.tolist(),
        "normalized": encoder.encode(SENTENCES, normalize_embeddings=True).tolist(),
        "dimension": encoder.get_embedding_dimension(),
        "similarity": encoder.similarity(vectors, vectors[:1]).flatten().tolist(),
    }


def visit(sources: dict[str, str], resaved: str | None = None, sentence_transformers: bool = True) -> Result:
    """Load, run and save again each of the repositories."""
    found: Result = {"transformers": transformers.__version__}
    found["package"] = raised(lambda: importlib.import_module("modeling_dsa"))
    for name, source in sources.items():
        loaded = load(source, resaved and f"{resaved}/{name}")
        labels = loaded["labels"] if loaded["classes"][1] != "DSAModel" else []
        found[name] = {"loaded": loaded, "pipelines": run_pipelines(source, labels)}
        if sentence_transformers:
            found[name]["encoded"] = encode(source)
    return found


def visit_hub(resaved: str, token: str) -> Result:
    """Load what `publish` has pushed, of which the encoder asks for a token."""
    return {
        "without_token": raised(lambda: load("org/encoder")),
        "encoder": load("org/encoder", token=token),
        "encoder_pipelines": run_pipelines("org/encoder", [], token=token),
        "v1": load("org/nli", f"{resaved}/v1", revision="v1"),
        **visit({"nli": "org/nli"}, resaved),
    }


def publish(nli: str, encoder: str, folder: str, token: str) -> Result:
    """Push folders by transformers' own methods: org/nli, on main later than v1, and org/encoder, private."""
    from modeling_dsa.text.tokenization import WordTokenizer

    model = AutoModelForSequenceClassification.from_pretrained(nli)
    tokenizer = WordTokenizer.from_pretrained(nli)
    model.push_to_hub("org/nli", token=token)
    tokenizer.push_to_hub("org/nli", token=token)
    HfApi(token=token).create_tag("org/nli", tag="v1")
    before = outputs_of(model, tokenizer)
    with torch.no_grad():
        model.classifier[-1].bias.add_(torch.arange(3.0))
    model.push_to_hub("org/nli", token=token, commit_message="Train more")
    AutoModel.from_pretrained(encoder).save_pretrained(
        folder, push_to_hub=True, repo_id="org/encoder", private=True, token=token, commit_message="Encoder"
    )
    tokenizer.push_to_hub("org/encoder", token=token)
    return {"before": before, "after": outputs_of(model, tokenizer)}


def answer_requests(requests: dict[str, list[Result]]) -> Result:
    """Answer requests to each of some folders."""
    return {folder: _answers_of(folder, asked) for folder, asked in requests.items()}


def _answers_of(folder: str, requests: list[Result]) -> Result:
    """Answer requests as an Inference Endpoint does, which imports `handler.py` and gives it its folder."""
    spec = importlib.util.spec_from_file_location("handler", Path(folder) / "handler.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    handler = module.EndpointHandler(folder)
    return {"tasks": list(handler.pipelines), "answers": [_answer(handler, request) for request in requests]}


def _answer(handler: Any, request: Result) -> Any:
    try:
        return handler(request)
    except ValueError as error:
        return f"ValueError: {error}"


if __name__ == "__main__":
    if sys.argv[1] != publish.__name__:
        sys.modules["modeling_dsa"] = None  # type: ignore[assignment]  # importing it fails from now on
    sys.stdout.write(json.dumps(globals()[sys.argv[1]](**json.loads(sys.argv[2]))))
