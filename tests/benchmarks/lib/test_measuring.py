import mmap
import time
from collections.abc import Callable

import pytest
from lib.measuring import alternate, exponent, memory


def test_competitors_take_turns_and_warm_ups_do_not_count() -> None:
    done: list[tuple[str, int]] = []

    def competitor(name: str, pause: float) -> Callable[[int], None]:
        def work(turn: int) -> None:
            done.append((name, turn))
            time.sleep(pause if turn else 10 * pause)

        return work

    competitors = {"slow": competitor("slow", 0.01), "quick": competitor("quick", 0.0)}
    seconds = alternate(competitors, range(3), "Sleeping", warm_up=1)
    assert done == [(name, turn) for turn in range(3) for name in ("slow", "quick")]
    assert [len(taken) for taken in seconds.values()] == [2, 2]
    assert min(seconds["slow"]) >= 0.01


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        ([5.0, *(3 * size**2 for size in (1000, 3000, 10_000))], pytest.approx(2)),
        ([5.0, *(0.1 * size for size in (1000, 3000, 10_000))], pytest.approx(1)),
        ([1.0, 2.0, 0.0, 0.0], None),
    ],
)
def test_exponents_are_fitted_from_a_size_on(figures: list[float], expected: float | None) -> None:
    assert exponent([100, 1000, 3000, 10_000], figures, 1000) == expected


def test_memory_tells_what_the_process_holds() -> None:
    size, before = 40_000_000, memory("VmRSS")
    with mmap.mmap(-1, size) as held:  # of the system's pages, and not of what an earlier test has freed
        for start in range(0, size, mmap.PAGESIZE):
            held[start] = 1
        assert memory("VmRSS") - before == pytest.approx(size / 1e6, abs=5)
    assert memory("VmHWM") >= memory("VmRSS") - 1
