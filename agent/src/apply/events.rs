//! The plan's events as netlink messages, encoded before the trial begins: when the time comes, they are only sent.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::AsFd;

use super::{Build, enter, links, routing, shaping};
use crate::error::{Attempt, Result};
use crate::netlink::{Batch, Family, Socket};
use crate::plan::{Action, Event};

/// What is still to happen, in the order of time, and the sockets to make it happen.
pub struct Schedule {
    steps: VecDeque<Step>,
    /// One in each namespace that a step concerns, by the namespace's place.
    sockets: BTreeMap<usize, Socket>,
}

struct Step {
    event: &'static Event,
    sends: Vec<(usize, Batch)>,
}

impl Schedule {
    /// Encodes what each of `events` does. The calling thread ends in `home`.
    pub(super) fn prepare(build: &mut Build, events: &'static [Event], home: &impl AsFd) -> Result<Self> {
        let mut schedule = Self { steps: VecDeque::with_capacity(events.len()), sockets: BTreeMap::new() };
        for event in events {
            for action in &event.actions {
                add(build, action).attempt(|| what(event))?;
            }
            let sends: Vec<_> = build.take_batches().collect();
            for (place, _) in &sends {
                if !schedule.sockets.contains_key(place) {
                    enter(&build.namespaces[*place].fd)?;
                    schedule.sockets.insert(*place, Socket::open(Family::Route)?);
                }
            }
            schedule.steps.push_back(Step { event, sends });
        }
        enter(home)?;
        Ok(schedule)
    }

    /// When the next event happens.
    pub fn next_us(&self) -> Option<i64> {
        self.steps.front().map(|step| step.event.t_us)
    }

    /// Carries out the next event if its time has come by `t_us`, and returns it.
    pub fn carry_out(&mut self, t_us: i64) -> Result<Option<&'static Event>> {
        let Some(step) = self.steps.pop_front_if(|step| step.event.t_us <= t_us) else { return Ok(None) };
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
