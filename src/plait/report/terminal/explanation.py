"""An explanation on a terminal of 80 columns: sentences, shares of the causes, and evidence for each flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO

from rich.padding import Padding
from rich.text import Text

from plait.analysis.wording import MISSING, all_of, percent, rate
from plait.explain.causes import CAUSES, HARMLESS
from plait.explain.model import Effect, FlowExplanation, Share, StudyExplanation, TrialExplanation
from plait.report.terminal.summary import Screen

BAR, LEAST_BAR = 24, 8
"""Characters of a bar, and those that it has where a narrow terminal leaves no more room beside the causes."""
_BESIDE = 26
"""Characters between a bar and the name of its cause."""
LEAST_SHARE = 0.005
"""Smaller shares are summed in one line."""
LEAST_SHOWN = 0.0001
"""A smaller sum of shares has no number of its own."""
MAX_FLOWS = 12


def show_explanation(
    explanation: StudyExplanation, called: Mapping[str, str], file: IO[str] | None = None
) -> None:
    """Print an explanation to `file`, by default standard output; a terminal shows colours.

    `called` says what to call each case, by name.
    """
    screen = Screen(file)
    console = screen.console
    several = len(explanation.cases) > 1
    for number, case in enumerate(explanation.cases):
        if number:
            console.print()
        for text in _case(case, called.get(case.case, case.case) if several else "", console.width):
            shown = screen.text(text.plain)
            words = text if shown == text.plain else Text(shown.replace("\N{FULL BLOCK}", "#"))
            indent = len(words.plain) - len(words.plain.lstrip())
            console.print(Padding(words[indent:], (0, 0, 0, indent)) if indent else words)
    for line in explanation.failed:
        screen.line(f"Not explained, because the trial failed: {line}", style="yellow")


def _case(case: TrialExplanation, called: str, width: int) -> Iterator[Text]:
    if called:
        yield Text(f"Case {called}", style="bold")
    main = [flow for flow in case.flows if not flow.background] or list(case.flows)
    for number, flow in enumerate(main[:MAX_FLOWS]):
        if number:
            yield Text("")
        yield from _flow(flow, width)
    hidden = [flow.flow for flow in case.flows if flow not in main[:MAX_FLOWS]]
    if hidden:
        yield Text("")
        names = f"{', '.join(hidden[:3])}{f' and {len(hidden) - 3} more' if len(hidden) > 3 else ''}"
        yield Text(f"Not shown: {names}. Select one with --flow NAME.")
    for text in case.unsampled:
        yield Text("")
        yield Text(text, style="yellow")
    if case.trials is not None and case.agree is not None and case.trials > 1:
        yield Text("")
        yield Text(
            f"This is trial {case.trial}; {_have(case.agree, case.trials)} this main cause.",
            style="dim",
        )


def _have(agree: int, trials: int) -> str:
    """Return "3 of 5 examined trials have", "all 3 examined trials have", or "no other of 3 examined trials has"."""
    if agree == 1:
        return f"no other of {trials} examined trials has"
    return f"{all_of(trials, 'examined trial') if agree == trials else f'{agree} of {trials} examined trials'} have"


def _flow(flow: FlowExplanation, width: int) -> Iterator[Text]:
    yield Text(" ".join(flow.sentences))
    yield Text("")
    yield from _shares(flow, width)
    evidence = [line for share in flow.shares if share.cause in flow.named for line in share.evidence]
    if evidence:
        yield Text("")
        for line in dict.fromkeys(evidence):
            yield Text(f"  {line}")
    if flow.tried or flow.untried:
        yield Text("")
        # Several causes may have the same remedy.
        for effect in {effect.fields: effect for effect in flow.tried}.values():
            yield Text(
                f"  {effect.sentence}{_cause_after(effect)}",
                style="bold" if effect.verdict in ("faster", "slower") else "",
            )
        yield from (Text(f"  {sentence}") for sentence in flow.untried)
    if flow.kernel is not None and flow.kernel.lifetime_us:
        yield Text(f"  {_kernel(flow)}", style="dim")


def _shares(flow: FlowExplanation, width: int) -> Iterator[Text]:
    """Yield the table of causes, whose bars leave room for their names in `width` characters."""
    small = [share for share in flow.shares if share.time < LEAST_SHARE]
    rest_words = f"{len(small)} smaller cause{'s' * (len(small) > 1)}"
    longest = max(len(words) for words in (rest_words, *(share.cause for share in flow.shares)))
    bar = max(LEAST_BAR, min(BAR, width - _BESIDE - longest))
    heading = "time by cause" if flow.basis == "time" else "messages by cause"
    heading = heading if len(heading) <= bar else heading.split(maxsplit=1)[0]
    yield Text(f"{heading:<{bar + 2}}{'share':>8}{'cost':>14}  cause", style="dim")
    for share in flow.shares:
        if share not in small:
            yield _line(share, bar, named=share.cause in flow.named)
    if small:
        rest = sum(share.time for share in small)
        total = percent(rest, 2) if rest >= LEAST_SHOWN else f"<{percent(LEAST_SHOWN, 1)}"
        yield Text(f"{'':<{bar + 2}}{total:>8}{MISSING:>14}  {rest_words}", style="dim")


def _cause_after(effect: Effect) -> str:
    """Return a sentence about the main cause of the changed flow, if there is more to say."""
    if not effect.pairs or effect.then == effect.cause:
        return " The main cause stays the same." if effect.pairs and effect.cause is not None else ""
    if effect.then is None:
        return " No named cause remains."
    return f" Then the main cause is {effect.then}: {CAUSES[effect.then].clause}."


def _line(share: Share, bar: int, *, named: bool) -> Text:
    full = round(share.time * bar)
    cost = rate(share.cost_bps) if share.cost_bps and share.cause not in HARMLESS else MISSING
    style = "bold" if named else ""
    colour = "green" if share.cause in HARMLESS else "red" if named else "yellow"
    line = Text()
    line.append(f"{chr(0x2588) * full:<{bar + 2}}", style=colour)
    line.append(f"{percent(share.time, 2):>8}{cost:>14}  ")
    line.append(share.cause, style=style)
    return line


def _kernel(flow: FlowExplanation) -> str:
    kernel = flow.kernel
    assert kernel is not None
    shares = [
        f"{name} {percent(us / kernel.lifetime_us, 2)}"
        for us, name in (
            (kernel.busy_us, "busy"),
            (kernel.rwnd_limited_us, "rwnd-limited"),
            (kernel.sndbuf_limited_us, "sndbuf-limited"),
        )
    ]
    return f"Kernel accounting (tcp_info), in shares of the subflows' lifetimes: {', '.join(shares)}."
