"""A cause that a test refutes is not named, and sentences do not contradict the shares."""

from __future__ import annotations

from plait.explain.cause import Cause
from plait.explain.causes import next_step
from plait.explain.effect import effect, with_effects
from plait.explain.model import Effect, FlowExplanation, PathAccount, Share
from plait.explain.wording import paragraph, places_text

CAPACITY = 10e6
PLACES = (("window",), ("handshake",), ("client", "a->b"))


def share(cause: Cause, time: float, reason: str | None = None) -> Share:
    return Share(cause=cause, time=time, cost_bps=time * CAPACITY, where=("a-b",), reason=reason)


def explained(
    *shares: Share, goodput: float, named: tuple[Cause, ...] = (), backup: bool = False
) -> FlowExplanation:
    path = PathAccount(path="a-b", subflows=(0,), goodput_bps=goodput, capacity_bps=CAPACITY, shares=())
    spare = PathAccount(
        path="a-b#2", subflows=(1,), backup=True, goodput_bps=1, capacity_bps=CAPACITY, shares=()
    )
    flow = FlowExplanation(
        flow="bulk1", flow_id=0, transport="tcp", start_us=0, end_us=1, completed=True, goodput_bps=goodput,
        capacity_bps=CAPACITY, first=named[0] if named else None, named=named, shares=shares,
        paths=(path, spare) if backup else (path,), kernel=None,
    )  # fmt: skip
    return flow.model_copy(update={"sentences": paragraph(flow)})


def tried(cause: Cause, after: float) -> Effect:
    before = {seed: 5e6 + seed for seed in range(3)}
    return effect("a change", (), cause, before, {seed: after + seed for seed in range(3)})


def test_a_refuted_cause_is_not_named_and_the_next_one_is_first() -> None:
    causes = (Cause.SEND_BUFFER, Cause.HEAD_OF_LINE)
    flow = explained(*(share(cause, 0.25) for cause in causes), goodput=5e6, named=causes)
    checked = with_effects(flow, [tried(Cause.SEND_BUFFER, 5e6), tried(Cause.HEAD_OF_LINE, 8e6)])
    assert (checked.first, checked.named, checked.refuted) == (
        Cause.HEAD_OF_LINE,
        (Cause.HEAD_OF_LINE,),
        (Cause.SEND_BUFFER,),
    )
    text = " ".join(checked.sentences)
    assert "The flow was limited by head-of-line" in text
    assert text.endswith("Refuted: send-buffer; the flow was no faster without it.")


def test_a_cause_that_a_change_did_not_remove_is_not_refuted() -> None:
    flow = explained(share(Cause.HEAD_OF_LINE, 0.5), goodput=5e6, named=(Cause.HEAD_OF_LINE,))
    still_there = tried(Cause.HEAD_OF_LINE, 5e6).model_copy(update={"then": Cause.HEAD_OF_LINE})
    checked = with_effects(flow, [still_there])
    assert (checked.first, checked.refuted) == (Cause.HEAD_OF_LINE, ())
    assert "Refuted" not in " ".join(checked.sentences)


def test_one_seed_refutes_no_cause() -> None:
    flow = explained(share(Cause.SEND_BUFFER, 0.5), goodput=5e6, named=(Cause.SEND_BUFFER,))
    once = effect("a change", (), Cause.SEND_BUFFER, {1: 5e6}, {1: 5e6})
    assert with_effects(flow, [once]).refuted == ()


def test_a_cause_that_a_test_made_slower_is_refuted_too_and_no_cause_may_be_left() -> None:
    flow = explained(share(Cause.TOO_SHORT, 0.5), goodput=5e6, named=(Cause.TOO_SHORT,))
    checked = with_effects(flow, [tried(Cause.TOO_SHORT, 3e6)])
    assert (checked.first, checked.named, checked.refuted) == (None, (), (Cause.TOO_SHORT,))
    assert "limited by" not in " ".join(checked.sentences)


def test_a_what_if_and_a_confirmed_cause_leave_the_sentences_as_they_are() -> None:
    flow = explained(share(Cause.SEND_BUFFER, 0.5), goodput=5e6, named=(Cause.SEND_BUFFER,))
    confirmed = with_effects(flow, [tried(Cause.SEND_BUFFER, 8e6)])
    assert (confirmed.sentences, confirmed.first) == (flow.sentences, Cause.SEND_BUFFER)


def test_a_flow_that_no_cause_limits_is_not_blamed_on_its_application() -> None:
    below = explained(share(Cause.SEND_BUFFER, 0.09), share(Cause.AT_CAPACITY, 0.8), goodput=8e6)
    assert "the largest is send-buffer (9.0 % of the time)" in below.sentences[-1]
    assert "If it matters: raise tcp.send_buffer_max" in below.sentences[-1]
    longer = share(Cause.LAST_BYTES, 0.17).model_copy(update={"cost_bps": 0.5e6})
    cheap = explained(longer, share(Cause.SEND_BUFFER, 0.09), goodput=6e6)
    assert "the largest is send-buffer" in cheap.sentences[-1], "the first of the table"
    idle = explained(share(Cause.SENDER_IDLE, 0.09), goodput=8e6)
    assert idle.sentences[-1] == "The flow sent what its application offered."


def test_a_backup_is_no_capacity_and_carried_nothing() -> None:
    flow = explained(share(Cause.BACKUP, 0.5), goodput=9.5e6, named=(Cause.BACKUP,), backup=True)
    assert "of the capacity of its path" in flow.sentences[0]
    assert "a-b#2 (a backup) carried nothing" in flow.sentences[1]
    assert "clear the flag `backup`" in flow.sentences[-1]


def test_the_next_step_depends_on_the_reason() -> None:
    assert "net.mptcp.add_addr_timeout" in next_step(Cause.SUBFLOW_LATE, "mptcp", "add-addr-lost")
    assert "raise tcp.send_buffer_max" in next_step(Cause.SEND_BUFFER, "mptcp")
    assert "SO_SNDBUF" in next_step(Cause.SEND_BUFFER, "mptcp", "autotuning")
    assert "queue" in next_step(Cause.HEAD_OF_LINE, "mptcp", "queues")


def test_a_sentence_names_links_paths_and_hosts_as_places_and_no_window() -> None:
    shares = [Share(cause="nagle", time=0.3, where=where) for where in PLACES]
    assert [places_text(share) for share in shares] == ["", "", " (on client, a->b)"]
