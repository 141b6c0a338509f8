//! PID 1 of plait's guest. It boots, builds the network of the plan, runs and samples its traffic,
//! writes the tables, and always powers the machine off.

mod apply;
mod boot;
mod clock;
mod error;
mod inventory;
mod job;
mod join;
mod modules;
mod monitor;
mod netlink;
mod plan;
mod program;
mod sample;
mod session;
mod status;
mod sys;
mod tables;
mod traffic;
mod trial;

use plan::PauseAt;
use status::enter_phase;

fn main() {
    // A panic in any thread ends the trial and reports its message. Nothing unwinds, because PID 1
    // has no caller.
    std::panic::set_hook(Box::new(|panic| {
        status::write(Some(&format!("the agent panicked: {panic}")));
        boot::power_off();
    }));
    if let Err(error) = boot::prepare().and_then(|()| boot::mount_job()) {
        status::console(&error.to_string());
        boot::power_off();
    }
    let outcome = run();
    status::write(outcome.err().map(|error| error.to_string()).as_deref());
    boot::power_off();
}

/// Run the trial of the plan, a session, or an inventory.
fn run() -> error::Result<()> {
    enter_phase("plan");
    status::reserve()?;
    let plan = boot::read_plan()?;
    enter_phase("modules");
    status::brought(modules::load(&plan.machine.modules)?);
    if inventory::is_requested() {
        return inventory::answer();
    }
    if session::is_requested() {
        return session::hold(plan);
    }
    let mut tables = trial::Tables::create(plan)?;
    let outcome = run_trial(plan, &mut tables);
    // Complete the tables of a failed trial as well, as far as possible.
    let finished = tables.finish();
    let (network, mut pauses) = outcome?;
    finished?;
    pauses.hold(PauseAt::After, &network)
}

/// Run the trial. Return its network, which still exists, and the pauses that remain.
fn run_trial(
    plan: &'static plan::Plan,
    tables: &mut trial::Tables,
) -> error::Result<(apply::Applied, session::Pauses)> {
    enter_phase("network");
    let mut network = apply::apply(plan)?;
    if !plan.programs.is_empty() || !plan.pause.is_empty() {
        clock::leave_first_second()?;
    }
    let mut pauses = session::Pauses::prepare(plan)?;
    pauses.hold(PauseAt::Before, &network)?;
    enter_phase("traffic");
    let prepared = traffic::prepare(plan, &network)?;
    trial::run(plan, &mut network, prepared, tables)?;
    Ok((network, pauses))
}
