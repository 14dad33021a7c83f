"""The handler of Inference Endpoints, as they call it: in a process that has the repository, but not this package."""

import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import httpx
import pytest
import torch
import uvicorn
from fastapi import Body, FastAPI
from fastapi.responses import JSONResponse
from repository_clients import PAIRS, SENTENCES, Result, answer_requests, run_repository_client, vectors_of
from small_repositories import NLI_LABELS, Saved, offline_environment, save_system
from small_runs import small_tokenizer

from modeling_dsa.handler import EndpointHandler

PAIR_AS_TEXT = " [SEP] ".join(PAIRS[0].values())
REQUESTS: dict[str, Result] = {
    "pair": {"inputs": PAIRS[0]},
    "pair as a text": {"inputs": PAIR_AS_TEXT},
    "pairs": {"inputs": PAIRS},
    "all classes": {"inputs": PAIRS, "parameters": {"top_k": None}},
    "two classes": {"inputs": PAIRS[0], "parameters": {"top_k": 2}},
    "no parameters": {"inputs": PAIRS[0], "parameters": None},
    "vector": {"inputs": SENTENCES[0], "parameters": {"task": "sentence-embedding"}},
    "vectors": {"inputs": SENTENCES, "parameters": {"task": "sentence-embedding"}},
    "unit vectors": {"inputs": SENTENCES, "parameters": {"task": "sentence-embedding", "normalize": True}},
    "other task": {"inputs": SENTENCES[0], "parameters": {"task": "translation"}},
    "no inputs": {"parameters": {"top_k": 2}},
    "empty inputs": {"inputs": []},
    "empty text": {"inputs": ""},
}
ENCODER_REQUESTS: dict[str, Result] = {
    "vectors": {"inputs": SENTENCES},
    "unit vectors": {"inputs": SENTENCES, "parameters": {"normalize": True}},
    "classes": {"inputs": SENTENCES, "parameters": {"task": "text-classification"}},
}
NOTHING = 'ValueError: Give "inputs": a text, {"text": ..., "text_pair": ...}, or a list of either.'


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("endpoint")


@pytest.fixture(scope="module")
def classifier(folder: Path) -> Saved:
    return save_system(folder, "nli")


@pytest.fixture(scope="module")
def encoder(folder: Path) -> Saved:
    return save_system(folder, "encoder")


@pytest.fixture(scope="module")
def all_answers(folder: Path, classifier: Saved, encoder: Saved) -> dict[Path, Result]:
    """The handlers' tasks, and their answers by the names of the requests; one process has both folders."""
    asked = {classifier.folder: REQUESTS, encoder.folder: ENCODER_REQUESTS}
    requests = {str(source): list(named.values()) for source, named in asked.items()}
    found = run_repository_client(offline_environment(folder / "home"), folder, answer_requests, requests=requests)
    return {
        source: {
            "tasks": found[str(source)]["tasks"],
            **dict(zip(named, found[str(source)]["answers"], strict=True)),
        }
        for source, named in asked.items()
    }


@pytest.fixture(scope="module")
def answers(all_answers: dict[Path, Result], classifier: Saved) -> Result:
    return all_answers[classifier.folder]


def check_vectors(given: Any, saved: Saved, normalize: bool = False) -> None:
    expected = torch.tensor(vectors_of(saved.base, small_tokenizer()))
    if normalize:
        expected = torch.nn.functional.normalize(expected)
    torch.testing.assert_close(torch.tensor(given), expected)


def only(text: Any) -> Result:
    return {"inputs": text}


BAD_REQUESTS: list[tuple[Any, str]] = [
    (5, "The request is no object"),
    ([PAIRS[0]], "The request is no object"),
    ({"inputs": PAIRS, "parameters": [1]}, '"parameters" is no object'),
    ({"inputs": PAIRS, "parameters": {"task": []}}, r"There is no task \[\] here"),
    ({"inputs": PAIRS, "parameters": {"function_to_apply": "cube"}}, "function_to_apply is 'cube': give softmax"),
    ({"inputs": PAIRS, "parameters": {"function_to_apply": []}}, r"function_to_apply is \[\]: give softmax"),
    ({"inputs": PAIRS, "parameters": {"top_k": "two"}}, "top_k is 'two': give a number"),
    ({"inputs": PAIRS, "parameters": {"speed": 3}}, "There is no parameter 'speed' of text-classification"),
    (only(5), "The input at index 0 is 5: give a text"),
    (only([PAIRS[0], None]), "The input at index 1 is None: give a text"),
    (only([PAIRS[0], [["a"]]]), r"The input at index 1 is \[\['a'\]\]"),
    (only({"text": "a", "text_pair": " "}), "The text_pair of the input at index 0 is empty: give a text to classify"),
    (only({"text": "a", "text_pair": 5}), "The text_pair of the input at index 0 is 5"),
    (only({"text": "a", "label": "b"}), "The input at index 0 is {'text': 'a', 'label': 'b'}"),
    (only("One sentence alone."), "is one text, and the model reads pairs"),
    (only("One sentence alone. [SEP] "), "is one text, and the model reads pairs"),
    (only(" [SEP] One sentence alone."), "is one text, and the model reads pairs"),
    (only({"text": "a" * 100_001, "text_pair": "b"}), "100,001 characters long: give a text of up to 100,000"),
    (only([{"text": "a" * 100_000, "text_pair": "b"}] * 51), '"inputs" have 5,100,051 characters: give at most'),
    (only([PAIRS[0]] * 10_001), '"inputs" are 10,001 texts: give at most 10,000'),
]


@pytest.fixture(scope="module")
def handler(classifier: Saved) -> EndpointHandler:
    return EndpointHandler(str(classifier.folder))


@pytest.mark.parametrize(("request_body", "message"), BAD_REQUESTS)
def test_a_bad_request_gets_a_sentence(handler: EndpointHandler, request_body: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        handler(request_body)


def test_many_pairs_are_answered_in_batches_and_in_their_order(handler: EndpointHandler) -> None:
    pairs = [{"text": "man " * (1 + index % 7), "text_pair": "\ud800 a dog" * (index % 3)} for index in range(200)]
    pairs = [{**pair, "text_pair": pair["text_pair"] or "a"} for pair in pairs]
    alone = {str(pair): handler({"inputs": pair}) for pair in pairs[:21]}
    shapes: list[int] = []
    model: Any = handler.pipelines["text-classification"].model
    hook = model.register_forward_pre_hook(
        lambda _module, _args, kwargs: shapes.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    found = handler({"inputs": pairs})
    hook.remove()
    assert shapes == [64, 64, 64, 8]
    for pair, answer in zip(pairs, found, strict=True):
        assert answer["label"] == alone[str(pair)]["label"]
        assert answer["score"] == pytest.approx(alone[str(pair)]["score"], abs=1e-5)


@pytest.mark.slow
def test_fifty_clients_at_once_get_their_own_answers_while_a_large_request_is_computed(
    handler: EndpointHandler,
) -> None:
    app = FastAPI()

    @app.post("/")
    def answer(body: Annotated[Any, Body()]) -> Any:
        try:
            return handler(body)
        except ValueError as error:
            return JSONResponse({"error": str(error)}, 400)

    pairs = [{"text": "man " * (1 + index), "text_pair": "a dog " * (50 - index)} for index in range(50)]
    alone = [handler({"inputs": pair}) for pair in pairs]
    seconds: list[float] = []

    def ask(index: int) -> None:
        for _ in range(4):
            started = time.perf_counter()
            found = httpx.post(url, json={"inputs": pairs[index]}, timeout=60).raise_for_status().json()
            seconds.append(time.perf_counter() - started)
            assert found == pytest.approx(alone[index], abs=1e-5)
        assert httpx.post(url, json={"inputs": index + 1}, timeout=60).status_code == 400

    with running_server(app) as url, ThreadPoolExecutor(51) as clients:
        large = clients.submit(httpx.post, url, json={"inputs": pairs * 200}, timeout=120)
        list(clients.map(ask, range(50)))
        assert [row["label"] for row in large.result().json()] == [row["label"] for row in alone] * 200
    assert len(seconds) == 200
    assert max(seconds) < 20


@contextmanager
def running_server(app: FastAPI) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=server.run, args=([listener],))
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.mark.slow
def test_classes(answers: Result, classifier: Saved) -> None:
    assert answers["tasks"] == ["text-classification", "sentence-embedding"]
    batch = small_tokenizer()(*map(list, zip(*(pair.values() for pair in PAIRS), strict=True)), padding=True)
    with torch.no_grad():
        scores = classifier.model(**batch.convert_to_tensors("pt")).logits.softmax(-1).tolist()
    expected = [dict(zip(NLI_LABELS.values(), row, strict=True)) for row in scores]
    for given, right in zip(answers["all classes"], expected, strict=True):
        assert {answer["label"]: answer["score"] for answer in given} == pytest.approx(right, abs=1e-6)
    assert answers["pairs"] == [classes[0] for classes in answers["all classes"]]
    assert answers["two classes"] == answers["all classes"][0][:2]


@pytest.mark.slow
def test_one_pair(answers: Result) -> None:
    best = answers["pairs"][0]
    assert answers["pair"] == answers["no parameters"] == best
    assert answers["pair as a text"] == [best]  # as the text-classification pipeline does


@pytest.mark.slow
def test_vectors_of_a_classifiers_repository(answers: Result, classifier: Saved) -> None:
    check_vectors(answers["vectors"], classifier)
    check_vectors(answers["unit vectors"], classifier, normalize=True)
    assert answers["vector"] == pytest.approx(answers["vectors"][0], abs=1e-6)


@pytest.mark.slow
def test_wrong_requests_get_a_sentence(answers: Result) -> None:
    tasks = "text-classification, sentence-embedding"
    assert answers["other task"] == f"ValueError: There is no task 'translation' here: give one of {tasks}."
    assert answers["no inputs"] == answers["empty inputs"] == answers["empty text"] == NOTHING


@pytest.mark.slow
def test_a_repository_without_classes(all_answers: dict[Path, Result], encoder: Saved) -> None:
    found = all_answers[encoder.folder]
    assert found["tasks"] == ["sentence-embedding"]
    check_vectors(found["vectors"], encoder)
    check_vectors(found["unit vectors"], encoder, normalize=True)
    sentence = "There is no task 'text-classification' here: give one of sentence-embedding."
    assert found["classes"] == f"ValueError: {sentence}"
