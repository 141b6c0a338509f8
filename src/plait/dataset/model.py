"""The tables of a trial: their columns, types and meaning.

The agent writes each table as an Arrow IPC stream with exactly these columns in this order, and plait keeps it as
Parquet. A value that could not be measured is null. `*_us` is virtual time in microseconds; `t_us` counts from the
trial's zero. Counters are the kernel's and count from the creation of the socket or interface.

`side` is "client" or "server". `subflow` numbers the subflows of one side of a flow in order of appearance, from 0 for
the initial one; the number does not change when other subflows close.
"""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

Tables = Mapping[str, pl.DataFrame]
"""The tables of a trial by name."""

_I = pl.Int64
_S = pl.String
_B = pl.Boolean

FLOWS = pl.Schema(
    {
        "flow": _I,  # Plan.flows[].id, or that of program_flows; one row per flow, written when the trial ends
        "name": _S,
        "kind": _S,  # of `plait.traffic.kinds.JOBS`
        "transport": _S,  # as requested: tcp, mptcp, udp
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
        "error": _S,  # what failed, with the kernel's error text; null if nothing failed
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
        "unsent_bytes": _I,  # written to the socket, and not yet assigned to a subflow; for tcp not sent yet
        "send_memory_bytes": _I,  # send buffer in use by unacknowledged data (sk_wmem_queued)
        "receive_memory_bytes": _I,  # receive buffer in use (sk_rmem_alloc), out-of-order data included
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
        # one row per link direction and sample: what it sent, and what its queue holds
        "t_us": _I,
        "link": _S,  # name of the direction, "h1->s1"
        "sent_bytes": _I,  # frames on the wire, Ethernet header included, FCS not
        "sent_packets": _I,
        "dropped_packets": _I,  # by queue overflow, queue management and random loss together
        "overflow_packets": _I,  # by queue overflow alone; null if the link has no queue
        "queue_bytes": _I,  # waiting for the rate, without packets in flight in the delay; null if there is no rate
        "queue_packets": _I,
        "bucket_bytes": _I,  # tokens in the link's bucket; null if it has none, or the link is a chain of qdiscs
    }
)

EVENTS = pl.Schema(
    {
        # one row per event, in the order in which they happened
        "t_us": _I,
        "node": _S,
        "event": _S,  # kernel: created, established, closed, announced, removed, sub_established, sub_closed,
        # sub_priority, listener_created, listener_closed; agent: flow_start, flow_connected, flow_end,
        # join_failed (the kernel refused a subflow that plait opens, see subflows_per_path),
        # fallback (the first sample that shows a side of an MPTCP flow as plain TCP)
        # scenario events: link_down, link_cut, link_up, link_set, with the link or direction in the column node
        # program_start, program_end (`error` is the exit code), program_failed (it could not be started)
        "flow": _I,  # null if it belongs to no flow that plait opened
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
        # one row per namespace (without `wire`) and non-zero counter of /proc/net/snmp and netstat
        "node": _S,
        "counter": _S,  # "TcpRetransSegs", "MPTcpExtMPJoinSynRx": group name and field name
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
        "sent_bytes": _I,  # what the node sent here: frames, Ethernet header included
        "sent_packets": _I,
        "received_bytes": _I,
        "received_packets": _I,
        "dropped_packets": _I,  # in both directions
    }
)

PROBES = pl.Schema(
    {
        # one row per echo request (monitors.ping), in the order in which they were sent
        "t_us": _I,  # when it was sent
        "path": _S,  # the first path that joins the two addresses
        "source": _S,
        "destination": _S,
        "rtt_us": _I,  # null: no reply arrived before the trial ended
    }
)

COUNTER_SERIES = pl.Schema(
    {
        # one row per counter that changed since the previous reading (monitors.counters), by namespace
        "t_us": _I,
        "node": _S,
        "counter": _S,
        "value": _I,
    }
)

TRACE = pl.Schema(
    {
        # one row per trace event of the kernel (monitors.trace), in the kernel's order, from shortly before the zero to
        # the end of all sockets
        "t_us": _I,  # when it happened; null for a row that is no event
        "event": _S,  # "mptcp_subflow_get_send"; lost_events: the buffer was full, and lost the first events; null: the
        # row continues the previous one
        "task": _S,  # the task that ran
        "pid": _I,
        "text": _S,  # the event's fields as the kernel prints them; for lost_events their number
    }
)

QUEUES = pl.Schema(
    {
        # one row per managed queue (a link direction with an aqm) or shared token bucket, and sample; the table exists
        # if the network has any. Counts start at the beginning of the trial
        "t_us": _I,
        "queue": _S,  # the link direction, "h1->s1", or node and side of a bucket, "h1 out"
        "kind": _S,  # red, plait_red, codel, fq_codel; bucket
        "sent_bytes": _I,  # what left the queue
        "sent_packets": _I,
        "managed_packets": _I,  # dropped by the queue management before the queue was full; null for a bucket
        "marked_packets": _I,  # marked with ECN CE instead; null for a bucket
        "overflow_packets": _I,  # dropped because the queue was full
        "queue_bytes": _I,  # waiting
        "queue_packets": _I,
        "average_millipackets": _I,  # plait_red: its average queue at the last arrival, in 1/1000 packet
        "delay_us": _I,  # codel: queueing delay of the packet that left last
    }
)

QUEUEING_DELAYS = pl.Schema(
    {
        # a histogram of the times that packets waited for a link's rate, of the whole trial: one row per link direction
        # and bin that has packets. The table exists if a link with a rate is a device
        "link": _S,  # the link direction, "h1->s1"
        "at_least_ns": _I,  # the bin: from here ..
        "below_ns": _I,  # .. to here; null: without end
        "packets": _I,  # that left the queue for the line
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
"""The tables that every trial has, by file name."""

MESSAGES = pl.Schema(
    {
        # one row per message of a stream, response, object of a page, UDP packet; the table exists if such flows exist
        "flow": _I,
        "index": _I,  # from 0, in the order in which they were due
        "sent_us": _I,  # when the application had it ready; for responses and objects, when the client requested it. A
        # message that meets a full socket waits in the application, and this wait is part of its delay
        "received_us": _I,  # when the receiver had its last byte; null if it never had
        "bytes": _I,  # application bytes of the message, response, object or packet
        "copies": _I,  # udp: how often it arrived, 0 if it was lost; null for others
    }
)

PROGRAMS = pl.Schema(
    {
        # one row per program of the scenario; the table exists if the scenario has programs
        "program": _S,
        "node": _S,
        "start_us": _I,  # null: it was never started
        "ready_us": _I,  # null: it was never ready, or has no `ready`
        "end_us": _I,  # null: it was killed at the end of the trial
        "exit_code": _I,  # 128 + the signal number if a signal ended it
        "stopped": _B,  # plait stopped it
    }
)

PROGRAM_FIGURES = pl.Schema(
    {
        # one row per figure that a program reports (`result`); the table exists if the scenario has programs
        "program": _S,
        "figure": _S,  # iperf3_sent_bps, ..
        "value": _I,
    }
)

PROGRAM_FLOWS = pl.Schema(
    {
        # one row per connection between nodes that programs made; the table exists if the scenario has programs. The
        # tables flows, connections and subflows use the same numbers, after those of the plan's flows
        "flow": _I,
        "program": _S,  # the program that connected; null: unknown
        "server_program": _S,
        "client": _S,  # the node; null: the connection was not seen there
        "client_address": _S,  # on the side where it was seen: behind address translation there are two
        "client_port": _I,
        "server": _S,
        "server_address": _S,
        "server_port": _I,
        "sender": _S,  # client or server: the side that sent more
    }
)

MONITOR_TABLES: dict[str, pl.Schema] = {
    "queues": QUEUES,
    "queueing_delays": QUEUEING_DELAYS,
    "messages": MESSAGES,
    "interfaces": INTERFACES,
    "probes": PROBES,
    "counter_series": COUNTER_SERIES,
    "trace": TRACE,
    "programs": PROGRAMS,
    "program_figures": PROGRAM_FIGURES,
    "program_flows": PROGRAM_FLOWS,
}
"""The optional tables, of monitors and of some traffic; a trial without them has no such files."""

ALL_TABLES: dict[str, pl.Schema] = {**TABLES, **MONITOR_TABLES}

LATER_COLUMNS: dict[str, tuple[str, ...]] = {"links": ("bucket_bytes",)}
"""The last columns of tables, which results of earlier versions lack. They are null there."""
