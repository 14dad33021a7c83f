"""The student's widths: what nobody asked for follows the teacher's, of its sentences and of its words."""

from pathlib import Path

import pytest
import torch
from small_encoders import save_encoder, small_encoder
from small_runs import SMALL_SIZES, pairs
from small_teachers import save_teacher

from modeling_dsa.encoding.sources import open_sentences
from run_glue_style.distillation.arguments import LossArguments
from run_glue_style.distillation.sentences import Sentences
from run_glue_style.distillation.student import make_student
from run_glue_style.training.recipe import ModelArguments

pytestmark = pytest.mark.usefixtures("datasets_cache")
SIZES = {name: size for name, size in SMALL_SIZES.items() if name != "classifier_hidden_sizes"}


@pytest.fixture(scope="module")
def teachers(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Of each width one."""
    return {width: save_teacher(tmp_path_factory.mktemp("teacher") / str(width), width) for width in (24, 400)}


@pytest.mark.parametrize(
    ("setting", "width", "embedding_size", "projection_size"),
    [
        ("dsa-base-en", 24, 24, 24),
        ("dsa-base-en", 400, 384, 400),
        ("dsa-mini-en", 24, 24, 24),
        ("dsa-mini-en", 400, 128, 128),  # its own: the principal components
        ("dsa-single-sst2", 24, 24, 24),
        ("mean-fnc1", 24, 24, None),  # the mean of the words is as wide as the teacher
    ],
)
def test_a_fresh_student_fits_its_teacher(
    setting: str,
    width: int,
    embedding_size: int,
    projection_size: int | None,
    teachers: dict[int, Path],
    tmp_path: Path,
) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(row["premise"] for row in pairs("train")) + "\n")
    arguments = ModelArguments(
        setting=setting, vectors=Path(f"teacher:{teachers[width]}"), vocabulary_size=450, pieces=0
    )
    sentences = Sentences([open_sentences(str(tmp_path / "texts.txt"))])
    student, tokenizer = make_student(arguments, dict(SIZES), LossArguments(), sentences, width, 0, show_progress=False)
    assert (student.config.embedding_size, student.config.projection_size) == (embedding_size, projection_size)
    assert len(tokenizer) == student.config.vocab_size == 453
    with pytest.raises(ValueError, match=f"have {width + 1} numbers and the teacher's {width}: give --projection_size"):
        make_student(
            arguments,
            SIZES | {"projection_size": width + 1},
            LossArguments(),
            sentences,
            width,
            0,
            show_progress=False,
        )


def test_weights_that_do_not_fit_their_config_are_refused_in_one_sentence(tmp_path: Path) -> None:
    config = save_encoder(tmp_path / "model", attention_head_size=4) / "config.json"
    config.write_text(config.read_text().replace('"attention_head_size": 4', '"attention_head_size": 6'))
    (tmp_path / "texts.txt").write_text("A dog.\n")
    sentences = Sentences([open_sentences(str(tmp_path / "texts.txt"))])
    start = ModelArguments(model_name_or_path=str(tmp_path / "model"))
    with pytest.raises(ValueError, match=r"model cannot be loaded \(weights have other shapes than its config says"):
        make_student(start, {}, LossArguments(), sentences, 6, 0, show_progress=False)


def test_a_saved_student_is_trained_in_float32(tmp_path: Path) -> None:
    encoder = small_encoder()
    encoder.model.half().save_pretrained(tmp_path / "model")
    encoder.tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "texts.txt").write_text("A dog.\n")
    sentences = Sentences([open_sentences(str(tmp_path / "texts.txt"))])
    start = ModelArguments(model_name_or_path=str(tmp_path / "model"))
    width = encoder.model.config.sentence_embedding_size
    student, _ = make_student(start, {}, LossArguments(), sentences, width, 0, show_progress=False)
    assert {student.dtype, student.config.dtype} == {torch.float32}
