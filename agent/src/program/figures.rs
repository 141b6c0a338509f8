//! Results that a program reports itself: iperf3's JSON, or an object of numbers in its last line.

use serde_json::Value;

use super::log::Log;
use crate::error::{Attempt, Error, Result};
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

/// Most figures of a program, and the longest name of one.
const MOST: usize = 100;
const LONGEST: usize = 40;

/// Read the figures of one program as rows.
pub fn read(kind: ResultKind, plan: &'static Program, log: &Log) -> Result<Vec<ProgramFigure>> {
    let text = log.text()?;
    let row = |figure: String, value| ProgramFigure {
        program: Some(plan.name.as_str().into()),
        figure: Some(figure.into()),
        value: Some(value),
    };
    Ok(match kind {
        ResultKind::Iperf3 => {
            iperf3(&text)?.into_iter().map(|(name, value)| row(name.into(), value)).collect()
        }
        ResultKind::Json => json(&text)?.into_iter().map(|(name, value)| row(name, value)).collect(),
    })
}

/// Return the members of the object in the last line; all are whole numbers.
fn json(text: &str) -> Result<Vec<(String, i64)>> {
    let context = "parsing the last line of its output as a JSON object of whole numbers";
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
    let value: Value = serde_json::from_str(line).attempt(|| context)?;
    let members = value.as_object().ok_or_else(|| Error::because(context, "it is no object"))?;
    if members.len() > MOST {
        return Err(Error::because(context, format!("it has more than {MOST} members")));
    }
    let figure = |(name, value): (&String, &Value)| {
        let named = name.len() <= LONGEST
            && name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        match value.as_i64() {
            _ if !named => Err(Error::because(
                context,
                format!("a name has other characters than a-z, 0-9 and _, or more than {LONGEST}"),
            )),
            None => Err(Error::because(context, format!("`{name}` is no whole number"))),
            Some(number) => Ok((name.clone(), number)),
        }
    };
    members.iter().map(figure).collect()
}

fn iperf3(text: &str) -> Result<Vec<(&'static str, i64)>> {
    let context = "parsing its output as iperf3's JSON (does its command have -J?)";
    let value: Value = serde_json::from_str(text).attempt(|| context)?;
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
    #[test]
    fn the_last_line_is_an_object_of_whole_numbers() {
        let figures = json("ready\n{\"completion_us\": 12, \"path1_sent_bytes\": 0}\n\n").unwrap();
        assert_eq!(figures, [("completion_us".to_owned(), 12), ("path1_sent_bytes".to_owned(), 0)]);
    }

    #[test]
    fn other_output_is_refused() {
        let many: Vec<String> = (0..=MOST).map(|i| format!("\"a{i}\": 1")).collect();
        let many = format!("{{{}}}", many.join(", "));
        for (text, why) in [
            ("", "EOF"),
            ("[1]", "it is no object"),
            ("{\"a\": 1.5}", "`a` is no whole number"),
            ("{\"a\": null}", "`a` is no whole number"),
            ("{\"A.b\": 1}", "a name has other characters"),
            (many.as_str(), "more than 100 members"),
        ] {
            let message = json(text).unwrap_err().to_string();
            assert!(message.contains(why), "{text}: {message}");
        }
    }
}
