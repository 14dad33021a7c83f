"""modeling_dsa.files.pictures: what all pictures share."""

from matplotlib.figure import Figure

from modeling_dsa.files.pictures import scale_by_logarithm


def test_a_logarithmic_axis_is_labelled_at_1_2_and_5_times_the_powers_of_ten() -> None:
    figure = Figure()
    panel = figure.add_subplot()
    panel.plot([90, 2100], [0, 1])
    scale_by_logarithm(panel, "{x:,.0f}")
    figure.draw_without_rendering()
    low, high = panel.get_xlim()
    ticks = [*panel.xaxis.get_major_ticks(), *panel.xaxis.get_minor_ticks()]
    shown = [tick.label1.get_text() for tick in ticks if low <= tick.get_loc() <= high]
    assert list(filter(None, shown)) == ["100", "200", "500", "1,000", "2,000"]
