"""What a finished run writes beside the model, and what it cannot write does not cost the run."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_models import small_config
from small_runs import pairs, small_tokenizer

from modeling_dsa import DSAForNLI
from run_glue_style.reporting.reporters import draw_attention_of_examples, write_card_of_run
from run_glue_style.training.run import FinishedRun


def finished_run(folder: Path, first_premise: str, model_id: str) -> FinishedRun:
    texts = [[row["premise"], row["hypothesis"]] for row in pairs("validation")[:3]]
    texts[0][0] = first_premise
    model, tokenizer = (
        DSAForNLI(small_config(vocab_size=len(small_tokenizer()), sentences_per_example=2)),
        small_tokenizer(),
    )
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return FinishedRun(model, tokenizer, texts, folder, model_id)


def test_picture_and_card_are_written(tmp_path: Path) -> None:
    run = finished_run(tmp_path, "A man.", "org/mine")
    draw_attention_of_examples(run)
    write_card_of_run(run)
    assert (tmp_path / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert "org/mine" in (tmp_path / "README.md").read_text("utf-8")


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_own_words_of_the_card_of_an_earlier_run_are_kept(line_break: str, tmp_path: Path) -> None:
    earlier = tmp_path / "earlier"
    write_card_of_run(finished_run(earlier, "A man.", "org/mine"))
    card = (earlier / "README.md").read_text("utf-8")
    own = "<!-- own words -->\nFor my aunt.\n<!-- end of own words -->\n"
    (earlier / "README.md").write_text(card + own, "utf-8", newline=line_break)
    run = finished_run(tmp_path / "new", "A man.", "org/mine")
    write_card_of_run(replace(run, replaced=earlier))
    assert "For my aunt." in (tmp_path / "new" / "README.md").read_text("utf-8")


def test_what_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = finished_run(tmp_path, "\u200b", "no repository/has blanks")
    draw_attention_of_examples(run)
    write_card_of_run(run)
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "There is no picture of the attention",
        "There is no model card",
    ]
    assert not {"attention.png", "README.md"} & {path.name for path in tmp_path.iterdir()}
