//! PID 1 of plait's guest: it boots, makes the network of the plan, runs its traffic, samples it, writes the
//! tables, and turns the machine off, whatever happens on the way.

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
    // A panic in any thread ends the trial with its words; nothing is unwound, PID 1 has nobody to unwind to.
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

/// From the plan to complete tables; or only what the kernel has, when that was asked.
fn run() -> error::Result<()> {
    enter_phase("plan");
    status::reserve()?;
    let plan = boot::read_plan()?;
    enter_phase("modules");
    status::brought(modules::load(&plan.machine.modules)?);
    if inventory::is_asked_for() {
        return inventory::answer();
    }
    if session::is_asked_for() {
        return session::hold(plan);
    }
    let mut tables = trial::Tables::create(plan)?;
    let outcome = run_trial(plan, &mut tables);
    // Also what a failed trial has measured is completed, as far as it can be written.
    let finished = tables.finish();
    let (network, mut pauses) = outcome?;
    finished?;
    pauses.hold(PauseAt::After, &network)
}

/// Returns what stands when the trial is over: its network, and the pauses that are to come.
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
