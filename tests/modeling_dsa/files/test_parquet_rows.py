"""modeling_dsa.files.parquet_rows: damaged pages, and schemas that say more than columns."""

import base64
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from modeling_dsa.files.text_files import read_rows, read_texts

EVIL = {"ARROW:extension:name": "arrow.py_extension_type", "ARROW:extension:metadata": b"cposix\nmkdir\n(Vran\ntR."}


def test_damaged_page_and_columns_of_one_name_in_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a b c d"] * 5000}), path, compression="snappy")
    content = bytearray(path.read_bytes())
    content[4:60] = bytes(56)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.parquet is a broken Parquet file"):
        read_texts([path], ["text"])
    twice = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], ["text", "text"])
    pyarrow.parquet.write_table(twice, path)
    with pytest.raises(ValueError, match=r"a\.parquet has the column 'text' twice"):
        read_texts([path], ["text"])


@pytest.mark.parametrize(
    "metadata",
    [
        {"ARROW:schema": b"no schema"},
        {"ARROW:schema": base64.b64encode(b"\xff" * 500)},
        {"ARROW:schema": base64.b64encode(pyarrow.schema([("label", pyarrow.int64())]).serialize().to_pybytes())},
        {
            "ARROW:schema": base64.b64encode(
                pyarrow.schema([pyarrow.field("text", pyarrow.string(), metadata=EVIL)]).serialize().to_pybytes()
            )
        },
        {"huggingface": '{"info":' * 5000, "pandas": "{"},
        {str(number): "x" for number in range(10_000)},
    ],
    ids=["no schema", "noise", "other columns", "a pickle", "nested", "many"],
)
def test_what_else_a_parquet_schema_says_changes_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metadata: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    table = pyarrow.table({"text": ["A man", "A dog"]}).replace_schema_metadata(metadata)
    pyarrow.parquet.write_table(table, "a.parquet", store_schema=False)
    assert [row["text"] for _, row in read_rows(Path("a.parquet"))] == ["A man", "A dog"]
    assert [path.name for path in tmp_path.iterdir()] == ["a.parquet"]
