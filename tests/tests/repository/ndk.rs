//! `docs/NDK.md` names every exported function once, with tests that there are and that call it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use burst_tests::repository;

use super::documents::{fault_of_test, tests_of};

/// How the table of functions begins.
const HEADING: &str = "| functions | mistakes in the table | test |";

/// The rows of the table of functions: the functions that a row names, and its tests.
fn rows(text: &str) -> Vec<(Vec<&str>, &str)> {
    let lines = text.lines().skip_while(|line| *line != HEADING).skip(2);
    let lines = lines.take_while(|line| line.starts_with('|'));
    let row = |line| -> Option<(Vec<&str>, &str)> {
        let cells: Vec<&str> = <str>::trim_matches(line, '|').split('|').collect();
        let [functions, _, tests] = cells.as_slice() else { return None };
        Some((functions.split('`').skip(1).step_by(2).collect(), *tests))
    };
    lines.filter_map(row).collect()
}

/// What is wrong with a table of functions, where these are exported and the sources of the client are these:
/// name and text.
fn faults(root: &Path, text: &str, exported: &BTreeSet<&str>, client: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut named: BTreeMap<&str, usize> = BTreeMap::new();
    for (functions, cell) in rows(text) {
        let tests = tests_of(cell);
        if tests.is_empty() {
            faults.push(format!("{cell}: a row without a test"));
        }
        faults.extend(
            tests.iter().filter_map(|(file, name)| fault_of_test(root, file, name.as_deref())),
        );
        for function in functions {
            *named.entry(function).or_default() += 1;
        }
    }
    for (name, count) in &named {
        if !exported.contains(name) {
            faults.push(format!("{name} is not exported"));
        }
        if *count > 1 {
            faults.push(format!("{name} stands in {count} rows"));
        }
    }
    for name in exported {
        if !named.contains_key(name) {
            faults.push(format!("{name} stands in no row"));
        }
        let is_used = client.match_indices(name).any(|(at, _)| {
            let behind = client[at + name.len()..].chars().next();
            behind.is_none_or(|next| !next.is_alphanumeric())
        });
        if !is_used {
            faults.push(format!("no test calls {name}"));
        }
    }
    faults
}

/// All sources of the client in C.
fn client(root: &Path) -> String {
    let entries = fs::read_dir(root.join("runtime/tests/client")).expect("the client").flatten();
    let sources = entries.map(|entry| entry.path());
    let sources = sources.filter(|path| path.extension().is_some_and(|ending| ending == "c"));
    sources.map(|path| fs::read_to_string(path).expect("a text")).collect()
}

#[test]
fn every_exported_function_has_its_row_and_its_test() {
    let root = repository();
    let text = fs::read_to_string(root.join("docs/NDK.md")).expect("docs/NDK.md");
    let exports = fs::read_to_string(root.join("runtime/exports.txt")).expect("exports.txt");
    let exported: BTreeSet<&str> =
        exports.lines().filter_map(|line| line.split_once(' ')).map(|(_, name)| name).collect();
    assert!(exported.len() > 70, "the list is read: {}", exported.len());
    let faults = faults(&root, &text, &exported, &client(&root));
    assert!(faults.is_empty(), "docs/NDK.md: {faults:#?}");
}

#[test]
fn a_function_without_its_row_or_its_test_is_found_out() {
    let here = "tests/tests/repository/ndk.rs::every_exported_function_has_its_row_and_its_test";
    let exported = BTreeSet::from(["NeuralNetworks_one", "NeuralNetworks_two"]);
    let client = "NeuralNetworks_one(); NeuralNetworks_two();";
    for (row, calls, want) in [
        (format!("| `NeuralNetworks_one` `NeuralNetworks_two` | null | `{here}` |"), client, None),
        (
            format!("| `NeuralNetworks_one` | null | `{here}` |"),
            client,
            Some("NeuralNetworks_two stands in no row"),
        ),
        (
            format!("| `NeuralNetworks_one` `NeuralNetworks_two` | null | `{here}` |"),
            "NeuralNetworks_one(); NeuralNetworks_twofold();",
            Some("no test calls NeuralNetworks_two"),
        ),
        (
            format!(
                "| `NeuralNetworks_one` `NeuralNetworks_two` `NeuralNetworks_three` | null | `{here}` |"
            ),
            client,
            Some("NeuralNetworks_three is not exported"),
        ),
        (
            format!(
                "| `NeuralNetworks_one` `NeuralNetworks_two` `NeuralNetworks_one` | null | `{here}` |"
            ),
            client,
            Some("NeuralNetworks_one stands in 2 rows"),
        ),
        (
            "| `NeuralNetworks_one` `NeuralNetworks_two` | null | by hand |".to_owned(),
            client,
            Some("a row without a test"),
        ),
        (
            format!("| `NeuralNetworks_one` `NeuralNetworks_two` | null | `{here}_else` |"),
            client,
            Some("has no every_exported_function_has_its_row_and_its_test_else"),
        ),
    ] {
        let text = format!("{HEADING}\n|---|---|---|\n{row}\n");
        let faults = faults(&repository(), &text, &exported, calls);
        match want {
            None => assert!(faults.is_empty(), "{row}: {faults:?}"),
            Some(want) => assert!(faults.concat().contains(want), "{row}: {faults:?}"),
        }
    }
}
