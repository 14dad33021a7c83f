"""modeling_dsa.command.environment: versions and hardware."""

import json
import re

import pytest
import torch

from modeling_dsa.command import environment as module
from modeling_dsa.command.environment import environment


def test_environment_is_json_with_versions_and_hardware() -> None:
    content = json.loads(json.dumps(environment()))
    assert content["torch"] == torch.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", content["python"])
    assert content["cpu_threads"] == torch.get_num_threads()
    assert all(content[package] for package in module.PACKAGES if package != "dsa-transformers")


def test_environment_of_a_checkout_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PACKAGES", ("no-such-package", "torch"))
    content = environment()
    assert content["no-such-package"] is None
    assert content["torch"]
