//! The plan's events as netlink messages and open files.
//!
//! Both are prepared before the trial begins. When an event is due, the agent only sends and
//! writes.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use super::build::Build;
use super::namespace::enter;
use super::qdiscs::traces::PendingTrace;
use super::sysctl::open_sysctl;
use super::{devices, links, mptcp, qdiscs, routing};
use crate::error::{Attempt, Error, Result};
use crate::netlink::{Batch, Family, GenericFamily, Socket};
use crate::plan::{Action, Event, SetSysctl};

/// The events that have not happened yet, in order of time, and the sockets that they need.
pub struct Schedule {
    steps: VecDeque<Step>,
    /// By the index of a namespace that an event changes: with [`Family::Generic`] its path manager.
    sockets: BTreeMap<(usize, Family), Socket>,
    traces: Vec<PendingTrace>,
}

struct Step {
    event: &'static Event,
    sends: Vec<((usize, Family), Batch)>,
    writes: Vec<(&'static SetSysctl, File)>,
}

impl Schedule {
    /// Encode all `events`. The calling thread ends in `home`.
    pub(super) fn prepare(
        build: &mut Build,
        events: &'static [Event],
        path_manager: Option<&GenericFamily>,
        home: &impl AsFd,
    ) -> Result<Self> {
        let traces = std::mem::take(&mut build.traces);
        let steps = VecDeque::with_capacity(events.len());
        let mut schedule = Self { steps, sockets: BTreeMap::new(), traces };
        for place in schedule.traces.iter().map(|trace| trace.place).collect::<Vec<_>>() {
            schedule.open(build, place, Family::Route)?;
        }
        for event in events {
            let (mut managed, mut writes) = (Vec::new(), Vec::new());
            for action in &event.actions {
                schedule
                    .add(build, action, path_manager, &mut managed, &mut writes)
                    .attempt(|| describe(event))?;
            }
            let mut sends = Vec::new();
            for (place, batch) in build.take_batches().collect::<Vec<_>>() {
                schedule.open(build, place, Family::Route)?;
                sends.push(((place, Family::Route), batch));
            }
            sends.append(&mut managed);
            schedule.steps.push_back(Step { event, sends, writes });
        }
        enter(home)?;
        Ok(schedule)
    }

    fn add(
        &mut self,
        build: &mut Build,
        action: &'static Action,
        path_manager: Option<&GenericFamily>,
        managed: &mut Vec<((usize, Family), Batch)>,
        writes: &mut Vec<(&'static SetSysctl, File)>,
    ) -> Result<()> {
        let netns = match action {
            Action::ChangeLink(change) => return devices::change(build, &change.direction),
            Action::ChangeQdisc(change) => return qdiscs::change_qdisc(build, &change.qdisc),
            Action::SetDevice(device) => {
                links::set_device(build, device)?;
                return routing::add_routes(build, &device.routes);
            }
            Action::SetSysctl(set) => {
                enter(&build.namespace(&set.netns)?.fd)?;
                writes.push((set, open_sysctl(&set.path, &set.value)?));
                return Ok(());
            }
            _ => action.host().unwrap_or_default(),
        };
        let family = path_manager
            .ok_or_else(|| Error::new(format!("{netns} is not a host, so it has no path manager")))?;
        let place = build.index(netns)?;
        managed
            .extend(mptcp::event(build, action, family.id)?.map(|batch| ((place, Family::Generic), batch)));
        self.open(build, place, Family::Generic)
    }

    fn open(&mut self, build: &Build, place: usize, family: Family) -> Result<()> {
        if let Entry::Vacant(vacant) = self.sockets.entry((place, family)) {
            enter(&build.namespaces[place].fd)?;
            vacant.insert(Socket::open(family)?);
        }
        Ok(())
    }

    /// Start all traces at the trial's zero, in ns of `CLOCK_MONOTONIC`.
    pub fn start(&mut self, zero_ns: i64) -> Result<()> {
        for trace in std::mem::take(&mut self.traces) {
            let mut batch = Batch::default();
            trace.start(&mut batch, zero_ns);
            if let Some(socket) = self.sockets.get_mut(&(trace.place, Family::Route)) {
                socket.apply(batch)?;
            }
        }
        Ok(())
    }

    /// Return when the next event is due, in µs of the trial; None: there is none.
    pub fn next_us(&self) -> Option<i64> {
        self.steps.front().map(|step| step.event.t_us)
    }

    /// Carry out the next event if it is due by `t_us`, and return it.
    pub fn carry_out(&mut self, t_us: i64) -> Result<Option<&'static Event>> {
        if self.steps.front().is_none_or(|step| step.event.t_us > t_us) {
            return Ok(None);
        }
        let Some(step) = self.steps.pop_front() else { return Ok(None) };
        for (place, batch) in step.sends {
            if let Some(socket) = self.sockets.get_mut(&place) {
                socket.apply(batch).attempt(|| describe(step.event))?;
            }
        }
        for (set, file) in step.writes {
            file.write_all_at(set.value.as_bytes(), 0)
                .attempt(|| format!("setting sysctl {} to {:?}", set.path, set.value))
                .attempt(|| describe(step.event))?;
        }
        Ok(Some(step.event))
    }
}

fn describe(event: &Event) -> String {
    format!("event {} of {} at {} us", event.name, event.subject, event.t_us)
}
