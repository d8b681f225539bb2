//! The delegate in a runtime that nobody here wrote: LiteRT or another package with TFLite in it.
//!
//! `BURST_PYTHON` says which Python has such a package, else `python3` is asked.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

use burst_driver::CpuDevice;
use burst_server::{Listener, Metrics, Service, ServiceOptions, Stop, Stopper};
use burst_testing::{Missing, SharedObject, shared};
use serde_json::{Value, json};

burst_testing::tests![
    it_exports_two_functions_stays_loaded_and_has_a_name_of_its_own(
        SharedObject::read(&library())?
    ),
    the_model_of_the_repository_computes_the_same(&runtime()?),
    models_compute_what_the_runtime_computes(&runtime()?, &shared("models")?),
    states_are_the_runtimes_and_are_reset_by_it(&runtime()?, &shared("models")?),
    an_input_of_another_shape_is_taken_over_again(&runtime()?, &shared("models")?),
    what_makes_no_sense_is_an_exception_with_the_reason(&runtime()?, &shared("models")?),
    a_service_in_another_process_computes_the_same(&runtime()?, &shared("models")?),
    without_its_service_a_named_device_fails_until_the_service_is_back(&runtime()?),
    without_its_service_the_reference_device_computes_where_none_is_named(&runtime()?),
];

/// How a service counts executions that came over bursts.
const BURST_EXECUTIONS: &str = "burst_executions_total{path=\"burst\"}";

fn main() -> ExitCode {
    burst_testing::run(&[TESTS])
}

/// The delegate, as Cargo built it for this test.
fn library() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let folders = own.ancestors().skip(1).take(2);
    let mut found = folders.map(|folder| folder.join("libburst_delegate.so"));
    found.find(|path| path.is_file()).expect("the library is built with this test")
}

/// Neither the framework's functions nor its name: else the loader would take this file for
/// `libneuralnetworks.so` where a program asks for that one.
fn it_exports_two_functions_stays_loaded_and_has_a_name_of_its_own(library: SharedObject) {
    let functions = [" tflite_plugin_create_delegate", " tflite_plugin_destroy_delegate"];
    assert_eq!(library.exported(), functions.map(str::to_owned).into());
    assert_eq!(library.name().as_deref(), Some("libburst_delegate.so"));
    assert!(library.stays_loaded(), "it may be unloaded");
}

/// A Python with a runtime.
fn runtime() -> Result<PathBuf, Missing> {
    let python = PathBuf::from(std::env::var_os("BURST_PYTHON").unwrap_or("python3".into()));
    match ask(&python, "", &json!({}), &[]) {
        Ok(_) => Ok(python),
        Err(said) => {
            let said = said.lines().last().unwrap_or_default().to_owned();
            Err(Missing::new(format!("LiteRT (BURST_PYTHON says which Python): {said}")))
        }
    }
}

/// Runs a model with these options, the first input in this shape.
fn ask(python: &Path, model: &str, options: &Value, shape: &[u32]) -> Result<Value, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/litert/run.py");
    let mut command = Command::new(python);
    command.arg(script).arg(library()).arg(model).arg(options.to_string());
    let output = command.arg(json!(shape).to_string()).output();
    let output = output.map_err(|error| format!("{}: {error}", python.display()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())
}

/// How far apart outputs may be: floats relative to the largest of them, integers not at all.
fn assert_alike(answer: &Value, model: &str) {
    let outputs = answer["outputs"].as_array().unwrap_or_else(|| panic!("{model}: {answer}"));
    assert!(!outputs.is_empty());
    for output in outputs {
        let (apart, largest) =
            (output["apart"].as_f64().unwrap(), output["largest"].as_f64().unwrap());
        let most = match output["type"].as_str().unwrap() {
            "float32" => 1e-4 + 1e-3 * largest,
            _ => 0.0,
        };
        assert!(apart <= most, "{model}: {output}");
    }
}

/// Runs a model with the CPU driver of the runtime's process: the answer, and what became of its nodes.
fn run(python: &Path, models: &Path, model: &str, shape: &[u32]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let why = folder.path().join("why.txt");
    let options = json!({ "threads": "1", "explain": why });
    let path = models.join(format!("{model}.tflite"));
    let answer = ask(python, path.to_str().unwrap(), &options, shape);
    let answer = answer.unwrap_or_else(|said| panic!("{model}: {said}"));
    (answer, std::fs::read_to_string(why).unwrap())
}

fn the_model_of_the_repository_computes_the_same(python: &Path) {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models");
    let (answer, why) = run(python, &models, "shapes", &[]);
    assert_eq!(why.lines().next(), Some("16 of 16 nodes in 1 partitions on cpu"), "{why}");
    assert_alike(&answer, "shapes");
}

fn models_compute_what_the_runtime_computes(python: &Path, models: &Path) {
    for (model, taken) in [
        ("mobilenet_v1_0.25_128_quant", "31 of 31 nodes in 1 partitions on cpu"),
        ("mobilenet_v1_0.25_224_float", "31 of 31 nodes in 1 partitions on cpu"),
        ("mobilenet_v2_1.0_224_quant", "66 of 66 nodes in 1 partitions on cpu"),
        ("mobilenet_v2_1.0_224_ptq_int8", "68 of 68 nodes in 1 partitions on cpu"),
        ("mobilenet_v2_1.0_224_float_fp16w", "119 of 119 nodes in 1 partitions on cpu"),
    ] {
        let (answer, why) = run(python, models, model, &[]);
        assert_eq!(why.lines().next(), Some(taken), "{model}: {why}");
        assert_alike(&answer, model);
    }
}

fn states_are_the_runtimes_and_are_reset_by_it(python: &Path, models: &Path) {
    let model = "kws_svdf_rnn_float";
    let (answer, why) = run(python, models, model, &[]);
    assert!(!why.starts_with("0 of"), "{why}");
    assert_alike(&answer, model);
}

fn an_input_of_another_shape_is_taken_over_again(python: &Path, models: &Path) {
    let model = "edsr_f32b5_240x135_float";
    let (answer, why) = run(python, models, model, &[1, 16, 24, 3]);
    assert_alike(&answer, model);
    assert_eq!(why.lines().filter(|line| line.contains(" partitions on cpu")).count(), 2, "{why}");
}

fn what_makes_no_sense_is_an_exception_with_the_reason(python: &Path, models: &Path) {
    let path = models.join("mobilenet_v1_0.25_128_quant.tflite");
    for (options, want) in [
        (json!({ "nonsense": "1" }), "there is no option \"nonsense\""),
        (json!({ "device": "gpu" }), "option device is \"gpu\", which is not here"),
    ] {
        let answer = ask(python, path.to_str().unwrap(), &options, &[]).unwrap();
        let said = answer["refused"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(said.contains(want), "{said}");
    }
}

/// A service in this process, at this socket, until it is dropped.
struct Serving {
    metrics: Arc<Metrics>,
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    fn at(socket: &Path) -> Self {
        let listener = Listener::bind(socket).unwrap();
        let device = Arc::new(CpuDevice::default());
        let service = Service::new(vec![device], ServiceOptions::default());
        let metrics = service.metrics();
        let (stopper, stop) = Stop::new().unwrap();
        let thread = std::thread::spawn(move || service.run(&listener, &stop).unwrap());
        Serving { metrics, stopper: Some(stopper), thread: Some(thread) }
    }

    /// Executions over bursts so far.
    fn executions(&self) -> u64 {
        let text = self.metrics.encode();
        let count = text.lines().find_map(|line| line.strip_prefix(BURST_EXECUTIONS));
        count.map_or(0, |count| count.trim().parse().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stopper.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

fn a_service_in_another_process_computes_the_same(python: &Path, models: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let serving = Serving::at(&socket);
    let model = "mobilenet_v1_0.25_128_quant";
    let path = models.join(format!("{model}.tflite"));
    let options = json!({ "socket": socket });
    let answer = ask(python, path.to_str().unwrap(), &options, &[]).unwrap();
    assert_alike(&answer, model);
    assert_eq!(serving.executions(), 4);
}

/// A runtime in a process of its own that executes a model when it is told to.
struct Stepwise {
    process: Child,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Stepwise {
    fn start(python: &Path, options: &Value) -> Self {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut command = Command::new(python);
        command.arg(here.join("tests/litert/stepwise.py")).arg(library());
        command.arg(here.join("../models/shapes.tflite")).arg(options.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut stepwise = Stepwise { process, answers };
        assert_eq!(stepwise.answer(), "ready");
        stepwise
    }

    fn answer(&mut self) -> String {
        self.answers.next().expect("the runtime still runs").unwrap()
    }

    /// One execution: `same`, or what the runtime said.
    fn execute(&mut self) -> String {
        writeln!(self.process.stdin.as_ref().unwrap()).unwrap();
        self.answer()
    }
}

impl Drop for Stepwise {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn without_its_service_a_named_device_fails_until_the_service_is_back(python: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let serving = Serving::at(&socket);
    let mut client = Stepwise::start(python, &json!({ "socket": socket, "device": "cpu" }));
    assert_eq!(client.execute(), "same");
    drop(serving);
    for _ in 0..2 {
        let said = client.execute();
        assert!(said.contains("DEAD_OBJECT"), "{said}");
    }
    let serving = Serving::at(&socket);
    assert_eq!((client.execute().as_str(), client.execute().as_str()), ("same", "same"));
    assert_eq!(serving.executions(), 2, "the service has computed them");
}

fn without_its_service_the_reference_device_computes_where_none_is_named(python: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let serving = Serving::at(&socket);
    let mut client = Stepwise::start(python, &json!({ "socket": socket }));
    assert_eq!(client.execute(), "same");
    assert_eq!(serving.executions(), 1, "the service has computed it");
    drop(serving);
    assert_eq!((client.execute().as_str(), client.execute().as_str()), ("same", "same"));
    let _serving = Serving::at(&socket);
    assert_eq!(client.execute(), "same");
}
