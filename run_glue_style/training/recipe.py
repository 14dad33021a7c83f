"""What is trained, how, and where it runs: the options that all training scripts share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

from modeling_dsa.hub.publishing import check_repo_id
from modeling_dsa.options_dsa import NOT_NEGATIVE, POSITIVE, RATE, Bound, check_bounds, option
from modeling_dsa.shipped.models import model_source
from modeling_dsa.shipped.settings import setting_folder, setting_names

_MOST = 10**9  # of whatever is counted


def counted(least: int, most: int = _MOST) -> Bound:
    """The bound of a number of things."""
    return Bound(lambda number: least <= number <= most, f"be from {least} to {most:,}")


@dataclass
class ModelArguments:
    """What is trained."""

    _argument_group_name: ClassVar[str] = "model"

    setting: str | None = option(None, "Published setting, by name or folder: " + ", ".join(setting_names()) + ".")
    model_name_or_path: str | None = option(
        None,
        "Train this model further, instead of a setting with fresh weights: a folder, one of model_cards by its name, "
        "or a Hub id.",
    )
    vectors: Path | None = option(
        None,
        "Word vectors (GloVe .txt/.zip/.gz, word2vec text/.bin, fastText .vec), or teacher:MODEL for those that a "
        "sentence-transformers model gives the words; default: those in the package, for its own SNLI pairs.",
    )
    vocabulary_size: int | None = option(
        None,
        "With teacher:MODEL, know at most so many words: the most frequent ones of the texts, or the first of "
        "--word_list; default: 50000.",
        counted(1),
    )
    word_list: Path | None = option(
        None, "With teacher:MODEL, know the words of this file, which has one a line, in place of those of the texts."
    )
    pieces: int | None = option(
        None,
        "With teacher:MODEL, split other words into so many pieces that are learnt from the same words, and into "
        "single characters; 0 reads them as [UNK]; default: 8000. Emoji and the characters of other scripts that the "
        "teacher reads come, too.",
        counted(0, 1_000_000),
    )
    frequency_weighting: float | None = option(
        None,
        "With teacher:MODEL, multiply a vector by A / (A + p), where this is A (such as 0.001) and the word a share p "
        "of the texts, so that frequent words weigh less; default: no.",
        POSITIVE,
    )

    def __post_init__(self) -> None:
        """Refuse contradictions, and find a model that ships."""
        if self.model_name_or_path is not None:
            self.model_name_or_path = model_source(self.model_name_or_path)
            for name in ("setting", "vectors"):
                if getattr(self, name) is not None:
                    raise ValueError(
                        f"Give either --{name} or --model_name_or_path, and not both: a model has its own "
                        "configuration and word vectors."
                    )
        check_bounds(self)

    @property
    def source(self) -> str | Path:
        """The saved model, or the setting's folder: what the model's config is read from.

        Raises:
            ValueError: There is neither, or no setting of this name.
        """
        return self.model_name_or_path or setting_folder(self.setting or "")

    @property
    def vocabulary(self) -> dict[str, Any]:
        """The options of a vocabulary whose vectors a teacher gives, as far as they were given, as JSON."""
        found = {name: getattr(self, name) for name in ("vocabulary_size", "pieces", "frequency_weighting")}
        found["word_list"] = None if self.word_list is None else str(self.word_list)
        return {name: value for name, value in found.items() if value is not None}


@dataclass
class TrainingRecipe:
    """How it is trained. A recipe file sets these by name; the command line overrides it."""

    _argument_group_name: ClassVar[str] = "training recipe"

    num_train_epochs: float = option(
        12.0,
        "Passes over the training data.",
        Bound(lambda epochs: 0 < epochs <= _MOST, f"be greater than 0 and at most {_MOST:,}"),
    )
    max_train_steps: int | None = option(
        None, "Train for this many updates, whatever num_train_epochs says.", counted(1)
    )
    # Batch normalisation cannot train on one example.
    per_device_train_batch_size: int = option(256, "Examples in a training batch of each process.", counted(2))
    per_device_eval_batch_size: int = option(512, "Examples in an evaluation batch of each process.", counted(1))
    gradient_accumulation_steps: int = option(1, "Batches whose gradients make one update.", counted(1))
    optimizer: Literal["adamw", "adam", "adadelta", "adagrad", "rmsprop", "sgd"] = option(
        "adamw", "All but adamw add weight_decay to the gradient (L2)."
    )
    learning_rate: float = option(1e-3, "Highest learning rate.", POSITIVE)
    embedding_learning_rate: float | None = option(
        None,
        "Highest learning rate of the word table, where it is trained; default: that of all other weights.",
        POSITIVE,
    )
    encoder_learning_rate: float | None = option(
        None,
        "Highest learning rate of all but the classifier, for --model_name_or_path: a lower one keeps what the encoder "
        "knows, 0 freezes it; default: that of the classifier.",
        NOT_NEGATIVE,
    )
    weight_decay: float = option(
        0.01, "For adamw on weight matrices, for the others (L2) on all parameters.", NOT_NEGATIVE
    )
    max_grad_norm: float = option(5.0, "Clip the gradient's norm; 0 clips nothing.", NOT_NEGATIVE)
    schedule: Literal["cosine", "linear", "constant", "plateau"] = option(
        "cosine",
        "Learning rate after the warm-up; plateau has none, and halves it when the training loss stops falling.",
    )
    warmup_ratio: float = option(0.1, "Share of the updates in which the learning rate rises; not with plateau.", RATE)
    soft_attention_ratio: float = option(
        0.0,
        "Reinforced self-attention: share of the updates in which all tokens are chosen, as soft_attention_steps; the "
        "best weights are chosen behind them.",
        RATE,
    )
    plateau_patience: int = option(
        5, "Schedule plateau: checks without a lower training loss before the rate is halved.", counted(1)
    )
    plateau_threshold: float = option(
        1e-3, "Schedule plateau: how much lower the loss of a check must be to count.", NOT_NEGATIVE
    )
    label_smoothing: float = option(0.0, "Share of the target that is spread over all classes.", RATE)
    balance_classes: bool = option(
        False,
        "Learn as if all classes were as frequent in each training file (logit adjustment): where they are not as "
        "frequent in use as there.",
    )
    calibrate: bool = option(
        False,
        "Scale the logits and shift those of each class so that their probabilities fit the validation split (bias-"
        "corrected temperature scaling), once, at the end: its classes should be as frequent as in use.",
    )
    average_decay: float = option(0.0, "Evaluate and keep an exponential average of the weights; 0 is off.", RATE)
    batch_norm_batches: int = option(
        0,
        "Training batches, without dropout, that set batch normalisation's statistics at an evaluation; 0 is off.",
        counted(0),
    )
    evaluations_per_epoch: int = option(4, "Evaluations on the validation split in each epoch, at most.", counted(1))
    metric_for_best_model: str | None = option(
        None, "Validation metric that chooses the best weights, such as macro_f1; more is better; default: the task's."
    )
    early_stopping_patience: int = option(
        0, "Stop after this many evaluations without a new best; 0 never stops.", counted(0)
    )

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        check_bounds(self)
        if self.embedding_learning_rate is not None and self.encoder_learning_rate == 0:
            raise ValueError(
                "--encoder_learning_rate 0 freezes the word table too: leave --embedding_learning_rate out."
            )


def require_no_classes(recipe: TrainingRecipe, because: str) -> None:
    """Refuse the options that only classes have.

    Raises:
        ValueError: The recipe has one.
    """
    for name in ("label_smoothing", "balance_classes", "calibrate"):
        if getattr(recipe, name):
            raise ValueError(f"--{name} is for classes, and {because}: leave it out.")


@dataclass
class RunArguments:
    """Where and how it runs."""

    _argument_group_name: ClassVar[str] = "run"

    output_dir: Path | None = option(None, "Folder of the model and its results; default: runs/<setting>.")
    overwrite_output_dir: bool = option(False, "Start anew; without it an interrupted run is resumed.")
    recipe: str | None = option(
        None,
        "Recipe in configuration/recipes by name, or a YAML file; default: the setting's own, or to distil a "
        "classifier's setting that of dsa-base-en.",
    )
    seed: int = option(
        0,
        "Seed of the initialisation, the order of the data and the dropout.",
        Bound(lambda seed: 0 <= seed < 2**63, "be at least 0 and below 2 ** 63"),
    )
    mixed_precision: Literal["no", "bf16", "fp16"] | None = option(
        None, "bf16 pays on a GPU and on a CPU that computes with it; default: what accelerate's launch file says."
    )
    cpu: bool = option(False, "Stay on the CPU even where there is a GPU.")
    checkpointing_steps: int | None = option(
        None,
        "Updates between two checkpoints; default: one at each evaluation. An interrupt always leaves one.",
        counted(1),
    )
    skip_nonfinite: int = option(
        0, "Updates whose loss or gradient is not finite that are skipped; one more stops the run.", counted(0)
    )
    report_to: Literal["auto", "none", "tensorboard", "wandb", "trackio"] = option(
        "auto", "Tracker; auto is tensorboard where it is installed."
    )
    max_train_samples: int | None = option(
        None,
        "Use only the first training examples, for a trial; of several files each gives its share.",
        counted(1),
    )
    save_example_scores: bool = option(
        False, "Also write example_scores.npz: what the metrics say of each example, for paired tests of two runs."
    )
    evaluate_train: bool = option(
        False, "Also measure the best weights on the training split, at the end; for labelled examples."
    )
    record_attention: bool = option(
        False, "Keep the entropy of the attention on validation examples in the history, at each evaluation."
    )
    push_to_hub: bool = option(False, "Push the finished folder, with the token of HF_TOKEN or `hf auth login`.")
    hub_model_id: str | None = option(None, "Its repository on the Hub, org/name; made where it does not exist.")
    hub_private: bool = option(False, "Make a new repository private.")
    hub_strategy: Literal["end", "every_save"] = option(
        "end", "every_save also pushes the best weights at every checkpoint, in the background."
    )
    hub_revision: str | None = option(None, "Push to this branch instead of main.")

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        if self.push_to_hub and self.hub_model_id is None:
            raise ValueError("--push_to_hub needs to know where: give --hub_model_id org/name.")
        for name in ("hub_model_id", "hub_private", "hub_revision"):
            if getattr(self, name) and not self.push_to_hub:
                raise ValueError(f"--{name} does nothing without --push_to_hub: give that too.")
        if self.hub_strategy != "end" and not self.push_to_hub:
            raise ValueError("--hub_strategy does nothing without --push_to_hub: give that too.")
        if self.hub_model_id is not None:
            check_repo_id(self.hub_model_id)
        check_bounds(self)
