//! The plan's events as netlink messages, encoded before the trial begins: when the time comes, they are only sent.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;

use super::{Build, enter, links, routing, shaping, traces};
use crate::error::{Attempt, Result};
use crate::netlink::{Batch, Family, Socket};
use crate::plan::{Action, Event};

/// What is still to happen, in the order of time, and the sockets to make it happen.
pub struct Schedule {
    steps: VecDeque<Step>,
    /// One in each namespace that a step concerns, by the namespace's place.
    sockets: BTreeMap<usize, Socket>,
    traces: Vec<traces::Waiting>,
}

struct Step {
    event: &'static Event,
    sends: Vec<(usize, Batch)>,
}

impl Schedule {
    /// Encodes what each of `events` does. The calling thread ends in `home`.
    pub(super) fn prepare(build: &mut Build, events: &'static [Event], home: &impl AsFd) -> Result<Self> {
        let traces = std::mem::take(&mut build.traces);
        let steps = VecDeque::with_capacity(events.len());
        let mut schedule = Self { steps, sockets: BTreeMap::new(), traces };
        for place in schedule.traces.iter().map(|trace| trace.place).collect::<Vec<_>>() {
            schedule.open(build, place)?;
        }
        for event in events {
            for action in &event.actions {
                add(build, action).attempt(|| what(event))?;
            }
            let sends: Vec<_> = build.take_batches().collect();
            for (place, _) in &sends {
                schedule.open(build, *place)?;
            }
            schedule.steps.push_back(Step { event, sends });
        }
        enter(home)?;
        Ok(schedule)
    }

    fn open(&mut self, build: &Build, place: usize) -> Result<()> {
        if let Entry::Vacant(vacant) = self.sockets.entry(place) {
            enter(&build.namespaces[place].fd)?;
            vacant.insert(Socket::open(Family::Route)?);
        }
        Ok(())
    }

    /// Lets all traces begin at the trial's zero, in ns of `CLOCK_MONOTONIC`.
    pub fn start(&mut self, zero_ns: i64) -> Result<()> {
        for trace in std::mem::take(&mut self.traces) {
            let mut batch = Batch::default();
            trace.start(&mut batch, zero_ns);
            if let Some(socket) = self.sockets.get_mut(&trace.place) {
                socket.apply(batch)?;
            }
        }
        Ok(())
    }

    /// When the next event happens.
    pub fn next_us(&self) -> Option<i64> {
        self.steps.front().map(|step| step.event.t_us)
    }

    /// Carries out the next event if its time has come by `t_us`, and returns it.
    pub fn carry_out(&mut self, t_us: i64) -> Result<Option<&'static Event>> {
        if self.steps.front().is_none_or(|step| step.event.t_us > t_us) {
            return Ok(None);
        }
        let Some(step) = self.steps.pop_front() else { return Ok(None) };
        for (place, batch) in step.sends {
            if let Some(socket) = self.sockets.get_mut(&place) {
                socket.apply(batch).attempt(|| what(step.event))?;
            }
        }
        Ok(Some(step.event))
    }
}

fn what(event: &Event) -> String {
    format!("event {} of {} at {} us", event.name, event.subject, event.t_us)
}

fn add(build: &mut Build, action: &'static Action) -> Result<()> {
    match action {
        Action::ChangeQdisc(change) => shaping::change_qdisc(build, &change.qdisc),
        Action::SetDevice(device) => {
            links::set_device(build, device)?;
            routing::add_routes(build, &device.routes)
        }
    }
}
