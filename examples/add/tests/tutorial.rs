//! The driver of docs/WRITE-A-DRIVER.md, held to what the document says of it: its code, its size, and what
//! `burst verify` says of it as a process of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Output};
use std::time::{Duration, Instant};

use burst_client::{Client, ClientError};
use burst_testing::shared;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

burst_testing::tests![
    the_document_has_the_code_and_the_manifest_of_the_driver(),
    the_driver_is_under_sixty_lines_and_uses_nothing_of_the_cpu_driver(),
    sums_are_right_in_every_suite_and_all_else_is_refused(),
    a_wrong_activation_fails_its_execution_and_the_driver_goes_on(),
    every_vector_of_add_holds(&shared("vts")?),
];

/// Set, this process is the command `burst`.
const AS_COMMAND: &str = "BURST_TUTORIAL_AS_COMMAND";
/// Turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    match std::env::var_os(AS_COMMAND) {
        Some(_) => burst::main(),
        None => burst_testing::run(&[TESTS]),
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(repository().join(file)).unwrap()
}

/// The driver as a process that ends with its test.
struct Driver {
    child: Child,
    folder: tempfile::TempDir,
}

impl Driver {
    fn start() -> Driver {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("add.sock");
        let mut program = Command::new(env!("CARGO_BIN_EXE_add_driver"));
        let mut driver = Driver { child: program.arg(&socket).spawn().unwrap(), folder };
        let until = Instant::now() + HANG;
        // Its file is there before anybody listens.
        while let Err(error) = Client::connect(&socket) {
            let nobody = matches!(error, ClientError::NobodyListens { .. });
            assert!(nobody && driver.child.try_wait().unwrap().is_none(), "the driver: {error}");
            assert!(Instant::now() < until, "the driver does not listen");
            std::thread::yield_now();
        }
        driver
    }

    /// What `burst verify` says of it.
    fn verify(&self, vectors: &Path, more: &[&str]) -> Output {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env(AS_COMMAND, "1").env_remove("BURST_SOCKET");
        command.arg("verify").arg(vectors).arg("--socket").arg(self.folder.path().join("add.sock"));
        command.args(["--device", "add", "--mode", "all", "--json"]).args(more);
        command.output().unwrap()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The only block of this language in the document.
fn block(document: &str, language: &str) -> String {
    let opening = format!("```{language}\n");
    let (_, rest) = document.split_once(&opening).expect("a block");
    assert!(!rest.contains(&opening), "one block of {language}");
    rest.split_once("```").unwrap().0.to_owned()
}

fn dependencies(manifest: &Value) -> Vec<&String> {
    manifest["dependencies"].as_object().unwrap().keys().collect()
}

fn the_document_has_the_code_and_the_manifest_of_the_driver() {
    let document = read("docs/WRITE-A-DRIVER.md");
    assert_eq!(block(&document, "rust"), read("examples/add/src/main.rs"));
    let manifest = |text: &str| -> Value { toml_to_json(text) };
    let (shown, ours) =
        (manifest(&block(&document, "toml")), manifest(&read("examples/add/Cargo.toml")));
    assert_eq!(dependencies(&shown), dependencies(&ours));
    let edition = manifest(&read("Cargo.toml"))["workspace"]["package"]["edition"].clone();
    assert_eq!(shown["package"]["edition"], edition);
    for dependency in dependencies(&shown) {
        let path = shown["dependencies"][dependency]["path"].as_str().unwrap();
        let folder = path.strip_prefix("../burst/").expect("beside the new folder");
        let there = manifest(&read(&format!("{folder}/Cargo.toml")));
        assert_eq!(there["package"]["name"], json!(dependency));
    }
}

fn toml_to_json(text: &str) -> Value {
    let table: toml::Table = text.parse().unwrap();
    serde_json::to_value(table).unwrap()
}

fn the_driver_is_under_sixty_lines_and_uses_nothing_of_the_cpu_driver() {
    let source = read("examples/add/src/main.rs");
    assert!(source.lines().count() < 60, "{} lines", source.lines().count());
    assert!(!source.contains("burst_driver"));
    let manifest = toml_to_json(&read("examples/add/Cargo.toml"));
    assert_eq!(dependencies(&manifest), ["burst-hal", "burst-server"]);
}

/// Suites that are named in files; DEADLINE runs for every test.
const SUITES: [&str; 5] =
    ["GENERAL", "DYNAMIC_SHAPE", "VALIDATION", "FENCED_COMPUTE", "MEMORY_DOMAIN"];

/// `x [2, 3] + row [3]`, then the activation with this code, in every suite.
fn sum_test(name: &str, activation: i32, want: [f32; 6]) -> (Value, Vec<u8>) {
    let numbers = [-9.0f32, -0.5, 0.0, 0.25, 2.0, 7.0, 0.0, 0.5, 1.0];
    let mut blob: Vec<u8> = numbers.iter().chain(&want).flat_map(|x| x.to_ne_bytes()).collect();
    blob.extend(activation.to_ne_bytes());
    let operand = |ty: &str, dims: &[u32], lifetime: &str, consumers: u32, data: [usize; 2]| json!({ "type": ty, "dims": dims, "lifetime": lifetime, "consumers": consumers, "data": data });
    let float = "TENSOR_FLOAT32";
    let main = json!({
        "operands": [
            operand(float, &[2, 3], "SUBGRAPH_INPUT", 1, [0, 24]),
            operand(float, &[3], "CONSTANT_REFERENCE", 1, [24, 12]),
            operand("INT32", &[], "CONSTANT_COPY", 1, [60, 4]),
            operand(float, &[2, 3], "SUBGRAPH_OUTPUT", 0, [36, 24]),
        ],
        "operations": [{ "type": "ADD", "inputs": [0, 1, 2], "outputs": [3] }],
        "inputs": [0],
        "outputs": [3],
    });
    (test(name, main, &SUITES), blob)
}

fn test(name: &str, main: Value, suites: &[&str]) -> Value {
    json!({
        "name": name, "relaxed": false, "expect_failure": false, "multinomial_tolerance": 0.0,
        "main": main, "referenced": [], "vts": suites,
    })
}

/// A sum of bytes, which the driver does not do.
fn quantized_test() -> (Value, Vec<u8>) {
    let operand = |lifetime: &str, consumers: u32, data: [usize; 2]| {
        json!({
            "type": "TENSOR_QUANT8_ASYMM", "dims": [2], "lifetime": lifetime,
            "consumers": consumers, "scale": 1.0, "zero_point": 0, "data": data,
        })
    };
    let main = json!({
        "operands": [
            operand("SUBGRAPH_INPUT", 1, [4, 2]),
            operand("SUBGRAPH_INPUT", 1, [6, 2]),
            { "type": "INT32", "dims": [], "lifetime": "CONSTANT_COPY", "consumers": 1, "data": [0, 4] },
            operand("SUBGRAPH_OUTPUT", 0, [8, 2]),
        ],
        "operations": [{ "type": "ADD", "inputs": [0, 1, 2], "outputs": [3] }],
        "inputs": [0, 1],
        "outputs": [3],
    });
    let suites = ["GENERAL", "QUANTIZATION_COUPLING", "VALIDATION"];
    (test("bytes", main, &suites), vec![0, 0, 0, 0, 1, 2, 3, 4, 4, 6])
}

fn write_spec(folder: &Path, name: &str, (test, blob): (Value, Vec<u8>)) {
    let folder = folder.join("V1_0");
    std::fs::create_dir_all(&folder).unwrap();
    let pack = |ending: &str, bytes: &[u8]| {
        let file = std::fs::File::create(folder.join(format!("{name}.{ending}.gz"))).unwrap();
        let mut packed = GzEncoder::new(file, Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap();
    };
    pack("json", json!({ "tests": [test] }).to_string().as_bytes());
    pack("bin", &blob);
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"))
}

fn sums_are_right_in_every_suite_and_all_else_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let sums = [-9.0, 0.0, 1.0, 0.25, 2.5, 8.0];
    for (code, name) in [(0, "none"), (1, "relu"), (2, "relu1"), (3, "relu6")] {
        let (low, high) = [(f32::MIN, f32::MAX), (0.0, f32::MAX), (-1.0, 1.0), (0.0, 6.0)][code];
        let want = sums.map(|sum: f32| sum.clamp(low, high));
        let code = i32::try_from(code).unwrap();
        write_spec(folder.path(), name, sum_test(name, code, want));
    }
    write_spec(folder.path(), "bytes", quantized_test());
    let output = Driver::start().verify(folder.path(), &["--op", "ADD"]);
    let report = report(&output);
    assert_eq!(output.status.code(), Some(0), "{:#}", report["failures"]);
    let counts = ["tests", "passed", "failed", "skipped"].map(|key| report[key].as_u64().unwrap());
    assert_eq!(counts, [5, 4, 0, 1], "bytes are left out, and broken models of them refused");
    let suites = report["per_suite"].as_object().unwrap();
    for name in SUITES.iter().chain(&["DEADLINE"]) {
        let cells = suites[*name]["modes"].as_object().unwrap().values();
        let cells: Vec<&Value> = cells.filter(|cell| !cell.is_null()).collect();
        assert!(!cells.is_empty(), "{name}");
        assert!(cells.iter().all(|cell| cell["passed"].as_u64() >= Some(4)), "{name}: {cells:?}");
    }
}

fn a_wrong_activation_fails_its_execution_and_the_driver_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    write_spec(folder.path(), "wrong", sum_test("wrong", 4, [0.0; 6]));
    let driver = Driver::start();
    let output = driver.verify(folder.path(), &["--suite", "GENERAL"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let what = report(&output)["failures"].to_string();
    assert!(what.contains("INVALID_ARGUMENT"), "{what}");
    write_spec(folder.path(), "wrong", sum_test("right", 0, [-9.0, 0.0, 1.0, 0.25, 2.5, 8.0]));
    assert_eq!(driver.verify(folder.path(), &[]).status.code(), Some(0));
}

fn every_vector_of_add_holds(vectors: &Path) {
    let output = Driver::start().verify(vectors, &["--op", "ADD"]);
    let report = report(&output);
    let counts = ["tests", "passed", "failed", "skipped"].map(|key| report[key].as_u64().unwrap());
    println!("{} of {} passed, {} skipped", counts[1], counts[0], counts[3]);
    // Failures of the same kind look alike but for their numbers: one of each is enough.
    let mut kinds = BTreeMap::new();
    for failure in report["failures"].as_array().unwrap() {
        let what = failure["what"].as_str().unwrap();
        let kind: String = what.chars().filter(|c| !c.is_ascii_digit()).take(100).collect();
        kinds.entry(format!("{} {kind}", failure["suite"])).or_insert((0, failure)).0 += 1;
    }
    kinds.values().for_each(|(count, failure)| println!("{count} x e.g. {failure}"));
    assert_eq!((output.status.code(), counts[2]), (Some(0), 0));
    // Most add other types, or stand in graphs of other operations: those broken models are refused too.
    assert!(counts[1] >= 2 && counts[1] + counts[3] == counts[0], "{counts:?}");
    let refused = &report["per_suite"]["VALIDATION"]["modes"]["model"];
    assert!(refused["executions"].as_u64() > Some(5_000), "{refused}");
}
