"""Settings and recipes by name."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import yaml

from modeling_dsa import DSAConfig, DSAForSequenceClassification
from modeling_dsa.shipped.files import CONFIGURATION
from modeling_dsa.shipped.settings import (
    read_recipe,
    recipe_path,
    setting_folder,
    setting_names,
    table_path,
)
from run_glue_style import run_classification, run_nli, run_sst, run_stance
from run_glue_style.distillation.arguments import LossArguments, TeacherArguments
from run_glue_style.training.arguments import parse_arguments
from run_glue_style.training.model import check_recipe

REPOSITORY = Path(__file__).parents[3]
OPTIONS: dict[str, list[type]] = {  # of the script that a setting is for
    "snli": [run_nli.DataArguments],
    "sst2": [run_sst.DataArguments],
    "sst5": [run_sst.DataArguments],
    "fnc1": [run_stance.DataArguments],
    "small": [run_classification.DataArguments],
    "en": [TeacherArguments, LossArguments],
}


def test_every_folder_with_a_config_is_a_setting() -> None:
    assert {"dsa-single-snli", "dsa-multiple-snli", "static-cnn-snli"} <= set(setting_names())
    assert setting_names() == sorted(setting_names())
    assert "accelerate" not in setting_names()


@pytest.mark.parametrize("name", setting_names())
def test_setting_has_a_valid_config_and_a_recipe_of_known_options(name: str) -> None:
    folder = setting_folder(name)
    config = DSAConfig.from_pretrained(folder)
    written = DSAConfig.get_config_dict(folder)[0]
    assert {key: getattr(config, key) for key in DSAConfig().to_dict().keys() & written.keys()} == {
        key: {int(number): label for number, label in value.items()} if key == "id2label" else value
        for key, value in written.items()
        if key in DSAConfig().to_dict()
    }
    config.validate()
    with torch.device("meta"):
        DSAForSequenceClassification(config)
    path = recipe_path(None, folder)
    assert path == folder / "recipe.yaml"
    *of_script, _, recipe, run, overrides = parse_arguments(OPTIONS[name.split("-")[-1]], "", ["--setting", name])
    check_recipe(config, recipe, run)
    options = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert options.pop("classes", 5) == len(written.get("id2label", ())) or not name.endswith("sst5")
    found = {key: value for part in (*of_script, recipe) for key, value in vars(part).items()}
    assert {key: found[key] for key in options} == options
    assert overrides == {}


def test_setting_may_be_a_folder_with_or_without_a_recipe(tmp_path: Path) -> None:
    shutil.copy(CONFIGURATION / "dsa-single-snli" / "config.json", tmp_path)
    assert setting_folder(str(tmp_path)) == tmp_path
    assert recipe_path(None, tmp_path) is None
    (tmp_path / "recipe.yaml").write_text("learning_rate: 1e-3\n")
    assert recipe_path(None, tmp_path) == tmp_path / "recipe.yaml"


def test_a_path_is_what_is_there_and_not_what_ships_by_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(CONFIGURATION / "dsa-small", tmp_path / "dsa-small")
    (tmp_path / "modern.yaml").write_text("learning_rate: 1e-3\n")
    monkeypatch.chdir(tmp_path)
    assert setting_folder("./dsa-small").resolve() == tmp_path / "dsa-small"
    assert setting_folder("dsa-small") == CONFIGURATION / "dsa-small"
    assert recipe_path("./modern.yaml", None) == Path("modern.yaml")
    with pytest.raises(ValueError, match=r"no recipe '\./modern'"):
        recipe_path("./modern", None)


def test_unknown_setting_gets_a_suggestion_or_the_list() -> None:
    with pytest.raises(ValueError, match=r"no setting 'dsa-single-snil'. Did you mean 'dsa-single-snli'"):
        setting_folder("dsa-single-snil")
    with pytest.raises(ValueError, match=r"There are: .*static-cnn-snli"):
        setting_folder("x")


def test_recipe_by_name_path_and_mistake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("modeling_dsa.shipped.settings.CONFIGURATION", tmp_path)
    with pytest.raises(ValueError, match=r"no recipe 'quick'. There are: none"):
        recipe_path("quick", None)
    (tmp_path / "recipes").mkdir()
    quick = tmp_path / "recipes" / "quick.yaml"
    quick.write_text("seed: 1\n")
    assert recipe_path("quick", tmp_path) == quick
    assert recipe_path(str(quick), None) == quick
    assert recipe_path(None, None) is None
    with pytest.raises(ValueError, match=r"no recipe 'quik'. Did you mean 'quick'"):
        recipe_path("quik", None)


def test_table_by_name_and_mistake() -> None:
    assert table_path("sst") == CONFIGURATION / "tables" / "sst.yaml"
    assert "tables" not in setting_names()
    with pytest.raises(ValueError, match=r"no table 'snil'. Did you mean 'snli'"):
        table_path("snil")
    with pytest.raises(ValueError, match=r"There are: fnc1, snli, sst"):
        table_path("x")


def test_values_are_texts_for_the_options_types(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("mixed_precision: no\nseed: 1_000\noutput_dir: 1:30\nmax_train_steps: null\n")
    options = {"mixed_precision": "no", "seed": "1_000", "output_dir": "1:30", "max_train_steps": None}
    assert read_recipe(tmp_path / "mine.yaml") == options
    *_, run, _ = parse_arguments([], "", ["--recipe", str(tmp_path / "mine.yaml")])
    assert (run.mixed_precision, run.seed, run.output_dir) == ("no", 1000, Path("1:30"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# nothing\n", " is empty: it must have options, such as 'learning_rate: 0.001'."),
        ("- a\n- b\n", ", line 1: a recipe must be a mapping, 'name: value' on each line."),
        ("a: 1\nb: {c: 1}\n", ", line 2: 'b' must be a single value."),
        ("a: 1\nb: 2\na: 3\n", ", line 3: 'a' stands twice in a recipe."),
    ],
)
def test_a_mistake_in_a_recipe_is_told_with_its_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(content)
    with pytest.raises(ValueError, match="mine") as caught:
        read_recipe(path)
    assert str(caught.value) == f"{path}{message}"


@pytest.mark.parametrize("path", sorted((CONFIGURATION / "accelerate").glob("*.yaml")), ids=lambda path: path.stem)
def test_launch_files_have_only_keys_that_accelerate_knows(path: Path) -> None:
    from accelerate.commands.config.config_args import load_config_from_file

    load_config_from_file(str(path))  # raises on a key that it does not know


def test_settings_are_found_from_any_folder(tmp_path: Path) -> None:
    code = "from modeling_dsa.shipped.settings import setting_names; print(*setting_names())"
    environment = {"PYTHONPATH": str(REPOSITORY), "PATH": ""}
    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True).stdout
    assert printed.split() == setting_names()
