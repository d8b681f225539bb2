//! Programs in C, compiled against `burst.h` and linked with the library: the example, and one that asks what the
//! library answers to wrong arguments and to a driver that is killed; the same of tasks.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use burst_client::{Client, ClientError, Deadline, Stream, StreamOptions};
use burst_driver::CpuDevice;
use burst_server::{Listener, serve};
use burst_tasks::{
    AudioClassifier, ImageClassifier, ImageSegmenter, ImageUpscaler, ObjectDetector, Picture,
    Sound, TaskModel, TaskOptions,
};
use burst_testing::{program, shared};

burst_testing::tests![
    the_example_runs_a_frame_in_another_process(&program("cc")?),
    wrong_arguments_and_a_killed_driver_have_their_answers(&program("cc")?),
    the_example_classifies_a_picture_as_the_task_in_rust_does(&program("cc")?),
    a_task_answers_wrong_arguments_and_a_killed_driver(&program("cc")?),
    each_kind_of_task_answers_what_it_does_in_rust(&program("cc")?, &shared("models")?),
    the_header_stands_for_itself_in_c_and_in_cpp(&program("cc")?),
    the_package_file_says_where_things_are(&program("pkg-config")?),
];

/// Where this process is the service, the socket that it listens on.
const AS_SERVICE: &str = "BURST_CAPI_TEST_SERVICE";
/// Turns a hang into a failure.
const HANG: Duration = Duration::from_secs(60);

fn main() -> ExitCode {
    let Some(socket) = std::env::var_os(AS_SERVICE) else { return burst_testing::run(&[TESTS]) };
    serve(Arc::new(CpuDevice::default()), &Listener::bind(socket).unwrap()).unwrap();
    ExitCode::SUCCESS
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn model() -> PathBuf {
    package().join("../models/shapes.tflite")
}

/// A service in a process of its own, which ends with its test.
struct Service(Child);

impl Service {
    fn start(socket: &Path) -> Service {
        let _ = fs::remove_file(socket);
        let mut command = Command::new(std::env::current_exe().unwrap());
        let mut service = Service(command.env(AS_SERVICE, socket).spawn().unwrap());
        let until = Instant::now() + HANG;
        // Its file is there before anybody listens.
        while let Err(error) = Client::connect(socket) {
            let nobody = matches!(error, ClientError::NobodyListens { .. });
            assert!(nobody && service.0.try_wait().unwrap().is_none(), "the service: {error}");
            assert!(Instant::now() < until, "the service does not listen");
            std::thread::yield_now();
        }
        service
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn succeeded(output: &Output, what: &str) -> String {
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{what}: {}\n{said}{complained}", output.status);
    said.into_owned()
}

/// A program of one source, linked with the library that Cargo built together with these tests.
fn compiled(cc: &Path, source: &str, folder: &Path) -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let library = own.parent().unwrap();
    let program = folder.join("program");
    let mut command = Command::new(cc);
    command.args(["-std=c11", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command.arg("-I").arg(package().join("include")).arg(package().join(source));
    command.arg("-o").arg(&program).arg("-L").arg(library).arg("-lburst_capi");
    command.arg(format!("-Wl,-rpath,{}", library.display()));
    succeeded(&command.output().unwrap(), "cc");
    program
}

/// A program with a service and a model, which loads the library that it was linked with.
fn started(program: &Path, socket: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(socket).arg(model()).env_remove("LD_LIBRARY_PATH");
    command
}

fn the_example_runs_a_frame_in_another_process(cc: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let program = compiled(cc, "examples/frame.c", folder.path());
    let none = started(&program, &socket).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    let said = String::from_utf8(none.stderr).unwrap();
    assert!(said.starts_with("no service listens at ") && said.lines().count() == 1, "{said}");
    let service = Service::start(&socket);
    let said = succeeded(&started(&program, &socket).output().unwrap(), "the example");
    let pid = service.0.id();
    let (class, score) = in_rust(&socket);
    assert_eq!(said, format!("class {class} with {score}, says process {pid}\n"));
}

/// The best class that the client in Rust reads of the same picture, and its score.
fn in_rust(socket: &Path) -> (usize, u8) {
    let imported = burst_tflite::import(&fs::read(model()).unwrap()).unwrap();
    let device = Client::connect(socket).unwrap().device("cpu").unwrap();
    let mut stream = device.stream(&imported.model, &StreamOptions::default()).unwrap();
    let best = |stream: &mut Stream, byte: u8| {
        stream.input(0).fill(byte);
        stream.run(Deadline::never()).unwrap();
        let scores = stream.output(0).unwrap().iter().copied().enumerate();
        // The first of equals, as in the example.
        scores.rev().max_by_key(|(_, score)| *score).unwrap()
    };
    let black = best(&mut stream, 0);
    let grey = best(&mut stream, 128);
    assert_ne!(black, grey, "the picture makes a difference");
    grey
}

fn the_example_classifies_a_picture_as_the_task_in_rust_does(cc: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let program = compiled(cc, "examples/classify.c", folder.path());
    let mut camera =
        burst_camera::Camera::new(7, burst_camera::WIDTH, burst_camera::HEIGHT).unwrap();
    let mut rgb = vec![0; camera.frame_bytes()];
    let drawn = camera.draw_sample(3, &mut rgb).unwrap();
    let file = folder.path().join("picture.ppm");
    let (width, height) = (camera.width(), camera.height());
    fs::write(&file, [format!("P6\n{width} {height}\n255\n").as_bytes(), &rgb].concat()).unwrap();
    let _service = Service::start(&socket);
    let said = started(&program, &socket).arg(&file).output().unwrap();
    let said = succeeded(&said, "the example");
    let device = Client::connect(&socket).unwrap().device("cpu").unwrap();
    let options = TaskOptions::default().with_max_results(3);
    let model = TaskModel::read(model()).unwrap();
    let mut task = ImageClassifier::new(&device, &model, &options).unwrap();
    let (width, height) = (width.try_into().unwrap(), height.try_into().unwrap());
    let classes = task.classify(Picture { width, height, rgb }.view().unwrap()).unwrap();
    let line = |class: &burst_tasks::Class| {
        format!("{} {} {:.4}\n", class.index, class.label, class.score)
    };
    assert_eq!(said, classes.iter().map(line).collect::<String>());
    assert_eq!((classes.len(), classes[0].index), (3, drawn.class));
}

fn each_kind_of_task_answers_what_it_does_in_rust(cc: &Path, models: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let program = compiled(cc, "tests/c/kinds.c", folder.path());
    let _service = Service::start(&socket);
    let mut command = Command::new(program);
    command.arg(&socket).arg(models).env_remove("LD_LIBRARY_PATH");
    let said = succeeded(&command.output().unwrap(), "kinds.c");
    let wanted = answers_in_rust(&socket, models);
    for (number, (said, wanted)) in said.lines().zip(&wanted).enumerate() {
        assert_eq!(said, wanted, "line {number}");
    }
    assert_eq!(said.lines().count(), wanted.len());
    for kind in ["thing ", "mask ", "picture ", "sound "] {
        assert!(said.lines().any(|line| line.starts_with(kind)), "no line {kind}");
    }
}

/// What `tests/c/kinds.c` is to say.
fn answers_in_rust(socket: &Path, models: &Path) -> Vec<String> {
    let device = Client::connect(socket).unwrap().device("cpu").unwrap();
    let options = TaskOptions::default().with_score_threshold(0.001);
    let read = |name: &str| TaskModel::read(models.join(format!("{name}.tflite"))).unwrap();
    let byte = |at: usize| u8::try_from((at / 3 % 320 + at / 2000) % 256).unwrap();
    let picture = Picture { width: 320, height: 240, rgb: (0..320 * 240 * 3).map(byte).collect() };
    let picture = picture.view().unwrap();
    let weighted = |values: &mut dyn Iterator<Item = usize>| -> usize {
        values.enumerate().map(|(at, value)| value * (at + 1)).sum()
    };
    let mut lines = Vec::new();

    let model = read("ssd_mobilenet_v1_coco_quant");
    let mut task = ObjectDetector::new(&device, &model, &options).unwrap();
    lines.extend(task.detect(picture).unwrap().iter().map(|found| {
        let [left, top, right, bottom] = found.edges;
        let (index, score) = (found.index, found.score);
        format!("thing {index} {score:.4} {left:.4} {top:.4} {right:.4} {bottom:.4}")
    }));
    let model = read("deeplabv3_257_float");
    let mut task = ImageSegmenter::new(&device, &model, &options).unwrap();
    let found = task.segment(picture).unwrap();
    let sum = weighted(&mut found.mask().iter().map(|class| usize::from(*class)));
    lines.push(format!("mask {} {} {sum}", found.size().0, found.size().1));
    let model = read("edsr_f32b5_240x135_int8");
    let mut task = ImageUpscaler::new(&device, &model, &options).unwrap();
    let found = task.upscale(picture).unwrap();
    let sum = weighted(&mut found.rgb.iter().map(|byte| usize::from(*byte)));
    lines.push(format!("picture {} {} {sum}", found.width, found.height));
    let model = read("yamnet_wavin_int8");
    let mut task = AudioClassifier::new(&device, &model, &options).unwrap();
    let sample = |at: u16| f32::from(at) / 500.0 - 1.0;
    let samples = (0..32_000_u32).map(|at| sample(u16::try_from(at * 37 % 1000).unwrap()));
    let sound = Sound { rate: 16_000, samples: samples.collect() };
    lines.extend(task.classify(&sound).unwrap().iter().filter_map(|heard| {
        let class = heard.classes.first()?;
        let (at, span) = (heard.at.as_nanos(), heard.span.as_nanos());
        Some(format!("sound {} {:.4} {at} {span}", class.index, class.score))
    }));
    lines
}

/// A conversation with a program: it says where it is, and goes on when it is told to.
struct Program {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Program {
    fn start(mut command: Command) -> Program {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        Program { child, to, from }
    }

    fn expect(&mut self, word: &str) {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        assert_eq!(line.trim_end(), word);
    }

    fn go_on(&mut self) {
        self.to.write_all(b"\n").unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wrong_arguments_and_a_killed_driver_have_their_answers(cc: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let program = compiled(cc, "tests/c/edges.c", folder.path());
    survives_a_killed_driver(started(&program, &socket), &socket);
}

fn a_task_answers_wrong_arguments_and_a_killed_driver(cc: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("burst.sock");
    let labels = folder.path().join("labels.txt");
    fs::write(&labels, burst_camera::LABELS.join("\n")).unwrap();
    let mut program = started(&compiled(cc, "tests/c/tasks.c", folder.path()), &socket);
    program.arg(labels);
    survives_a_killed_driver(program, &socket);
}

/// Kills a program's driver, and starts another one, when it says so.
fn survives_a_killed_driver(program: Command, socket: &Path) {
    let mut service = Service::start(socket);
    let mut program = Program::start(program);
    program.expect("kill it");
    service.kill();
    program.go_on();
    program.expect("start it again");
    let _service = Service::start(socket);
    program.go_on();
    program.expect("done");
    assert!(program.child.wait().unwrap().success());
}

fn the_header_stands_for_itself_in_c_and_in_cpp(cc: &Path) {
    for (language, standard) in [("c", "-std=c99"), ("c++", "-std=c++11")] {
        let mut command = Command::new(cc);
        command.args(["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", standard]);
        command.args(["-x", language]).arg(package().join("include/burst.h"));
        let output = command.output().unwrap();
        // A machine may have the one compiler without the other.
        if !String::from_utf8_lossy(&output.stderr).contains("cc1plus") {
            succeeded(&output, language);
        }
    }
}

fn the_package_file_says_where_things_are(pkg_config: &Path) {
    let folder = tempfile::tempdir().unwrap();
    let template = fs::read_to_string(package().join("burst.pc.in")).unwrap();
    let file = template.replace("@PREFIX@", "/opt").replace("@VERSION@", env!("CARGO_PKG_VERSION"));
    assert!(!file.lines().filter(|line| !line.starts_with('#')).any(|line| line.contains('@')));
    fs::write(folder.path().join("burst.pc"), file).unwrap();
    let said = |option: &str| {
        let mut command = Command::new(pkg_config);
        command.env("PKG_CONFIG_PATH", folder.path()).args([option, "burst"]);
        succeeded(&command.output().unwrap(), option).trim().to_owned()
    };
    assert_eq!(said("--cflags"), "-I/opt/include");
    assert_eq!(said("--libs"), "-L/opt/lib -lburst_capi");
    assert_eq!(said("--modversion"), env!("CARGO_PKG_VERSION"));
}
