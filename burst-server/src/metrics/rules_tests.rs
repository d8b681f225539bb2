//! `dist/prometheus.rules.yml` asks for series that there are, by labels that they have.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use burst_hal::ErrorStatus;

use super::tests::metrics;

/// Names of series with their labels' names and values, as the text has them.
type Series = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

fn series(text: &str) -> Series {
    let mut found = Series::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let entry = found.entry(name.to_owned()).or_default();
        for label in labels.trim_end_matches('}').split("\",").filter(|label| !label.is_empty()) {
            let (name, value) = label.split_once("=\"").unwrap();
            let value = value.trim_end_matches('"').to_owned();
            entry.entry(name.to_owned()).or_default().insert(value);
        }
    }
    found
}

/// The expressions of a file of rules, by the name of their rule.
fn rules(text: &str) -> Vec<(String, String)> {
    let mut rules = Vec::new();
    let mut name = None;
    for line in text.lines().map(str::trim) {
        if let Some(found) = line.strip_prefix("- record: ").or(line.strip_prefix("- alert: ")) {
            name = Some(found.to_owned());
        }
        if let Some(expression) = line.strip_prefix("expr: ") {
            rules.push((name.take().expect("a rule has one name"), expression.to_owned()));
        }
    }
    rules
}

/// What is wrong with an expression: a series, label or value that is not there, or a bracket that is not closed.
fn faults(expression: &str, series: &Series) -> Vec<String> {
    let mut faults = Vec::new();
    for (open, close) in [('(', ')'), ('[', ']'), ('{', '}')] {
        if expression.matches(open).count() != expression.matches(close).count() {
            faults.push(format!("{open} and {close}"));
        }
    }
    let is_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut labels: BTreeSet<String> = BTreeSet::from(["le".to_owned()]);
    let mut asked = 0;
    for (at, _) in expression.match_indices("burst_") {
        if expression[..at].ends_with(is_of_name) {
            continue;
        }
        asked += 1;
        let rest = &expression[at..];
        let name: String = rest.chars().take_while(|c| is_of_name(*c)).collect();
        let Some(known) = series.get(&name) else {
            faults.push(format!("no series {name}"));
            continue;
        };
        labels.extend(known.keys().cloned());
        let Some(selected) = rest[name.len()..].strip_prefix('{') else { continue };
        for label in selected.split('}').next().unwrap().split(',') {
            let (label, value) = label.split_once('=').unwrap();
            let value = value.trim_matches('"');
            let is_there =
                known.get(label.trim_end_matches('!')).is_some_and(|all| all.contains(value));
            if !is_there {
                faults.push(format!("no {label}={value} of {name}"));
            }
        }
    }
    if asked == 0 {
        faults.push("it asks for nothing".to_owned());
    }
    for grouped in expression.split("by (").skip(1) {
        for label in grouped.split(')').next().unwrap().split(", ") {
            if !labels.contains(label) {
                faults.push(format!("no label {label}"));
            }
        }
    }
    faults
}

#[test]
fn rules_ask_for_series_and_labels_that_there_are() {
    let metrics = metrics();
    let model = metrics.model_of(1, 1001, "cpu");
    model.socket().count(ErrorStatus::None, Some(5));
    let _user = metrics.users.find(1001);
    let there = series(&metrics.encode());
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../dist/prometheus.rules.yml");
    let rules = rules(&std::fs::read_to_string(file).unwrap());
    assert!(rules.len() >= 10, "{rules:?}");
    for (name, expression) in rules {
        assert_eq!(faults(&expression, &there), Vec::<String>::new(), "{name}: {expression}");
    }
    for (wrong, fault) in [
        ("rate(burst_request_total[5m])", "no series burst_request_total"),
        ("burst_sandbox_layer{layer=\"x\"}", "no layer=x of burst_sandbox_layer"),
        ("sum by (who) (burst_waiting_for_turn)", "no label who"),
        ("sum(burst_waiting_for_turn", "( and )"),
        ("up == 0", "it asks for nothing"),
    ] {
        assert_eq!(faults(wrong, &there), [fault], "{wrong}");
    }
}
