//! The one object that a command prints with `--json`, whatever becomes of it: `docs/JSON.md`.
//!
//! Every command has keys that are always there, null where there is nothing to say, and all have the four of
//! [`COMMON`].

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde::de::IgnoredAny;

/// Grows where a key goes or comes to mean something else; a new key leaves it as it is.
pub(crate) const SCHEMA: u32 = 1;

/// Keys that every object has.
pub(crate) const COMMON: [&str; 4] = ["schema", "command", "error", "interrupted"];

/// What a command's object looks like.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The value of `command`.
    pub(crate) command: &'static str,
    /// Keys beside those that every object has.
    pub(crate) keys: &'static [&'static str],
}

/// `burst stream`.
pub(crate) const STREAM: Shape = Shape {
    command: "stream",
    keys: &[
        "model",
        "source",
        "path",
        "wait",
        "threads",
        "frames",
        "errors",
        "errors_by_status",
        "damaged",
        "late",
        "dropped",
        "client_pid",
        "driver_pid",
        "reconnects",
        "lost",
        "longest_gap_ms",
        "retries",
        "seconds",
        "throughput_fps",
        "sound_seconds",
        "times_real_time",
        "states",
        "accuracy",
        "latency_us",
        "driver_us",
        "transport_us",
        "results",
        "results_left_out",
        "camera",
        "sources",
        "trace",
    ],
};

/// `burst run`.
pub(crate) const RUN: Shape = Shape {
    command: "run",
    keys: &[
        "model",
        "path",
        "threads",
        "driver_us",
        "inputs",
        "outputs",
        "states",
        "unexpected",
        "trace",
    ],
};

/// `burst explain`; some of its keys are there to be said with `--devices` alone.
pub(crate) const EXPLAIN: Shape = Shape {
    command: "explain",
    keys: &["model", "runs", "operators", "front", "refused", "devices", "operations", "steps"],
};

/// `burst devices`.
pub(crate) const DEVICES: Shape = Shape { command: "devices", keys: &["socket", "devices"] };

/// `burst calibrate`.
pub(crate) const CALIBRATE: Shape = Shape { command: "calibrate", keys: &["file", "calibration"] };

/// `burst verify`: of vectors, of models with their goldens, and of random models.
pub(crate) const VERIFY: Shape = Shape {
    command: "verify",
    keys: &[
        "threads",
        "tests",
        "executions",
        "passed",
        "failed",
        "skipped",
        "per_suite",
        "left_out",
        "per_op",
        "failures",
        "goldens",
        "strict",
        "fair",
        "results",
        "plans",
        "seed",
        "lanes",
        "models",
        "unsupported",
        "classes",
        "inapplicable",
        "rounded_otherwise",
        "rewoven",
        "retaken",
        "forms",
        "variants",
        "findings",
    ],
};

/// `burst bench transport`.
pub(crate) const BENCH_TRANSPORT: Shape = Shape {
    command: "bench transport",
    keys: &["machine", "rounds", "ended_early", "rows", "checks"],
};

/// `burst bench model`.
pub(crate) const BENCH_MODEL: Shape = Shape {
    command: "bench model",
    keys: &["machine", "rounds", "wait", "models", "client_memory_kib"],
};

/// `burst bench mlts`.
pub(crate) const BENCH_MLTS: Shape = Shape {
    command: "bench mlts",
    keys: &["machine", "wait", "threads", "litert", "data", "models", "seconds"],
};

/// `burst bench compare`.
pub(crate) const BENCH_COMPARE: Shape = Shape {
    command: "bench compare",
    keys: &[
        "a",
        "b",
        "threshold_percent",
        "slower",
        "faster",
        "unclear",
        "rows",
        "only_in_a",
        "only_in_b",
        "warnings",
    ],
};

/// `burst top`.
pub(crate) const TOP: Shape = Shape {
    command: "top",
    keys: &[
        "service_version",
        "seconds",
        "waiting_for_turn",
        "computing_beside",
        "users",
        "sessions",
        "models",
        "bursts",
        "left_out",
    ],
};

/// `burst stress`.
pub(crate) const STRESS: Shape =
    Shape { command: "stress", keys: &["seed", "minutes", "succeeded", "tests"] };

/// `burst doctor`.
pub(crate) const DOCTOR: Shape =
    Shape { command: "doctor", keys: &["lacking", "worse", "unknown", "checks"] };

/// `burst serve`, which prints an object only where it fails.
pub(crate) const SERVE: Shape = Shape { command: "serve", keys: &[] };

/// Commands without an object of their own: it has what all have.
const OTHERS: [&Shape; 3] = [
    &Shape { command: "dump", keys: &[] },
    &Shape { command: "man", keys: &[] },
    &Shape { command: "completions", keys: &[] },
];

/// `burst bench` of something that it does not know.
const BENCH: Shape = Shape { command: "bench", keys: &[] };

/// All of them.
const ALL: [&Shape; 14] = [
    &STREAM,
    &RUN,
    &EXPLAIN,
    &DEVICES,
    &CALIBRATE,
    &VERIFY,
    &BENCH_TRANSPORT,
    &BENCH_MODEL,
    &BENCH_MLTS,
    &BENCH_COMPARE,
    &TOP,
    &STRESS,
    &DOCTOR,
    &SERVE,
];

impl Shape {
    /// That of the command that these arguments name, as far as can be seen: a subcommand is the first of them.
    pub(crate) fn of_arguments(arguments: &[String]) -> &'static Shape {
        let mut words = arguments.iter().filter(|word| !word.starts_with('-'));
        let (first, second) = (words.next(), words.next());
        let named = |name: &str| ALL.into_iter().chain(OTHERS).find(|shape| shape.command == name);
        let Some(first) = first else { return &STREAM };
        let both = second.and_then(|second| named(&format!("{first} {second}")));
        let bench = (first == "bench").then_some(&BENCH);
        both.or_else(|| named(first)).or(bench).unwrap_or(&STREAM)
    }
}

/// How a command ended, where not by itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ending<'a> {
    /// Why it could not go on.
    pub(crate) error: Option<&'a str>,
    /// The signal that ended it.
    pub(crate) interrupted: Option<&'a str>,
}

/// The object of a command that did what it should.
///
/// # Errors
/// The report has no form in JSON.
pub(crate) fn object(shape: &Shape, report: &impl Serialize) -> serde_json::Result<String> {
    ended(shape, report, Ending::default())
}

/// The object of a command that did what is in the report, however it ended.
///
/// # Errors
/// The report has no form in JSON.
pub(crate) fn ended(
    shape: &Shape,
    report: &impl Serialize,
    ending: Ending<'_>,
) -> serde_json::Result<String> {
    let own = serde_json::to_string(report)?;
    // The text stays as it is: as a value each float would be a double.
    let there: BTreeMap<&str, IgnoredAny> = serde_json::from_str(&own)?;
    let stranger = there.keys().find(|key| !shape.keys.contains(*key));
    debug_assert!(stranger.is_none(), "{}: {stranger:?} is no key of its object", shape.command);
    let mut text = beginning(shape, ending)?;
    for key in shape.keys.iter().filter(|key| !there.contains_key(*key)) {
        let _ = write!(text, ",\"{key}\":null"); // a string takes all
    }
    if !there.is_empty() {
        text.push(',');
    }
    text.push_str(&own[1..]); // all but the brace that opens it
    Ok(text)
}

/// The object of a command that could not do anything.
pub(crate) fn failed(shape: &Shape, error: &str) -> String {
    stopped(shape, Ending { error: Some(error), interrupted: None })
}

/// The object of a command that had done nothing when it ended.
pub(crate) fn stopped(shape: &Shape, ending: Ending<'_>) -> String {
    let nothing = BTreeMap::<&str, ()>::new();
    // Strings and nulls always have a form in JSON.
    ended(shape, &nothing, ending).unwrap_or_default()
}

/// The keys that all objects have.
fn beginning(shape: &Shape, ending: Ending<'_>) -> serde_json::Result<String> {
    let [schema, command, error, interrupted] = COMMON;
    Ok(format!(
        "{{\"{schema}\":{SCHEMA},\"{command}\":\"{}\",\"{error}\":{},\"{interrupted}\":{}",
        shape.command,
        serde_json::to_string(&ending.error)?,
        serde_json::to_string(&ending.interrupted)?,
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const SHAPE: Shape = Shape { command: "x", keys: &["a", "b"] };

    #[test]
    fn every_key_is_there_whatever_becomes_of_it() {
        let keys = |text: &str| -> Vec<String> {
            let value: Value = serde_json::from_str(text).unwrap();
            value.as_object().unwrap().keys().cloned().collect()
        };
        let done = object(&SHAPE, &json!({ "b": 7 })).unwrap();
        assert_eq!(
            done,
            r#"{"schema":1,"command":"x","error":null,"interrupted":null,"a":null,"b":7}"#
        );
        let failed = failed(&SHAPE, "it \"broke\"");
        assert_eq!(
            failed,
            r#"{"schema":1,"command":"x","error":"it \"broke\"","interrupted":null,"a":null,"b":null}"#
        );
        assert_eq!(keys(&done), keys(&failed));
        let ending = Ending { error: None, interrupted: Some("SIGINT") };
        assert_eq!(keys(&done), keys(&stopped(&SHAPE, ending)));
    }

    #[test]
    fn arguments_name_the_command() {
        let shape = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            Shape::of_arguments(&words).command
        };
        assert_eq!(shape("--json"), "stream");
        assert_eq!(shape("stream --json --frames x"), "stream");
        assert_eq!(shape("bench model --json"), "bench model");
        assert_eq!(shape("bench --json"), "bench");
        assert_eq!(shape("bench nonsense --json"), "bench");
        assert_eq!(shape("man --json folder"), "man");
        assert_eq!(shape("dump --json"), "dump");
        assert_eq!(shape("serve --json --nonsense"), "serve");
        assert_eq!(shape("explain m.tflite"), "explain");
        assert_eq!(shape("no-such-thing --json"), "stream");
    }

    #[test]
    fn no_key_is_there_twice() {
        for shape in ALL {
            let mut keys = shape.keys.to_vec();
            keys.extend(COMMON);
            keys.sort_unstable();
            assert!(keys.windows(2).all(|pair| pair[0] != pair[1]), "{}", shape.command);
        }
    }
}
