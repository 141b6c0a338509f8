//! The columns of every table: the same names, types and order as in `src/plait/dataset/model.py`,
//! which documents them. A field of None becomes null: a missing measurement is never zero.

use arrow_schema::DataType;

use super::column::{Cell, Column, Row, Text};

macro_rules! row {
    ($(#[$doc:meta])* $name:ident = $table:literal { $($field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Default, PartialEq)]
        #[allow(missing_docs, clippy::struct_field_names)] // the columns are named in the contract
        pub struct $name {
            $(pub $field: Option<$kind>,)*
        }

        impl Row for $name {
            const NAME: &'static str = $table;

            fn columns() -> Vec<(&'static str, DataType, Column)> {
                vec![$((stringify!($field), <$kind as Cell>::TYPE, <$kind as Cell>::column()),)*]
            }

            fn append(self, columns: &mut [Column]) {
                let mut columns = columns.iter_mut();
                $(
                    if let Some(column) = columns.next() {
                        <$kind as Cell>::append(self.$field, column);
                    }
                )*
            }
        }
    };
}

row! {
    /// The outcome of a flow.
    Flow = "flows" {
        flow: i64,
        name: Text,
        kind: Text,
        transport: Text,
        congestion_control: Text,
        start_us: i64,
        connected_us: i64,
        first_byte_us: i64,
        end_us: i64,
        sent_bytes: i64,
        received_bytes: i64,
        completed: bool,
        fallback: bool,
        sent_sha256: Text,
        received_sha256: Text,
        error: Text,
    }
}

row! {
    /// A sample of one side of a connection.
    Connection = "connections" {
        t_us: i64,
        flow: i64,
        side: Text,
        subflows: i64,
        sent_bytes: i64,
        retransmitted_bytes: i64,
        acked_bytes: i64,
        received_bytes: i64,
        receive_queue_bytes: i64,
        send_window_bytes: i64,
        receive_window_bytes: i64,
        send_buffer_bytes: i64,
        receive_buffer_bytes: i64,
        unsent_bytes: i64,
        send_memory_bytes: i64,
        receive_memory_bytes: i64,
    }
}

row! {
    /// A sample of one side of a subflow.
    Subflow = "subflows" {
        t_us: i64,
        flow: i64,
        side: Text,
        subflow: i64,
        local_address: Text,
        local_port: i64,
        remote_address: Text,
        remote_port: i64,
        state: Text,
        backup: bool,
        stale: bool,
        rtt_us: i64,
        rttvar_us: i64,
        min_rtt_us: i64,
        cwnd_segments: i64,
        ssthresh_segments: i64,
        mss_bytes: i64,
        sent_bytes: i64,
        retransmitted_bytes: i64,
        retransmitted_segments: i64,
        acked_bytes: i64,
        received_bytes: i64,
        unacked_segments: i64,
        lost_segments: i64,
        notsent_bytes: i64,
        out_of_order_segments: i64,
        delivery_rate_bps: i64,
        pacing_rate_bps: i64,
        busy_us: i64,
        rwnd_limited_us: i64,
        sndbuf_limited_us: i64,
        send_window_bytes: i64,
        receive_window_bytes: i64,
        congestion_state: Text,
    }
}

row! {
    /// A sample of one direction of a link.
    Link = "links" {
        t_us: i64,
        link: Text,
        sent_bytes: i64,
        sent_packets: i64,
        dropped_packets: i64,
        overflow_packets: i64,
        queue_bytes: i64,
        queue_packets: i64,
        bucket_bytes: i64,
    }
}

row! {
    /// A bin of the histogram of the times that packets waited for a link's rate.
    QueueingDelay = "queueing_delays" {
        link: Text,
        at_least_ns: i64,
        below_ns: i64,
        packets: i64,
    }
}

row! {
    /// A sample of a managed queue or a shared token bucket.
    Queue = "queues" {
        t_us: i64,
        queue: Text,
        kind: Text,
        sent_bytes: i64,
        sent_packets: i64,
        managed_packets: i64,
        marked_packets: i64,
        overflow_packets: i64,
        queue_bytes: i64,
        queue_packets: i64,
        average_millipackets: i64,
        delay_us: i64,
    }
}

row! {
    /// An event.
    Event = "events" {
        t_us: i64,
        node: Text,
        event: Text,
        flow: i64,
        token: i64,
        local_id: i64,
        remote_id: i64,
        local_address: Text,
        local_port: i64,
        remote_address: Text,
        remote_port: i64,
        backup: bool,
        error: i64,
        reset_reason: i64,
    }
}

row! {
    /// A message of a flow.
    Message = "messages" {
        flow: i64,
        index: i64,
        sent_us: i64,
        received_us: i64,
        bytes: i64,
        copies: i64,
    }
}

row! {
    /// A kernel counter before and after the trial.
    Counter = "counters" {
        node: Text,
        counter: Text,
        before: i64,
        after: i64,
    }
}

row! {
    /// A sample of the counters of an interface.
    Interface = "interfaces" {
        t_us: i64,
        node: Text,
        interface: Text,
        sent_bytes: i64,
        sent_packets: i64,
        received_bytes: i64,
        received_packets: i64,
        dropped_packets: i64,
    }
}

row! {
    /// An echo request and its outcome.
    Probe = "probes" {
        t_us: i64,
        path: Text,
        source: Text,
        destination: Text,
        rtt_us: i64,
    }
}

row! {
    /// A change of a kernel counter.
    CounterChange = "counter_series" {
        t_us: i64,
        node: Text,
        counter: Text,
        value: i64,
    }
}

row! {
    /// A trace event of the kernel.
    TraceEvent = "trace" {
        t_us: i64,
        event: Text,
        task: Text,
        pid: i64,
        text: Text,
    }
}

row! {
    /// The outcome of a program.
    Program = "programs" {
        program: Text,
        node: Text,
        start_us: i64,
        ready_us: i64,
        end_us: i64,
        exit_code: i64,
        stopped: bool,
    }
}

row! {
    /// A figure that a program reports.
    ProgramFigure = "program_figures" {
        program: Text,
        figure: Text,
        value: i64,
    }
}

row! {
    /// A connection that programs made.
    ProgramFlow = "program_flows" {
        flow: i64,
        program: Text,
        server_program: Text,
        client: Text,
        client_address: Text,
        client_port: i64,
        server: Text,
        server_address: Text,
        server_port: i64,
        sender: Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read the columns of one table in model.py, which has one per line.
    fn python_columns(table: &str) -> Vec<(String, DataType)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../src/plait/dataset/model.py");
        let source = std::fs::read_to_string(path).unwrap();
        let start = format!("{} = pl.Schema(", table.to_uppercase());
        let body = source.split(&start).nth(1).unwrap();
        let body = body.split("\n)").next().unwrap();
        let column = |line: &str| {
            let (name, rest) = line.trim().strip_prefix('"')?.split_once("\": _")?;
            let kind = match rest.chars().next()? {
                'I' => DataType::Int64,
                'S' => DataType::Utf8,
                'B' => DataType::Boolean,
                other => panic!("{table}.{name}: no type is called _{other}"),
            };
            Some((name.to_owned(), kind))
        };
        body.lines().filter_map(column).collect()
    }

    fn assert_same<R: Row>() {
        let rust: Vec<_> = R::columns().into_iter().map(|(name, kind, _)| (name.to_owned(), kind)).collect();
        assert_eq!(rust, python_columns(R::NAME), "table {}", R::NAME);
    }

    #[test]
    fn both_sides_of_the_contract_have_the_same_columns() {
        assert_same::<Flow>();
        assert_same::<Connection>();
        assert_same::<Subflow>();
        assert_same::<Link>();
        assert_same::<Queue>();
        assert_same::<QueueingDelay>();
        assert_same::<Event>();
        assert_same::<Message>();
        assert_same::<Counter>();
        assert_same::<Interface>();
        assert_same::<Probe>();
        assert_same::<CounterChange>();
        assert_same::<TraceEvent>();
        assert_same::<Program>();
        assert_same::<ProgramFigure>();
        assert_same::<ProgramFlow>();
    }
}
