"""What `import modeling_dsa` does: nothing heavy, and yet transformers knows the model family, whichever came first."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from small_repositories import save_system

import modeling_dsa

OURS = """
import sys
import modeling_dsa
assert not {"numpy", "torch", "transformers"} & set(sys.modules)
from modeling_dsa import SentenceEmbeddingPipeline  # whose import is what imports transformers' pipelines
"""
# A model of transformers makes it import its auto classes half way through the layers of which ours are made, too.
THEIRS = "from transformers import BertModel, pipeline, AutoConfig, AutoModel, AutoModelForSequenceClassification\n"
USE = """
config = AutoConfig.from_pretrained(folder)
model, classifier = (kind.from_pretrained(folder) for kind in (AutoModel, AutoModelForSequenceClassification))
vector = pipeline("sentence-embedding", model=model, tokenizer=folder)("a man")
size = config.sentence_embedding_size
zero_shot = pipeline("zero-shot-similarity", model=model, tokenizer=folder)
print(type(config).__module__, *(type(one).__name__ for one in (zero_shot, model, classifier)), len(vector) == size)
"""


@pytest.mark.slow
@pytest.mark.parametrize("imports", [OURS + THEIRS, THEIRS + "import modeling_dsa"], ids=["first", "last"])
def test_transformers_knows_the_family_in_either_order_of_imports(tmp_path: Path, imports: str) -> None:
    folder = save_system(tmp_path, "nli").folder
    code = f"{imports}\nfolder = {str(folder)!r}\n{USE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240)
    assert done.stdout.split() == [
        "modeling_dsa.configuration_dsa",
        "ZeroShotSimilarityPipeline",
        "DSAModel",
        "DSAForNLI",
        "True",
    ], done.stderr


def test_every_public_name_is_there_and_an_invented_one_is_not() -> None:
    assert all(getattr(modeling_dsa, name) for name in modeling_dsa.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'DSADecoder'"):
        _ = modeling_dsa.DSADecoder


@pytest.mark.parametrize("module", ["modeling_dsa", "modeling_dsa.cli.main"])
def test_the_package_runs_as_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], module: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["dsa", "--version"])
    with pytest.raises(SystemExit) as stopped:
        runpy.run_module(module, run_name="__main__")
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"dsa-transformers {modeling_dsa.__version__}\n"
