//! Web pages: a document, and objects that several connections request after it.

use super::Kind;
use super::request::{answer, finish, receive_answer, send_request};
use crate::clock;
use crate::plan::{Application, Flow, Page, PageConnection};
use crate::traffic::flow::FlowState;
use crate::traffic::side::FlowSide;
use crate::traffic::state::Traffic;

impl Kind for Page {
    fn has_messages(&self) -> bool {
        true
    }

    fn send(&self, side: &mut FlowSide<'_>) -> Result<(), String> {
        answer(self.request_bytes, side)
    }

    fn receive(&self, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
        load(self, side.flow, side)
    }
}

impl Kind for PageConnection {
    fn check(&self, earlier: &[Flow]) -> Result<(), &'static str> {
        let page = usize::try_from(self.page).ok().and_then(|id| earlier.get(id));
        page.and_then(page_of).map(drop).ok_or("it refers to no earlier page")
    }

    fn has_messages(&self) -> bool {
        true
    }

    /// Wait for the document.
    fn wait(&self, traffic: &Traffic) -> Option<i64> {
        Some(traffic.flow(self.page).loading.document.wait())
    }

    fn send(&self, side: &mut FlowSide<'_>) -> Result<(), String> {
        let page = page_of(side.traffic.flow(self.page).plan);
        page.map_or(Ok(()), |page| answer(page.request_bytes, side))
    }

    fn receive(&self, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
        let first = side.traffic.flow(self.page);
        page_of(first.plan).map_or(Ok(None), |page| load(page, first, side))
    }
}

fn page_of(flow: &Flow) -> Option<&Page> {
    match &flow.application {
        Application::Page(page) => Some(page),
        _ => None,
    }
}

/// Load the remaining objects of a page over one of its connections. The first connection begins
/// with the document.
fn load(page: &Page, first: &FlowState, side: &mut FlowSide<'_>) -> Result<Option<i64>, String> {
    let is_first = first.plan.id == side.flow.plan.id;
    let mut now_ns = clock::trial_ns();
    while let Some(number) = first.loading.take(page.objects.len()) {
        let bytes = page.objects[number];
        first.messages().sent_as(number, now_ns.div_euclid(1000), bytes)?;
        send_request(page.request_bytes, bytes, side.socket)?;
        now_ns = receive_answer(side, number, first, bytes)?;
        if is_first && number == 0 {
            first.loading.document.set(now_ns.div_euclid(1000));
            side.traffic.bell.ring();
        }
    }
    finish(side.socket)?;
    Ok(Some(now_ns.div_euclid(1000)))
}
