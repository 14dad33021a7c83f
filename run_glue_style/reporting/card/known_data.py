"""Public data sets that a card recognises by their contents."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from run_glue_style.training.arguments import given_options
from run_glue_style.training.run_record import FRESH


@dataclass(frozen=True)
class KnownData:
    """Public data that are recognised by their rows, whatever the files are called.

    Attributes:
        name: As people call them.
        table: The paper's table in configuration/tables that has figures on them.
        hub_id: Their data set on the Hub, if there is one of whose contents we are sure.
        sha256: `fingerprint` of the complete splits that choose weights or test them.
    """

    name: str
    table: str
    hub_id: str | None
    sha256: frozenset[str]


@dataclass(frozen=True)
class JoinedPairs:
    """What holding out whole topics does to FNC-1's unrelated pairs.

    Attributes:
        joined: Validation pairs whose headline and body were joined anew.
        dropped: Real pairs that lie across the two sides, and are in neither.
    """

    joined: int
    dropped: int


JOINED_PAIRS = JoinedPairs(joined=3040, dropped=6945)

KNOWN_DATA = (
    KnownData(
        "SNLI",
        "snli",
        "stanfordnlp/snli",
        frozenset(
            {
                "c29542f144c497b90613f20222f091889304c1a78a60d1677a7632f81e0a8d47",
                "d09d4209d03bfd9f6a101f64a32b5dea7665a78fc6c8ec48e37f675df8cfae37",
            }
        ),
    ),
    KnownData(
        "SST-2",
        "sst",
        "stanfordnlp/sst",
        frozenset(
            {
                "b979a4b2eb3e86a47103720c0dfd1710c34fca8cb1975baa14307a25eda5e5fe",
                "84aec21327cd5a4f0688c3be9713e12c75c07ebcff569e384269fb3a65ed175f",
            }
        ),
    ),
    KnownData(
        "SST-5",
        "sst",
        "stanfordnlp/sst",
        frozenset(
            {
                "648483fe8009a28d5c2502cc574148b6777b58b353c5cc5494694a43e04fb08e",
                "35023f2c84331097f8dc6a13e774a5a020d789717b1630a9c7ce9cc88cece330",
            }
        ),
    ),
    KnownData(
        "FNC-1",
        "fnc1",
        None,
        frozenset({"2e7e286bf40eb6e04a26cf5498d09a4819f3152cc6c5482d5fcbf845f1b78e99"}),
    ),
)
_JOINED_SHA256 = "e76683378a1c4fda3c901b93f3beaebb59ca5d35221deeb9193ae042d48d77a5"  # FNC-1 by topics
_PACKAGED_TRAIN_SHA256 = "d962cb74b2520f5f3f5a3f84ceb578d9a08d9af4273aa5c37b34345b132c56d8"  # run_glue_style/sample


def known_data(results: Mapping[str, Any]) -> KnownData | None:
    """The public data that a run was chosen or tested on, if they are any that we know."""
    hashes = {of_split["sha256"] for split, of_split in results.get("data", {}).items() if split != "train"}
    return next((known for known in KNOWN_DATA if known.sha256 & hashes), None)


def has_other_data(results: Mapping[str, Any]) -> bool:
    """Whether weights have learnt from other data than their task's, whose licence is not known here: from further
    files, or in the model that they started from.
    """
    starts = results.get("start", FRESH) != FRESH
    of_files = "examples_of_files" in results or "extra_train_files" in given_options(results.get("command", []))
    return starts or of_files


def joined_pairs(results: Mapping[str, Any]) -> JoinedPairs | None:
    """What a run's validation pairs are, where they are FNC-1's by topics."""
    return JOINED_PAIRS if results["data"].get("validation", {}).get("sha256") == _JOINED_SHA256 else None


def is_packaged(results: Mapping[str, Any]) -> bool:
    """Whether a run was trained on the sample that ships with the package."""
    return bool(results["data"]["train"]["sha256"] == _PACKAGED_TRAIN_SHA256)
