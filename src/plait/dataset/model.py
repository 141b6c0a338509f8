"""The tables that a trial leaves behind: their columns, types and meaning.

The agent writes each table as an Arrow IPC stream with exactly these columns in this order; plait keeps them
as Parquet. A value that could not be measured is null. `*_us` is virtual time in microseconds; `t_us` counts
from the trial's zero. Counters are the kernel's, cumulative since the socket or interface was made.

`side` is "client" or "server". `subflow` numbers the subflows of one side of a flow in order of appearance,
0 being the initial one; it stays with the subflow when others close.
"""

from __future__ import annotations

import polars as pl

_I = pl.Int64
_S = pl.String
_B = pl.Boolean

FLOWS = pl.Schema(
    {
        "flow": _I,  # Plan.flows[].id, or that of program_flows; one row per flow, written when the trial ends
        "name": _S,
        "kind": _S,  # bulk, transfer, stream, on_off, request, page, page_connection, udp, program
        "transport": _S,  # as asked: tcp, mptcp, udp
        "congestion_control": _S,  # as the sender's socket reports it at the end
        "start_us": _I,  # connect() was called
        "connected_us": _I,  # connect() returned
        "first_byte_us": _I,  # the receiver had its first application byte (to the resolution of its reads)
        "end_us": _I,  # bulk: start + duration; transfer: the receiver read the last byte
        "sent_bytes": _I,  # application bytes that the sender handed to its socket
        "received_bytes": _I,  # bulk: in order at the receiver at end_us; transfer: read by the receiver
        "completed": _B,  # bulk: ran for its duration; transfer: all bytes arrived
        "fallback": _B,  # mptcp only: the connection fell back to TCP; null for tcp
        "sent_sha256": _S,  # transfers of a file
        "received_sha256": _S,
        "error": _S,  # what failed, with the kernel's words; null when nothing did
    }
)

CONNECTIONS = pl.Schema(
    {
        # one row per flow, side and sample: the connection as the application's socket shows it
        "t_us": _I,
        "flow": _I,
        "side": _S,
        "subflows": _I,  # live subflows, the initial one included; 1 for tcp
        "sent_bytes": _I,  # at the data level (MPTCP_INFO), for tcp bytes_sent - bytes_retrans
        "retransmitted_bytes": _I,  # at the data level: reinjections; for tcp bytes_retrans
        "acked_bytes": _I,
        "received_bytes": _I,  # in order, at the data level
        "receive_queue_bytes": _I,  # in order and not yet read by the application, if known
        "send_window_bytes": _I,
        "receive_window_bytes": _I,
        "send_buffer_bytes": _I,  # SO_SNDBUF, SO_RCVBUF as the kernel reports them now
        "receive_buffer_bytes": _I,
        "unsent_bytes": _I,  # handed to the socket and given to no subflow yet; for tcp not sent yet
        "send_memory_bytes": _I,  # of the send buffer, taken by what is not acknowledged (sk_wmem_queued)
        "receive_memory_bytes": _I,  # of the receive buffer, taken (sk_rmem_alloc), also by what is out of order
    }
)

SUBFLOWS = pl.Schema(
    {
        # one row per subflow, side and sample, from tcp_info (MPTCP_FULL_INFO); tcp flows have subflow 0 only
        "t_us": _I,
        "flow": _I,
        "side": _S,
        "subflow": _I,
        "local_address": _S,
        "local_port": _I,
        "remote_address": _S,
        "remote_port": _I,
        "state": _S,  # ESTABLISHED, CLOSE_WAIT, ..
        "backup": _B,
        "stale": _B,
        "rtt_us": _I,
        "rttvar_us": _I,
        "min_rtt_us": _I,
        "cwnd_segments": _I,
        "ssthresh_segments": _I,  # null while infinite
        "mss_bytes": _I,
        "sent_bytes": _I,  # payload handed to the network, retransmissions included
        "retransmitted_bytes": _I,
        "retransmitted_segments": _I,
        "acked_bytes": _I,
        "received_bytes": _I,
        "unacked_segments": _I,
        "lost_segments": _I,
        "notsent_bytes": _I,
        "out_of_order_segments": _I,
        "delivery_rate_bps": _I,
        "pacing_rate_bps": _I,  # null while unlimited
        "busy_us": _I,
        "rwnd_limited_us": _I,
        "sndbuf_limited_us": _I,
        "send_window_bytes": _I,
        "receive_window_bytes": _I,
        "congestion_state": _S,  # Open, Disorder, CWR, Recovery, Loss
    }
)

LINKS = pl.Schema(
    {
        # one row per direction of a link and sample: what left through it, and what it holds
        "t_us": _I,
        "link": _S,  # name of the direction, "h1->s1"
        "sent_bytes": _I,  # frames on the wire, Ethernet header included, FCS not
        "sent_packets": _I,
        "dropped_packets": _I,  # overflow of the queue, queue management and random loss together
        "overflow_packets": _I,  # overflow of the queue alone; null when the link has no queue
        "queue_bytes": _I,  # waiting for the rate (not those in flight under the delay); null when unlimited
        "queue_packets": _I,
    }
)

EVENTS = pl.Schema(
    {
        # one row per event, in the order in which they happened
        "t_us": _I,
        "node": _S,
        "event": _S,  # kernel: created, established, closed, announced, removed, sub_established, sub_closed,
        # sub_priority, listener_created, listener_closed; agent: flow_start, flow_connected, flow_end,
        # join_failed (a subflow that plait was to open, see subflows_per_path, and the kernel refused),
        # fallback (the first sample that shows a side of an MPTCP flow as plain TCP)
        # of events: link_down, link_cut, link_up, link_set, with the link or direction in the column node
        # program_start, program_end (`error` is the exit code), program_failed (it could not be started)
        "flow": _I,  # null when it belongs to none that plait opened
        "token": _I,
        "local_id": _I,
        "remote_id": _I,
        "local_address": _S,
        "local_port": _I,
        "remote_address": _S,
        "remote_port": _I,
        "backup": _B,
        "error": _I,  # the errno of a subflow's socket, if any
        "reset_reason": _I,
    }
)

COUNTERS = pl.Schema(
    {
        # one row per namespace (wire excluded) and counter of /proc/net/snmp and netstat that is not zero
        "node": _S,
        "counter": _S,  # "TcpRetransSegs", "MPTcpExtMPJoinSynRx": the group's name, then the field's
        "before": _I,  # at the trial's zero
        "after": _I,
    }
)

INTERFACES = pl.Schema(
    {
        # one row per interface and reading (monitors.interfaces); counters of the interface, as `ip -s link`
        "t_us": _I,
        "node": _S,
        "interface": _S,
        "sent_bytes": _I,  # what left the node here: frames, Ethernet header included
        "sent_packets": _I,
        "received_bytes": _I,
        "received_packets": _I,
        "dropped_packets": _I,  # both ways
    }
)

PROBES = pl.Schema(
    {
        # one row per echo request (monitors.ping), in the order in which they were sent
        "t_us": _I,  # it was sent
        "path": _S,  # the first path that joins the two addresses
        "source": _S,
        "destination": _S,
        "rtt_us": _I,  # null: no answer came before the trial ended
    }
)

COUNTER_SERIES = pl.Schema(
    {
        # one row per counter that changed since the reading before (monitors.counters), by namespace
        "t_us": _I,
        "node": _S,
        "counter": _S,
        "value": _I,
    }
)

QUEUES = pl.Schema(
    {
        # one row per managed queue (a link direction with an aqm), or shared token bucket, and sample; there when the
        # network has some. Counts are from the beginning of the trial
        "t_us": _I,
        "queue": _S,  # the link direction, "h1->s1", or node and side of a bucket, "h1 out"
        "kind": _S,  # red, plait_red, codel, fq_codel; bucket
        "sent_bytes": _I,  # what left the queue
        "sent_packets": _I,
        "managed_packets": _I,  # dropped by the queue management before the queue was full; null of a bucket
        "marked_packets": _I,  # marked as having met congestion (ECN) instead; null of a bucket
        "overflow_packets": _I,  # dropped because the queue was full
        "queue_bytes": _I,  # waiting
        "queue_packets": _I,
        "average_millipackets": _I,  # plait_red: its average queue as of the last arrival, in 1/1000 packet
        "delay_us": _I,  # codel: how long the packet that left last had waited
    }
)

TABLES: dict[str, pl.Schema] = {
    "flows": FLOWS,
    "connections": CONNECTIONS,
    "subflows": SUBFLOWS,
    "links": LINKS,
    "events": EVENTS,
    "counters": COUNTERS,
}
"""The tables that every trial has, by the name of the file."""

MESSAGES = pl.Schema(
    {
        # one row per message of a stream, answer to a request, object of a page, UDP packet; there when such flows are
        "flow": _I,
        "index": _I,  # from 0, in the order in which they were due
        "sent_us": _I,  # when the application had it to send; of requests and objects, when it asked. A message that
        # found its socket full was sent later: it waits in the application, and that is part of its delay
        "received_us": _I,  # the receiver had its last byte; null when that did not happen
        "bytes": _I,  # application bytes of the message, of the answer, of the object, of the packet
        "copies": _I,  # udp: how often it arrived, 0 when it was lost; null for others
    }
)

PROGRAMS = pl.Schema(
    {
        # one row per program of the scenario; there when it has programs
        "program": _S,
        "node": _S,
        "start_us": _I,  # null: it was never started
        "ready_us": _I,  # null: it was not, or says nothing of it
        "end_us": _I,  # null: it was killed at the end of the trial
        "exit_code": _I,  # 128 more than the number of a signal that ended it
        "stopped": _B,  # it was told to end
    }
)

PROGRAM_FIGURES = pl.Schema(
    {
        # one row per figure that a program tells of itself (`result`); there when the scenario has programs
        "program": _S,
        "figure": _S,  # iperf3_sent_bps, ..
        "value": _I,
    }
)

PROGRAM_FLOWS = pl.Schema(
    {
        # one row per connection between nodes that programs made; there when the scenario has programs. The same
        # numbers stand in the tables flows, connections and subflows, after those of the plan's own flows
        "flow": _I,
        "program": _S,  # the one that connected; null: not known
        "server_program": _S,
        "client": _S,  # the node; null: it was not seen there
        "client_address": _S,  # as the side that was seen has it: behind a translating router there are two
        "client_port": _I,
        "server": _S,
        "server_address": _S,
        "server_port": _I,
        "sender": _S,  # client or server: who sent more
    }
)

MONITOR_TABLES: dict[str, pl.Schema] = {
    "queues": QUEUES,
    "messages": MESSAGES,
    "interfaces": INTERFACES,
    "probes": PROBES,
    "counter_series": COUNTER_SERIES,
    "programs": PROGRAMS,
    "program_figures": PROGRAM_FIGURES,
    "program_flows": PROGRAM_FLOWS,
}
"""The tables of what is measured only when it is asked for; a trial without has no such file."""

ALL_TABLES: dict[str, pl.Schema] = {**TABLES, **MONITOR_TABLES}
