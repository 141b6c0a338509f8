//! The kernel's counters of each namespace before and after the trial: /proc/net/snmp and
//! /proc/net/netstat, by name.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::apply::{Applied, enter};
use crate::error::{Attempt, Result};
use crate::tables::{Counter, CounterSeries, Table, TableSet};

/// The paths refer to the namespace of the thread that opens them; open files keep their namespace.
const FILES: [&str; 2] = ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"];
/// More than either file has, because the kernel returns each file in one piece.
const READ_BYTES: usize = 64 * 1024;

type Values = Vec<(String, i64)>;

/// The counters at the trial's zero, and the open files.
pub struct Counters {
    nodes: Vec<Node>,
}

struct Node {
    name: &'static str,
    files: Vec<File>,
    before: BTreeMap<String, i64>,
}

impl Counters {
    /// Read the counters of every namespace of `network`, which no longer contains `wire`. The
    /// thread ends in the namespace where the agent began.
    pub fn before(network: &Applied) -> Result<Self> {
        let mut nodes = Vec::new();
        for namespace in &network.namespaces {
            enter(&namespace.fd)?;
            let open =
                |path: &&str| File::open(path).attempt(|| format!("opening {path} in {}", namespace.name));
            let files = FILES.iter().map(open).collect::<Result<Vec<_>>>()?;
            let before = read(namespace.name, &files)?.into_iter().collect();
            nodes.push(Node { name: namespace.name, files, before });
        }
        enter(&network.home)?;
        Ok(Self { nodes })
    }

    /// Read the counters again, and add a row for each that is or was not zero.
    pub fn after(&self, table: &mut Table<Counter>) -> Result<()> {
        for node in &self.nodes {
            for (counter, after) in read(node.name, &node.files)? {
                // Some counters appear when they first count; before that they were zero.
                let before = node.before.get(&counter).copied().unwrap_or(0);
                if before != 0 || after != 0 {
                    table.push(Counter {
                        node: Some(node.name.into()),
                        counter: Some(counter.into()),
                        before: Some(before),
                        after: Some(after),
                    })?;
                }
            }
        }
        Ok(())
    }
}

/// The counters over time: the table `counter_series`.
pub struct Series {
    table: Table<CounterSeries>,
    /// The latest reading, by node and file.
    latest: Vec<[Reading; FILES.len()]>,
    /// A buffer for the next reading.
    text: Vec<u8>,
}

/// The latest reading of a file. Unchanged lines need no parsing.
#[derive(Default)]
struct Reading {
    groups: Vec<Group>,
}

/// Two lines of a file: names and their values.
struct Group {
    header: String,
    numbers: String,
    names: Vec<String>,
    values: Vec<i64>,
}

impl Series {
    /// Create the table.
    pub fn create(set: &TableSet) -> Result<Self> {
        Ok(Self { table: Table::create(set)?, latest: Vec::new(), text: vec![0; READ_BYTES] })
    }

    /// Add a row for each counter that has changed.
    pub fn read(&mut self, t_us: i64, counters: &Counters) -> Result<()> {
        if self.latest.is_empty() {
            self.latest = counters.nodes.iter().map(|_| Default::default()).collect();
        }
        for (node, latest) in counters.nodes.iter().zip(&mut self.latest) {
            for (file, reading) in node.files.iter().zip(latest) {
                let length = file
                    .read_at(&mut self.text, 0)
                    .attempt(|| format!("reading the counters of {}", node.name))?;
                let text = String::from_utf8_lossy(&self.text[..length]);
                for (counter, value) in reading.changes(&text, &node.before) {
                    self.table.push(CounterSeries {
                        t_us: Some(t_us),
                        node: Some(node.name.into()),
                        counter: Some(counter.into()),
                        value: Some(value),
                    })?;
                }
            }
        }
        Ok(())
    }
}

impl Reading {
    /// Compare a new reading with the latest one, and return the changed counters with their
    /// values. The previous value of a new counter is that in `first`.
    fn changes(&mut self, text: &str, first: &BTreeMap<String, i64>) -> Values {
        let pairs = || text.lines().step_by(2).zip(text.lines().skip(1).step_by(2));
        if !pairs().map(|(header, _)| header).eq(self.groups.iter().map(|group| group.header.as_str())) {
            self.rename(pairs().map(|(header, _)| header), first);
        }
        let mut changed = Values::new();
        for (group, (_, numbers)) in self.groups.iter_mut().zip(pairs()) {
            group.take(numbers, &mut changed);
        }
        changed
    }

    /// Replace the names of the counters. Known counters keep their values.
    fn rename<'a>(&mut self, headers: impl Iterator<Item = &'a str>, first: &BTreeMap<String, i64>) {
        let groups = std::mem::take(&mut self.groups);
        let previous: BTreeMap<_, _> =
            groups.into_iter().flat_map(|group| group.names.into_iter().zip(group.values)).collect();
        let value = |name: &String| previous.get(name).or_else(|| first.get(name)).copied().unwrap_or(0);
        self.groups = headers
            .map(|header| {
                let (group, names) = header.split_once(':').unwrap_or((header, ""));
                let names: Vec<_> = names.split_whitespace().map(|name| format!("{group}{name}")).collect();
                let values = names.iter().map(value).collect();
                Group { header: header.to_owned(), numbers: String::new(), names, values }
            })
            .collect();
    }
}

impl Group {
    fn take(&mut self, numbers: &str, changed: &mut Values) {
        if self.numbers == numbers {
            return;
        }
        self.numbers.clear();
        self.numbers.push_str(numbers);
        let numbers = numbers.split_whitespace().skip(1);
        for ((name, latest), number) in self.names.iter().zip(&mut self.values).zip(numbers) {
            if let Ok(value) = number.parse()
                && *latest != value
            {
                *latest = value;
                changed.push((name.clone(), value));
            }
        }
    }
}

fn read(node: &str, files: &[File]) -> Result<Values> {
    let mut values = Values::new();
    let mut bytes = vec![0; READ_BYTES];
    for file in files {
        let length = file.read_at(&mut bytes, 0).attempt(|| format!("reading the counters of {node}"))?;
        parse(&String::from_utf8_lossy(&bytes[..length]), &mut values);
    }
    Ok(values)
}

/// Parse pairs of lines `Group: Name Name ..` and `Group: 1 2 ..` into `GroupName` and value.
fn parse(text: &str, values: &mut Values) {
    let mut lines = text.lines();
    while let (Some(names), Some(numbers)) = (lines.next(), lines.next()) {
        let Some((group, names)) = names.split_once(':') else { continue };
        let numbers = numbers.split_once(':').map_or("", |(_, numbers)| numbers);
        for (name, number) in names.split_whitespace().zip(numbers.split_whitespace()) {
            if let Ok(number) = number.parse() {
                values.push((format!("{group}{name}"), number));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_after_group_and_field() {
        let mut values = Values::new();
        parse("Tcp: MaxConn RetransSegs\nTcp: -1 7\nMPTcpExt: MPCapableSYNRX\nMPTcpExt: 1\n", &mut values);
        let expected = [("TcpMaxConn", -1), ("TcpRetransSegs", 7), ("MPTcpExtMPCapableSYNRX", 1)];
        assert_eq!(values, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn only_changed_counters_have_rows_also_when_counters_appear() {
        let mut reading = Reading::default();
        let first = BTreeMap::from([("TcpA".to_owned(), 1), ("UdpC".to_owned(), 5)]);
        let mut changes = |text: &str| reading.changes(text, &first);
        let change = |name: &str, value| vec![(name.to_owned(), value)];
        assert_eq!(changes("Tcp: A B\nTcp: 1 0\nUdp: C\nUdp: 5\n"), []);
        assert_eq!(changes("Tcp: A B\nTcp: 1 -2\nUdp: C\nUdp: 5\n"), change("TcpB", -2));
        assert_eq!(changes("Tcp: A B\nTcp: 1 -2\nUdp: C\nUdp: 6\n"), change("UdpC", 6));
        assert_eq!(changes("Tcp: A B\nTcp: 1 -2\nMsg: D E\nMsg: 0 3\nUdp: C\nUdp: 6\n"), change("MsgE", 3));
        assert_eq!(changes("Tcp: A B\nTcp: 4 -2\nMsg: D E\nMsg: 0 3\nUdp: C\nUdp: 6\n"), change("TcpA", 4));
    }

    #[test]
    fn an_incomplete_file_yields_its_complete_values() {
        let mut values = Values::new();
        parse("Tcp: A B\nTcp: 1\nUdp: C\n", &mut values);
        assert_eq!(values, [("TcpA".to_owned(), 1)]);
    }
}
