//! The README is true: its example is the one in the repository, and it runs.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::path::PathBuf;
use std::process::Command;

mod support;
use support::{Service, repository};

fn example_source() -> String {
    std::fs::read_to_string(repository().join("cli/examples/frame.rs")).unwrap()
}

#[test]
fn the_example_in_the_readme_is_the_one_that_is_built() {
    let source = example_source();
    let code = &source[source.find("use std::time").expect("the code starts there")..];
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    assert!(readme.contains(code.trim_end()), "README.md shows another cli/examples/frame.rs");
    let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 25, "about 20 lines, not {lines}");
}

#[test]
fn the_example_connects_loads_and_runs_a_frame() {
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_burst"));
    let example = folder.parent().unwrap().join("examples/frame");
    assert!(example.exists(), "cargo test builds the examples of a package");
    let service = Service::start();
    let model = repository().join("models/shapes.tflite");
    let output = Command::new(&example).arg(&service.socket).arg(model).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(said, format!("10 values from process {}\n", service.process.child.id()));
}

#[test]
fn links_in_the_documents_lead_to_files() {
    let root = repository();
    for document in
        ["README.md", "docs/ARCHITECTURE.md", "docs/SPEC.md", "docs/decisions/README.md"]
    {
        let path = root.join(document);
        let text = std::fs::read_to_string(&path).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") || link.starts_with('#') {
                continue;
            }
            let target = path.parent().unwrap().join(link.split('#').next().unwrap());
            assert!(target.exists(), "{document}: {link} leads nowhere");
        }
    }
}
