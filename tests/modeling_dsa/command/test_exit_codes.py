"""modeling_dsa.command.exit_codes: how commands end."""

from collections.abc import Callable, Sequence

import pytest
from safetensors import SafetensorError

from modeling_dsa.command.exit_codes import exit_code_of
from run_glue_style.distillation import edited_sentences
from run_glue_style.reporting import cost_plot, entropy_history, growth_plot, row_difference, tabulate
from run_glue_style.studies import hop_overlap


@pytest.mark.parametrize(
    ("how", "code", "messages"),
    [
        (None, 0, []),
        (ValueError("Give another."), 2, ["error: Give another."]),
        (FileNotFoundError("There is no a.txt."), 2, ["error: There is no a.txt."]),
        (SafetensorError("header too small"), 2, ["error: header too small"]),
        (KeyboardInterrupt(), 130, ["Stopped."]),
    ],
)
def test_a_way_to_end_has_its_code_and_sentence(
    how: BaseException | None, code: int, messages: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def command() -> None:
        if how is not None:
            raise how

    assert exit_code_of(command, []) == code
    assert caplog.messages == messages


def test_a_command_may_have_a_code_of_its_own_and_a_bug_stays_one() -> None:
    assert exit_code_of(lambda: 1, []) == 1
    with pytest.raises(ZeroDivisionError):
        exit_code_of(lambda: 1 // 0, [])


@pytest.mark.parametrize(
    ("main", "others"),
    [
        (tabulate.main, []),
        (row_difference.main, ["a", "b"]),
        (cost_plot.main, []),
        (growth_plot.main, []),
        (entropy_history.main, ["--output", "a"]),
        (edited_sentences.main, ["a.txt"]),
        (hop_overlap.main, []),
    ],
)
def test_commands_refuse_what_was_not_typed_so(
    main: Callable[[Sequence[str]], int], others: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert main(["~/runs", *others]) == 2
    assert "would be in a folder called ~" in caplog.messages[-1]
