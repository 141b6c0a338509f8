//! `struct tcp_info` (`linux/tcp.h`) as columns. The numbers are offsets of fields in that
//! structure.

use super::{Fields, cell};
use crate::tables::{Connection, Subflow};

/// The kernel uses this value and larger ones as an infinite ssthresh.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// A `tcp_info`, of the length that the kernel supports.
#[derive(Clone, Copy)]
pub struct TcpInfo<'a>(Fields<'a>);

impl<'a> TcpInfo<'a> {
    /// Wrap `bytes`, a `struct tcp_info` or the beginning of one.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(Fields(bytes))
    }

    /// `tcpi_last_data_recv`: ms since the last data arrived.
    pub fn last_data_ms(self) -> Option<i64> {
        self.0.cell32(52)
    }

    /// Return a subflow's row without identity and addresses.
    pub fn subflow(self) -> Subflow {
        let Self(info) = self;
        Subflow {
            state: info.u8(0).and_then(state).map(Into::into),
            congestion_state: info.u8(1).and_then(congestion_state).map(Into::into),
            mss_bytes: info.cell32(16),
            unacked_segments: info.cell32(24),
            lost_segments: info.cell32(32),
            rtt_us: measured(info.u32(68)),
            rttvar_us: measured(info.u32(68)).and_then(|_| info.cell32(72)),
            ssthresh_segments: info.u32(76).filter(|s| *s < INFINITE_SSTHRESH).map(i64::from),
            cwnd_segments: info.cell32(80),
            retransmitted_segments: info.cell32(100),
            pacing_rate_bps: info.u64(104).filter(|rate| *rate != u64::MAX).and_then(to_bit_ps),
            acked_bytes: info.cell64(120),
            received_bytes: info.cell64(128), // in order
            notsent_bytes: info.cell32(144),
            min_rtt_us: info.u32(148).filter(|rtt| *rtt != u32::MAX).map(i64::from),
            delivery_rate_bps: info.u64(160).filter(|rate| *rate != 0).and_then(to_bit_ps),
            busy_us: info.cell64(168),
            rwnd_limited_us: info.cell64(176),
            sndbuf_limited_us: info.cell64(184),
            sent_bytes: info.cell64(200),
            retransmitted_bytes: info.cell64(208),
            out_of_order_segments: info.cell32(224),
            send_window_bytes: info.cell32(228),
            receive_window_bytes: info.cell32(232),
            ..Default::default()
        }
    }

    /// Return a TCP connection's row without identity.
    pub fn connection(self) -> Connection {
        let Self(info) = self;
        let retransmitted = info.cell64(208);
        Connection {
            subflows: Some(1),
            sent_bytes: info.cell64(200).zip(retransmitted).map(|(sent, again)| sent - again),
            retransmitted_bytes: retransmitted,
            acked_bytes: info.cell64(120),
            received_bytes: info.cell64(128), // in order
            send_window_bytes: info.cell32(228),
            receive_window_bytes: info.cell32(232),
            unsent_bytes: info.cell32(144),
            ..Default::default()
        }
    }
}

/// Return a smoothed RTT; None if it is 0, which means that there is no sample yet.
fn measured(rtt: Option<u32>) -> Option<i64> {
    rtt.filter(|rtt| *rtt != 0).map(i64::from)
}

/// Convert a rate of the kernel from byte/s to bit/s.
fn to_bit_ps(bytes_ps: u64) -> Option<i64> {
    bytes_ps.checked_mul(8).and_then(cell)
}

/// `enum` of `net/tcp_states.h`.
fn state(value: u8) -> Option<&'static str> {
    let names = [
        "ESTABLISHED",
        "SYN_SENT",
        "SYN_RECV",
        "FIN_WAIT1",
        "FIN_WAIT2",
        "TIME_WAIT",
        "CLOSE",
        "CLOSE_WAIT",
        "LAST_ACK",
        "LISTEN",
        "CLOSING",
        "NEW_SYN_RECV",
    ];
    names.get(usize::from(value).checked_sub(1)?).copied()
}

/// `enum tcp_ca_state` of `linux/tcp.h`.
fn congestion_state(value: u8) -> Option<&'static str> {
    ["Open", "Disorder", "CWR", "Recovery", "Loss"].get(usize::from(value)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> [u8; 248] {
        let mut bytes = [0; 248];
        bytes[0] = 1;
        bytes[76..80].copy_from_slice(&INFINITE_SSTHRESH.to_ne_bytes());
        bytes[104..112].copy_from_slice(&u64::MAX.to_ne_bytes());
        bytes[148..152].copy_from_slice(&u32::MAX.to_ne_bytes());
        bytes[200..208].copy_from_slice(&3000_u64.to_ne_bytes());
        bytes[208..216].copy_from_slice(&1000_u64.to_ne_bytes());
        bytes
    }

    #[test]
    fn what_the_kernel_has_not_measured_is_missing_not_zero() {
        let row = TcpInfo::new(&info()).subflow();
        assert_eq!(row.state.as_deref(), Some("ESTABLISHED"));
        assert_eq!(row.congestion_state.as_deref(), Some("Open"));
        let unmeasured = [row.rtt_us, row.rttvar_us, row.min_rtt_us, row.ssthresh_segments];
        assert_eq!(unmeasured, [None; 4]);
        assert_eq!([row.pacing_rate_bps, row.delivery_rate_bps], [None; 2]);
    }

    #[test]
    fn bytes_sent_by_tcp_leave_out_retransmissions() {
        let row = TcpInfo::new(&info()).connection();
        assert_eq!((row.sent_bytes, row.retransmitted_bytes), (Some(2000), Some(1000)));
    }

    #[test]
    fn an_older_kernel_leaves_newer_fields_missing() {
        let row = TcpInfo::new(&info()[..104]).subflow();
        assert_eq!((row.cwnd_segments, row.sent_bytes), (Some(0), None));
    }
}
