//! Trace events of the kernel: the table `trace`.
//!
//! The kernel keeps the events in a buffer, the newest ones if it is full. The agent reads them
//! once, after everything else, so that they do not change the trial.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};

use crate::boot::mount_at;
use crate::clock;
use crate::error::{Attempt, Result};
use crate::tables::{self, Table, TableSet};

const FOLDER: &str = "/sys/kernel/tracing";
const LIST: &str = "available_events";
/// The size of the buffer; `src/plait/plan/traffic/monitors.py` adds it to the guest's memory.
const BUFFER_KIB: &str = "65536";
/// The width of the column with the task's name (`kernel/trace/trace_output.c`).
const TASK_BYTES: usize = 16;
/// Comments have the counts of events before the first event.
const COUNTS: &str = "# entries-in-buffer/entries-written: ";

/// The monitor that fills the table `trace`.
pub struct Trace {
    events: &'static [String],
    table: Table<tables::Trace>,
    enabled: bool,
}

impl Trace {
    /// Create the table.
    pub fn create(set: &TableSet, events: &'static [String]) -> Result<Self> {
        Ok(Self { events, table: Table::create(set)?, enabled: false })
    }

    /// Enable the events.
    pub fn attach(&mut self) -> Result<()> {
        mount_at("tracefs", "tracefs", FOLDER, c"")?;
        write("trace_clock", "mono")?;
        write("buffer_size_kb", BUFFER_KIB)?;
        self.enabled = true;
        self.events.iter().try_for_each(|event| write("set_event", event))
    }

    /// Give the table all events that the buffer holds.
    pub fn finish(mut self) -> Result<()> {
        if !self.enabled {
            return Ok(());
        }
        write("tracing_on", "0")?;
        self.read()
    }

    fn read(&mut self) -> Result<()> {
        let context = || format!("reading {FOLDER}/trace");
        let file = File::open(format!("{FOLDER}/trace")).attempt(context)?;
        for line in BufReader::with_capacity(1 << 16, file).split(b'\n') {
            let line = line.attempt(context)?;
            if let Some(row) = row(&line, clock::zero_ns() / 1000) {
                self.table.push(row)?;
            }
        }
        Ok(())
    }
}

/// Return the names of the kernel's trace events, `SYSTEM:EVENT`; none if it cannot trace.
pub fn available() -> Vec<String> {
    let mounted = mount_at("tracefs", "tracefs", FOLDER, c"");
    let list = mounted.ok().and_then(|()| std::fs::read_to_string(format!("{FOLDER}/{LIST}")).ok());
    list.unwrap_or_default().lines().map(str::to_owned).collect()
}

fn write(name: &str, value: &str) -> Result<()> {
    let path = format!("{FOLDER}/{name}");
    let written = OpenOptions::new().append(true).open(&path);
    written
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .attempt(|| format!("writing {value} to {path}"))
}

/// Return the row of a line: an event, a number of lost events, or text that belongs to an event;
/// None for a comment.
fn row(line: &[u8], zero_us: i64) -> Option<tables::Trace> {
    let text = String::from_utf8_lossy(line);
    if let Some(counts) = text.strip_prefix(COUNTS) {
        let (kept, written) = counts.split_once('/')?;
        let written: i64 = written.split_whitespace().next()?.parse().ok()?;
        let lost = written - kept.parse::<i64>().ok()?;
        let text = Some(lost.to_string().into());
        return (lost > 0).then(|| tables::Trace {
            event: Some("lost_events".into()),
            text,
            ..Default::default()
        });
    }
    if text.starts_with('#') || text.is_empty() {
        return None;
    }
    event(line, zero_us)
        .or_else(|| Some(tables::Trace { text: Some(text.into_owned().into()), ..Default::default() }))
}

/// Parse `TASK-PID [CPU] FLAGS SECONDS.MICROSECONDS: EVENT: FIELDS`. A task's name may have any
/// characters, but its column is fixed.
fn event(line: &[u8], zero_us: i64) -> Option<tables::Trace> {
    let task = String::from_utf8_lossy(line.get(..TASK_BYTES)?).trim_start().to_owned();
    let rest = String::from_utf8_lossy(line.get(TASK_BYTES..)?);
    let (pid, rest) = rest.strip_prefix('-')?.split_once(' ')?;
    let (_, rest) = rest.trim_start().strip_prefix('[')?.split_once("] ")?;
    let (_, rest) = rest.trim_start().split_once(' ')?;
    let (time, rest) = rest.trim_start().split_once(": ")?;
    let (seconds, fraction) = time.split_once('.')?;
    let (event, text) = rest.split_once(':')?;
    let t_us = seconds.parse::<i64>().ok()?.checked_mul(1_000_000)?;
    Some(tables::Trace {
        t_us: Some(t_us + fraction.parse::<i64>().ok()? - zero_us),
        event: Some(event.to_owned().into()),
        task: Some(task.into()),
        pid: Some(pid.parse().ok()?),
        text: Some(text.trim_start().to_owned().into()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_task_a_time_and_an_event() {
        let line = b" a-1 [b] c-2 [0]-2222    [000] b..1.    12.345678: ack_update_msk: data_ack=5 a: b";
        let row = row(line, 345_000).unwrap();
        assert_eq!(row.t_us, Some(12_000_678));
        assert_eq!((row.task.as_deref(), row.pid), (Some("a-1 [b] c-2 [0]"), Some(2222)));
        assert_eq!(row.event.as_deref(), Some("ack_update_msk"));
        assert_eq!(row.text.as_deref(), Some("data_ack=5 a: b"));
    }

    #[test]
    fn a_full_buffer_says_how_many_events_it_lost() {
        let lost = row(b"# entries-in-buffer/entries-written: 3/10   #P:1", 0).unwrap();
        assert_eq!((lost.event.as_deref(), lost.text.as_deref()), (Some("lost_events"), Some("7")));
        assert_eq!(row(b"# entries-in-buffer/entries-written: 3/3   #P:1", 0), None);
        assert_eq!(row(b"# tracer: nop", 0), None);
    }

    #[test]
    fn a_line_of_another_kind_keeps_its_text() {
        let stack = row(b" => tcp_v4_rcv", 0).unwrap();
        assert_eq!((stack.event, stack.text.as_deref()), (None, Some(" => tcp_v4_rcv")));
    }
}
