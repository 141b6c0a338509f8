//! The messages of a flow, for the table `messages`.

use crate::plan::Flow;
use crate::tables;

/// Limit on the messages of a flow, which the agent records one by one. More end the flow with an
/// error.
const MOST: usize = 2_000_000;

/// One message: when it was due, and when it arrived. A sender on another machine knows the former.
#[derive(Debug, Clone, Copy)]
struct Message {
    sent_us: Option<i64>,
    received_us: Option<i64>,
    bytes: u64,
    copies: u32,
}

/// Refuse more messages than the agent records.
fn check(count: usize) -> Result<(), String> {
    if count <= MOST {
        return Ok(());
    }
    Err(format!("it has more than {MOST} messages, the most that the agent records"))
}

/// The messages of one flow, by number. Those of pages come in any order.
#[derive(Debug, Default)]
pub struct Messages(Vec<Option<Message>>);

impl Messages {
    /// Record that the next message was due at a time.
    pub fn sent(&mut self, sent_us: i64, bytes: u64) -> Result<usize, String> {
        self.sent_as(self.0.len(), sent_us, bytes)
    }

    /// Record that message `number` was due at a time.
    pub fn sent_as(&mut self, number: usize, sent_us: i64, bytes: u64) -> Result<usize, String> {
        check(number + 1)?;
        if number >= self.0.len() {
            self.0.resize(number + 1, None);
        }
        self.0[number] = Some(Message { sent_us: Some(sent_us), received_us: None, bytes, copies: 0 });
        Ok(number)
    }

    /// Expect messages `0..count` of `bytes` bytes from a sender on another machine.
    pub fn expect(&mut self, count: usize, bytes: u64) -> Result<(), String> {
        check(count)?;
        self.0 = vec![Some(Message { sent_us: None, received_us: None, bytes, copies: 0 }); count];
        Ok(())
    }

    /// Record the next message, with the times that this machine knows.
    pub fn add(&mut self, sent_us: Option<i64>, received_us: Option<i64>, bytes: u64) -> Result<(), String> {
        check(self.0.len() + 1)?;
        let copies = u32::from(received_us.is_some());
        self.0.push(Some(Message { sent_us, received_us, bytes, copies }));
        Ok(())
    }

    /// Record that message `number` arrived. Return true the first time, which is the one that
    /// counts.
    pub fn received(&mut self, number: usize, t_us: i64) -> bool {
        let Some(Some(message)) = self.0.get_mut(number) else { return false };
        message.copies += 1;
        let first = message.received_us.is_none();
        message.received_us = message.received_us.or(Some(t_us));
        first
    }

    /// Return the rows of the table, in order.
    pub fn rows<'a>(&'a self, flow: &'a Flow, datagrams: bool) -> impl Iterator<Item = tables::Message> + 'a {
        self.0.iter().enumerate().filter_map(move |(number, message)| {
            let message = message.as_ref()?;
            Some(tables::Message {
                flow: Some(flow.id),
                index: i64::try_from(number).ok(),
                sent_us: message.sent_us,
                received_us: message.received_us,
                bytes: i64::try_from(message.bytes).ok(),
                copies: datagrams.then_some(i64::from(message.copies)),
            })
        })
    }
}
