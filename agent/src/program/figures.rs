//! Results that a program reports itself: iperf3's JSON.

use serde_json::Value;

use super::log::Log;
use crate::error::{Error, Result};
use crate::plan::{Program, ResultKind};
use crate::tables::ProgramFigure;

/// The place of each figure in the output of iperf3 (3.9 to 3.12), below `end`, and the factor to
/// the table's unit.
const IPERF3: [(&str, &[&str], f64); 9] = [
    ("iperf3_sent_bps", &["sum_sent", "bits_per_second"], 1.0),
    ("iperf3_sent_bytes", &["sum_sent", "bytes"], 1.0),
    ("iperf3_received_bps", &["sum_received", "bits_per_second"], 1.0),
    ("iperf3_received_bytes", &["sum_received", "bytes"], 1.0),
    ("iperf3_retransmits", &["sum_sent", "retransmits"], 1.0),
    ("iperf3_udp_bps", &["sum", "bits_per_second"], 1.0),
    ("iperf3_packets", &["sum", "packets"], 1.0),
    ("iperf3_lost_packets", &["sum", "lost_packets"], 1.0),
    ("iperf3_jitter_us", &["sum", "jitter_ms"], 1000.0),
];

/// Read the figures of one program as rows.
pub fn read(kind: ResultKind, plan: &'static Program, log: &Log) -> Result<Vec<ProgramFigure>> {
    match kind {
        ResultKind::Iperf3 => iperf3(&log.text()?).map(|figures| {
            let row = |(figure, value)| ProgramFigure {
                program: Some(plan.name.as_str().into()),
                figure: Some(figure),
                value: Some(value),
            };
            figures
                .into_iter()
                .map(|(figure, value): (&'static str, i64)| row((figure.into(), value)))
                .collect()
        }),
    }
}

fn iperf3(text: &str) -> Result<Vec<(&'static str, i64)>> {
    let context = "parsing its output as iperf3's JSON (does its command have -J?)";
    let value: Value = serde_json::from_str(text).map_err(|error| Error::because(context, error))?;
    if let Some(why) = value.get("error").and_then(Value::as_str) {
        return Err(Error::because("iperf3 reports", why));
    }
    let end = value.get("end").ok_or_else(|| Error::because(context, "it has no `end`"))?;
    let figures = IPERF3.iter().filter_map(|(figure, path, factor)| {
        let number = path.iter().try_fold(end, |at, key| at.get(key))?.as_f64()?;
        Some((*figure, whole(number * factor)))
    });
    Ok(figures.collect())
}

/// Round to an integer: counters and rates of a trial are far below 2^53.
#[allow(clippy::cast_possible_truncation)]
fn whole(number: f64) -> i64 {
    number.round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_where_iperf3_has_them() {
        let text = r#"{"end": {"sum_sent": {"bits_per_second": 1000.6, "bytes": 5, "retransmits": 2},
                       "sum_received": {"bits_per_second": 900.2, "bytes": 4}}}"#;
        let expected = [
            ("iperf3_sent_bps", 1001),
            ("iperf3_sent_bytes", 5),
            ("iperf3_received_bps", 900),
            ("iperf3_received_bytes", 4),
            ("iperf3_retransmits", 2),
        ];
        assert_eq!(iperf3(text).unwrap(), expected);
    }

    #[test]
    fn an_error_of_iperf3_is_reported() {
        let error = iperf3(r#"{"error": "unable to connect"}"#).unwrap_err();
        assert_eq!(error.to_string(), "iperf3 reports: unable to connect");
    }
}
