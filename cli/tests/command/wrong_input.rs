//! Wrong input: each time one clear sentence, exit status 2, and no panic.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Output;

use burst_testing::shared;

use crate::support::terminal::Session;
use crate::support::{self, json, repository, run};

burst_testing::tests![
    a_missing_file_is_named(),
    a_file_that_is_no_model_and_one_cut_short_are_told_apart(),
    a_picture_of_the_wrong_kind_is_refused(),
    a_model_that_takes_no_pictures_or_has_an_operation_we_lack_is_refused(&shared("models")?),
    a_socket_without_a_service_or_without_permission_is_told(),
    options_that_make_no_sense_are_refused(),
    options_that_do_not_apply_are_refused(),
    options_for_other_answers_are_refused(&shared("")?),
    numbers_that_cannot_be_are_explained(),
    label_files_that_are_empty_or_wrong_are_refused(),
    a_report_that_cannot_be_written_is_told_before_anything_is_measured(),
    an_unknown_peer_is_told_which_there_are(),
    a_limit_of_one_user_is_not_called_the_services(),
    a_second_service_does_not_take_a_socket_away(),
];

/// The error text of a failed run, which must be the only line of standard error.
fn error_text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    assert!(!text.contains("panicked"), "{text}");
    text
}

/// Asserts that a run fails with one line that contains all `parts`, and that `--json` gives the same text.
fn assert_fails_with(args: &[&str], parts: &[&str]) {
    let said = error_text(&run(args));
    for part in parts {
        assert!(said.contains(part), "{args:?}: no {part:?} in: {said}");
    }
    let mut with_json = vec![args[0]];
    with_json.push("--json");
    with_json.extend(&args[1..]);
    let output = run(&with_json);
    assert_eq!(output.status.code(), Some(2));
    let error = json(&output)["error"].as_str().expect("an object with `error`").to_owned();
    assert!(said.contains(&error), "text and JSON say the same: {said} / {error}");
}

fn a_missing_file_is_named() {
    assert_fails_with(
        &["stream", "--source", "/nonexistent/a.jpg"],
        &["/nonexistent/a.jpg", "No such file"],
    );
    assert_fails_with(&["stream", "--model", "/nonexistent/m.tflite"], &["/nonexistent/m.tflite"]);
    assert_fails_with(&["stream", "--labels", "/nonexistent/l.txt"], &["/nonexistent/l.txt"]);
    assert_fails_with(&["stream", "--model", "/"], &["not a file"]);
}

fn a_file_that_is_no_model_and_one_cut_short_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("m.tflite");
    let path = file.to_str().unwrap();
    std::fs::write(&file, b"this is a text and not a model at all").unwrap();
    assert_fails_with(&["stream", "--model", path], &["m.tflite"]);
    let whole = std::fs::read(repository().join("models/shapes.tflite")).unwrap();
    for length in [0, 3, 8, 100, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&file, &whole[..length]).unwrap();
        assert_fails_with(&["stream", "--model", path], &["m.tflite"]);
    }
}

fn a_picture_of_the_wrong_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("a.txt");
    std::fs::write(&text, "hello").unwrap();
    assert_fails_with(&["stream", "--source", text.to_str().unwrap()], &["a.txt", "not a picture"]);
    let fake = folder.path().join("a.jpg");
    std::fs::write(&fake, "hello").unwrap();
    assert_fails_with(&["stream", "--source", fake.to_str().unwrap()], &["a.jpg"]);
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).unwrap();
    assert_fails_with(&["stream", "--source", empty.to_str().unwrap()], &["no .jpg"]);
    let video = folder.path().join("a.y4m");
    std::fs::write(&video, "hello").unwrap();
    assert_fails_with(&["stream", "--source", video.to_str().unwrap()], &["a.y4m"]);
    assert_fails_with(&["stream", "--source", "-"], &["--size"]);
}

fn a_model_that_takes_no_pictures_or_has_an_operation_we_lack_is_refused(models: &Path) {
    let model = |name: &str| models.join(name).to_str().unwrap().to_owned();
    assert_fails_with(
        &["stream", "--model", &model("kws_svdf_rnn_float.tflite")],
        &["kws_svdf_rnn_float"],
    );
    // It runs, as `explain` says, but not on pictures.
    let sound = model("yamnet_wavin_int8.tflite");
    assert_fails_with(
        &["stream", "--model", &sound],
        &["yamnet_wavin_int8", "takes sound, which demo is not", ".wav"],
    );
    let folder = tempfile::tempdir().unwrap();
    let empty = folder.path().join("empty.wav");
    std::fs::write(&empty, b"").unwrap();
    assert_fails_with(
        &["stream", "--model", &sound, "--source", empty.to_str().unwrap()],
        &["empty.wav: the file is empty"],
    );
    assert_refused_by_file_of_labels(&sound, &models.join("../inputs/coco_labels.txt"));
}

/// Labels that are not one for each class.
fn assert_refused_by_file_of_labels(model: &str, labels: &Path) {
    let sound = Path::new(model).parent().unwrap().join("../inputs/audio/speech.wav");
    let args = ["stream", "--model", model, "--source", sound.to_str().unwrap()];
    assert_fails_with(
        &[&args[..], &["--labels", labels.to_str().unwrap()]].concat(),
        &["--labels", "90 labels, where the model has 521 classes"],
    );
}

/// Asserts that clap refuses arguments, with these words, in text and as JSON.
fn assert_refused(args: &[&str], parts: &[&str]) {
    let output = run(args);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let output = run(&[args, &["--json"]].concat());
    assert_eq!(output.status.code(), Some(2), "{args:?}: {output:?}");
    let object = json(&output);
    let error = object["error"].as_str().unwrap_or_else(|| panic!("{object}"));
    for part in parts {
        assert!(said.contains(part) && error.contains(part), "{args:?}: {part}: {said} / {error}");
    }
}

fn options_that_do_not_apply_are_refused() {
    for (args, parts) in [
        (
            &["--size", "3x3"][..],
            &["--size goes with raw frames or a camera, which demo is not"][..],
        ),
        (&["--size", "3x3", "--pixels", "gray"], &["--size goes with raw frames"]),
        (&["--rate", "8000"], &["--rate goes with a .wav file"]),
        (&["--hop", "1"], &["--hop goes with a .wav file"]),
        (&["--source", "x.wav", "--fit", "crop"], &["--fit goes with pictures"]),
        (&["--source", "x.wav", "--float-range", "unit"], &["--float-range goes with pictures"]),
        (&["--source", "x.png", "--seed", "7"], &["--seed goes with the synthetic camera"]),
        (&["--state", "carry"], &["--state", "has no states"]),
        (&["--min-score", "0.5"], &["--min-score", "finds no things"]),
        (
            &["--path", "in-process", "--wait", "spin"],
            &["--path in-process has no other end to wait for", "--wait"],
        ),
        (
            &["--path", "in-process", "--reconnect"],
            &["--path in-process has no driver process to connect to again"],
        ),
    ] {
        assert_fails_with(&[&["stream"], args].concat(), parts);
    }
    assert_refused(&["stream", "--drop", "none"], &["--fps"]);
    assert_refused(&["stream", "--pixels", "gray"], &["--size"]);
    for option in [&["--frames", "3"][..], &["--model", "m.tflite"], &["--lenient"]] {
        let parts = ["--list-sources", option[0], "cannot be used with"];
        assert_refused(&[&["stream", "--list-sources"], option].concat(), &parts);
    }
    let data = repository().join("models");
    let (model, data) = (data.join("shapes.tflite"), data.to_str().unwrap().to_owned());
    let mlts = ["bench", "mlts", model.to_str().unwrap(), "--data", &data];
    assert_refused(&[&mlts[..], &["--seed", "2"]].concat(), &["--crops"]);
    let folder = tempfile::tempdir().unwrap();
    let vectors = folder.path().to_str().unwrap();
    for (command, option, part) in [
        (&mlts[..], &["--reference-inputs", "3"][..], "--reference-inputs goes with --python"),
        (&["verify", vectors], &["--mode", "ndk", "--threads", "2"], "--threads does nothing"),
        (&["bench", "model"], &["--pin", "--threads", "2"], "--pin goes with --threads 1"),
    ] {
        // Where one CPU is all there is, one thread computes, and that may be pinned.
        if option.contains(&"2") && std::thread::available_parallelism().unwrap().get() < 2 {
            continue;
        }
        assert_fails_with_behind(command, option, &[part]);
    }
}

/// As [`assert_fails_with`], of commands of two words.
fn assert_fails_with_behind(command: &[&str], options: &[&str], parts: &[&str]) {
    let args = [command, options].concat();
    let said = error_text(&run(&args));
    for part in parts {
        assert!(said.contains(part), "{args:?}: no {part:?} in: {said}");
    }
    let output = run(&[&args[..], &["--json"]].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let error = json(&output)["error"].as_str().unwrap().to_owned();
    assert!(said.contains(&error), "text and JSON say the same: {said} / {error}");
}

/// Options for answers that a model does not give, or of a source that has no pictures.
fn options_for_other_answers_are_refused(root: &Path) {
    let text = |path: &str| root.join(path).to_str().unwrap().to_owned();
    let sound = [text("models/yamnet_wavin_int8.tflite"), text("inputs/audio/speech.wav")];
    let sound = ["stream", "--model", &sound[0], "--source", &sound[1]];
    let folder = tempfile::tempdir().unwrap();
    let pictures = folder.path().to_str().unwrap();
    let parts = ["--save-frames: ", "speech.wav has no pictures"];
    assert_fails_with(&[&sound[..], &["--save-frames", pictures]].concat(), &parts);
    // Larger pictures have no classes.
    let larger = text("models/edsr_f32b5_240x135_int8.tflite");
    let larger = ["stream", "--model", &larger];
    let parts = ["--top needs an output with one score per class"];
    assert_fails_with(&[&larger[..], &["--top", "2"]].concat(), &parts);
    let labels = text("inputs/coco_labels.txt");
    let parts = ["--labels", "the outputs of", "are no classes"];
    assert_fails_with(&[&larger[..], &["--labels", &labels]].concat(), &parts);
}

fn numbers_that_cannot_be_are_explained() {
    for number in ["-5", "0", "many", "1.5"] {
        let parts = [
            number,
            "--frames",
            "expected a whole number from 1 on; without the option the synthetic camera stops",
            "after 600 frames",
            "anything else at its end",
        ];
        assert_refused(&["stream", "--frames", number], &parts);
    }
    for score in ["2", "-0.1", "nan", "high"] {
        let parts = [score, "--min-score", "expected a score from 0 to 1"];
        assert_refused(&["stream", "--min-score", score], &parts);
    }
    assert_refused(&["stream", "--top", "-1"], &["-1", "--top", "whole number from 1 to"]);
    assert_fails_with(&["stream", "--fps", "-3"], &["--fps -3"]);
    assert_fails_with(&["stream", "--deadline", "-3"], &["--deadline -3"]);
    for limit in ["--max-clients", "--max-clients-per-user", "--max-models", "--max-memory"] {
        assert_refused(&["serve", limit, "0"], &[limit, "with 0 no client could do anything"]);
    }
}

fn label_files_that_are_empty_or_wrong_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("labels.txt");
    let path = file.to_str().unwrap();
    let stream = ["stream", "--frames", "1", "--labels", path];
    for (text, parts) in [
        (&b""[..], &["labels.txt: no labels in this file"][..]),
        (b"\n\n", &["labels.txt: no labels in this file"]),
        (b"one\ntwo\n", &["labels.txt", "2 labels, where the model has"]),
        (b"\xff\xfe\0\0", &["labels.txt", "UTF-8"]),
    ] {
        std::fs::write(&file, text).unwrap();
        assert_fails_with(&stream, parts);
    }
    std::fs::write(&file, burst_camera::LABELS.join("\n")).unwrap();
    assert!(run(&stream).status.success());
}

fn a_report_that_cannot_be_written_is_told_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("no/such/page.html");
    let no_folder = folder.path().join("file");
    std::fs::write(&no_folder, "").unwrap();
    let inside = no_folder.join("page.html");
    let models = repository().join("models");
    let (model, data) = (models.join("shapes.tflite"), models.to_str().unwrap().to_owned());
    let model = model.to_str().unwrap().to_owned();
    for (command, option, file) in [
        (&["bench", "transport"][..], "--report", &wrong),
        (&["bench", "model"], "--report", &wrong),
        (&["bench", "mlts", &model, "--data", &data], "--report", &wrong),
        (&["stress", "--minutes", "0.1"], "--report", &wrong),
        (&["calibrate", "--rounds", "1"], "--output", &inside),
    ] {
        let args = [command, &[option, file.to_str().unwrap()]].concat();
        let said = error_text(&run(&args));
        assert!(said.contains(option) && said.contains("page.html"), "{said}");
        let output = run(&[&args[..], &["--json"]].concat());
        assert!(json(&output)["error"].as_str().unwrap().contains(option), "{output:?}");
        // In a terminal whatever is measured is named: nothing was.
        let session = Session::run(support::burst(&args), 100);
        let shown = session.transcript.trim_end();
        assert!(shown.starts_with("burst: ") && !shown.contains('\n'), "{session:?}");
    }
}

fn an_unknown_peer_is_told_which_there_are() {
    let output = run(&["bench", "transport", "--peers", "foo"]);
    let said = error_text(&output);
    assert!(said.contains("no peer is called foo; there are: "), "{said}");
    assert!(said.contains("burst"), "{said}");
    let output = run(&["bench", "transport", "--peers", "foo", "--json"]);
    let error = json(&output)["error"].as_str().unwrap().to_owned();
    assert!(said.contains(&error), "{said} {error}");
}

fn a_limit_of_one_user_is_not_called_the_services() {
    for (limit, name) in [
        ("--max-clients", "clients of all users"),
        ("--max-clients-per-user", "clients of one user"),
    ] {
        let service = support::Service::start_with(&[limit, "1"]);
        let _first = burst_client::Client::connect(&service.socket).unwrap();
        let said = error_text(&run(&["devices", "--socket", service.path()]));
        let parts = ["no place for another client", "the limit of 1 on ", name, "is reached"];
        assert!(parts.iter().all(|part| said.contains(part)), "{limit}: {said}");
        let output = run(&["devices", "--socket", service.path(), "--json"]);
        let error = json(&output)["error"].as_str().unwrap().to_owned();
        assert!(said.contains(&error), "{said} {error}");
    }
}

fn a_socket_without_a_service_or_without_permission_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none.sock");
    let path = socket.to_str().unwrap();
    assert_fails_with(&["stream", "--socket", path], &["no service listens", "none.sock"]);
    assert_fails_with(&["devices", "--socket", path], &["no service listens", "none.sock"]);
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    assert_eq!(run(&["stream", "--socket", file.to_str().unwrap()]).status.code(), Some(2));
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
    let mut command = as_nobody_where_root(folder.path());
    command.args(["stream", "--socket", path]).env_remove("BURST_SOCKET").env_remove("BURST_LOG");
    let said = error_text(&command.stdin(std::process::Stdio::null()).output().unwrap());
    assert!(said.contains("not permitted") && said.contains("none.sock"), "{said}");
    drop(listener);
}

/// `burst` as a user who may not open everything: for root that is `nobody`, with a copy of the
/// program in a folder that `nobody` may enter.
fn as_nobody_where_root(folder: &Path) -> std::process::Command {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return std::process::Command::new(env!("CARGO_BIN_EXE_burst"));
    }
    let program = folder.join("burst");
    // By a process of its own: what another test starts meanwhile would inherit the file open for writing, and
    // no such file can be started.
    let mut copy = std::process::Command::new("cp");
    let copied = copy.arg(env!("CARGO_BIN_EXE_burst")).arg(&program).status().unwrap();
    assert!(copied.success(), "cp: {copied}");
    for path in [folder, &program] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = std::process::Command::new(program);
    command.uid(NOBODY).gid(NOBODY);
    command
}

fn options_that_make_no_sense_are_refused() {
    assert_fails_with(&["stream", "--fps", "0"], &["--fps"]);
    assert_fails_with(&["stream", "--deadline", "nan"], &["--deadline NaN is no number"]);
    assert_fails_with(&["stream", "--deadline", "1e300"], &["--deadline 1e300 is no number"]);
    assert_fails_with(&["stream", "--device", "gpu"], &["gpu", "cpu"]);
    assert_fails_with(
        &["stream", "--path", "in-process", "--socket", "/tmp/x"],
        &["in-process uses no socket"],
    );
    let library = ["--library", "/nonexistent/libneuralnetworks.so"];
    assert_fails_with(&[&["verify", ".", "--mode", "ndk"][..], &library].concat(), &library[1..]);
    assert_fails_with(&[&["verify", "."][..], &library].concat(), &["--mode ndk"]);
    let other = ["verify", ".", "--mode", "ndk", "--library", "libc.so.6"];
    assert_fails_with(&other, &["libc.so.6", "ANeuralNetworks_getDeviceCount"]);
}

fn a_second_service_does_not_take_a_socket_away() {
    let service = support::Service::start();
    let output = run(&["serve", "--no-cache", "--socket", service.path()]);
    let said = error_text(&output);
    assert!(said.contains("burst.sock"), "{said}");
    let devices = run(&["devices", "--socket", service.path(), "--json"]);
    assert_eq!(json(&devices)["devices"][0]["name"], "cpu");
}
