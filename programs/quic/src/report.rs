//! The line of JSON that both ends print.

use std::process::ExitCode;

use noq_proto::{PathId, PathStats};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Map, Value};

/// Print the error, if there is one, and then the figures as one line of JSON.
pub fn print(figures: Vec<(String, u64)>, outcome: Result<(), String>) -> ExitCode {
    let code = match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("plait-quic: {message}");
            ExitCode::FAILURE
        }
    };
    let mut object: Map<String, Value> =
        figures.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    let used = clock_gettime(ClockId::ProcessCPUTime);
    object.insert("processor_us".to_owned(), Value::from(used.tv_sec * 1_000_000 + used.tv_nsec / 1000));
    println!("{}", Value::Object(object));
    code
}

/// Return the figures of the paths, which are numbered from 1 in the order of their identifiers.
pub fn paths(stats: &[(PathId, PathStats)]) -> Vec<(String, u64)> {
    let mut figures = vec![("paths".to_owned(), stats.len() as u64)];
    for (number, (_, path)) in (1..).zip(stats) {
        let rtt = u64::try_from(path.rtt.as_micros()).unwrap_or(u64::MAX);
        let values = [
            ("sent_bytes", path.udp_tx.bytes),
            ("received_bytes", path.udp_rx.bytes),
            ("lost_packets", path.lost_packets),
            ("rtt_us", rtt),
            ("cwnd_bytes", path.cwnd),
        ];
        figures.extend(values.map(|(name, value)| (format!("path{number}_{name}"), value)));
    }
    figures
}
