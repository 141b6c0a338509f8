//! Queueing disciplines. `src/plait/plan/model/qdiscs.py` documents each field.

use serde::Deserialize;

use super::applications::File;
use super::record::records;

/// The options of a qdisc, by kind.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum QdiscOptions {
    Netem(Netem),
    Tbf(Tbf),
    Pfifo(Pfifo),
    Bfifo(Bfifo),
    Red(Red),
    PlaitRed(PlaitRed),
    Codel(Codel),
    FqCodel(FqCodel),
    PlaitTrace(PlaitTrace),
}

impl QdiscOptions {
    /// Return the kernel's name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Netem(_) => "netem",
            Self::Tbf(_) => "tbf",
            Self::Pfifo(_) => "pfifo",
            Self::Bfifo(_) => "bfifo",
            Self::Red(_) => "red",
            Self::PlaitRed(_) => "plait_red",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::PlaitTrace(_) => "plait_trace",
        }
    }
}

records! {
    /// A table of delays.
    Distribution {
        name: String,
        values: Vec<i16>,
    }

    /// The Gilbert-Elliott loss model.
    Gemodel {
        p: f64,
        r: f64,
        loss_bad: f64,
        loss_good: f64,
    }

    /// The network emulator: delay, jitter, loss, duplication, reordering, corruption.
    Netem {
        delay_ns: i64,
        #[serde(default)]
        jitter_ns: i64,
        #[serde(default)]
        distribution: Option<String>,
        #[serde(default)]
        in_order: bool,
        #[serde(default)]
        loss_ratio: f64,
        #[serde(default)]
        gemodel: Option<Gemodel>,
        #[serde(default)]
        duplicate_ratio: f64,
        #[serde(default)]
        reorder_ratio: Option<f64>,
        #[serde(default)]
        corrupt_ratio: Option<f64>,
        limit_packets: u32,
        #[serde(default)]
        rate_bps: Option<u64>,
        seed: u64,
    }

    /// A token bucket filter: a rate, optionally with a peak rate.
    Tbf {
        rate_bps: u64,
        burst_bytes: u32,
        limit_bytes: u32,
        #[serde(default)]
        peak_bps: Option<u64>,
        #[serde(default)]
        peak_burst_bytes: Option<u32>,
    }

    /// A recorded trace of delivery opportunities: a file with one time in ms per line.
    PlaitTrace {
        file: File,
        opportunity_bytes: u32,
        repeated: bool,
    }

    /// A FIFO queue with a limit in packets.
    Pfifo {
        limit_packets: u32,
    }

    /// A FIFO queue with a limit in bytes.
    Bfifo {
        limit_bytes: u32,
    }

    /// Linux's Random Early Detection. Its queue is a child qdisc.
    Red {
        min_bytes: u32,
        max_bytes: u32,
        probability: f64,
        weight_log: u8,
        idle_log: u8,
        idle_shifts: Vec<u8>,
        ecn: bool,
        limit_bytes: u32,
    }

    /// Random Early Detection with a drop curve given point by point.
    PlaitRed {
        limit_packets: u32,
        weight_log: u32,
        points: Vec<(u32, u32)>,
        ecn: bool,
        idle_ns: u32,
        seed: u64,
    }

    /// Controlled Delay (`CoDel`).
    Codel {
        limit_packets: u32,
        target_us: u32,
        interval_us: u32,
        ecn: bool,
    }

    /// `FQ-CoDel`: `CoDel` for each of many queues.
    FqCodel {
        limit_packets: u32,
        target_us: u32,
        interval_us: u32,
        ecn: bool,
        flows: u32,
        quantum_bytes: u32,
    }

    /// A queueing discipline.
    Qdisc {
        netns: String,
        ifname: String,
        parent: String,
        handle: String,
        options: QdiscOptions,
    }
}
