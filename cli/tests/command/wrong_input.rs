//! Wrong input: each time one clear sentence, exit status 2, and no panic.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use burst_testing::shared;

use crate::support::{self, json, repository, run};

burst_testing::tests![
    a_missing_file_is_named(),
    a_file_that_is_no_model_and_one_cut_short_are_told_apart(),
    a_picture_of_the_wrong_kind_is_refused(),
    a_model_that_takes_no_pictures_or_has_an_operation_we_lack_is_refused(&shared("models")?),
    a_socket_without_a_service_or_without_permission_is_told(),
    options_that_make_no_sense_are_refused(),
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
    // The spectrum in it has no form in the operations of the HAL; sound gets it from the client.
    assert_fails_with(
        &["stream", "--model", &model("yamnet_wavin_int8.tflite")],
        &["RFFT2D", "operator"],
    );
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
    // Root may open anything, so the refusal can be seen by other users only.
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o000)).unwrap();
    let said = error_text(&run(&["stream", "--socket", path]));
    let is_root = std::process::Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    assert!(is_root || said.contains("not permitted"), "{said}");
    drop(listener);
}

fn options_that_make_no_sense_are_refused() {
    assert_fails_with(&["stream", "--fps", "0"], &["--fps"]);
    assert_fails_with(&["stream", "--deadline", "nan"], &["--deadline"]);
    assert_fails_with(&["stream", "--device", "gpu"], &["gpu", "cpu"]);
    assert_fails_with(
        &["stream", "--path", "in-process", "--socket", "/tmp/x"],
        &["in-process uses no socket"],
    );
}

fn a_second_service_does_not_take_a_socket_away() {
    let service = support::Service::start();
    let output = run(&["serve", "--socket", service.path()]);
    let said = error_text(&output);
    assert!(said.contains("burst.sock"), "{said}");
    let devices = run(&["devices", "--socket", service.path(), "--json"]);
    assert_eq!(json(&devices)["devices"][0]["name"], "cpu");
}
