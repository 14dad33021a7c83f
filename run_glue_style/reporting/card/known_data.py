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
        train_sha256: Of what the package makes of them to train on.
        train_examples: How many labelled ones their whole training split has, where we have no hash of it.
    """

    name: str
    table: str
    hub_id: str | None
    sha256: frozenset[str]
    train_sha256: frozenset[str]
    train_examples: int | None = None


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

_PACKAGED_TRAIN_SHA256 = "d962cb74b2520f5f3f5a3f84ceb578d9a08d9af4273aa5c37b34345b132c56d8"  # run_glue_style/sample

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
        frozenset({_PACKAGED_TRAIN_SHA256}),
        train_examples=549_367,
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
        frozenset({"93402fc0a73d1815e8eb465230ed7387ebca99185faf810bdec9b283057d3406"}),  # all phrases
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
        frozenset({"bafeb79ca5b74bc44e0970a8be3106f81b1aeca8655eb4776ad090d308a1af96"}),  # all phrases
    ),
    KnownData(
        "FNC-1",
        "fnc1",
        None,
        frozenset({"2e7e286bf40eb6e04a26cf5498d09a4819f3152cc6c5482d5fcbf845f1b78e99"}),
        frozenset(
            {
                "e15b5463f1284b57e57d6a650d44948e10e86fcf9d57c7ff1b5976890487258a",  # by topics
                "11acea4acc5b291b4e269bdfd832ff9deef1539bf1ee78170eb42ed72787f9a4",  # by bodies
            }
        ),
    ),
)
_JOINED_SHA256 = "e76683378a1c4fda3c901b93f3beaebb59ca5d35221deeb9193ae042d48d77a5"  # FNC-1 by topics


def known_data(results: Mapping[str, Any]) -> KnownData | None:
    """The public data that a run was chosen or tested on and trained on, perhaps beside further files, if they are any
    that we know.
    """
    data = results.get("data", {})
    hashes = {of_split["sha256"] for split, of_split in data.items() if split != "train"}
    known = next((known for known in KNOWN_DATA if known.sha256 & hashes), None)
    if known is None or _has_further_files(results) or results.get("source") == known.hub_id:
        return known
    is_trained_on = data["train"]["sha256"] in known.train_sha256 or data["train"]["examples"] == known.train_examples
    return known if is_trained_on else None


def has_other_data(results: Mapping[str, Any]) -> bool:
    """Whether weights have learnt from other data than their task's, whose licence is not known here: from further
    files, or in the model that they started from.
    """
    return results.get("start", FRESH) != FRESH or _has_further_files(results)


def _has_further_files(results: Mapping[str, Any]) -> bool:
    return "examples_of_files" in results or "extra_train_files" in given_options(results.get("command", []))


def joined_pairs(results: Mapping[str, Any]) -> JoinedPairs | None:
    """What a run's validation pairs are, where they are FNC-1's by topics."""
    return JOINED_PAIRS if results["data"].get("validation", {}).get("sha256") == _JOINED_SHA256 else None


def is_packaged(results: Mapping[str, Any]) -> bool:
    """Whether a run was trained on the sample that ships with the package."""
    return bool(results["data"]["train"]["sha256"] == _PACKAGED_TRAIN_SHA256)
