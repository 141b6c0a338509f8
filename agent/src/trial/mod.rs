//! The trial: from a complete network to complete tables, in one thread with one schedule.

mod ends;
mod flow_rows;
mod limits;
mod output;

use std::sync::Arc;

use rustix::net::{Shutdown, connect_unspec, shutdown};

pub use output::Tables;

use ends::{End, deadline_us, sending_end_us, still_counting, uses_connection};
use flow_rows::write_flows;
use limits::Limits;

use crate::apply::{Applied, Schedule};
use crate::clock;
use crate::error::Result;
use crate::plan::{Action, Plan, Transport};
use crate::process::{self, Fidelity};
use crate::program::Programs;
use crate::sample::counters::Counters;
use crate::sample::datapath_flows;
use crate::sample::mptcp_events;
use crate::status::{self, Progress};
use crate::sys;
use crate::tables;
use crate::traffic::{self, FlowState, Prepared, Traffic};

/// The number of samples in one record batch of each table.
const SAMPLES_PER_BATCH: u32 = 64;
/// How long the agent waits, in virtual time, for threads whose sockets it has shut down.
const PATIENCE_US: i64 = 1_000_000;

/// The delay of a sample after its planned time: less than a reading of the clock costs other
/// threads.
const AFTER_NS: i64 = 128;

struct Trial<'a> {
    plan: &'static Plan,
    traffic: Arc<Traffic>,
    tables: &'a mut Tables,
    events: &'a mut Schedule,
    ends: Vec<Option<End>>,
    samples: u32,
    progress: Progress,
    counters: Counters,
    programs: Programs,
    limits: Limits,
}

/// Run the traffic of `plan` over `network`, and fill `tables`.
pub fn run(
    plan: &'static Plan,
    network: &mut Applied,
    prepared: Vec<Prepared>,
    tables: &mut Tables,
) -> Result<()> {
    tables.links.attach(&tables.set, plan, network)?;
    let progress = Progress::create()?;
    let counters = Counters::before(network)?;
    tables.monitors.attach(network)?;
    let traffic = traffic::start(prepared, plan)?;
    mptcp_events::watch(network, &traffic)?;
    let programs = Programs::start(plan, network, &traffic)?;
    if let Some(program_tables) = &mut tables.programs {
        program_tables.attach(plan, network)?;
    }
    process::wait_for_start();
    let fidelity = Fidelity::watch(plan)?;
    let zero_ns = clock::set_zero();
    process::announce_zero();
    status::booted(zero_ns);
    status::enter_phase("run");
    if !plan.monitors.captures.is_empty() || !plan.monitors.probes.is_empty() {
        clock::realtime_zero_ns();
    }
    let ends = vec![None; plan.flows.len()];
    let events = &mut network.events;
    events.start(zero_ns)?;
    let mut trial = Trial {
        plan,
        traffic,
        tables,
        events,
        ends,
        samples: 0,
        progress,
        counters,
        programs,
        limits: Limits::new(),
    };
    // Events at time zero happen before the first flow starts.
    trial.carry_out_events(0)?;
    clock::sleep_until(0);
    trial.progress.report(0)?;
    let end_us = trial.follow_schedule()?;
    trial.stop(end_us)?;
    fidelity.map_or(Ok(()), Fidelity::write)?;
    trial.end_programs()?;
    status::enter_phase("write");
    trial.counters.after(&mut trial.tables.counters)?;
    datapath_flows::count(&mut network.switches, &mut trial.tables.counters)?;
    trial.write_events(None)?;
    write_flows(&trial.traffic, trial.tables, &trial.ends)?;
    if process::wait_for_close() {
        trial.drop_connections();
    }
    Ok(())
}

impl Trial<'_> {
    /// Sample, end bulk flows at their deadlines, and detect the ends of the others, until all have
    /// ended or the trial's time is over. Return when that was.
    fn follow_schedule(&mut self) -> Result<i64> {
        let mut next_sample_us = 0;
        let mut now_us = 0;
        loop {
            let rings = self.traffic.bell.rings();
            now_us = self.notice_ends()?.unwrap_or(now_us);
            self.programs.failure()?;
            if self.is_over() {
                return Ok(clock::trial_us().max(now_us));
            }
            if self.only_waiting() {
                let now_us = clock::trial_us();
                for index in self.live() {
                    self.end(index, now_us, now_us, self.connected(index), Shutdown::Write)?;
                }
                return Ok(now_us);
            }
            let event_us = self.events.next_us().unwrap_or(i64::MAX);
            let own_us =
                [self.next_deadline(), event_us, self.plan.end_us].into_iter().min().unwrap_or_default();
            let watched_us = next_sample_us.min(self.tables.monitors.next_us());
            let next_us = own_us.min(watched_us);
            // A thread that wakes up at the same time as a packet runs before or after it,
            // depending on the order in which both were scheduled, and can defer the rest of the
            // packet's processing to a kernel thread. Therefore the agent takes pure measurements a
            // little later.
            let after_ns = if watched_us < own_us { AFTER_NS } else { 0 };
            if !self.traffic.bell.wait_until_ns(next_us * 1000 + after_ns, rings) {
                continue;
            }
            let next_us = clock::reached(next_us);
            self.carry_out_events(next_us)?;
            if next_us >= next_sample_us {
                self.sample(next_us)?;
                // A sample that is later than an interval replaces those that it missed.
                let missed = (next_us - next_sample_us) / self.plan.sample_interval_us;
                next_sample_us += (missed + 1) * self.plan.sample_interval_us;
            }
            self.tables.monitors.read(next_us, &self.counters)?;
            self.end_timed_flows(next_us)?;
            now_us = next_us;
            if now_us >= self.plan.end_us {
                self.programs.overdue(now_us)?;
                return Ok(now_us);
            }
        }
    }

    /// Carry out and record the events that are due by `t_us`.
    fn carry_out_events(&mut self, t_us: i64) -> Result<()> {
        while let Some(event) = self.events.carry_out(t_us)? {
            let endpoint = event.actions.iter().find_map(Action::endpoint);
            self.traffic.events.push(tables::Event {
                local_address: endpoint.map(|(address, _)| address.to_string().into()),
                local_id: endpoint.map(|(_, id)| id.into()),
                ..tables::Event::at(clock::reached(event.t_us), &event.subject, &event.name)
            });
        }
        Ok(())
    }

    fn live(&self) -> Vec<usize> {
        (0..self.ends.len()).filter(|index| self.ends[*index].is_none()).collect()
    }

    fn next_deadline(&self) -> i64 {
        let deadlines = self.live().into_iter().filter_map(|index| deadline_us(&self.traffic.flows[index]));
        deadlines.min().unwrap_or(i64::MAX)
    }

    /// Write the rows of the path-manager events before `before_us`, of all without it.
    fn write_events(&mut self, before_us: Option<i64>) -> Result<()> {
        let Tables { events, samples, programs, .. } = &mut *self.tables;
        mptcp_events::write(events, &self.traffic, samples, programs.as_ref(), before_us)
    }

    /// Add the last rows of closed subflows of live connections.
    fn note_closed(&mut self) -> Result<()> {
        for closed in self.traffic.closed.take() {
            if let Some(program_tables) = &mut self.tables.programs {
                program_tables.add_closed(&closed, self.traffic.begun.take(), &mut self.tables.samples)?;
            }
            for index in self.live() {
                self.tables.samples.add_closed(index, self.traffic.flows[index].plan, &closed)?;
            }
        }
        Ok(())
    }

    /// Write the samples that prototypes have reported.
    fn write_reported(&mut self) -> Result<()> {
        let samples = &mut self.tables.samples;
        let mut subflows = self.traffic.reported_subflows.take().into_iter();
        subflows.try_for_each(|row| samples.subflows.push(row))?;
        let mut connections = self.traffic.reported_connections.take().into_iter();
        connections.try_for_each(|row| samples.connections.push(row))
    }

    /// Whether all flows, and all programs that the trial waits for, have ended. If there are
    /// neither, the trial ends at its planned time.
    fn is_over(&self) -> bool {
        if process::is_told_to_end() {
            return true;
        }
        let decides = !self.ends.is_empty() || self.programs.any_awaited();
        decides && self.ends.iter().all(Option::is_some) && !self.programs.any_unfinished()
    }

    /// Whether only flows without an end of their own remain.
    fn only_waiting(&self) -> bool {
        if self.programs.any_unfinished() {
            return false;
        }
        let waits = |index: &usize| self.traffic.flows[*index].plan.application.job().is_background();
        let live = self.live();
        let others = live.len() < self.ends.len() || self.programs.any_awaited();
        others && !live.is_empty() && live.iter().all(waits)
    }

    fn connected(&self, index: usize) -> bool {
        self.traffic.flows[index].progress().connected_us.is_some()
    }

    fn sample_flow(&mut self, index: usize, t_us: i64) -> Result<()> {
        let flow = &self.traffic.flows[index];
        if matches!(flow.plan.transport, Transport::Udp | Transport::Prototype) {
            return Ok(()); // the kernel has no connection of it
        }
        self.tables.samples.sample(flow.carrier(), &self.traffic, t_us)
    }

    fn sample_programs(&mut self, t_us: i64) -> Result<()> {
        let Some(program_tables) = &mut self.tables.programs else { return Ok(()) };
        sys::bury_orphans();
        program_tables.sample(t_us, &mut self.tables.samples, self.traffic.begun.take(), &self.programs)
    }

    /// Stop the programs, and collect their output.
    fn end_programs(&mut self) -> Result<()> {
        self.programs.stop(&self.traffic);
        self.note_sent();
        self.write_reported()?;
        self.note_closed()?;
        let Some(program_tables) = &mut self.tables.programs else { return Ok(()) };
        self.programs.collect(&self.traffic, &mut program_tables.programs, &mut program_tables.figures)
    }

    fn sample(&mut self, t_us: i64) -> Result<()> {
        self.note_closed()?;
        for index in self.live() {
            if !self.traffic.flows[index].plan.unsampled {
                self.sample_flow(index, t_us)?;
            }
        }
        self.write_reported()?;
        self.check_limits(t_us)?;
        self.sample_programs(t_us)?;
        self.tables.links.sample(t_us)?;
        self.progress.report(t_us)?;
        self.samples += 1;
        // Somebody looks at an observation while it goes on.
        let observed = self.plan.monitors.connections.is_some();
        if observed || self.samples.is_multiple_of(SAMPLES_PER_BATCH) {
            let settled_us = t_us.saturating_sub(self.plan.sample_interval_us);
            self.write_events(Some(settled_us))?;
            self.tables.flush()?;
        }
        Ok(())
    }

    /// Fail if the flows have sent more than the limits of this machine allow.
    fn check_limits(&mut self, t_us: i64) -> Result<()> {
        self.note_sent();
        self.limits.check(t_us, self.tables.samples.sent_bytes())
    }

    /// On a real host, record what its connections have sent, also for a trial that fails.
    fn note_sent(&self) {
        if process::node().is_some() {
            status::sent(u64::try_from(self.tables.samples.sent_bytes()).unwrap_or_default());
        }
    }

    fn end_timed_flows(&mut self, t_us: i64) -> Result<()> {
        for index in self.live() {
            let flow = &self.traffic.flows[index];
            if deadline_us(flow).is_none_or(|deadline| t_us < deadline) {
                continue;
            }
            match sending_end_us(flow) {
                Some(sent_us) => self.end(index, sent_us, t_us, true, Shutdown::Both)?,
                None => self.end(index, t_us, t_us, self.connected(index), Shutdown::Write)?,
            }
        }
        Ok(())
    }

    /// End the flows that have failed or received everything. Return the time if there were any.
    fn notice_ends(&mut self) -> Result<Option<i64>> {
        let mut noticed_us = None;
        for index in self.live() {
            let flow = &self.traffic.flows[index];
            let (failed_us, finished_us) = {
                let progress = flow.progress();
                let finished = progress.last_byte_us.filter(|_| progress.stream_ended);
                (progress.failed_us, finished)
            };
            let finished_us = finished_us.map(|last_us| sending_end_us(flow).unwrap_or(last_us));
            if let Some(t_us) = failed_us.or(finished_us) {
                let now_us = clock::trial_us();
                noticed_us = Some(now_us);
                self.end(index, t_us, now_us, failed_us.is_none(), Shutdown::Both)?;
            }
        }
        Ok(noticed_us)
    }

    /// End a flow: take its last sample, record the received bytes, and shut down its sender's
    /// stream.
    fn end(&mut self, index: usize, t_us: i64, now_us: i64, completed: bool, how: Shutdown) -> Result<()> {
        self.note_closed()?;
        // Sample first, because the shutdown adds the end of the stream to some counters.
        self.sample_flow(index, now_us)?;
        let flow = &self.traffic.flows[index];
        let receiver = flow.plan.sender.other();
        let received_bytes = self.tables.samples.side(flow.carrier(), receiver).received_bytes;
        self.ends[index] = Some(End { t_us, completed, received_bytes });
        self.traffic.event(t_us, flow, "flow_end");
        flow.progress().stopped = true;
        flow.end_at(t_us);
        let sockets = match how {
            Shutdown::Write => flow.socket(flow.plan.sender).into_iter().collect(),
            // The sender has ended its stream; the other direction continues.
            _ if completed && self.is_shared(index) => vec![],
            _ => flow.sockets(),
        };
        for socket in sockets {
            // The socket may already be closed.
            let _ = shutdown(&*socket, how);
        }
        Ok(())
    }

    /// Reset the connections. A kernel would go on sending what their buffers hold, megabytes of
    /// it, after the process has ended, and into the next trial.
    fn drop_connections(&self) {
        for socket in self.traffic.flows.iter().flat_map(FlowState::sockets) {
            let _ = connect_unspec(&*socket); // it may be closed already
        }
    }

    /// Whether another flow still uses the connection of this one.
    fn is_shared(&self, index: usize) -> bool {
        let carrier = self.traffic.flows[index].carrier();
        let others = self.live().into_iter().filter(|other| *other != index);
        let mut others = others.map(|other| &self.traffic.flows[other]);
        others.any(|other| other.carrier() == carrier && uses_connection(other))
    }

    /// Take the last samples, then cut off everything that still runs.
    fn stop(&mut self, now_us: i64) -> Result<()> {
        self.note_closed()?;
        self.sample_programs(now_us)?;
        self.tables.links.sample_last(now_us)?;
        self.tables.monitors.read_last(now_us, &self.counters)?;
        for index in self.live() {
            self.end(index, now_us, now_us, false, Shutdown::Both)?;
        }
        for socket in self.traffic.flows.iter().flat_map(FlowState::sockets) {
            let _ = shutdown(&*socket, Shutdown::Both);
        }
        // Senders return from their last call with the number of bytes that the kernel took.
        let is_counting = || self.traffic.flows.iter().any(still_counting);
        self.traffic.bell.wait_while(now_us + PATIENCE_US, is_counting);
        Ok(())
    }
}
