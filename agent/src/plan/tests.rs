//! The plan's contract agrees with the Python side.

use std::collections::{BTreeMap, BTreeSet};

use super::*;

/// Read the records of the Python package `plait.plan.model`: for each class the names of its
/// fields.
fn python_records() -> BTreeMap<String, BTreeSet<String>> {
    let read = |name| {
        let path = format!("{}/../src/plait/plan/model/{name}.py", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    let source = read("plan")
        + &read("mptcp")
        + &read("forwarding")
        + &read("applications")
        + &read("monitors")
        + &read("programs")
        + &read("qdiscs");
    let mut records: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    let mut class = String::new();
    // Every other piece between triple quotes is a docstring.
    let code: String = source.split("\"\"\"").step_by(2).collect();
    for line in code.lines() {
        if let Some(name) = line.strip_prefix("class ").and_then(|rest| rest.strip_suffix("(Record):")) {
            class = name.to_owned();
            records.insert(class.clone(), BTreeSet::new());
        } else if let Some((name, _)) = line.strip_prefix("    ").and_then(|rest| rest.split_once(": "))
            && name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
            && let Some(fields) = records.get_mut(&class)
        {
            fields.insert(if name == "schema_version" { "schema" } else { name }.to_owned());
        }
    }
    records
}

#[test]
fn both_sides_of_the_contract_have_the_same_fields() {
    let mut python = python_records();
    let applications = [
        "Bulk",
        "Transfer",
        "Stream",
        "OnOff",
        "Request",
        "Page",
        "PageConnection",
        "Udp",
        "Prototype",
        "Connection",
    ];
    let qdisc_kinds = ["Netem", "Tbf", "Pfifo", "Bfifo", "Red", "PlaitRed", "Codel", "FqCodel", "PlaitTrace"];
    let actions = [
        "ChangeQdisc",
        "SetDevice",
        "AddEndpoint",
        "ChangeEndpoint",
        "RemoveEndpoint",
        "SetLimits",
        "SetSysctl",
    ];
    for kind in actions.into_iter().chain(qdisc_kinds).chain(applications) {
        // Here the enum around the record holds the discriminator.
        python.get_mut(kind).unwrap().remove("kind");
    }
    let rust: BTreeMap<_, BTreeSet<_>> = [
        applications::RECORDS,
        events::RECORDS,
        forwarding::RECORDS,
        monitors::RECORDS,
        mptcp::RECORDS,
        network::RECORDS,
        plan::RECORDS,
        programs::RECORDS,
        qdiscs::RECORDS,
    ]
    .into_iter()
    .flatten()
    .map(|(name, fields)| {
        ((*name).to_owned(), fields.iter().map(|field| field.trim_start_matches("r#").to_owned()).collect())
    })
    .collect();
    assert_eq!(python, rust);
}

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
