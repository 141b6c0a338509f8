"""Values of metrics as a person reads them: as text with their unit, and on the axes of figures."""

from __future__ import annotations

from plait.analysis.metrics.catalogue import title_of, unit_of


def show(metric: str, value: float | None) -> str:
    """Return a metric's value with its unit."""
    return unit_of(metric).show(value)


def with_interval(metric: str, value: float | None, ci95: tuple[float, float] | None) -> str:
    """Return a mean and half its interval in one unit: "9.20 \N{PLUS-MINUS SIGN} 0.03 Mbit/s"."""
    text = show(metric, value)
    if value is None or not value or ci95 is None:
        return text
    number, _, unit = text.partition(" ")
    half = (ci95[1] - ci95[0]) / 2 * abs(float(number) / value)
    decimals = len(number.partition(".")[2])
    least = 10.0**-decimals
    bound = f"{half:.{decimals}f}" if half >= least / 2 else f"<{least:.{decimals}f}"
    return f"{number} \N{PLUS-MINUS SIGN} {bound} {unit}".rstrip()


def span(metric: str, low: float | None, high: float | None) -> str:
    """Return a range in one unit where that is possible: "4.77 to 4.79 Mbit/s"; one value when both read alike."""
    first, last = show(metric, low), show(metric, high)
    if first == last:
        return first
    number, _, unit = first.partition(" ")
    return f"{number} to {last}" if last.endswith(f" {unit}") else f"{first} to {last}"


def scale_of(metric: str, largest: float) -> tuple[float, str]:
    """Return the divisor and the unit in which an axis shows `metric` when its largest value is `largest`."""
    return unit_of(metric).scale(largest)


def axis_title(metric: str, unit: str) -> str:
    """Return the title of an axis: the metric's title, and its unit if it has one."""
    return f"{title_of(metric)}, {unit}" if unit else title_of(metric)
