//! `--json`: one object, whatever becomes of the command, with keys that are always there.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Service, json, repository, run};

burst_testing::tests![
    an_object_has_the_same_keys_whether_the_command_did_it_or_could_not_or_was_called_wrongly(),
    every_key_is_described(),
];

fn object(args: &[&str], code: i32) -> Value {
    let output = run(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {output:?}");
    let object = json(&output);
    assert_eq!(object["schema"], 1, "{args:?}: {object}");
    assert_eq!(object["error"].is_null(), code < 2, "{args:?}: {object}");
    assert!(object["interrupted"].is_null(), "{args:?}: {object}");
    object
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

fn with<'a>(command: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [command, &["--json"], more].concat()
}

/// A command, arguments with which it could not, and arguments that it does not have.
const COMMANDS: [(&[&str], &[&str], &[&str]); 13] = [
    (&["stream"], &["--model", "/nonexistent"], &["--frames", "x"]),
    (&["run"], &["--input", "/nonexistent", "--output", "/nonexistent"], &["--input"]),
    (&["explain"], &["/nonexistent"], &["--nonsense"]),
    (&["devices"], &["--socket", "/nonexistent"], &["--socket"]),
    (&["calibrate"], &["--output", "/dev/null/y", "--rounds", "1"], &["--rounds", "0"]),
    (&["verify"], &["/nonexistent"], &["--nonsense"]),
    (&["bench", "transport"], &["--peers", "nobody"], &["--wait", "forever"]),
    (&["bench", "model"], &["/nonexistent"], &["--rounds", "-1"]),
    (
        &["bench", "mlts"],
        &["/nonexistent", "--data", "/nonexistent"],
        &["/nonexistent", "--data", "x", "--crops", "0"],
    ),
    (&["bench", "compare"], &["/nonexistent", "/nonexistent"], &["--threshold", "x"]),
    (&["doctor"], &[], &["--nonsense"]),
    (&["stress"], &["--report", "/nonexistent/x/y"], &["--minutes", "0"]),
    (&["top"], &["--once", "--admin", "/nonexistent"], &["--once", "--interval", "0"]),
];

fn an_object_has_the_same_keys_whether_the_command_did_it_or_could_not_or_was_called_wrongly() {
    for (command, could_not, wrong) in COMMANDS {
        // It always finds out something.
        if command[0] == "doctor" {
            continue;
        }
        let failed = object(&with(command, could_not), 2);
        assert_eq!(failed["command"], command.join(" "), "{failed}");
        assert_eq!(keys(&failed), keys(&object(&with(command, wrong), 2)), "{command:?}");
    }
    let done = |args: &[&str]| keys(&object(args, 0));
    let failed = |args: &[&str]| keys(&object(args, 2));
    let stream = done(&["stream", "--frames", "2", "--json"]);
    assert_eq!(stream, failed(&["--json", "--no-such-option"]), "without a subcommand");
    assert_eq!(stream, done(&["stream", "--frames", "3", "--fps", "9", "--top", "1", "--json"]));
    assert_eq!(stream, done(&["stream", "--frames", "2", "--reconnect", "--json"]));
    let explain = done(&["explain", "--json"]);
    assert_eq!(explain, failed(&["explain", "--json", "/nonexistent"]));
    assert_eq!(explain, done(&["explain", "--devices", "cpu", "--json"]));
    let doctor = keys(&json(&run(&["doctor", "--json"])));
    assert_eq!(doctor, failed(&["doctor", "--json", "--nonsense"]));
    let service = Service::start();
    let devices = done(&["devices", "--socket", service.path(), "--json"]);
    assert_eq!(devices, failed(&["devices", "--json", "--socket", "/nonexistent"]));
}

fn every_key_is_described() {
    let text = std::fs::read_to_string(repository().join("docs/JSON.md")).unwrap();
    let sections: Vec<&str> = text.split("\n## ").collect();
    let section = |name: &str| {
        let found = sections.iter().find(|section| section.starts_with(name));
        *found.unwrap_or_else(|| panic!("no section {name}"))
    };
    let common = section("Every object");
    for (command, _, wrong) in COMMANDS {
        let object = object(&[command, &["--json"][..], wrong].concat(), 2);
        let own = section(&format!("`burst {}`", command.join(" ")));
        for key in keys(&object) {
            let row = format!("| `{key}` |");
            assert!(common.contains(&row) != own.contains(&row), "{command:?}: {key}");
        }
    }
}
