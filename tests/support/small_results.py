"""Results as the scripts write them, for the tests of tables."""

import json
from pathlib import Path
from typing import Any


def results(setting: str, seed: int, accuracy: float, **changes: Any) -> dict[str, Any]:
    """What the tables read of an all_results.json."""
    recalls = {"agree": 0.5, "disagree": 0.125, "discuss": 0.75, "unrelated": 1.0}
    test = {
        "accuracy": accuracy - 0.01,
        "macro_f1": 0.25,
        "per_class": {name: {"recall": recall} for name, recall in recalls.items()},
        "fnc_relative": 0.8,
    }
    return {
        "setting": setting,
        "recipe_name": "modern",
        "source": "some.jsonl",
        "vectors": "glove.6B.zip",
        "trained_parameters": 2078703,
        "metrics": {"validation": {"accuracy": accuracy}, "test": test},
        "command": ["run_x.py", "--setting", setting, "--seed", str(seed), "--cpu", "--output_dir", "x"],
        "train_seconds": 90.0,
        "model": {"embedding_size": 100},
        "recipe": {
            "num_train_epochs": 6.0,
            "max_train_steps": None,
            "per_device_train_batch_size": 45,
            "gradient_accumulation_steps": 1,
        },
        "seed": seed,
        "steps": 1200,
        "mixed_precision": "no",
        "processes": 1,
        "data": {"train": {"examples": 9000, "sha256": "a"}, "test": {"examples": 1000, "sha256": "b"}},
        **changes,
    }


def write_results(folder: Path, setting: str, seed: int, accuracy: float, **changes: Any) -> None:
    """Put them where the tables look for them."""
    path = folder / setting / f"seed-{seed}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results(setting, seed, accuracy, **changes)), encoding="utf-8")
