"""What commands measured of a finished model, in a card that is written again."""

import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard

from modeling_dsa.evaluation import report as evaluation_report
from modeling_dsa.evaluation.card import update_card
from modeling_dsa.explanation import faithfulness_report
from modeling_dsa.files.model_hashes import model_file_hashes

logger = logging.getLogger(__name__)


def put_measured(card: ModelCard, folder: Path) -> None:
    """Put in the sections of `dsa evaluate --card` and `dsa explain --faithfulness --card`, where the folder has them.

    Figures of another model than the folder's are left out with a warning.

    Args:
        card: The folder's.
        folder: A saved model, with or without evaluation.json and faithfulness.json.

    Raises:
        ValueError: One of these files is broken.
    """

    def put_evaluation(content: Mapping[str, Any]) -> None:
        update_card(card, evaluation_report.Evaluation.from_json(content), folder)

    def put_faithfulness(content: Mapping[str, Any]) -> None:
        faithfulness_report.FaithfulnessReport.from_json(content).update_card(card)

    putters: dict[str, Callable[[Mapping[str, Any]], None]] = {
        evaluation_report.FILE: put_evaluation,
        faithfulness_report.FILE: put_faithfulness,
    }
    for name, put in putters.items():
        path = folder / name
        if not path.is_file():
            continue
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["files"] == model_file_hashes(str(folder)):
                put(content)
            else:
                logger.warning(f"{path} is of another model than the one beside it: the card leaves its figures out.")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path} is broken ({error}): make it again, or take it out of the folder.") from error
