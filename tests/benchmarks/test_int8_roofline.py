from pathlib import Path

import int8_roofline
import pytest
from benchmark_runs import run_quick
from lib.shipped import SHIPPED_ENCODERS


def test_operators_are_told_apart_by_name() -> None:
    products = ("FusedGemm", "QGemm", "MatMulIntegerToFloat", "ConvInteger")
    assert {int8_roofline.kind_of(name) for name in products} == {"products"}
    assert int8_roofline.kind_of("GatherND") == "look_ups"
    assert {int8_roofline.kind_of(name) for name in ("Concat", "QuantizeLinear")} == {"others"}


@pytest.mark.slow
def test_every_part_has_its_time_in_both_forms(tmp_path: Path) -> None:
    results = run_quick(int8_roofline.main, tmp_path / "results" / "roofline.json").results
    assert [(result["name"], result["form"]) for result in results] == [
        (SHIPPED_ENCODERS[0], form) for form in ("float32", "int8")
    ]
    for result in results:
        parts = [result[part] for part in ("tokenising", "products", "look_ups", "others")]
        assert min(parts) > 0
        assert sum(parts) + result["around"] == pytest.approx(result["whole"])
        assert result["times_without_products"] > result["times_float32"]
    assert results[0]["times_float32"] == 1
