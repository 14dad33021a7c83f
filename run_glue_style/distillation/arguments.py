"""The options of distillation: teacher, texts, validation and losses."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from modeling_dsa.files.columns import check_text_columns
from modeling_dsa.options_dsa import COUNTS, NOT_NEGATIVE, POSITIVE, Bound, check_bounds, option
from run_glue_style.training.recipe import counted


@dataclass
class TeacherArguments:
    """The teacher, and the texts that it is given."""

    _argument_group_name: ClassVar[str] = "teacher and texts"

    texts: str | None = option(
        None,
        "Sentences to learn from: .txt with one a line, .jsonl, .csv, .tsv or .parquet, each also with .gz behind; or "
        "a data set's Hub id or folder.",
    )
    text_column: list[str] | None = option(
        None, "Column of the sentences, or the two columns of pairs; default: 'text', or the only one."
    )
    split: str | None = option(None, "Split of a data set; default: the only one.")
    teacher: str | None = option(None, "Any sentence-transformers model, by folder or Hub id.")
    teacher_vectors: Path | None = option(
        None,
        "The teacher's vectors in place of the teacher: a .npy file (sentences, numbers), or a folder of such files in "
        "the order of their names; rows in the order of the texts, of pairs first and second in turn.",
    )
    cache_dir: Path | None = option(
        None,
        "Folder for the vectors that a teacher has given the texts, which later runs find; default: dsa-teacher in the "
        "cache of datasets (HF_DATASETS_CACHE), where those of words always are. Of --teacher_vectors it holds the "
        "principal components, where a student has fewer numbers.",
    )
    validation_sentences: int = option(
        2000,
        "Texts that are held out, the same ones whatever the seed; their copies, and pairs with one of their "
        "sentences, are left out of the training.",
        counted(2),
    )
    similarity_file: list[Path] | None = option(
        None,
        "Pairs of sentences with a human score, such as STS-B's; the mean of the files' Spearman correlations chooses "
        "the best weights.",
    )

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        check_text_columns(self.text_column or ())
        check_bounds(self)


@dataclass
class LossArguments:
    """What is minimised: the sum of these losses, each with its weight."""

    _argument_group_name: ClassVar[str] = "losses"

    cosine_weight: float = option(
        1.0, "1 - cosine of the student's vector and the teacher's: the same space.", NOT_NEGATIVE
    )
    similarity_weight: float = option(
        1.0,
        "Mean squared difference of the cosines of all sentences of a process's batch with each other, the student's "
        "and the teacher's: the same structure, in whatever space.",
        NOT_NEGATIVE,
    )
    contrastive_weight: float = option(
        0.0,
        "Cross-entropy of finding the right vector among those of the process's batch: of a pair the second "
        "sentence's, else the teacher's vector of the same sentence.",
        NOT_NEGATIVE,
    )
    contrastive_temperature: float = option(0.05, "The cosines are divided by it in the contrastive loss.", POSITIVE)
    matryoshka: list[int] | None = option(
        None,
        "Lengths such as 64 128 256: the first so many numbers become a vector of their own, by the similarity loss on "
        "each.",
        Bound(COUNTS.holds, "be lengths of at least 1"),
    )

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        check_bounds(self)
        if not self.cosine_weight + self.similarity_weight + self.contrastive_weight:
            raise ValueError("All losses have the weight 0: give one of them a weight.")
        if not self.contrastive_weight and self.contrastive_temperature != type(self).contrastive_temperature:
            raise ValueError("--contrastive_temperature is of the contrastive loss: give --contrastive_weight too.")
        if self.matryoshka and not self.similarity_weight:
            raise ValueError("--matryoshka is a similarity loss: give --similarity_weight too.")
        if self.matryoshka and len(set(self.matryoshka)) < len(self.matryoshka):
            raise ValueError("--matryoshka names a length twice: leave one out.")
