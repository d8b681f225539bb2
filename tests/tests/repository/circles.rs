//! No circles of modules inside any crate of the workspace: `burst_tests::modules` says what one is.

use std::fs;

use burst_tests::modules::{circles_of_crate, crate_roots};
use burst_tests::repository;

/// Fails with every circle of the crates that this folder's package makes.
fn assert_no_circles(folder: &str) {
    let root = repository();
    let crates = crate_roots(&root.join(folder));
    assert!(!crates.is_empty(), "{folder} has no crate");
    let found: Vec<String> = crates.iter().flat_map(|file| circles_of_crate(file)).collect();
    let text = found.join("\n\n").replace(&format!("{}/", root.display()), "");
    assert!(found.is_empty(), "{} circles of modules in {folder}/\n\n{text}\n", found.len());
}

/// One test for each package, named as its folder.
macro_rules! packages {
    ($($test:ident: $folder:literal,)*) => {
        const FOLDERS: &[&str] = &[$($folder),*];
        $(
            #[test]
            fn $test() {
                assert_no_circles($folder);
            }
        )*
    };
}

packages! {
    benches: "benches",
    burst_client: "burst-client",
    burst_server: "burst-server",
    camera: "camera",
    capi: "capi",
    capture: "capture",
    cli: "cli",
    delegate: "delegate",
    driver: "driver",
    examples: "examples",
    examples_add: "examples/add",
    examples_extension: "examples/extension",
    fmq: "fmq",
    fuzz: "fuzz",
    hal: "hal",
    harness: "harness",
    launch: "launch",
    pictures: "pictures",
    runtime: "runtime",
    shm: "shm",
    sound: "sound",
    tasks: "tasks",
    testing: "testing",
    tests: "tests",
    tflite: "tflite",
    verify: "verify",
    wire: "wire",
}

#[test]
fn every_package_of_the_workspace_has_its_test() {
    let text = fs::read_to_string(repository().join("Cargo.toml")).expect("a manifest");
    let manifest: toml::Table = text.parse().expect("a table");
    let members = manifest["workspace"]["members"].as_array().expect("members");
    let mut members: Vec<&str> = members.iter().filter_map(toml::Value::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, FOLDERS);
}
