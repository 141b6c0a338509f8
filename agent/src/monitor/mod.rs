//! Measurements that the agent makes only if the plan asks for them: interfaces, counters over
//! time, probes, captures, trace events.

mod capture;
mod interfaces;
mod pcapng;
mod probes;
mod trace;

use std::path::Path;

use capture::Captures;
use interfaces::Interfaces;
pub use pcapng::{Recording, Writer};
use probes::Probes;
use trace::Trace;
pub use trace::available as available_trace_events;

use crate::apply::Applied;
use crate::error::Result;
use crate::plan::{CounterMonitor, Plan};
use crate::sample::counters::{Counters, Series};
use crate::tables::TableSet;

/// The monitors of a trial, and when each is due.
pub struct Monitors {
    plan: &'static Plan,
    interfaces: Option<(Interfaces, i64)>,
    counters: Option<(Series, &'static CounterMonitor, i64)>,
    probes: Option<Probes>,
    captures: (Captures, i64),
    trace: Option<Trace>,
}

impl Monitors {
    /// Create the tables, and the files below `folder`/pcap.
    pub fn create(set: &TableSet, folder: &Path, plan: &'static Plan) -> Result<Self> {
        let asked = &plan.monitors;
        let interfaces = asked.interfaces.as_ref().map(|plan| Interfaces::create(set, plan)).transpose()?;
        let counters = asked.counters.as_ref();
        let counters = counters.map(|plan| Ok((Series::create(set)?, plan, 0))).transpose()?;
        let probes = (!asked.probes.is_empty()).then(|| Probes::create(set)).transpose()?;
        let captures = Captures::create(&folder.join("pcap"), &asked.captures)?;
        let trace = (!asked.trace.is_empty()).then(|| Trace::create(set, &asked.trace)).transpose()?;
        let captures = (captures, 0);
        Ok(Self { plan, interfaces: interfaces.map(|it| (it, 0)), counters, probes, captures, trace })
    }

    /// Prepare for the trial's zero.
    pub fn attach(&mut self, network: &Applied) -> Result<()> {
        if let Some((interfaces, _)) = &mut self.interfaces {
            interfaces.attach(network)?;
        }
        if let Some(probes) = &mut self.probes {
            probes.attach(&self.plan.monitors.probes, network)?;
        }
        self.captures.0.attach(network)?;
        self.trace.as_mut().map_or(Ok(()), Trace::attach)
    }

    /// Return when the next reading is due.
    pub fn next_us(&self) -> i64 {
        let interfaces = self.interfaces.as_ref().map(|(_, due)| *due);
        let counters = self.counters.as_ref().map(|(.., due)| *due);
        let captures = (!self.captures.0.is_empty()).then_some(self.captures.1);
        let probes = self.probes.as_ref().map(Probes::next_us);
        [interfaces, counters, captures, probes].into_iter().flatten().min().unwrap_or(i64::MAX)
    }

    /// Take the readings that are due at `t_us`.
    pub fn read(&mut self, t_us: i64, counters: &Counters) -> Result<()> {
        if let Some((interfaces, due)) = self.interfaces.as_mut().filter(|(_, due)| *due <= t_us) {
            interfaces.read(t_us)?;
            *due += interfaces.interval_us();
        }
        if let Some((series, plan, due)) = self.counters.as_mut().filter(|(.., due)| *due <= t_us) {
            series.read(t_us, counters)?;
            *due += plan.interval_us;
        }
        if let Some(probes) = &mut self.probes {
            probes.read(t_us)?;
        }
        if !self.captures.0.is_empty() && self.captures.1 <= t_us {
            self.captures.0.read()?;
            self.captures.1 += self.captures.0.interval_us();
        }
        Ok(())
    }

    /// Take the last readings, after all flows have ended.
    pub fn read_last(&mut self, t_us: i64, counters: &Counters) -> Result<()> {
        if let Some((interfaces, due)) = &mut self.interfaces
            && t_us > *due - interfaces.interval_us()
        {
            interfaces.read(t_us)?;
        }
        if let Some((series, ..)) = &mut self.counters {
            series.read(t_us, counters)?;
        }
        if let Some(probes) = &mut self.probes {
            probes.read_last()?;
        }
        self.captures.0.read()
    }

    /// Write the pending packets, and release the rows of probes.
    pub fn flush(&mut self) -> Result<()> {
        self.probes.as_mut().map_or(Ok(()), Probes::release)?;
        self.captures.0.flush()
    }

    /// Complete all files, and give the tables their last rows.
    pub fn finish(mut self) -> Result<()> {
        self.probes.map_or(Ok(()), Probes::finish)?;
        self.captures.0.flush()?;
        self.trace.map_or(Ok(()), Trace::finish)
    }
}
