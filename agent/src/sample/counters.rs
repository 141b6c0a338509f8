//! The kernel's counters of each namespace, before and after: /proc/net/snmp and /proc/net/netstat, by name.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::apply::{Applied, enter};
use crate::error::{Attempt, Result};
use crate::tables::{Counter, CounterChange, Table};

/// The files, relative to the namespace of the thread that opens them; open ones stay with theirs.
const FILES: [&str; 2] = ["/proc/thread-self/net/snmp", "/proc/thread-self/net/netstat"];
/// More than either file has; the kernel hands each out in one piece.
const READ_BYTES: usize = 64 * 1024;

type Values = Vec<(String, i64)>;

/// The counters at the trial's zero, and the open files to read them again.
pub struct Counters {
    nodes: Vec<Node>,
}

struct Node {
    name: &'static str,
    files: Vec<File>,
    before: BTreeMap<String, i64>,
}

impl Counters {
    /// Reads the counters of every namespace of `network`, which `wire` has left by now. The thread ends in the
    /// namespace where the agent began.
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

    /// Reads them again, and adds a row for each counter that is or was not zero.
    pub fn after(&self, table: &mut Table<Counter>) -> Result<()> {
        for node in &self.nodes {
            for (counter, after) in read(node.name, &node.files)? {
                // Some counters appear only once they have counted; before that they were zero.
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
    table: Table<CounterChange>,
    /// By node: what each counter was at the latest reading.
    latest: Vec<BTreeMap<String, i64>>,
}

impl Series {
    /// Creates the table.
    pub fn create(folder: &Path) -> Result<Self> {
        Ok(Self { table: Table::create(folder)?, latest: Vec::new() })
    }

    /// Adds a row for each counter that is not what it was.
    pub fn read(&mut self, t_us: i64, counters: &Counters) -> Result<()> {
        if self.latest.is_empty() {
            self.latest = counters.nodes.iter().map(|node| node.before.clone()).collect();
        }
        for (node, latest) in counters.nodes.iter().zip(&mut self.latest) {
            for (counter, value) in read(node.name, &node.files)? {
                if latest.get(&counter).copied().unwrap_or(0) != value {
                    self.table.push(CounterChange {
                        t_us: Some(t_us),
                        node: Some(node.name.into()),
                        counter: Some(counter.clone().into()),
                        value: Some(value),
                    })?;
                    latest.insert(counter, value);
                }
            }
        }
        Ok(())
    }

    /// Writes the rows that wait.
    pub fn flush(&mut self) -> Result<()> {
        self.table.flush()
    }

    /// Completes the table.
    pub fn finish(self) -> Result<()> {
        self.table.finish()
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

/// Appends `Group: Name Name ..` and `Group: 1 2 ..`, line by line, as `GroupName` and value.
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
    fn a_torn_file_gives_what_it_has() {
        let mut values = Values::new();
        parse("Tcp: A B\nTcp: 1\nUdp: C\n", &mut values);
        assert_eq!(values, [("TcpA".to_owned(), 1)]);
    }
}
