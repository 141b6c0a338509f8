//! The flows of Open vSwitch's datapaths at the end of a trial, each with the number of packets
//! that it forwarded.

use crate::apply::datapath::Switch;
use crate::error::Result;
use crate::tables::{Counter, Table};

/// Add a row for each flow in the kernel, also for those that matched no packet.
pub fn count(switches: &mut [Switch], table: &mut Table<Counter>) -> Result<()> {
    for switch in switches {
        for (flow, packets) in switch.flows()? {
            table.push(Counter {
                node: Some(switch.name.into()),
                counter: Some(format!("flow {flow}").into()),
                before: Some(0),
                after: Some(packets),
            })?;
        }
    }
    Ok(())
}
