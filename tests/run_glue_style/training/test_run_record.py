"""training.run_record: what tells a run from another one."""

import json
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from small_models import small_config
from small_runs import small_tokenizer
from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from modeling_dsa import DSAForNLI
from run_glue_style.training.recipe import ModelArguments, RunArguments, TrainingRecipe
from run_glue_style.training.run_record import run_identity


def test_a_run_with_other_words_is_another_one_and_padding_makes_none(tmp_path: Path) -> None:
    tokenizer = small_tokenizer()
    content = json.loads(tokenizer.backend_tokenizer.to_str())
    words = content["model"]["vocab"]
    words["man"], words["dog"] = words["dog"], words["man"]  # the table's rows are the same
    exchanged = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(content)))
    model = DSAForNLI(small_config(vocab_size=len(tokenizer), sentences_per_example=2))
    run = RunArguments(output_dir=tmp_path, cpu=True)

    def identity(of: Any) -> dict[str, Any]:
        return run_identity(ModelArguments(), TrainingRecipe(), run, model, of, {}, Accelerator(cpu=True))

    first = identity(tokenizer)
    tokenizer(["a man", "a"], padding=True, truncation=True, max_length=5)
    assert identity(tokenizer) == first
    other = identity(exchanged)
    assert [name for name in first if first[name] != other[name]] == ["tokenizer_sha256"]
