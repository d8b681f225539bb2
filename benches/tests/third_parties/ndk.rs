//! What NNAPI's C functions cost: that every row is there and is a measurement. How much is not looked at: the machine
//! has other work, and this build is none to measure.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::process::{Command, Output};

use serde_json::Value;

burst_testing::tests![
    every_row_of_the_c_functions_is_there_and_has_finite_numbers(),
    a_library_or_a_model_that_is_none_is_named_in_one_line(),
];

/// The first sides of each part, and whether a bound is there for the row: in process, over a service.
const ROWS: [(&str, bool, bool); 4] = [
    ("C, buffers, compute", true, false),
    ("C, memories, compute", false, false),
    ("C, buffers, burstCompute", false, true),
    ("C, memories, burstCompute", false, true),
];

/// The command over the library that Cargo built together with this program.
fn ndk(args: &[&str]) -> Output {
    let library = std::env::current_exe().unwrap().with_file_name("libneuralnetworks.so");
    let mut command = Command::new(env!("CARGO_BIN_EXE_benches"));
    command.args(["ndk", "--library"]).arg(library).args(args).output().unwrap()
}

fn every_row_of_the_c_functions_is_there_and_has_finite_numbers() {
    let bounds = concat!(env!("CARGO_MANIFEST_DIR"), "/ndk.json");
    let output = ndk(&["--pairs", "4", "--json", "--check", bounds]);
    // 1: a cost is beyond its bound.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * ROWS.len(), "{rows:?}");
    let parts = [
        ("ADD of 4 floats, in process", "HAL, execute_synchronously"),
        ("built-in shapes, over a service", "Rust client, burst"),
    ];
    let mut has_missed = false;
    for (part, (model, second)) in rows.chunks(ROWS.len()).zip(parts) {
        for (row, (first, in_process, over_service)) in part.iter().zip(ROWS) {
            assert_eq!([&row["model"], &row["first"], &row["second"]], [model, first, second]);
            let is_held = if model.starts_with("ADD") { in_process } else { over_service };
            let check = &row["check"];
            assert_eq!((check["must"].is_string(), check["ok"].is_boolean()), (is_held, is_held));
            has_missed |= check["ok"] == false;
            let interval =
                |of: &Value| ["low", "median", "high"].map(|at| of[at].as_f64().unwrap());
            let (ratio, more) = (interval(&row["ratio"]), interval(&row["difference_ns"]));
            assert!(ratio[0] > 0.0 && ratio.is_sorted() && more.is_sorted(), "{row}");
            assert!(row["first_ns"].as_f64() > Some(0.0) && row["second_ns"].as_f64() > Some(0.0));
        }
    }
    assert_eq!(output.status.code(), Some(i32::from(has_missed)));
}

fn a_library_or_a_model_that_is_none_is_named_in_one_line() {
    for (args, part) in [
        (&["--models", "/nonexistent/model.tflite"][..], "/nonexistent/model.tflite"),
        (&["--library", "/nonexistent/n.so"], "/nonexistent/n.so"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_benches"));
        let output = command.arg("ndk").args(["--pairs", "2"]).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(part), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
