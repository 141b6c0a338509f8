//! The applications: one thread per side of a flow, which sleeps in the kernel while data move.
//!
//! A return to user space costs about 50 us of wall time in the guest. Senders therefore pass
//! hundreds of megabytes to the kernel at once, and receivers ask for a gigabyte at once. A flow of
//! ten seconds takes a handful of system calls.

mod application;
mod datagrams;
mod draw;
mod flow;
mod kinds;
mod loading;
mod messages;
mod priority;
mod side;
mod sockets;
mod state;
mod threads;

use std::sync::Arc;

pub use application::{fail, wait_to_begin};
pub use flow::FlowState;
pub use kinds::Kind;
pub use priority::Priorities;
pub use sockets::{Prepared, prepare};
pub use state::{Begun, Traffic};

use sockets::Sockets;
use threads::spawn;

use crate::clock::{Bell, Latch};
use crate::error::Result;
use crate::plan::Plan;
use crate::shared::Shared;

/// Start the threads of all flows. Each client sleeps until its start.
pub fn start(prepared: Vec<Prepared>, plan: &'static Plan) -> Result<Arc<Traffic>> {
    let programs = &plan.programs;
    let flows = prepared.iter().map(|p| FlowState::new(p.flow)).collect();
    let traffic = Arc::new(Traffic {
        bell: Bell::default(),
        flows,
        events: Shared::default(),
        priorities: Shared::default(),
        closed: Shared::default(),
        begun: Shared::default(),
        reported_subflows: Shared::default(),
        reported_connections: Shared::default(),
        secret: plan.seed,
        programs: programs.iter().map(|program| (program.name.as_str(), Latch::default())).collect(),
        program_nodes: plan.nodes_with_programs(),
    });
    for (index, Prepared { sockets, .. }) in prepared.into_iter().enumerate() {
        let (server_side, client_side) = (Arc::clone(&traffic), Arc::clone(&traffic));
        match sockets {
            Sockets::Connection { listener, client } => {
                if let Some(listener) = listener {
                    spawn(move || application::serve(&server_side, &server_side.flows[index], &listener))?;
                }
                if let Some(client) = client {
                    spawn(move || application::connect(&client_side, &client_side.flows[index], client))?;
                }
            }
            Sockets::Datagrams(mut sockets) => {
                let sender = traffic.flows[index].plan.sender;
                if let Some(socket) = sockets[sender.other().place()].take() {
                    spawn(move || {
                        datagrams::receive_datagrams(&server_side, &server_side.flows[index], socket);
                    })?;
                }
                if let Some(socket) = sockets[sender.place()].take() {
                    spawn(move || {
                        datagrams::send_datagrams(&client_side, &client_side.flows[index], socket);
                    })?;
                }
            }
            Sockets::Shared | Sockets::OfProgram => {}
        }
    }
    Ok(traffic)
}
