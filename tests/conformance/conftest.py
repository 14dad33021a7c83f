"""Fetches transformers' own tests and makes known their marks."""

import os
import re
from pathlib import Path

import pytest

from conformance import transformers_sources

# Tests of what no model of this family has, each of which would skip itself in every class: attention kernels, rotary
# and position embeddings, parallel plans, experts, decoders, composite models.
FOREIGN = re.compile(
    "flash_attn|eager_matches_|sdpa_can|flex_attention|kernels|sliding_window|rope|position_vector|tp_plan|deepspeed"
    "|model_parallelism|moe_models|router_logits|causal_lm|encoder_decoder|composite"
)
# What the loader does alike with every model: one class has it.
OF_THE_LOADER, ONCE = "test_bc_torch_dtype", "DynamicSelfAttentionTest"


def _leaves_out(config: pytest.Config) -> bool:
    """Whether none of these tests is wanted, all of which are slow."""
    return bool(config.getoption("markexpr") == "not slow")


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Nine classes of tests take a while to collect."""
    return True if _leaves_out(config) else None


def pytest_configure(config: pytest.Config) -> None:
    """Where the tests cannot be had, test_conformance.py is skipped, but not in CI."""
    if _leaves_out(config):
        return
    try:
        package = transformers_sources.fetch(config.rootpath / ".cache")
    except ConnectionError as error:
        if os.environ.get("CI"):
            raise pytest.UsageError(str(error)) from error
        return
    transformers_sources.make_importable(package)
    for name in [*transformers_sources.marks(package), "is_training_test"]:
        config.addinivalue_line("markers", f"{name}: a mark of transformers' own tests")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests out that do not apply to any model of this family, or say the same of each."""
    here = [item for item in items if item.path.parent == Path(__file__).parent]
    left_out = {
        item
        for item in here
        if FOREIGN.search(item.name) or (item.name == OF_THE_LOADER and f"::{ONCE}::" not in item.nodeid)
    }
    config.hook.pytest_deselected(items=[item for item in here if item in left_out])
    items[:] = [item for item in items if item not in left_out]
