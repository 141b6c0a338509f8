//! The program that carries out a plan: it builds the network, runs and samples its traffic, and
//! writes the tables.
//!
//! As PID 1 of a guest it boots first, and always powers the machine off. With `--job DIR` it is an
//! ordinary process (`process`). With `--settings` it changes settings of a real host (`settings`).

mod apply;
mod boot;
mod clock;
mod error;
mod inventory;
mod job;
mod join;
mod machine;
mod modules;
mod monitor;
mod netlink;
mod plan;
mod process;
mod program;
mod sample;
mod session;
mod settings;
mod shared;
mod status;
mod sys;
mod tables;
mod traffic;
mod trial;

use plan::PauseAt;
use status::enter_phase;

fn main() {
    let line = || std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    if let Some(code) = settings::requested(line()) {
        std::process::exit(code);
    }
    // A panic in any thread ends the trial and reports its message. Nothing unwinds, because PID 1
    // has no caller.
    std::panic::set_hook(Box::new(|panic| {
        end(Some(&format!("the agent panicked: {panic}")));
    }));
    match process::arguments(line()) {
        Ok(Some(arguments)) => process::run(arguments, run),
        Ok(None) => run_guest(),
        Err(error) => {
            status::console(&error.to_string());
            std::process::exit(2);
        }
    }
}

/// Report the outcome, and end the process or the machine. None: success.
fn end(error: Option<&str>) -> ! {
    if process::is_ordinary() {
        process::end(error);
    }
    status::write(error);
    boot::power_off()
}

/// Boot the guest, and carry out its job.
fn run_guest() -> ! {
    if let Err(error) = boot::prepare().and_then(|()| boot::mount_job()) {
        status::console(&error.to_string());
        boot::power_off();
    }
    if machine::is_this_one() {
        clock::let_computing_take_time();
    }
    let outcome = run();
    end(outcome.err().map(|error| error.to_string()).as_deref())
}

/// Run the trial of the plan, a session, or an inventory.
fn run() -> error::Result<()> {
    enter_phase("plan");
    status::reserve()?;
    let plan = boot::read_plan()?;
    enter_phase("modules");
    if !plan.machine.modules.is_empty() {
        process::require_guest("a kernel module")?;
    }
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
    boot::log_everything()?;
    let mut pauses = session::Pauses::prepare(plan)?;
    pauses.hold(PauseAt::Before, &network)?;
    enter_phase("traffic");
    let prepared = traffic::prepare(plan, &network)?;
    trial::run(plan, &mut network, prepared, tables)?;
    Ok((network, pauses))
}
