//! What the shared object exports, read from its file.

use std::collections::BTreeSet;

use burst_testing::{Missing, SharedObject};

use crate::library_folder;

burst_testing::tests![
    exactly_the_listed_functions_are_exported_under_their_versions(library()?),
    the_library_has_its_name_and_stays_loaded(library()?),
];

fn library() -> Result<SharedObject, Missing> {
    SharedObject::read(&library_folder().join("libneuralnetworks.so"))
}

fn exactly_the_listed_functions_are_exported_under_their_versions(library: SharedObject) {
    let list = include_str!("../../exports.txt");
    let listed: BTreeSet<String> = list.lines().map(str::to_owned).collect();
    assert_eq!(library.exported(), listed);
}

fn the_library_has_its_name_and_stays_loaded(library: SharedObject) {
    assert_eq!(library.name().as_deref(), Some("libneuralnetworks.so"));
    assert!(library.stays_loaded(), "it may be unloaded");
}
