"""How defaults, recipe and command line set the options, and what a mistake is answered with."""

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar

import pytest

from modeling_dsa import DSAConfig
from modeling_dsa.config_fields_dsa import DSAConfigFields
from modeling_dsa.options_dsa import option
from modeling_dsa.shipped.settings import setting_folder
from run_glue_style.run_nli import DataArguments
from run_glue_style.training.arguments import parse_arguments, without_options
from run_glue_style.training.recipe import ModelArguments, RunArguments, TrainingRecipe

DECIDED_BY_DATA = {"vocab_size", "sentences_per_example"}
CONFIG_FIELDS = set(DSAConfigFields.__annotations__) - DECIDED_BY_DATA - {
    "model_type", "pad_token_id", "sep_token_id", "tie_word_embeddings"
}  # fmt: skip

WriteRecipe = Callable[[str], Path]


@dataclass
class TaskArguments:
    """Options of a script."""

    _argument_group_name: ClassVar[str] = "task"

    colour: str = option("red", "Which colour.")


@pytest.fixture
def write_recipe(tmp_path: Path) -> WriteRecipe:
    def write(content: str) -> Path:
        path = tmp_path / "mine.yaml"
        path.write_text(content, "utf-8")
        return path

    return write


def parse(*words: object) -> tuple[Any, ModelArguments, TrainingRecipe, RunArguments, dict[str, Any]]:
    task, model, recipe, run, overrides = parse_arguments([TaskArguments], "Does it.", [str(word) for word in words])
    return task, model, recipe, run, overrides


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one sentence with which a command line is refused."""
    with pytest.raises(SystemExit) as caught:
        parse(*words)
    assert caught.value.code == 2
    written = capsys.readouterr()
    assert not written.out
    sentence, hint = written.err.splitlines()
    assert sentence.startswith("error: ")
    assert "--help" in hint
    return sentence


def test_defaults() -> None:
    task, model, recipe, run, overrides = parse()
    assert (task, model, recipe, run) == (TaskArguments(), ModelArguments(), TrainingRecipe(), RunArguments())
    assert overrides == {}


def test_recipe_wins_over_defaults_and_the_command_line_over_the_recipe(write_recipe: WriteRecipe) -> None:
    path = write_recipe("learning_rate: 2e-3\nschedule: plateau\nseed: 4\ncolour: blue\nmax_train_steps: null\n")
    task, _, recipe, run, _ = parse("--seed", 5, "--recipe", path, "--schedule", "linear")
    assert (recipe.learning_rate, recipe.schedule, run.seed, task.colour) == (2e-3, "linear", 5, "blue")
    assert recipe.max_train_steps is None
    assert recipe.weight_decay == TrainingRecipe().weight_decay


def test_setting_brings_its_recipe_and_another_can_take_its_place(write_recipe: WriteRecipe) -> None:
    assert parse("--setting", "dsa-single-snli")[2].schedule == "plateau"
    path = write_recipe("schedule: constant\n")
    recipe = parse("--setting", "dsa-single-snli", "--recipe", path)[2]
    assert recipe == TrainingRecipe(schedule="constant")


def test_a_setting_or_model_of_a_recipe_takes_the_place_of_the_default(write_recipe: WriteRecipe) -> None:
    def model(content: str) -> ModelArguments:
        found = parse_arguments([TaskArguments], "", ["--recipe", str(write_recipe(content))], "dsa-small")[1]
        assert isinstance(found, ModelArguments)
        return found

    assert model("seed: 1").setting == "dsa-small"
    assert model("setting: dsa-single-snli").setting == "dsa-single-snli"
    assert model("model_name_or_path: x") == ModelArguments(model_name_or_path="x")


def test_a_setting_can_take_the_recipe_of_another(write_recipe: WriteRecipe) -> None:
    def parsed(*words: str) -> tuple[Any, ...]:
        return parse_arguments([], "", ["--setting", "dsa-small", *words], recipe_folder=lambda _: other)

    other = setting_folder("dsa-single-snli")
    _, recipe, run, _ = parsed()
    assert (recipe, run.recipe) == (parse("--setting", other)[2], "dsa-single-snli")
    assert parsed("--recipe", str(write_recipe("schedule: constant\n")))[1].schedule == "constant"


def test_a_recipe_trains_no_word_table_that_is_frozen(write_recipe: WriteRecipe) -> None:
    path = write_recipe("embedding_learning_rate: 0.5\n")

    def rate(*words: str) -> float | None:
        found: float | None = parse("--setting", "dsa-small", "--recipe", path, *words)[2].embedding_learning_rate
        return found

    assert rate() is None
    assert rate("--freeze_embeddings", "false") == 0.5
    assert rate("--embedding_learning_rate", "0.1") == 0.1  # what contradicts itself is refused with the model


@pytest.mark.parametrize("in_recipe", [True, False])
def test_texts_that_a_setting_caps_can_be_read_in_full(in_recipe: bool, write_recipe: WriteRecipe) -> None:
    capped = setting_folder("dsa-single-fnc1")
    assert DSAConfig.from_pretrained(capped).max_sentence_tokens
    own = ["--recipe", write_recipe("max_sentence_tokens: null\n")] if in_recipe else ["--max_sentence_tokens", "none"]
    overrides = parse("--setting", "dsa-single-fnc1", *own)[4]
    assert overrides == {"max_sentence_tokens": None}
    assert DSAConfig.from_pretrained(capped, **overrides).max_sentence_tokens is None
    if in_recipe:
        of_command_line = parse("--setting", "dsa-single-fnc1", *own, "--max_sentence_tokens", "7")[4]
        assert of_command_line == {"max_sentence_tokens": 7}


def test_null_stands_for_what_is_not_given(write_recipe: WriteRecipe) -> None:
    path = write_recipe("max_train_steps: null\nmetric_for_best_model: null\nmixed_precision: null\n")
    _, _, recipe, run, _ = parse("--recipe", path)
    assert (recipe, run) == (TrainingRecipe(), RunArguments(recipe=str(path)))


def test_arguments_may_have_equals_signs() -> None:
    assert parse("--learning-rate=0.5")[2].learning_rate == 0.5


@pytest.mark.parametrize("name", sorted(CONFIG_FIELDS))
def test_every_config_field_can_be_set_on_the_command_line_and_in_a_recipe(
    name: str, write_recipe: WriteRecipe
) -> None:
    default = getattr(DSAConfig(), name)
    value: Any
    if isinstance(default, bool):
        value = not default
    elif isinstance(default, int | float):
        value = default + 1
    elif isinstance(default, list | tuple):
        value = ["cosine", "first"] if isinstance(default[0], str) else [7, 9, 11]
    elif default is None:
        value = 7
    else:
        value = {"pooling": "static", "initializer_scaling": "none", "encoder": "bilstm", "latent": "sentence"}[name]
    words = value if isinstance(value, list) else [value]
    overrides = parse(f"--{name}", *words)[4]
    assert overrides == {name: value}
    assert type(overrides[name]) is type(value)
    assert parse("--recipe", write_recipe(f"{name}: {str(value).lower()}\n"))[4] == {name: value}


def test_help_shows_the_values_of_the_recipe(capsys: pytest.CaptureFixture[str]) -> None:
    for words, epochs in ([], 10), (["--recipe", "modern"], 5):
        with pytest.raises(SystemExit):
            parse_arguments([], None, [*words, "--help"], "dsa-small")
        text = " ".join(capsys.readouterr().out.split())
        assert f"Passes over the training data. (default: {epochs})" in text
        assert "(default: None)" not in text


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("--bf16", "there is no option '--bf16': give --mixed_precision bf16."),
        ("--max-seq-length=16", "there is no option '--max-seq-length': give --max_sentence_tokens."),
        ("--do_train", "there is no option '--do_train': every run trains and evaluates, so leave it out."),
        ("more.txt", "no option takes 'more.txt': the one before it has its value already."),
    ],
)
def test_options_of_other_scripts_have_a_hint(option: str, told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told in refused(capsys, option)


def test_help_is_grouped_and_has_every_option(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DSAConfig, "__doc__", None)  # as under python -OO
    with pytest.raises(SystemExit) as caught:
        parse_arguments([DataArguments], "Does it.", ["--setting", "unknown", "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    titles = ["data", "model", "training recipe", "run", "model configuration"]
    headings = [re.search(rf"^{re.escape(title)}:$", text, re.MULTILINE) for title in titles]
    assert all(headings)
    starts = [heading.start() for heading in headings if heading]
    assert starts == sorted(starts)
    names = {
        entry.name for kind in (DataArguments, ModelArguments, TrainingRecipe, RunArguments) for entry in fields(kind)
    }
    entries = re.findall(r"^  --(\w+)\b(.*?)(?=^  --|^\S|\Z)", text, re.MULTILINE | re.DOTALL)
    described = {name: " ".join(entry.split()) for name, entry in entries}
    assert set(described) == names | CONFIG_FIELDS
    assert all(re.search(r"[a-z]{2,}", entry) for entry in described.values())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--learning_rat", "1"], r"no option '--learning_rat'\. Did you mean '--learning_rate'\?"),
        (["--learning-rat=1"], r"no option '--learning-rat'\. Did you mean '--learning_rate'\?"),
        (["--sed", "1"], "no option '--sed'. Did you mean '--seed'"),
        (["--learn", "1"], "no option '--learn'"),  # no abbreviations
        (["dsa-single-snli"], "no option takes 'dsa-single-snli'"),
        (["--learning_rate", "high"], "--learning_rate.*invalid float value: 'high'"),
        (["--max_train_steps", "1.5"], "--max_train_steps.*invalid int or none value: '1.5'"),
        (["--learning_rate"], "--learning_rate.*expected one argument"),
        (["--schedule", "plateu"], "--schedule.*invalid choice: 'plateu'.*plateau"),
        (["--cpu", "perhaps"], "--cpu.*perhaps"),
        (["--pooling", "median"], "--pooling.*invalid choice: 'median'.*static.*dynamic"),
        (["--optimizer", "lion"], "--optimizer.*invalid choice: 'lion'.*adadelta"),
        (["--vocab_size", "5"], "no option '--vocab_size'"),
        (["--setting", "dsa-single-sni"], "no setting 'dsa-single-sni'. Did you mean 'dsa-single-snli'"),
        (["--seed", "1", "--seed=2"], "--seed is given twice: give it once"),
        (["--kernel_sizes", "1", "--kernel-sizes", "3"], "--kernel_sizes is given twice: give all its values behind"),
        (["--setting", "zzz"], "no setting 'zzz'. There are: "),
        (["--recipe", "zzz"], "no recipe 'zzz'"),
        (["--setting", "dsa-single-sst2"], r"dsa-single-sst2/recipe.yaml: .* for another script, give --recipe modern"),
        (["--setting", "dsa-single-snli", "--model_name_or_path", "x"], "either --setting or --model_name_or_path"),
        (["--vectors", "v.txt", "--model_name_or_path", "x"], "either --vectors or --model_name_or_path"),
        (["--num_train_epochs", "0"], "num_train_epochs must be greater than 0 and at most 1,000,000,000, got 0.0"),
        (["--num_train_epochs", "inf"], "num_train_epochs must be greater than 0 and at most 1,000,000,000, got inf"),
        (["--learning_rate", "nan"], "learning_rate must be a number greater than 0, got nan"),
        (["--per_device_train_batch_size", "1"], "per_device_train_batch_size must be from 2 to 1,000,000,000, got 1"),
        (["--gradient_accumulation_steps", "0"], "gradient_accumulation_steps must be from 1 to"),
        (["--evaluations_per_epoch", "0"], "evaluations_per_epoch must be from 1 to"),
        (["--plateau_patience", "0"], "plateau_patience must be from 1 to"),
        (["--max_train_steps", "0"], "max_train_steps must be from 1 to"),
        (["--max_grad_norm", "-1"], "max_grad_norm must be a finite number of at least 0, got -1.0"),
        (["--warmup_ratio", "1"], r"warmup_ratio must lie in \[0, 1\), got 1.0"),
        (["--average_decay", "1.5"], r"average_decay must lie in \[0, 1\)"),
        (["--label_smoothing", "-0.1"], r"label_smoothing must lie in \[0, 1\)"),
        (["--seed", "-1"], r"seed must be at least 0 and below 2 \*\* 63, got -1"),
        (["--checkpointing_steps", "0"], "checkpointing_steps must be from 1 to"),
        (["--output_dir", "caf\udce9"], r"'caf\\udce9' is no text in utf-8"),  # a byte that is not UTF-8
        (["--output_dir=~/runs"], "'--output_dir=~/runs' would be in a folder called ~, as a shell leaves"),
        (["--max_train_samples", "0"], "max_train_samples must be from 1 to"),
        (["--vocabulary_size", "0"], "vocabulary_size must be from 1 to"),
        (["--pieces", "1000001"], "pieces must be from 0 to 1,000,000, got 1000001"),
        (["--frequency_weighting", "0"], "frequency_weighting must be a number greater than 0"),
        (["--output_dir", ""], "--output_dir has an empty value: leave it out, or give one"),
        (["--hub_revision="], "--hub_revision has an empty value"),
        (["--num_train_epochs", "1e300"], "num_train_epochs must be greater than 0 and at most 1,000,000,000, got 1e"),
    ],
)
def test_mistake_is_one_sentence(capsys: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    assert re.search(message, refused(capsys, *words))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("learning_rte: 1", r"no option '--learning_rte'\. Did you mean '--learning_rate'\?"),
        ("learn: 1", "no option '--learn'"),
        ("help: true", "no option '--help'"),
        ("recipe: other", "a recipe cannot name another one: leave 'recipe' out"),
        ("learning_rate: [1, 2]", "learning_rate must be one value, got 2"),
        ("learning_rate: {a: 1}", "line 1: 'learning_rate' must be a single value."),
        ("learning_rate: high", "invalid float value: 'high'"),
        ("schedule: plateu", "invalid choice: 'plateu'"),
        ("learning_rate: null", "learning_rate must have a value, got null"),
        ("pooling: null", "pooling must have a value, got null"),
        ("evaluations_per_epoch: 0", "evaluations_per_epoch must be from 1 to"),
        ("a: [", "is not valid YAML"),
        ("- a", "line 1: a recipe must be a mapping"),
    ],
)
def test_mistake_in_a_recipe_names_its_file(
    capsys: pytest.CaptureFixture[str], write_recipe: WriteRecipe, content: str, message: str
) -> None:
    path = write_recipe(content + "\n")
    sentence = refused(capsys, "--recipe", path)
    assert re.search(message, sentence)
    assert sentence.count(str(path)) == 1


def test_mistake_of_the_command_line_does_not_name_the_recipe(
    capsys: pytest.CaptureFixture[str], write_recipe: WriteRecipe
) -> None:
    path = write_recipe("seed: 1\n")
    assert str(path) not in refused(capsys, "--recipe", path, "--learning_rat", "1")


def test_a_recipe_does_not_change_what_a_loaded_model_computes(caplog: pytest.LogCaptureFixture) -> None:
    *_, fresh = parse_arguments([], "", ["--setting", "dsa-single-snli", "--recipe", "modern"])
    assert fresh["routing_scale"] == 8
    words = ["--model_name_or_path", "somewhere", "--recipe", "modern", "--hidden_dropout", "0.5"]
    *_, loaded = parse_arguments([], "", words)
    assert loaded == {"hidden_dropout": 0.5}
    assert "does not count (classifier_dropout, embedding_dropout, hidden_dropout, routing_scale)" in caplog.text


def test_without_options() -> None:
    words = ["--a", "1", "2", "--b", "--c=3", "--d", "-4"]
    assert without_options(words, {"a", "c"}) == ["--b", "--d", "-4"]
    assert without_options(words, {"d", "b"}) == ["--a", "1", "2", "--c=3"]
