//! What both ends say over a stream, whatever carries it, and the times that the client measures.
//!
//! A request is 16 bytes, the number of bytes that follow and of those to answer (big-endian), and then the former.
//! Contents are zeros. The code does no input or output: it counts.

use std::time::Instant;

use crate::options::Requests;

/// Bytes before the content of a request.
pub const HEADER: usize = 16;

/// Return the first bytes of a request.
pub fn header(requests: Requests) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..8].copy_from_slice(&requests.send.to_be_bytes());
    bytes[8..].copy_from_slice(&requests.receive.to_be_bytes());
    bytes
}

/// A request as it arrives at the server.
#[derive(Debug, Default)]
pub struct Arriving {
    header: Vec<u8>,
    content: u64,
}

impl Arriving {
    /// Take bytes of the stream. Return the size of the answer once the request is complete.
    pub fn take(&mut self, bytes: &[u8]) -> Option<u64> {
        let head = bytes.len().min(HEADER - self.header.len());
        self.header.extend_from_slice(&bytes[..head]);
        self.content += (bytes.len() - head) as u64;
        let (send, receive) = self.header.split_at_checked(8)?;
        let receive = u64::from_be_bytes(receive.try_into().ok()?);
        let send = u64::from_be_bytes(send.try_into().ok()?);
        (self.content >= send).then_some(receive)
    }
}

/// What the client has measured.
#[derive(Debug)]
pub struct Measured {
    start: Instant,
    asked: Instant,
    latencies_us: Vec<u64>,
    /// Time from the first packet to the established connection.
    pub handshake_us: Option<u64>,
}

impl Measured {
    /// Start the clock.
    pub fn new(now: Instant) -> Self {
        Self { start: now, asked: now, latencies_us: Vec::new(), handshake_us: None }
    }

    /// Note the end of the handshake.
    pub fn connected(&mut self, now: Instant) {
        self.handshake_us = Some(micros(self.start, now));
    }

    /// Note the start of a request.
    pub fn ask(&mut self, now: Instant) {
        self.asked = now;
    }

    /// Note the last byte of an answer. Return the number of answers.
    pub fn answered(&mut self, now: Instant) -> u64 {
        self.latencies_us.push(micros(self.asked, now));
        self.latencies_us.len() as u64
    }

    /// Return the names and values to print: of all if that has an end, and of the latencies of single requests.
    pub fn figures(&self, end: Option<Instant>) -> Vec<(String, u64)> {
        let mut sorted = self.latencies_us.clone();
        sorted.sort_unstable();
        let mut figures = vec![("answers".to_owned(), sorted.len() as u64)];
        figures.extend(end.map(|end| ("completion_us".to_owned(), micros(self.start, end))));
        figures.extend(self.handshake_us.map(|us| ("handshake_us".to_owned(), us)));
        figures.extend(rank(&sorted, 50).map(|us| ("latency_p50_us".to_owned(), us)));
        figures.extend(rank(&sorted, 95).map(|us| ("latency_p95_us".to_owned(), us)));
        figures
    }
}

/// Return the nearest-rank percentile of sorted values.
fn rank(sorted: &[u64], percent: usize) -> Option<u64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

fn micros(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.saturating_duration_since(from).as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_complete_with_its_last_byte() {
        let bytes = [&header(Requests { count: 1, send: 3, receive: 7 })[..], &[0; 3]].concat();
        let mut arriving = Arriving::default();
        for byte in &bytes[..bytes.len() - 1] {
            assert_eq!(arriving.take(&[*byte]), None);
        }
        assert_eq!(arriving.take(&[0]), Some(7));
        assert_eq!(Arriving::default().take(&bytes), Some(7));
    }

    #[test]
    fn percentiles_are_values_that_were_measured() {
        assert_eq!(rank(&[], 50), None);
        assert_eq!(rank(&[5], 95), Some(5));
        assert_eq!(rank(&[1, 2, 3, 4], 50), Some(2));
        assert_eq!(rank(&[1, 2, 3, 4], 95), Some(4));
    }
}
