//! `--source /dev/videoN`, with a camera that the test builds (`cli/examples/v4l2_stand_in/`): no real one was tried.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use burst_pictures::{decode_motion_jpeg, encode_jpeg};
use serde_json::{Value, json};

use crate::support::{burst, json as parse, run, terminal::Session};

burst_testing::tests![
    uncompressed_frames_with_padded_lines_come_out_as_their_colours(),
    compressed_frames_without_huffman_tables_come_out_as_they_are(),
    what_a_camera_marks_as_damaged_is_left_out_and_counted(),
    what_no_picture_can_be_made_of_is_left_out_and_counted(),
    latency_counts_from_when_a_frame_was_taken(),
    a_time_stamp_that_cannot_be_is_told_and_arrival_counts(),
    a_format_that_the_driver_changes_is_taken_and_told(),
    a_rate_is_asked_for_and_another_one_is_told(),
    of_several_frames_the_newest_is_taken_and_the_others_are_counted(),
    an_unplugged_camera_ends_a_stream_with_its_summary_and_then_the_reason(),
    a_camera_that_says_nothing_ends_a_stream(),
    a_camera_that_gives_only_damaged_frames_ends_a_stream(),
    what_cannot_be_used_is_refused_in_words(),
    sources_are_listed_with_what_they_can_do(),
    options_of_cameras_go_with_cameras(),
    a_camera_gets_its_buffers_back_before_it_is_closed(),
];

const DEVICE: &str = "/dev/video7";
/// A format with 32 bytes of padding in each line.
const YUYV: &str = "format YUYV 64x48 160 30,15";
const MJPG: &str = "format MJPG 64x48 0 30,15";

/// The stand-in that Cargo built together with these tests.
fn library() -> PathBuf {
    let folder = std::env::current_exe().unwrap().parent().unwrap().parent().unwrap().to_owned();
    let library = folder.join("examples/libv4l2_stand_in.so");
    assert!(library.exists(), "cargo build -p burst --example v4l2_stand_in makes {library:?}");
    library
}

/// A camera: its script, and the files of its frames.
struct Scene {
    folder: tempfile::TempDir,
    script: String,
    frames: usize,
}

impl Scene {
    /// With these lines of the script.
    fn new(lines: &[&str]) -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let script = format!("device {DEVICE}\n{}\n", lines.join("\n"));
        Scene { folder, script, frames: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// A frame of these bytes, with these words.
    fn frame(mut self, bytes: &[u8], words: &str) -> Scene {
        self.frames += 1;
        let file = self.path(&format!("frame-{}", self.frames));
        std::fs::write(&file, bytes).unwrap();
        writeln!(self.script, "frame {} {words}", file.display()).unwrap();
        self
    }

    fn line(mut self, line: &str) -> Scene {
        writeln!(self.script, "{line}").unwrap();
        self
    }

    fn command(&self, args: &[&str]) -> Command {
        let script = self.path("script");
        std::fs::write(&script, &self.script).unwrap();
        let mut command = burst(&[&["stream"], args].concat());
        command.env("LD_PRELOAD", library()).env("BURST_STAND_IN", script);
        command
    }

    /// Streams from the camera.
    fn run(&self, args: &[&str]) -> Output {
        self.command(&[&["--source", DEVICE], args].concat()).output().unwrap()
    }

    fn report(&self, args: &[&str], code: i32) -> (Value, String) {
        let output = self.run(&[args, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        (parse(&output), String::from_utf8(output.stderr).unwrap())
    }

    /// The picture that was saved of the frame with this number.
    fn saved(&self, number: u32) -> burst_pictures::Picture {
        burst_pictures::read(&self.path(&format!("saved/frame-{number:06}.png"))).unwrap()
    }
}

/// 64 x 48 pixels in YUYV, all of one colour, lines of 160 bytes, their padding of another colour.
fn yuyv([y, u, v]: [u8; 3]) -> Vec<u8> {
    let line = [[y, u, y, v].repeat(32), vec![255; 32]].concat();
    line.repeat(48)
}

fn red() -> Vec<u8> {
    yuyv([81, 90, 240])
}

fn blue() -> Vec<u8> {
    yuyv([41, 240, 110])
}

/// Noise as a JPEG picture, whole and without its Huffman tables.
fn jpeg(seed: u32) -> (Vec<u8>, Vec<u8>) {
    let noise = |at: u32| u8::try_from((at ^ seed).wrapping_mul(2_654_435_761) >> 24).unwrap();
    let rgb: Vec<u8> = (0..64 * 48 * 3).map(noise).collect();
    let whole = encode_jpeg(64, 48, &rgb, 50).unwrap();
    let (mut bare, mut at) = (whole[..2].to_vec(), 2);
    while whole[at + 1] != 0xDA {
        let end = at + 2 + usize::from(u16::from_be_bytes([whole[at + 2], whole[at + 3]]));
        if whole[at + 1] != 0xC4 {
            bare.extend(&whole[at..end]);
        }
        at = end;
    }
    bare.extend(&whole[at..]);
    assert!(bare.len() + 400 < whole.len(), "the tables are gone");
    (whole, bare)
}

fn uncompressed_frames_with_padded_lines_come_out_as_their_colours() {
    let scene = Scene::new(&[YUYV]).frame(&red(), "").frame(&blue(), "");
    // The classes of the built-in model are written into the upper left corner.
    let (report, _) = scene.report(&["--frames", "2", "--save-frames", &scene.text("saved")], 0);
    assert_eq!((&report["frames"], &report["damaged"]), (&json!(2), &json!(0)), "{report}");
    for (number, [r, g, b]) in [(1, [254, 0, 0]), (2, [0, 0, 254])] {
        let picture = scene.saved(number);
        assert_eq!((picture.width, picture.height), (64, 48));
        let last = &picture.rgb[picture.rgb.len() - 64 * 3 * 8..];
        for pixel in last.chunks(3) {
            let near = |value: u8, wanted: i32| (i32::from(value) - wanted).abs() < 4;
            assert!(near(pixel[0], r) && near(pixel[1], g) && near(pixel[2], b), "{pixel:?}");
        }
    }
    let camera = &report["camera"];
    assert_eq!((&camera["name"], &camera["format"]), (&json!("Stand-in camera"), &json!("YUYV")));
    assert_eq!((&camera["width"], &camera["fps"]), (&json!(64), &json!(30.0)), "{camera}");
}

fn compressed_frames_without_huffman_tables_come_out_as_they_are() {
    let (whole, bare) = jpeg(1);
    let padded = [&bare[..], &[0; 100]].concat();
    let scene = Scene::new(&[MJPG]).frame(&bare, "").frame(&padded, "").frame(&whole, "");
    let (report, said) = scene.report(&["--frames", "3", "--save-frames", &scene.text("saved")], 0);
    assert_eq!((&report["frames"], said.as_str()), (&json!(3), ""), "{report}");
    assert_eq!(report["camera"]["format"], "MJPG");
    let picture = decode_motion_jpeg(&whole).unwrap();
    let lower = |picture: &burst_pictures::Picture| picture.rgb[64 * 3 * 40..].to_vec();
    for number in 1..=3 {
        assert_eq!(lower(&scene.saved(number)), lower(&picture), "frame {number}");
    }
}

fn what_a_camera_marks_as_damaged_is_left_out_and_counted() {
    let scene = Scene::new(&[YUYV])
        .frame(&red(), "error")
        .frame(&red(), "")
        .frame(&red(), "used=100")
        .frame(&red(), "used=9999999")
        .frame(&red(), "eio")
        .frame(&blue(), "");
    let (report, said) = scene.report(&["--frames", "6", "--top", "1"], 0);
    assert_eq!((&report["frames"], &report["damaged"]), (&json!(2), &json!(4)), "{report}");
    let numbers: Vec<&Value> =
        report["results"].as_array().unwrap().iter().map(|result| &result["frame"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(6)], "places in the camera's row");
    assert_eq!(said, "");
    let text = String::from_utf8(scene.run(&["--frames", "6"]).stdout).unwrap();
    assert!(text.contains("\n2 frames in ") && text.contains(", 4 damaged and left out"), "{text}");
}

fn what_no_picture_can_be_made_of_is_left_out_and_counted() {
    let (whole, bare) = jpeg(2);
    let scene = Scene::new(&[MJPG])
        .frame(&bare[..bare.len() / 2], "")
        .frame(b"no picture at all", "")
        .frame(&whole, "");
    let (report, _) = scene.report(&["--frames", "3"], 0);
    assert_eq!((&report["frames"], &report["damaged"]), (&json!(1), &json!(2)), "{report}");
}

/// A frame that is two seconds old when it comes cannot be answered in less.
fn latency_counts_from_when_a_frame_was_taken() {
    let scene = Scene::new(&[YUYV]).frame(&red(), "age=2000").frame(&blue(), "age=2000");
    for extra in [&["--frames", "2"][..], &["--frames", "2", "--fps", "15"]] {
        let (report, said) = scene.report(extra, 0);
        assert_eq!((&report["camera"]["untimed"], said.as_str()), (&json!(0), ""), "{report}");
        let least = report["latency_us"]["p50"].as_f64().unwrap();
        assert!(least > 1_990_000.0, "{report}");
        assert!(report["driver_us"]["p50"].as_f64().unwrap() < least, "{report}");
        assert!(report["late"].is_null(), "{report}");
    }
    let text = String::from_utf8(scene.run(&["--frames", "2"]).stdout).unwrap();
    assert!(text.contains("latency counts from when the camera took a frame"), "{text}");
}

fn a_time_stamp_that_cannot_be_is_told_and_arrival_counts() {
    for (time, reason) in [
        ("time=back", "its time stamps go backwards"),
        ("time=future", "its time stamps are in the future"),
        ("time=unset", "its time stamps are not set"),
        ("time=other", "its time stamps are of another clock than the monotonic one"),
    ] {
        let wrong = format!("{time} age=3600000");
        let scene = Scene::new(&[YUYV])
            .frame(&red(), "")
            .frame(&red(), if time == "time=future" { time } else { &wrong })
            .frame(&red(), time);
        let (report, said) = scene.report(&["--frames", "3"], 0);
        let camera = &report["camera"];
        assert_eq!((&camera["untimed"], &report["frames"]), (&json!(2), &json!(3)), "{report}");
        assert_eq!(camera["untimed_because"], reason);
        assert!(report["latency_us"]["max"].as_f64().unwrap() < 3e9, "{report}");
        assert_eq!(said.matches(reason).count(), 1, "said once: {said}");
        let text = String::from_utf8(scene.run(&["--frames", "3"]).stdout).unwrap();
        let line = format!("latency of 2 frames counts from when they arrived: {reason}");
        assert!(text.contains(&line), "{text}");
    }
}

fn a_format_that_the_driver_changes_is_taken_and_told() {
    let (_, bare) = jpeg(3);
    let scene = Scene::new(&[YUYV, MJPG, "insist MJPG 64x48 0"]).frame(&bare, "");
    let wish = ["--frames", "1", "--size", "640x480", "--camera-format", "yuyv"];
    let (report, said) = scene.report(&wish, 0);
    let camera = &report["camera"];
    assert_eq!((&camera["format"], &camera["height"]), (&json!("MJPG"), &json!(48)), "{report}");
    assert!(said.contains("gives 64 x 48 pixels, not 640 x 480"), "{said}");
    assert!(said.contains("gives MJPG, not YUYV"), "{said}");
    // A format that nobody can read.
    let scene = Scene::new(&[YUYV, "insist NV12 64x48 64"]).frame(&bare, "");
    let (report, _) = scene.report(&["--frames", "1"], 2);
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("none of its formats is read (YUYV)"), "{error}");
    // Lines that are shorter than their pixels.
    let scene = Scene::new(&[YUYV, "insist YUYV 64x48 100"]).frame(&bare, "");
    let (report, _) = scene.report(&["--frames", "1"], 2);
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("64 x 48 pixels with 100 bytes a line"), "{error}");
}

fn a_rate_is_asked_for_and_another_one_is_told() {
    for (asked, given, is_told) in [("15", 15.0, false), ("60", 30.0, true)] {
        let scene = Scene::new(&[YUYV]).frame(&red(), "");
        let log = format!("log {}", scene.text("log"));
        let scene = scene.line(&log);
        let (report, said) = scene.report(&["--frames", "1", "--fps", asked], 0);
        assert_eq!(report["camera"]["fps"], given, "{report}");
        assert_eq!(said.contains("gives 30.00 frames per second, not 60.00"), is_told, "{said}");
        let log = std::fs::read_to_string(scene.path("log")).unwrap();
        assert!(log.contains(&format!("S_PARM 1/{asked}\n")), "{log}");
    }
}

fn of_several_frames_the_newest_is_taken_and_the_others_are_counted() {
    let row = || {
        Scene::new(&[YUYV, "buffers 3"])
            .frame(&red(), "with-next")
            .frame(&red(), "with-next")
            .frame(&blue(), "gap=4")
            .frame(&blue(), "")
    };
    let scene = row();
    let saved = scene.text("saved");
    let (report, _) = scene.report(&["--frames", "4", "--save-frames", &saved], 0);
    let counts = |report: &Value| {
        let number = |value: &Value| value.as_u64().unwrap();
        let camera = &report["camera"];
        (number(&report["frames"]), number(&report["dropped"]), number(&camera["missed"]))
    };
    assert_eq!(counts(&report), (2, 2, 4), "{report}");
    let last = scene.saved(3).rgb;
    assert!(last[last.len() - 1] > 200, "the third one is blue: its buffer was read in time");
    assert!(!scene.path("saved/frame-000001.png").exists());
    let (report, _) = row().report(&["--frames", "4", "--fps", "30", "--drop", "none"], 0);
    assert_eq!(counts(&report), (4, 0, 4), "every one: {report}");
}

fn an_unplugged_camera_ends_a_stream_with_its_summary_and_then_the_reason() {
    let scene = Scene::new(&[YUYV]).frame(&red(), "").frame(&red(), "").line("unplug");
    let reason = format!("the camera {DEVICE}: it was unplugged");
    let output = scene.run(&[]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let (out, err) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(out.contains("\n2 frames in ") && out.contains("latency"), "{out}");
    assert_eq!(err, format!("burst: {reason}\n"));
    let (report, _) = scene.report(&[], 2);
    assert_eq!((&report["frames"], &report["error"]), (&json!(2), &json!(reason)), "{report}");
    let (report, said) = scene.report(&["--lenient"], 0);
    assert_eq!(report["frames"], 2, "{report}");
    assert!(said.contains(&format!("left out: {reason}")), "{said}");
}

fn a_camera_that_says_nothing_ends_a_stream() {
    let scene = Scene::new(&[YUYV]).frame(&red(), "");
    let (report, _) = scene.report(&[], 2);
    assert_eq!(report["frames"], 1, "{report}");
    assert!(report["error"].as_str().unwrap().contains("it gave no whole frame for 10 s"));
}

fn a_camera_that_gives_only_damaged_frames_ends_a_stream() {
    let mut scene = Scene::new(&[YUYV]).frame(&red(), "");
    for _ in 0..100 {
        scene = scene.frame(&[], "error");
    }
    let (report, _) = scene.frame(&red(), "").report(&[], 2);
    assert_eq!((&report["frames"], &report["damaged"]), (&json!(1), &json!(100)), "{report}");
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("the last 100 frames of it were all damaged"), "{error}");
    let mut scene = Scene::new(&[MJPG]);
    for _ in 0..100 {
        scene = scene.frame(b"noise", "");
    }
    let (report, _) = scene.report(&[], 2);
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("none of the last 100 frames can be read"), "{error}");
}

fn what_cannot_be_used_is_refused_in_words() {
    for (lines, reason) in [
        (&[YUYV, "refuse open EACCES"][..], "no permission to use it; device files of cameras"),
        (&[YUYV, "refuse open EBUSY"], "another program is using it"),
        (&[YUYV, "refuse S_FMT EBUSY"], "another program is using it"),
        (&[YUYV, "refuse REQBUFS EBUSY"], "another program is using it"),
        (&[YUYV, "refuse STREAMON EIO"], "VIDIOC_STREAMON failed: Input/output error"),
        (&[YUYV, "capabilities 0x04a00000"], "it gives no pictures (capabilities 0x04a00000)"),
        (&[YUYV, "capabilities 0x00200001"], "it cannot stream"),
        (&[YUYV, "capabilities 0x04001000"], "several planes"),
        (&["format NV12 64x48 64"], "none of its formats is read (NV12); YUYV and MJPG are"),
        (&[YUYV, "buffers 0"], "its driver made 0 buffers"),
    ] {
        let scene = Scene::new(lines).frame(&red(), "");
        let output = scene.run(&["--frames", "1"]);
        assert_eq!(output.status.code(), Some(2), "{lines:?}: {output:?}");
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(err.starts_with("burst: ") && err.contains(DEVICE), "{lines:?}: {err}");
        assert!(err.contains(reason), "{lines:?}: {err}");
        let (report, _) = scene.report(&["--frames", "1"], 2);
        assert!(report["error"].as_str().unwrap().contains(reason), "{report}");
    }
    let output = run(&["stream", "--source", "/dev/video255"]);
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("/dev/video255: there is no such device"), "{err}");
}

fn sources_are_listed_with_what_they_can_do() {
    let list = |scene: &Scene, extra: &[&str]| {
        let output = scene.command(&[&["--list-sources"], extra].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        output
    };
    let scene = Scene::new(&[YUYV, "format YUYV 32x24 64", MJPG, "format NV12 64x48 64"]);
    let text = String::from_utf8(list(&scene, &[]).stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.starts_with(DEVICE)).unwrap();
    assert_eq!(lines[0], "demo  the synthetic camera");
    assert_eq!(
        lines[at..at + 4],
        [
            "/dev/video7  Stand-in camera (stand_in, platform:stand-in)",
            "  YUYV  64x48 (30, 15), 32x24",
            "  MJPG  64x48 (30, 15)",
            "  NV12 (not read)  64x48",
        ]
    );
    let many = "format YUYV 640x480 1280 30,25,20,15,10,5";
    let wide = Scene::new(&[many, "format MJPG 1280x720 0 30,25,20,15,10,5", many]);
    let session = Session::run(wide.command(&["--list-sources"]), 60);
    let lines = session.lines();
    assert!(lines.iter().all(|line| line.chars().count() <= 60), "{lines:#?}");
    assert!(
        lines.iter().any(|line| line.contains("640x480 (30, 25, 20, 15, 10, 5)")),
        "{lines:#?}"
    );
    let report = parse(&list(&scene, &["--json"]));
    let sources = report["sources"].as_array().unwrap();
    let own = sources.iter().find(|source| source["source"] == DEVICE).unwrap();
    assert_eq!(own["formats"][0]["sizes"][0]["fps"], json!([30.0, 15.0]), "{own}");
    assert_eq!((&own["formats"][2]["is_read"], &own["error"]), (&json!(false), &Value::Null));
    assert!(report["frames"].is_null() && report["error"].is_null(), "{report}");
    let refused = Scene::new(&[YUYV, "refuse open EACCES"]);
    let text = String::from_utf8(list(&refused, &[]).stdout).unwrap();
    assert!(text.contains(&format!("{DEVICE}  cannot be used: no permission")), "{text}");
    // What a camera has beside itself is no source.
    let beside = Scene::new(&[YUYV, "capabilities 0x04a00000"]);
    let text = String::from_utf8(list(&beside, &[]).stdout).unwrap();
    assert!(!text.contains(DEVICE), "{text}");
}

fn options_of_cameras_go_with_cameras() {
    for (args, reason) in [
        (
            &["--camera-format", "mjpeg"][..],
            "--camera-format goes with a camera, which demo is not",
        ),
        (&["--size", "64x48"], "--size goes with raw frames or a camera, which demo is not"),
    ] {
        let output = run(&[&["stream"], args].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(err.contains(reason), "{err}");
    }
    let scene = Scene::new(&[YUYV]).frame(&red(), "");
    let (report, _) = scene.report(&["--size", "64x48", "--pixels", "gray"], 2);
    let error = report["error"].as_str().unwrap();
    assert!(error.contains("--pixels goes with raw frames, which /dev/video7 is not"), "{error}");
}

fn a_camera_gets_its_buffers_back_before_it_is_closed() {
    let scene = Scene::new(&[YUYV]).frame(&red(), "").frame(&red(), "");
    let log = format!("log {}", scene.text("log"));
    let scene = scene.line(&log);
    scene.report(&["--frames", "2"], 0);
    let log = std::fs::read_to_string(scene.path("log")).unwrap();
    let lines: Vec<&str> = log.lines().collect();
    let wanted = ["S_FMT YUYV 640x480", "REQBUFS 4", "STREAMON", "STREAMOFF", "CLOSE"];
    assert_eq!(lines, wanted);
}
