//! The importer's table of types against the specification's list.

use std::collections::BTreeSet;
use std::path::Path;

use burst_hal::{OperandType, OperationType};
use burst_testing::shared;

#[path = "../../src/main_types.rs"]
mod table;
use table::main_types;

burst_testing::tests![types_are_those_of_the_specification(&shared("spec/operations.json")?)];

fn types_are_those_of_the_specification(list: &Path) {
    let text = std::fs::read(list).expect("a readable list");
    let specification: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    for row in specification.as_array().expect("a list") {
        let operation = OperationType::from_name(row["name"].as_str().expect("a name"));
        let operation = operation.expect("a known operation");
        let ours: BTreeSet<_> = main_types(operation).iter().copied().collect();
        if ours.is_empty() {
            continue;
        }
        let types = &row["inputs"][0]["types"];
        let theirs: BTreeSet<_> = types
            .as_object()
            .expect("types by version")
            .values()
            .flat_map(|list| list.as_array().expect("a list"))
            .filter_map(|name| OperandType::from_name(name.as_str().expect("a name")))
            .collect();
        let unknown: Vec<_> = ours.difference(&theirs).collect();
        assert!(unknown.is_empty(), "{operation}: {unknown:?} are not in the specification");
        // CAST of further types is the identity, which no file has.
        if operation != OperationType::Cast {
            assert_eq!(ours, theirs, "{operation}");
        }
    }
}
