//! The output files of a trial.

use std::path::PathBuf;

use crate::error::{Attempt, Result};
use crate::job;
use crate::monitor::Monitors;
use crate::plan::Plan;
use crate::sample::programs::ProgramTables;
use crate::sample::{flows, links};
use crate::tables::{self, Table};

/// The folder of the tables.
pub(super) fn data_folder() -> PathBuf {
    job::folder().join("data")
}

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
}

impl Tables {
    /// Create the files below /job/data.
    pub fn create(plan: &'static Plan) -> Result<Self> {
        let folder = data_folder();
        std::fs::create_dir_all(&folder).attempt(|| "creating the folder for the tables")?;
        Ok(Self {
            flows: Table::create(&folder)?,
            events: Table::create(&folder)?,
            messages: plan
                .flows
                .iter()
                .any(|flow| flow.application.job().has_messages())
                .then(|| Table::create(&folder))
                .transpose()?,
            counters: Table::create(&folder)?,
            samples: flows::Sampler::create(&folder, plan.flows.len())?,
            links: links::Sampler::create(&folder, plan)?,
            monitors: Monitors::create(job::folder(), plan)?,
            programs: ProgramTables::create(&folder, plan)?,
        })
    }

    /// Write the pending rows.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.events.flush()?;
        self.samples.flush()?;
        self.links.flush()?;
        self.programs.as_mut().map_or(Ok(()), ProgramTables::flush)?;
        self.monitors.flush()
    }

    /// Complete all files.
    pub fn finish(self) -> Result<()> {
        self.flows.finish()?;
        self.events.finish()?;
        self.messages.map_or(Ok(()), Table::finish)?;
        self.counters.finish()?;
        self.samples.finish()?;
        self.links.finish()?;
        self.programs.map_or(Ok(()), ProgramTables::finish)?;
        self.monitors.finish()
    }
}
