//! The kinds of traffic: each file has all that the agent needs of one kind, beside its job in the
//! plan. `tools/contract.py` makes the registry, [`Application::job`](crate::plan::Application::job).

mod bulk;
mod on_off;
mod page;
mod program;
mod prototype;
mod request;
mod stream;
mod transfer;
mod udp;

use super::side::FlowSide;
use super::state::Traffic;
use crate::plan::{Flow, Transport};

/// The behaviour of one kind of traffic. The defaults suit a kind that sends a stream of unknown
/// length over TCP or MPTCP.
pub trait Kind: Sync {
    /// Check what the types of the plan cannot express; `earlier` are the flows before this one.
    fn check(&self, _earlier: &[Flow]) -> Result<(), &'static str> {
        Ok(())
    }

    /// Whether flows of this kind can use a transport.
    fn suits(&self, transport: Transport) -> bool {
        matches!(transport, Transport::Tcp | Transport::Mptcp)
    }

    /// Whether each message has a row in the table of messages.
    fn has_messages(&self) -> bool {
        false
    }

    /// Check, before the trial, that this machine has what the kind needs.
    fn prepare(&self) -> crate::error::Result<()> {
        Ok(())
    }

    /// Wait for another flow, and return when this one begins, in µs of the trial. None: it begins as
    /// its plan says.
    fn wait(&self, _traffic: &Traffic) -> Option<i64> {
        None
    }

    /// Send the data of the flow.
    fn send(&self, _side: &mut FlowSide<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Receive until the flow ends. Return when the last byte arrived, in µs of the trial, if that is
    /// known and ends the flow.
    fn receive(&self, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
        side.receive_anything(None)
    }

    /// Return how long a sender at a planned rate sends, in µs.
    fn sends_us(&self) -> Option<i64> {
        None
    }

    /// Return the time from the beginning of a flow to its planned end, in µs; None: it has none.
    fn lasts_us(&self) -> Option<i64> {
        None
    }

    /// Whether the flow ends with the trial's last other flow.
    fn is_background(&self) -> bool {
        false
    }

    /// Whether the received bytes of the flow are those that the kernel had received in order at its
    /// end.
    fn is_cut_off(&self) -> bool {
        false
    }

    /// Return the congestion control, if the kind has one of its own.
    fn congestion_control(&self) -> Option<&'static str> {
        None
    }
}
