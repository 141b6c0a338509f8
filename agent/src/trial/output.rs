//! The output files of a trial.

use crate::error::{Attempt, Result};
use crate::job;
use crate::monitor::Monitors;
use crate::plan::Plan;
use crate::sample::programs::ProgramTables;
use crate::sample::{flows, links};
use crate::tables::{self, Table, TableSet};

/// All tables of the trial. The agent creates them first, so a failed trial also leaves its tables
/// with their columns.
pub struct Tables {
    pub(super) flows: Table<tables::Flow>,
    pub(super) events: Table<tables::Event>,
    pub(super) messages: Option<Table<tables::Message>>,
    pub(super) counters: Table<tables::Counter>,
    pub(super) samples: flows::Sampler,
    pub(super) links: links::Sampler,
    pub(super) monitors: Monitors,
    pub(super) programs: Option<ProgramTables>,
    pub(super) set: TableSet,
}

impl Tables {
    /// Create the files below /job/data.
    pub fn create(plan: &'static Plan) -> Result<Self> {
        let folder = job::folder().join("data");
        std::fs::create_dir_all(&folder).attempt(|| "creating the folder for the tables")?;
        let set = TableSet::new(folder);
        let has_messages = plan.flows.iter().any(|flow| flow.application.job().has_messages());
        Ok(Self {
            flows: Table::create(&set)?,
            events: Table::create(&set)?,
            messages: has_messages.then(|| Table::create(&set)).transpose()?,
            counters: Table::create(&set)?,
            samples: flows::Sampler::create(&set, plan.flows.len())?,
            links: links::Sampler::create(&set, plan)?,
            monitors: Monitors::create(&set, job::folder(), plan)?,
            programs: ProgramTables::create(&set, plan)?,
            set,
        })
    }

    /// Write the pending rows and packets.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.monitors.flush()?;
        self.set.flush()
    }

    /// Complete all files.
    pub fn finish(self) -> Result<()> {
        let monitored = self.monitors.finish();
        self.set.finish()?;
        monitored
    }
}
