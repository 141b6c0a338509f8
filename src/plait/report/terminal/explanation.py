"""An explanation in a terminal of 80 columns: a paragraph a flow, then where its time went, then the evidence."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from plait.analysis.wording import MISSING, percent, rate
from plait.explain.causes import CAUSES, HARMLESS
from plait.report.terminal.summary import Screen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plait.explain.model import Effect, FlowExplanation, Share, StudyExplanation, TrialExplanation

BAR = 24
LEAST_SHARE = 0.005
"""Smaller shares are told together."""
MOST_FLOWS = 12
INDENT = (0, 0, 0, 2)


def show_explanation(found: StudyExplanation, file: IO[str] | None = None) -> None:
    """Prints an explanation to `file` (standard output); colours on a terminal only."""
    screen = Screen(file)
    console = screen.console
    several = len(found.cases) > 1
    for number, case in enumerate(found.cases):
        if number:
            console.print()
        for text in _case(case, named=several):
            shown = screen.text(text.plain)
            words = text if shown == text.plain else Text(shown.replace("\N{FULL BLOCK}", "#"))
            indent = len(words.plain) - len(words.plain.lstrip())
            console.print(Padding(words[indent:], (0, 0, 0, indent)) if indent else words)
    for line in found.failed:
        screen.line(f"Not explained, because it failed: {line}", style="yellow")


def _case(case: TrialExplanation, *, named: bool) -> Iterator[Text]:
    if named:
        yield Text(f"Case {case.case}", style="bold")
    main = [flow for flow in case.flows if not flow.background] or list(case.flows)
    for number, flow in enumerate(main[:MOST_FLOWS]):
        if number:
            yield Text("")
        yield from _flow(flow)
    left = [flow.flow for flow in case.flows if flow not in main[:MOST_FLOWS]]
    if left:
        yield Text("")
        names = f"{', '.join(left[:3])}{', ..' if len(left) > 3 else ''}"
        yield Text(f"Not shown: {names} ({len(left)} in the background or further on); name one with --flow.")
    if case.trials is not None and case.trials > 1:
        yield Text("")
        yield Text(
            f"This is trial {case.trial}; {case.agree} of {case.trials} trials looked at name the same cause first.",
            style="dim",
        )


def _flow(flow: FlowExplanation) -> Iterator[Text]:
    yield Text(" ".join(flow.sentences))
    yield Text("")
    what = "where the time went" if flow.basis == "time" else "what became of it"
    yield Text(f"{what:<{BAR + 2}}{'share':>8}{'cost':>14}  cause", style="dim")
    small = [share for share in flow.shares if share.time < LEAST_SHARE]
    for share in flow.shares:
        if share not in small:
            yield _line(share, named=share.cause in flow.named)
    if small:
        rest = sum(share.time for share in small)
        yield Text(f"{'':<{BAR + 2}}{percent(rest, 2):>8}{MISSING:>14}  {len(small)} smaller", style="dim")
    evidence = [line for share in flow.shares if share.cause in flow.named for line in share.evidence]
    if evidence:
        yield Text("")
        for line in dict.fromkeys(evidence):
            yield Text(f"  {line}")
    if flow.tried:
        yield Text("")
        for one in flow.tried:
            yield Text(
                f"  {one.sentence}{_then(one)}", style="bold" if one.verdict in ("faster", "slower") else ""
            )
    if flow.kernel is not None and flow.kernel.lifetime_us:
        yield Text(f"  {_kernel(flow)}", style="dim")


def _then(one: Effect) -> str:
    """What holds the changed flow back, where that says more."""
    if not one.pairs or one.then == one.cause:
        return " The same holds it back as before." if one.pairs and one.cause is not None else ""
    if one.then is None:
        return " Then nothing holds it back."
    return f" Then it is this: {CAUSES[one.then].clause} [{one.then}]."


def _line(share: Share, *, named: bool) -> Text:
    full = round(share.time * BAR)
    cost = rate(share.cost_bps) if share.cost_bps and share.cause not in HARMLESS else MISSING
    style = "bold" if named else ""
    colour = "green" if share.cause in HARMLESS else "red" if named else "yellow"
    line = Text()
    line.append(f"{chr(0x2588) * full:<{BAR + 2}}", style=colour)
    line.append(f"{percent(share.time, 2):>8}{cost:>14}  ")
    line.append(share.cause, style=style)
    return line


def _kernel(flow: FlowExplanation) -> str:
    kernel = flow.kernel
    assert kernel is not None
    parts = [
        f"{percent(us / kernel.lifetime_us, 2)} {what}"
        for us, what in (
            (kernel.busy_us, "busy"),
            (kernel.rwnd_limited_us, "of it rwnd-limited"),
            (kernel.sndbuf_limited_us, "sndbuf-limited"),
        )
    ]
    return f"The kernel's own accounting (tcp_info): {', '.join(parts)}."
