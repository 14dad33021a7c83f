"""The runs of a grid, checked by their scripts before anything trains."""

import re
from pathlib import Path

import pytest
from small_grids import write_grid

from modeling_dsa.shipped.files import CONFIGURATION
from run_glue_style.reporting.grid.definition import read_grid
from run_glue_style.studies.grid_plan import plan_grid
from run_glue_style.studies.runs import PlannedRun

DATA: dict[str, list[str]] = {
    "run_nli": [],
    "run_sst": ["--train_file", "t", "--validation_file", "d", "--test_file", "e", "--vectors", "v"],
    "run_stance": ["--data_dir", "d", "--vectors", "v"],
    "run_distillation": [
        "--texts",
        "t",
        "--teacher",
        "m",
        "--vectors",
        "v",
        "--similarity_file",
        "stsb_dev.csv",
        "sick_train.csv",
    ],
}


def plan(folder: Path, *changes: tuple[str, str], options: str = "", rows: tuple[str, ...] = ()) -> list[PlannedRun]:
    grid = read_grid(write_grid(folder, *changes))
    return plan_grid(grid, rows, grid.seeds, folder / "runs", options.split())


def test_one_seed_of_every_row_comes_before_the_next(tmp_path: Path) -> None:
    runs = plan(tmp_path, options="--setting dsa-single-snli", rows=("base", "two-heads"))
    names = [str(run.folder.relative_to(tmp_path / "runs")) for run in runs]
    assert names == [f"{row}/seed-{seed}" for seed in range(3) for row in ("base", "two-heads")]
    given = "--save_example_scores true --seed 2 --setting dsa-single-snli"
    assert runs[-1].arguments == f"--routing_scale 8 --num_attention_heads 2 {given}".split()


@pytest.mark.parametrize(
    ("old", "new", "options", "message"),
    [
        (
            "{pooling: static}",
            "{poling: static}",
            "",
            "line 7: the row 'static': there is no option '--poling'. Did you",
        ),
        (
            "pooling: static",
            "pooling: mean, num_attention_heads: 4",
            "",
            "line 7: the row 'static': pooling 'mean' has no",
        ),
        (
            "{pooling: static}",
            "{soft_attention_ratio: 0.2}",
            "",
            "--soft_attention_ratio is for pooling 'reinforced': ",
        ),
        ("{pooling: static}", "{embedding_learning_rate: 0.1}", "", "is for a word table that is trained: give --free"),
        (
            "{pooling: static}",
            "{encoder: bilstm, pooling: last, num_attention_heads: 1, record_attention: true}",
            "",
            "pooling 'last' has no attention over the ",
        ),
        ("{pooling: static}", "{routing_scale: 8.0}", "", "line 7: the row 'static' is the same run as 'base'"),
        ("test.macro_f1", "test.per_class.neutral", "", "line 10: there is no metric 'per_class.neutral'. Did you"),
        ("test.macro_f1", "test.macro_f", "", "line 10: there is no metric 'macro_f'. Did you mean 'macro_f1'?"),
        ("{pooling: static}", "{help: static}", "", "line 7: the row 'static': it asks for help, and trains nothing."),
        (
            "",
            "",
            "--train_file a --validation_file b --vectors c",
            "line 10: 'test' is no split that is evaluated: there is validation.",
        ),
        ("", "", "--pooling mean", "Leave out --pooling: "),
        ("", "", "--dataset_name a --train_file b", "Give either --dataset_name or files, and not both."),
    ],
)
def test_mistakes_are_told_before_training(tmp_path: Path, old: str, new: str, options: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        plan(tmp_path, (old, new), options=options)
    assert "\n" not in str(error.value)


def test_the_training_split_has_metrics_where_it_is_evaluated(tmp_path: Path) -> None:
    of_train = ("test.macro_f1", "train.macro_f1")
    with pytest.raises(ValueError, match="'train' is no split that is evaluated: there is validation and test"):
        plan(tmp_path, of_train)
    assert plan(tmp_path, of_train, options="--evaluate_train true")


@pytest.mark.parametrize("name", sorted(path.stem for path in (CONFIGURATION / "grids").glob("*.yaml")))
def test_grids_that_ship_can_be_run(tmp_path: Path, name: str) -> None:
    grid = read_grid(CONFIGURATION / "grids" / f"{name}.yaml")
    data = DATA[grid.script]
    if name.endswith("-distilled"):  # its models have their word vectors
        data = data[: data.index("--vectors")]
    if "pieces" in grid.rows["base"].options:  # of a teacher's words
        data = ["teacher:m" if value == "v" else value for value in data]
    runs = plan_grid(grid, [], grid.seeds, tmp_path, data)
    assert len(runs) == len(grid.rows) * len(grid.seeds)
