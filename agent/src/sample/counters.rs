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
    /// The latest reading of each node.
    latest: Vec<Reading>,
    /// A buffer for the next reading.
    text: Vec<u8>,
}

/// The latest values of a node's counters, and the texts that had them.
#[derive(Default)]
struct Reading {
    values: BTreeMap<String, i64>,
    texts: [String; FILES.len()],
}

impl Series {
    /// Create the table.
    pub fn create(set: &TableSet) -> Result<Self> {
        Ok(Self { table: Table::create(set)?, latest: Vec::new(), text: vec![0; READ_BYTES] })
    }

    /// Add a row for each counter that has changed.
    pub fn read(&mut self, t_us: i64, counters: &Counters) -> Result<()> {
        if self.latest.is_empty() {
            let first = |node: &Node| Reading { values: node.before.clone(), ..Reading::default() };
            self.latest = counters.nodes.iter().map(first).collect();
        }
        for (node, Reading { values, texts }) in counters.nodes.iter().zip(&mut self.latest) {
            for (file, latest) in node.files.iter().zip(texts) {
                let length = file
                    .read_at(&mut self.text, 0)
                    .attempt(|| format!("reading the counters of {}", node.name))?;
                let text = String::from_utf8_lossy(&self.text[..length]);
                for (counter, value) in changes(&text, latest, values) {
                    self.table.push(CounterSeries {
                        t_us: Some(t_us),
                        node: Some(node.name.into()),
                        counter: Some(counter.into()),
                        value: Some(value),
                    })?;
                }
                text.as_ref().clone_into(latest);
            }
        }
        Ok(())
    }
}

/// Return the counters that differ from `values`, and note them there. Lines that are as in the `latest` text
/// need no parsing.
fn changes(text: &str, latest: &str, values: &mut BTreeMap<String, i64>) -> Values {
    let mut unchanged = pairs(latest);
    let mut changed = Values::new();
    for pair in pairs(text).filter(|pair| unchanged.next().as_ref() != Some(pair)) {
        for (counter, value) in parse(pair) {
            if values.get(&counter).copied().unwrap_or(0) != value {
                values.insert(counter.clone(), value);
                changed.push((counter, value));
            }
        }
    }
    changed
}

fn read(node: &str, files: &[File]) -> Result<Values> {
    let mut values = Values::new();
    let mut bytes = vec![0; READ_BYTES];
    for file in files {
        let length = file.read_at(&mut bytes, 0).attempt(|| format!("reading the counters of {node}"))?;
        values.extend(pairs(&String::from_utf8_lossy(&bytes[..length])).flat_map(parse));
    }
    Ok(values)
}

/// Return the pairs of lines `Group: Name Name ..` and `Group: 1 2 ..`.
fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().step_by(2).zip(text.lines().skip(1).step_by(2))
}

/// Parse a pair of lines into `GroupName` and value.
fn parse<'a>((names, numbers): (&'a str, &'a str)) -> impl Iterator<Item = (String, i64)> + 'a {
    let (group, names) = names.split_once(':').unwrap_or_default();
    let numbers = numbers.split_once(':').map_or("", |(_, numbers)| numbers);
    let cells = names.split_whitespace().zip(numbers.split_whitespace());
    cells.filter_map(move |(name, number)| Some((format!("{group}{name}"), number.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_named_after_group_and_field() {
        let text = "Tcp: MaxConn RetransSegs\nTcp: -1 7\nMPTcpExt: MPCapableSYNRX\nMPTcpExt: 1\n";
        let expected = [("TcpMaxConn", -1), ("TcpRetransSegs", 7), ("MPTcpExtMPCapableSYNRX", 1)];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(pairs(text).flat_map(parse).collect::<Values>(), expected);
    }

    #[test]
    fn only_changed_counters_have_rows_also_when_counters_appear() {
        let mut values = BTreeMap::from([("TcpA".to_owned(), 1), ("UdpC".to_owned(), 5)]);
        let mut latest = String::new();
        let mut changes = |text: &str| {
            let changed = changes(text, &latest, &mut values);
            text.clone_into(&mut latest);
            changed
        };
        let change = |name: &str, value| vec![(name.to_owned(), value)];
        assert_eq!(changes("Tcp: A B\nTcp: 1 0\nUdp: C\nUdp: 5\n"), []);
        assert_eq!(changes("Tcp: A B\nTcp: 1 -2\nUdp: C\nUdp: 5\n"), change("TcpB", -2));
        assert_eq!(changes("Tcp: A B\nTcp: 1 -2\nUdp: C\nUdp: 6\n"), change("UdpC", 6));
        assert_eq!(changes("Tcp: A B\nTcp: 1 -2\nMsg: D E\nMsg: 0 3\nUdp: C\nUdp: 6\n"), change("MsgE", 3));
        assert_eq!(changes("Tcp: A B\nTcp: 4 -2\nMsg: D E\nMsg: 0 3\nUdp: C\nUdp: 6\n"), change("TcpA", 4));
    }

    #[test]
    fn an_incomplete_file_yields_its_complete_values() {
        let values: Values = pairs("Tcp: A B\nTcp: 1\nUdp: C\n").flat_map(parse).collect();
        assert_eq!(values, [("TcpA".to_owned(), 1)]);
    }
}
