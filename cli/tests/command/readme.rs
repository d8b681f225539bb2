//! The documents are true: the README's example is the one in the repository, and it runs;
//! commands and options that a document names are those of the binary.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

#[allow(unreachable_pub, reason = "a file of the tests across crates, where it is public")]
#[path = "../../../tests/src/documents.rs"]
mod documents;
use documents::{code, documents};

use crate::support::{Service, repository, run};

burst_testing::tests![
    the_example_in_the_readme_is_the_one_that_is_built(),
    the_example_connects_loads_and_runs_a_frame(),
    commands_and_options_in_the_documents_are_those_of_the_binary(),
    options_in_the_documents_are_those_of_the_binary(),
    a_command_or_option_that_is_not_there_is_found_out(),
];

fn example_source() -> String {
    std::fs::read_to_string(repository().join("cli/examples/frame.rs")).unwrap()
}

fn the_example_in_the_readme_is_the_one_that_is_built() {
    let source = example_source();
    let code = &source[source.find("use std::time").expect("the code starts there")..];
    let readme = std::fs::read_to_string(repository().join("README.md")).unwrap();
    assert!(readme.contains(code.trim_end()), "README.md shows another cli/examples/frame.rs");
    let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 25, "about 20 lines, not {lines}");
}

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

/// What every help text of `burst` says, by its command: "" for the main one, `bench model`.
pub(crate) fn help() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![String::new()];
    while let Some(command) = open.pop() {
        let args: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let text = String::from_utf8(run(&args).stdout).unwrap();
        let listed = text.split_once("Commands:\n").map_or("", |(_, rest)| rest);
        for line in listed.lines().take_while(|line| line.starts_with("  ")) {
            let name = line.split_whitespace().next().unwrap();
            if name != "help" {
                open.push(format!("{command} {name}").trim().to_owned());
            }
        }
        found.insert(command, text);
    }
    found
}

/// Whether a help text explains this option.
fn explains(help: &str, option: &str) -> bool {
    help.match_indices(option).any(|(at, _)| {
        let end = help[at + option.len()..].chars().next();
        !end.is_some_and(|c| c.is_alphanumeric() || c == '-')
    })
}

/// What calls `burst` in a document, besides its name.
const CALLS: &[&str] = &["$burst", "target/release/burst", "cargo run --release --"];

/// The arguments of each call of `burst` in a piece of code.
fn calls(code: &str) -> Vec<Vec<&str>> {
    let parts = code.split(" | ").map(|part| part.split(" #").next().unwrap().trim());
    let parts = parts.map(|part| match part.split_once(' ') {
        Some((set, rest)) if set.contains('=') => rest, // `BURST_SOCKET=... burst devices`
        _ => part,
    });
    let arguments = parts.filter_map(|part| {
        let name = CALLS.iter().chain(&["burst"]).find(|name| part.starts_with(**name))?;
        let rest = &part[name.len()..];
        rest.starts_with(' ').then(|| rest.split_whitespace().collect())
    });
    arguments.collect()
}

/// What is wrong with a call: a command or an option that the binary does not have.
fn fault(help: &BTreeMap<String, String>, call: &[&str]) -> Option<String> {
    let words = call.iter().take_while(|word| {
        word.starts_with(|c: char| c.is_ascii_lowercase()) && !word.contains(['.', '/'])
    });
    let words: Vec<&str> = words.copied().collect();
    let command = (0..=words.len().min(2))
        .rev()
        .map(|count| words[..count].join(" "))
        .find(|command| help.contains_key(command))?;
    if command.is_empty() && !words.is_empty() {
        return Some(format!("no command {}", words[0]));
    }
    let options = call.iter().filter(|word| word.starts_with("--"));
    options
        .map(|option| option.split(['=', '`', ',']).next().unwrap())
        .find(|option| !explains(&help[&command], option))
        .map(|option| format!("no {option} of burst {command}"))
}

fn commands_and_options_in_the_documents_are_those_of_the_binary() {
    let help = help();
    assert!(help.contains_key("bench model") && help.contains_key("serve"), "{:?}", help.keys());
    let (mut seen, mut faults) = (0, Vec::new());
    for document in documents(&repository()) {
        for code in code(&document.text) {
            for call in calls(code.text) {
                seen += 1;
                let line = format!("{}:{}", document.path.display(), code.line);
                let fault = fault(&help, &call);
                faults.extend(fault.map(|fault| format!("{line}: {fault}: {}", code.text)));
            }
        }
    }
    assert!(seen > 40 && faults.is_empty(), "of {seen} calls are wrong: {faults:#?}");
}

/// Options that the documents speak of and `burst` does not have: those of cargo, of `benches` and of the
/// examples, and one that was decided against (`docs/decisions/0007-inputs-are-copied-once.md`).
const OF_OTHERS: &[&str] = &[
    "--release",
    "--workspace",
    "--cfg",
    "--target",
    "--target-dir",
    "--bench",
    "--no-reference",
    "--operators",
    "--pairs",
    "--plain",
    "--seconds",
    "--trust-inputs",
];

fn options_in_the_documents_are_those_of_the_binary() {
    let all: String = help().into_values().collect();
    let mut faults = Vec::new();
    for document in documents(&repository()) {
        for code in code(&document.text).iter().filter(|code| code.text.starts_with("--")) {
            let option = code.text.split([' ', '=', ',']).next().unwrap();
            // `--max-*` stands for several.
            let known = match option.strip_suffix('*') {
                Some(start) => all.contains(start),
                None => OF_OTHERS.contains(&option) || explains(&all, option),
            };
            if !known {
                faults.push(format!("{}:{}: {option}", document.path.display(), code.line));
            }
        }
    }
    assert!(faults.is_empty(), "options that nothing explains: {faults:#?}");
}

fn a_command_or_option_that_is_not_there_is_found_out() {
    let help = help();
    for (code, want) in [
        ("burst bench model m.tflite --profile --report page.html", None),
        ("ffmpeg -i in.mp4 - | $burst stream --source - --size 640x480", None),
        ("BURST_SOCKET=/run/burst.sock burst devices", None),
        ("cargo run --release -- --frames 3  # as ever", None),
        ("burst bench model --source demo", Some("no --source of burst bench model")),
        ("burst bench model --model m.tflite", Some("no --model of burst bench model")),
        ("burst tip", Some("no command tip")),
        ("burst --threats 2", Some("no --threats of burst ")),
        ("ls | $burst explain --jason", Some("no --jason of burst explain")),
    ] {
        let found: Vec<String> = calls(code).iter().filter_map(|call| fault(&help, call)).collect();
        assert_eq!(found.first().map(String::as_str), want, "{code}");
    }
    assert!(calls("burst-client and burst.sock, a burst").is_empty());
}
