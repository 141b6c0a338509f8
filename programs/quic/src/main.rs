//! Transfers and requests over QUIC, multipath QUIC, or TLS over TCP, to compare them in plait.
//!
//! `options` reads the command line, `exchange` is what both ends say, and `quic` and `tls` carry it.

mod exchange;
mod keys;
mod options;
mod quic;
mod report;
mod sockets;
mod tls;

use std::process::{self, ExitCode};
use std::thread;
use std::time::Duration;

use options::{Protocol, Role};

fn main() -> ExitCode {
    run().unwrap_or_else(|message| {
        eprintln!("plait-quic: {message}");
        ExitCode::FAILURE
    })
}

fn run() -> Result<ExitCode, String> {
    let Some(options) = options::parse(std::env::args_os().skip(1))? else {
        print!("{}", options::HELP);
        return Ok(ExitCode::SUCCESS);
    };
    limit(options.timeout);
    match (&options.role, options.protocol) {
        (Role::Server(at), Protocol::Tls) => tls::server(at),
        (Role::Client(paths), Protocol::Tls) => Ok(tls::client(&options, paths)),
        (Role::Server(at), _) => quic::server(&options, at),
        (Role::Client(paths), _) => quic::client(&options, paths),
    }
}

/// End the program a little after its time limit, whatever it waits for.
fn limit(timeout: Duration) {
    thread::spawn(move || {
        // A thread of its own, because it only waits: nothing else bounds a blocking system call.
        thread::sleep(timeout + Duration::from_secs(1));
        report::print(Vec::new(), Err(format!("it took longer than {timeout:?}; see --timeout")));
        process::exit(1);
    });
}
