//! The agent as MPTCP path manager: with `net.mptcp.pm_type` set to 1 it opens the subflows that
//! the plan lists for a flow. The kernel's path manager opens at most one per pair of addresses.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use netlink_bindings::mptcp_pm;

use crate::apply::{Applied, endpoint_flags, enter, push_endpoint_address};
use crate::error::Result;
use crate::netlink::{Family, Socket};
use crate::plan::{EndpointFlag, Flow, Join};
use crate::tables::Event;
use crate::traffic::Traffic;

/// The sockets that ask the clients' kernels for subflows, and the flows that need some.
pub struct Joiner {
    family: u16,
    sockets: BTreeMap<&'static str, Socket>,
    flows: BTreeMap<(&'static str, SocketAddr), &'static Flow>,
}

impl Joiner {
    /// Open a socket for each client with a flow that lists joins; none if no flow does.
    pub fn new(traffic: &Traffic, network: &Applied, family: u16) -> Result<Self> {
        let mut sockets = BTreeMap::new();
        let mut flows = BTreeMap::new();
        for flow in traffic.flows.iter().map(|flow| flow.plan).filter(|flow| !flow.joins.is_empty()) {
            let node = flow.client.netns.as_str();
            if !sockets.contains_key(node) {
                enter(&network.namespace(node)?.fd)?;
                sockets.insert(node, Socket::open(Family::Generic)?);
            }
            flows.insert((node, SocketAddr::new(flow.server.address, flow.server.port)), flow);
        }
        if !sockets.is_empty() {
            enter(&network.home)?;
        }
        Ok(Self { family, sockets, flows })
    }

    /// Open the flow's subflows, one after the other, after the connection `token` of `node` to
    /// `server` is established.
    ///
    /// If the kernel refuses a subflow, the agent records an event (`join_failed`) and writes the
    /// reason to the console.
    pub fn established(
        &mut self,
        node: &'static str,
        token: i64,
        server: SocketAddr,
        t_us: i64,
        traffic: &Traffic,
    ) {
        let lookup = (self.flows.get(&(node, server)), self.sockets.get_mut(node), u32::try_from(token));
        let (Some(flow), Some(socket), Ok(number)) = lookup else { return };
        for join in &flow.joins {
            for _ in 0..join.count {
                let request = create(join, number, server.port());
                if let Err(error) = socket.ask(&request, self.family, |_| ()) {
                    let Join { client_address, server_address, .. } = join;
                    crate::status::console(&format!(
                        "{node}: opening a subflow from {client_address} to {server_address}: {error}"
                    ));
                    traffic.events.push(Event {
                        flow: Some(flow.id),
                        token: Some(token),
                        local_id: Some(join.id.into()),
                        local_address: Some(client_address.to_string().into()),
                        remote_address: Some(server_address.to_string().into()),
                        remote_port: Some(server.port().into()),
                        ..Event::at(t_us, node, "join_failed")
                    });
                }
            }
        }
    }
}

fn create(join: &Join, token: u32, port: u16) -> mptcp_pm::OpSubflowCreateDo<'static> {
    let mut request = mptcp_pm::Request::new().op_subflow_create_do();
    {
        let flags: &[_] = if join.backup { &[EndpointFlag::Backup] } else { &[] };
        let local = request.encode().push_token(token).nested_addr().push_id(join.id);
        let local = local.push_flags(endpoint_flags(flags));
        let remote = push_endpoint_address(local, join.client_address).end_nested().nested_addr_remote();
        drop(push_endpoint_address(remote.push_port(port), join.server_address));
    }
    request
}
