"""How a run goes to the Hub: at its end or at every checkpoint, and never at the cost of the run."""

import logging
import tempfile
from concurrent.futures import Future
from pathlib import Path

from huggingface_hub import CommitInfo, HfApi
from huggingface_hub.errors import HfHubHTTPError, HTTPError, OfflineModeIsEnabled  # type: ignore[attr-defined]  # see modeling_dsa.hub.publishing
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from modeling_dsa.command.messages import one_line
from modeling_dsa.hub.publishing import NotPushedError, hub_error_sentence, open_repository, push_folder

from .engine import Trainer
from .recipe import RunArguments

logger = logging.getLogger(__name__)


class HubRun:
    """The repository of one run. Only the main process has one."""

    def __init__(self, run: RunArguments) -> None:
        """Make the repository before the work begins.

        Raises:
            ValueError: The Hub refuses: better now than after the training.
        """
        assert run.hub_model_id is not None
        self.repo_id, self.private, self.revision = run.hub_model_id, run.hub_private or None, run.hub_revision
        self._api = HfApi()
        self._running: Future[CommitInfo] | None = None
        try:
            self.repo_id = open_repository(self.repo_id, private=self.private, revision=self.revision)
        except OfflineModeIsEnabled as error:
            raise ValueError(
                f"The model cannot be pushed to {self.repo_id}: HF_HUB_OFFLINE is set. Unset it, or leave "
                "--push_to_hub out."
            ) from error
        except (HTTPError, OSError) as error:
            if isinstance(error, HfHubHTTPError) and error.response.status_code < 500:
                raise ValueError(
                    f"The model cannot be pushed to {self.repo_id}: {hub_error_sentence(error)}"
                ) from error
            logger.warning(f"The run goes on, and is pushed at its end: {hub_error_sentence(error)}")

    def push_checkpoint(self, trainer: Trainer) -> None:
        """Push the best weights so far, in the background; nothing, where the last push is still on its way."""
        if self._running is None or self._running.done():
            self.wait()
            model, step = trainer.best_model(), trainer.progress.step
            self._running = self._api.run_as_future(self._push_checkpoint, model, trainer.tokenizer, step)

    def push(self, folder: Path) -> None:
        """Push the folder of the finished run.

        Raises:
            NotPushedError: The Hub refused or could not be reached.
        """
        self.wait()
        commit = push_folder(
            folder, self.repo_id, private=self.private, revision=self.revision, commit_message="End of training"
        )
        logger.info(f"The model is on the Hub: {commit.commit_url}")

    def wait(self) -> None:
        """Wait for the push in the background. A failure is logged and never ends the run."""
        if self._running is not None:
            running, self._running = self._running, None
            try:
                running.result()
            except NotPushedError as error:
                logger.warning(f"A checkpoint was not pushed: {error.reason}")
            except Exception as error:  # such as a full disk, which each library reports as an error of its own
                logger.warning(f"A checkpoint was not pushed: {type(error).__name__}: {one_line(error)}")

    def _push_checkpoint(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, step: int) -> CommitInfo:
        with tempfile.TemporaryDirectory(prefix="dsa-checkpoint-") as folder:
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            return push_folder(
                Path(folder),
                self.repo_id,
                private=self.private,
                revision=self.revision,
                commit_message=f"Training in progress: the best weights at step {step}",
            )
