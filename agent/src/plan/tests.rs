//! What the agent makes of a plan's text.

use super::*;

fn minimal(flow: &str) -> String {
    format!(
        r#"{{"schema": 1, "seed": 1, "machine": {{}}, "sample_interval_us": 100000, "end_us": 1,
            "network": {{"namespaces": [], "veths": []}}, "links": [], "flows": [{flow}]}}"#
    )
}

fn flow(sizes: &str) -> String {
    let side = r#"{"netns": "h", "address": "10.0.0.1", "port": 1}"#;
    minimal(&format!(
        r#"{{"id": 0, "name": "f", "application": {{"kind": "transfer"{sizes}}}, "transport": "tcp", "client": {side},
            "server": {side}, "sender": "client", "start_us": 0, "paths": [], "ideal_rate_bps": null}}"#
    ))
}

#[test]
fn defaults_may_be_left_out() {
    let plan = parse(minimal("").as_bytes()).unwrap();
    assert_eq!((plan.machine.memory_mib, plan.network.routes.len()), (256, 0));
}

#[test]
fn an_unknown_field_is_refused_by_name() {
    let json = minimal("").replace("\"seed\": 1", "\"seed\": 1, \"sed\": 2");
    assert!(parse(json.as_bytes()).unwrap_err().to_string().contains("unknown field `sed`"));
    let qdisc = r#"{"kind": "pfifo", "limit_packets": 1, "limit_bytes": 2}"#;
    assert!(serde_json::from_str::<QdiscOptions>(qdisc).is_err());
}

#[test]
fn another_schema_is_refused() {
    let json = minimal("").replace("\"schema\": 1", "\"schema\": 2");
    assert!(parse(json.as_bytes()).unwrap_err().to_string().contains("this agent reads 1"));
}

#[test]
fn events_out_of_order_are_refused() {
    let event =
        |t_us: u32| format!(r#"{{"t_us": {t_us}, "name": "n", "subject": "s", "text": "", "actions": []}}"#);
    let plan =
        |events: String| minimal("").replace("\"flows\"", &format!("\"events\": [{events}], \"flows\""));
    assert!(parse(plan([event(1), event(1), event(2)].join(",")).as_bytes()).is_ok());
    assert!(parse(plan([event(2), event(1)].join(",")).as_bytes()).is_err());
}

#[test]
fn a_transfer_needs_its_size() {
    assert!(parse(flow("").as_bytes()).is_err());
    assert!(parse(flow(r#", "bytes": 5"#).as_bytes()).is_ok());
    let file = r#", "file": {"name": "f", "bytes": 5, "sha256": "00"}"#;
    assert!(parse(flow(&format!("{file}, \"bytes\": 5")).as_bytes()).is_ok());
    assert!(parse(flow(&format!("{file}, \"bytes\": 6")).as_bytes()).is_err());
}

#[test]
fn an_application_needs_a_transport_that_suits_it() {
    let over = |transport: &str| flow(r#", "bytes": 5"#).replace(r#""tcp""#, &format!("\"{transport}\""));
    for (transport, suits) in [("tcp", true), ("mptcp", true), ("udp", false), ("prototype", false)] {
        assert_eq!(parse(over(transport).as_bytes()).is_ok(), suits, "{transport}");
    }
}
