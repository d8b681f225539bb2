//! `burst bench`: shapes of its reports, pages that need nothing else, and what it says of wrong
//! arguments. No test here looks at a time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::path::Path;
use std::process::Output;

use serde_json::Value;

use burst_testing::shared;

use crate::support::{json, repository, run};

burst_testing::tests![
    every_path_of_a_model_is_measured_and_gives_the_same_outputs(),
    more_threads_are_compared_with_one_and_give_the_same_outputs(),
    a_folder_of_models_ends_with_a_table_of_all(),
    of_a_model_that_does_not_import_whole_a_part_is_measured(&shared(
        "models/yamnet_wavin_int8.tflite"
    )?),
    what_cannot_be_measured_is_said_in_one_sentence(),
    arguments_without_a_sense_are_refused(),
    transport_rows_and_checks_have_the_fields_that_are_promised(),
    transport_prints_a_table_per_way_to_wait_and_verdicts_where_they_are_asked_for(),
    figures_are_written_for_documents_and_spreadsheets(),
    pinned_paths_give_the_same_outputs(),
];

fn quantiles_ascend(row: &Value) {
    let latency = &row["latency_us"];
    let values: Vec<f64> =
        ["p50", "p90", "p99", "p999", "max"].map(|q| latency[q].as_f64().unwrap()).to_vec();
    assert!(values[0] > 0.0 && values.is_sorted(), "{row}");
}

/// A page with so many drawings that asks for nothing from anywhere.
fn expect_page(path: &Path, drawings: usize, texts: &[&str]) {
    let page = std::fs::read_to_string(path).unwrap();
    assert_eq!(page.matches("<svg").count(), drawings);
    // The name of SVG's elements is no address that a browser would ask.
    let asks = page.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
    for outside in ["http:", "https:", "src=", "href=", "@import", "url("] {
        assert!(!asks.contains(outside), "{outside}");
    }
    for text in texts {
        assert!(page.contains(text), "{text}");
    }
}

/// A run that cannot do its work says why in one sentence, with these parts, and in JSON the same.
fn assert_fails_with(args: &[&str], parts: &[&str]) {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    for part in parts {
        assert!(said.contains(part), "{args:?}: no {part:?} in: {said}");
    }
    let with_json: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    let error = json(&run(&with_json))["error"].as_str().unwrap().to_owned();
    assert!(said.contains(&error), "text and JSON say the same: {said} / {error}");
}

/// A measurement that has to work: what it printed.
fn measured(bench: &[&str], rest: &[&str]) -> Output {
    let args: Vec<&str> = ["bench"].iter().chain(bench).chain(rest).copied().collect();
    let output = run(&args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    output
}

/// The fewest executions of a model on one thread that still are a measurement.
const FEW: &[&str] = &["--threads", "1", "--rounds", "1", "--executions", "2"];

/// Arguments that the command line itself refuses.
fn refused(args: &[&str], part: &str) {
    let output: Output = run(args);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains(part), "{args:?}: no {part:?} in: {said}");
}

fn every_path_of_a_model_is_measured_and_gives_the_same_outputs() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let page_path = page.to_str().unwrap();
    let counts = ["--rounds", "2", "--executions", "4", "--threads", "1"];
    let rest = ["--profile", "--json", "--report", page_path];
    let report = json(&measured(&["model"], &[&counts[..], &rest].concat()));
    assert_eq!((&report["rounds"], &report["wait"]), (&2.into(), &"adaptive".into()));
    let model = &report["models"][0];
    let paths = model["paths"].as_array().unwrap();
    let names: Vec<&str> = paths.iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(names, ["in-process", "burst", "burst-client-outputs", "sync"]);
    for row in paths {
        quantiles_ascend(row);
        assert_eq!((&row["executions"], &row["threads"]), (&8.into(), &1.into()), "{row}");
        assert_eq!(row["outputs"]["equal"], true, "{row}");
        assert!(row["first_to_p50"].as_f64().unwrap() > 0.0, "{row}");
        assert_eq!(row["transport_us"].is_null(), row["path"] == "in-process", "{row}");
        assert!(row["memory_kib"].as_u64() > Some(1000), "{row}");
    }
    assert!(report["client_memory_kib"].as_u64() >= paths[0]["memory_kib"].as_u64(), "{report}");
    let own = &paths[0]["ratio_to_in_process"];
    assert_eq!((own["min"].as_f64(), own["max"].as_f64()), (Some(1.0), Some(1.0)));
    assert!(model["copies"]["inputs_us"].as_f64().unwrap() > 0.0, "{model}");
    assert!(model["copies"]["service_to_client"]["median"].as_f64().unwrap() > 0.0, "{model}");
    assert!(model["profile_beside_us"].as_f64() > Some(0.0), "{model}");
    every_operation_is_profiled(model);
    let profile = model["profile"].as_array().unwrap();
    let share: f64 = profile.iter().map(|row| row["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-6, "{share}");
    let convolutions: Vec<&Value> =
        profile.iter().filter(|row| row["operation"] == "CONV_2D").collect();
    assert!(!convolutions.is_empty() && convolutions.iter().all(|row| row["macs"].is_u64()));
    for row in convolutions {
        assert!(row["of_peak"].as_f64().is_some_and(|part| part > 0.0), "{row}");
        assert!(row["bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{row}");
    }
    for roof in ["float_gmacs_per_s", "byte_gmacs_per_s", "memory_gb_per_s"] {
        assert!(model["roofs"][roof].as_f64().is_some_and(|most| most > 0.0), "{roof}: {model}");
    }
    let texts =
        ["built-in shapes", "CONV_2D", "burst-client-outputs", "below what the machine can do"];
    expect_page(&page, 2, &texts);
}

/// By itself, with its kernel and its rates.
fn every_operation_is_profiled(model: &Value) {
    let operations = model["profile_operations"].as_array().unwrap();
    let kinds = model["profile"].as_array().unwrap().iter();
    let count: u64 = kinds.map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(operations.len() as u64, count);
    let indexes = operations.iter().map(|one| one["index"].as_u64().unwrap());
    assert!(indexes.is_sorted_by(|a, b| a < b), "{operations:?}");
    let share: f64 = operations.iter().map(|one| one["share"].as_f64().unwrap()).sum();
    assert!((share - 1.0).abs() < 1e-6, "{share}");
    for one in operations {
        assert!(one["us"].as_f64() > Some(0.0) && one["gb_per_s"].as_f64() > Some(0.0), "{one}");
        assert_eq!(one["macs"].is_null(), one["gops_per_s"].is_null(), "{one}");
        assert_eq!(one["macs"].is_null(), one["of_peak"].is_null(), "{one}");
        assert!(one["output"].as_str().is_some_and(|shape| shape.starts_with("1x")), "{one}");
        if one["operation"] == "CONV_2D" {
            assert!(one["kernel"].is_string() && one["of_peak"].as_f64() > Some(0.0), "{one}");
        }
    }
}

fn more_threads_are_compared_with_one_and_give_the_same_outputs() {
    let model = repository().join("models/shapes.tflite");
    let counts = ["--threads", "1,2,3", "--rounds", "1", "--executions", "3", "--json"];
    let what = ["model", model.to_str().unwrap(), "--path", "in-process"];
    let report = json(&measured(&what, &counts));
    let model = &report["models"][0];
    assert_eq!(model["model"], "shapes");
    let threads: Vec<u64> = model["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|gain| gain["threads"].as_u64().unwrap())
        .collect();
    // No more than there are CPUs.
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    let useful: Vec<u64> = (2..=3).filter(|threads| *threads <= cpus).collect();
    assert_eq!(threads, useful);
    assert_eq!(model["paths"].as_array().unwrap().len(), 1 + useful.len());
    assert!(model["profile"].is_null());
}

fn a_folder_of_models_ends_with_a_table_of_all() {
    let folder = tempfile::tempdir().unwrap();
    let model = repository().join("models/shapes.tflite");
    for name in ["b.tflite", "a.tflite", "c.txt"] {
        std::fs::copy(&model, folder.path().join(name)).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let what = ["model", "--models", path, "--wait", "sleep", "--path", "in-process,burst"];
    let output = measured(&what, FEW);
    let text = String::from_utf8(output.stdout).unwrap();
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part:?}: {text}"));
    assert!(at("\na: ") < at("\nb: ") && at("\nb: ") < at("burst : in-process  "), "{text}");
    assert!(text.contains("both ends of a burst wait: sleep"), "{text}");
    assert!(!text.contains("c.txt"), "{text}");
}

fn of_a_model_that_does_not_import_whole_a_part_is_measured(model: &Path) {
    let what = ["model", model.to_str().unwrap(), "--path", "in-process", "--json"];
    let report = json(&measured(&what, FEW));
    let part = report["models"][0]["part"].as_str().unwrap();
    assert!(part.starts_with("without its first "), "{part}");
    assert!(part.contains(" operators: from "), "{part}");
}

fn what_cannot_be_measured_is_said_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("text.tflite");
    std::fs::write(&text, "this is a text and not a model at all").unwrap();
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let (text, empty) = (text.to_str().unwrap(), empty.to_str().unwrap());
    assert_fails_with(
        &["bench", "model", "/nonexistent/m.tflite"],
        &["/nonexistent/m.tflite", "No such"],
    );
    assert_fails_with(&["bench", "model", "/"], &["not a file"]);
    assert_fails_with(&["bench", "model", text], &["cannot use the model text"]);
    assert_fails_with(&["bench", "model", "--models", empty], &["no .tflite files"]);
    assert_fails_with(
        &["bench", "model", "--models", "/nonexistent"],
        &["/nonexistent", "No such"],
    );
    let nowhere = "/nonexistent/report.html";
    let into_nowhere = ["bench", "model", "--path", "in-process", "--report", nowhere];
    assert_fails_with(&[&into_nowhere[..], FEW].concat(), &[nowhere]);
    assert_fails_with(&["bench", "transport", "--peers", "nobody"], &["no peer is called nobody"]);
}

fn arguments_without_a_sense_are_refused() {
    refused(&["bench", "model", "--threads", "0"], "--threads");
    refused(&["bench", "model", "--rounds", "0"], "--rounds");
    refused(&["bench", "model", "--executions", "0"], "--executions");
    refused(&["bench", "model", "--path", "telepathy"], "--path");
    refused(&["bench", "model", "m.tflite", "--models", "folder"], "--models");
    refused(&["bench", "transport", "--sizes", "65"], "a multiple of 64");
    refused(&["bench", "transport", "--wait", "often"], "--wait");
}

/// The fewest round trips that still are a measurement.
const TRANSPORT: &[&str] = &["transport", "--quick", "--rounds", "1", "--sizes", "64"];
/// Ours and the floors, in one case.
const OURS: &[&str] =
    &["--wait", "sleep", "--placement", "unpinned", "--peers", "ours", "--no-frames"];

fn transport_rows_and_checks_have_the_fields_that_are_promised() {
    let report = json(&measured(TRANSPORT, &[OURS, &["--json"]].concat()));
    let rows = report["rows"].as_array().unwrap();
    let names: Vec<&str> = rows.iter().map(|row| row["name"].as_str().unwrap()).collect();
    // Rounds of others during which the machine changed do not count.
    assert!(names.contains(&"floor-futex"), "{names:?}");
    let numbers = [
        "p50_ns",
        "p90_ns",
        "p99_ns",
        "p999_ns",
        "max_ns",
        "round_trips_per_s",
        "cpu_ns_per_round_trip",
        "request_bytes",
        "rounds_kept",
        "rounds_dropped",
        "client_memory_kib",
        "server_memory_kib",
    ];
    assert_eq!(report["ended_early"], false);
    for row in rows {
        assert!(row["modes"].is_null(), "who sleeps has none: {row}");
        for field in numbers {
            assert!(row[field].as_f64().is_some(), "{field}: {row}");
        }
        for field in ["median", "min", "max"] {
            assert!(row["ratio_to_floor"][field].as_f64().is_some(), "{field}: {row}");
        }
        assert_eq!((&row["wait"], &row["placement"]), (&"sleep".into(), &"unpinned".into()));
        assert!(row["syscalls_per_message"].is_null(), "quick runs do not count: {row}");
    }
    let checks = report["checks"].as_array().unwrap();
    assert!(!checks.is_empty());
    for check in checks {
        let fields: Vec<&String> = check.as_object().unwrap().keys().collect();
        assert_eq!(fields.len(), 5, "{fields:?}");
        assert!(["what", "value", "must", "reach", "ok"].iter().all(|f| check.get(f).is_some()));
    }
    assert!(report["machine"]["cpus"].as_u64().unwrap() > 0);
}

fn transport_prints_a_table_per_way_to_wait_and_verdicts_where_they_are_asked_for() {
    let output = measured(TRANSPORT, OURS);
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["sleep, unpinned", "p50 : floor", "│ floor-futex "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("must"), "nobody asked for bounds: {text}");
    let bounds = repository().join("benches/transport.json");
    let output = measured(TRANSPORT, &[OURS, &["--check", bounds.to_str().unwrap()]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("must") && text.contains("not measured"), "{text}");
    assert_fails_with(&["bench", "transport", "--check", "/nonexistent"], &["/nonexistent"]);
}

fn figures_are_written_for_documents_and_spreadsheets() {
    const MODEL: &[&str] = &["model", "--rounds", "1", "--executions", "2", "--threads", "1"];
    for (bench, rest, first) in [(TRANSPORT, OURS, "peer,wait,"), (MODEL, &[], "model,path,")] {
        let written = |format| {
            let output = measured(bench, &[rest, &["--format", format]].concat());
            String::from_utf8(output.stdout).unwrap()
        };
        let sheet = written("csv");
        let cells = |line: &str| line.split(',').count();
        let lines: Vec<&str> = sheet.lines().collect();
        assert!(lines.len() > 1 && lines[0].starts_with(first), "{sheet}");
        assert!(lines.iter().all(|line| cells(line) == cells(lines[0])), "{sheet}");
        let document = written("markdown");
        assert!(document.contains("\n\n|") && !document.contains('│'), "{document}");
    }
    let error = json(&run(&["bench", "model", "--format", "csv", "--json"]))["error"].to_string();
    assert!(error.contains("--format"), "one or the other: {error}");
}

fn pinned_paths_give_the_same_outputs() {
    let arguments = ["bench", "model", "--rounds", "1", "--executions", "3", "--threads", "1,2"];
    let cpus = std::thread::available_parallelism().unwrap().get();
    let output = run(&[&arguments[..], &["--pin", "--json"]].concat());
    if cpus < 2 {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("pinning needs two CPUs"), "{said}");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = json(&output);
    let paths = report["models"][0]["paths"].as_array().unwrap();
    assert_eq!(paths.len(), 7, "four with one thread, three with two");
    for row in paths {
        assert_eq!(row["outputs"]["equal"], true, "{row}");
    }
}
