//! Arguments of `burst stream`.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Result, bail};
use burst_harness::WaitKind;
use clap::builder::{OsStringValueParser, TypedValueParser};

use super::{DEFAULT_FRAMES, pace};
use crate::fit::{Fit, FloatRange};
use crate::output_file::{self, Named};
use crate::preference::{PreferenceArg, PriorityArg};
use crate::route::RouteArg;
use crate::source;
use crate::threads::Threads;
use crate::trace::TraceArgs;

/// What becomes of a model's states between frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum State {
    /// They go from each frame into the next, where they lie.
    Carry,
    /// Every frame begins as the first one did.
    Reset,
}

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Where frames come from: `demo` (synthetic camera), /dev/videoN (a camera), a .jpg or .png (up to 16384 pixels a
    /// side), a folder of them, a .y4m video, `-` for raw frames on standard input, a .wav file, or
    /// a .f32 file with values of the model's input.
    #[arg(long, default_value = "demo", value_parser = OsStringValueParser::new().try_map(source_name))]
    pub(super) source: String,
    /// List the cameras of this machine with their formats, sizes and rates, and end.
    #[arg(long, conflicts_with_all = OF_A_STREAM)]
    pub(super) list_sources: bool,
    /// Model file (.tflite); without it the built-in one.
    #[arg(long)]
    pub(super) model: Option<PathBuf>,
    /// Stop after this many frames; a single picture is repeated. Default: 600 of the synthetic
    /// camera, all there are of anything else.
    #[arg(long, allow_negative_numbers = true, value_parser = frames)]
    pub(super) frames: Option<u64>,
    /// How requests reach the driver. Default: burst, or sync where a service grants no burst, which is said.
    #[arg(long, value_enum)]
    pub(super) path: Option<RouteArg>,
    /// How both ends of a burst wait for each other; a service may poll less. Default: adaptive.
    #[arg(long, value_enum)]
    pub(super) wait: Option<WaitKind>,
    /// Socket of a running service; without it a private driver process is started.
    #[arg(long)]
    pub(super) socket: Option<PathBuf>,
    /// Device: of the service, or of the private driver process; `burst devices` lists them.
    #[arg(long, default_value = "cpu")]
    pub(super) device: String,
    /// Divide the model among these devices of this process, by the framework: `nnapi-reference`, or those
    /// that `burst devices` lists. `burst explain --devices` shows how.
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME,...",
        conflicts_with_all = ["socket", "device", "path", "wait", "reconnect"]
    )]
    pub(super) devices: Vec<String>,
    /// What the driver should be good at. With low-power neither end polls, whatever --wait says.
    #[arg(long, value_enum, default_value_t)]
    pub(super) preference: PreferenceArg,
    /// Whom its executions give way to, among those of this user at one service: where all of its run tokens
    /// are taken, and between two operations of a model.
    #[arg(long, value_enum, default_value_t)]
    pub(super) priority: PriorityArg,
    /// Frames per second; latency then counts from when a frame was due. Of a camera the rate that it is asked for; latency
    /// there counts from when a frame was taken, with this or without.
    #[arg(long, allow_negative_numbers = true)]
    pub(super) fps: Option<f64>,
    /// Which frames are skipped when the driver does not keep up with --fps. Default: oldest.
    #[arg(long, value_enum, requires = "fps")]
    pub(super) drop: Option<pace::Drop>,
    /// Label file: line number (from 0) is the class. Default: the labels that are packed into the
    /// model's file, where there are any.
    #[arg(long)]
    pub(super) labels: Option<PathBuf>,
    /// Say the best N classes of every frame. Default: 1 of pictures (in the live line, where one is
    /// drawn), 3 of sound.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = top)]
    pub(super) top: Option<u16>,
    /// Say only what a detector found with at least this score, from 0 to 1. Default: what the
    /// model's file says, else 0.45.
    #[arg(long, value_name = "SCORE", allow_negative_numbers = true, value_parser = score)]
    pub(super) min_score: Option<f32>,
    /// Go on where something is damaged: a picture is left out and counted, a video or sound ends
    /// there. Without it the stream ends with exit status 2.
    #[arg(long)]
    pub(super) lenient: bool,
    /// Write each frame into this folder as a PNG with the result drawn in, by the frame's number;
    /// of super-resolution the larger picture.
    #[arg(long, value_name = "DIR")]
    pub(super) save_frames: Option<PathBuf>,
    /// Show the frames with the result drawn in as a page for a browser on this machine, for as long as
    /// the stream goes on. Its address, which nobody can guess, is said on standard error.
    #[arg(long)]
    pub(super) view: bool,
    /// Write the bytes of the first output of every execution into this file, one after the other.
    #[arg(long, value_name = "FILE")]
    pub(super) save_output: Option<PathBuf>,
    /// How frames of another aspect are fitted into the model's input. Default: stretch for
    /// detection and segmentation, crop for anything else.
    #[arg(long, value_enum)]
    pub(super) fit: Option<Fit>,
    /// What bytes 0 to 255 become in a float input. Default: what the model's file says; else byte for
    /// super-resolution, signed for anything else.
    #[arg(long, value_enum)]
    pub(super) float_range: Option<FloatRange>,
    /// Size of raw frames on standard input or in a .rgb, .gray or .raw file; of a camera the size
    /// that it is asked for, 640x480 by default.
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    pub(super) size: Option<source::Size>,
    /// Pixels of raw frames. Default: rgb24.
    #[arg(long, value_enum, requires = "size")]
    pub(super) pixels: Option<source::PixelFormat>,
    /// How a camera stores pixels. Default: yuyv up to 640x480, mjpeg above, as far as it has them.
    #[arg(long, value_enum)]
    pub(super) camera_format: Option<source::CameraFormat>,
    /// Samples per second that a model of waveforms takes; sound of another rate is resampled.
    /// Default: what the model's file says, else 16000.
    #[arg(long, value_name = "HERTZ")]
    pub(super) rate: Option<u32>,
    /// Seconds of sound from one execution to the next. Default: as much as the model takes.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub(super) hop: Option<f64>,
    /// What becomes of a model's states between frames. Default: reset for pictures, which have
    /// nothing to do with each other, carry for anything else.
    #[arg(long, value_enum)]
    pub(super) state: Option<State>,
    #[command(flatten)]
    pub(super) threads: Threads,
    /// When the driver dies, go on with the next one: look for a service that is started again, or
    /// start the private driver process anew. Requests under way are lost and count as errors. A
    /// service that is not there yet is waited for, too: up to 30 s, and no longer than --deadline.
    #[arg(long)]
    pub(super) reconnect: bool,
    /// Give up on a request after this many seconds.
    #[arg(long, default_value_t = 60.0, allow_negative_numbers = true)]
    pub(super) deadline: f64,
    #[command(flatten)]
    pub(super) trace: TraceArgs,
    /// Seed of the synthetic camera. Default: 1.
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Print one JSON object instead of text, at the end: docs/JSON.md.
    #[arg(long)]
    pub(super) json: bool,
    /// Print one JSON object for each frame as it is answered, and at the end the one of --json.
    #[arg(long, conflicts_with = "json")]
    pub(super) json_lines: bool,
}

/// What says nothing about a list of cameras: all options but those for its form.
const OF_A_STREAM: [&str; 34] = [
    "source",
    "model",
    "frames",
    "path",
    "wait",
    "socket",
    "device",
    "devices",
    "preference",
    "priority",
    "fps",
    "drop",
    "labels",
    "top",
    "min_score",
    "lenient",
    "save_frames",
    "view",
    "save_output",
    "fit",
    "float_range",
    "size",
    "pixels",
    "camera_format",
    "rate",
    "hop",
    "state",
    "count",
    "reconnect",
    "deadline",
    "trace",
    "trace_mib",
    "seed",
    "json_lines",
];

/// Which sources an option goes with.
type Goes = fn(&str) -> bool;

impl Args {
    /// Whether the summary is one JSON object.
    pub(crate) fn wants_json(&self) -> bool {
        self.json || self.json_lines
    }

    /// `--threads`, as far as it is of use.
    ///
    /// # Errors
    /// It is a number for a service that runs already.
    pub(crate) fn settle_threads(&mut self) -> Result<()> {
        self.threads.settle(self.socket.as_deref())
    }

    /// How both ends wait for each other.
    pub(super) fn wait(&self) -> WaitKind {
        self.wait.unwrap_or(WaitKind::Adaptive)
    }

    /// How many threads compute, unless a service has its own.
    pub(super) fn threads_used(&self) -> Option<u32> {
        self.socket.is_none().then_some(self.threads.count)
    }

    /// Refuses two outputs in one file, and outputs over what is read.
    pub(super) fn check_files(&self) -> Result<()> {
        let trace = self.trace.file().map(|file| ("--trace", file));
        let saved = self.save_output.as_deref().map(|file| ("--save-output", file));
        let outputs: Vec<Named<'_>> = trace.into_iter().chain(saved).collect();
        let source = std::path::Path::new(&self.source);
        let model = self.model.as_deref().map(|file| ("--model", file));
        let labels = self.labels.as_deref().map(|file| ("--labels", file));
        let inputs: Vec<Named<'_>> =
            [("--source", source)].into_iter().chain(model).chain(labels).collect();
        output_file::check_distinct(&outputs, &inputs)
    }

    /// Refuses options that would do nothing with this source, or with this path to a driver.
    pub(super) fn check(&self) -> Result<()> {
        if let (Some(path), Some(_)) = (self.path, self.wait) {
            match path {
                RouteArg::Burst => {}
                RouteArg::InProcess => {
                    bail!("--path in-process has no other end to wait for: --wait does nothing")
                }
                RouteArg::Sync | RouteArg::Async | RouteArg::Fenced => bail!(
                    "--path {} has no queues to wait at: --wait goes with --path burst",
                    path.name()
                ),
            }
        }
        let raw: Goes = source::is_raw;
        let camera: Goes = source::is_camera;
        let sized: Goes = |source| source::is_raw(source) || source::is_camera(source);
        let sound: Goes = |source| source::kind(source) == source::Kind::Sound;
        let pictures: Goes = |source| source::kind(source) == source::Kind::Pictures;
        let demo: Goes = |source| source == source::DEMO;
        for (option, is_given, goes, with) in [
            ("--size", self.size.is_some(), sized, "raw frames or a camera"),
            ("--pixels", self.pixels.is_some(), raw, "raw frames"),
            ("--camera-format", self.camera_format.is_some(), camera, "a camera"),
            ("--rate", self.rate.is_some(), sound, "a .wav file"),
            ("--hop", self.hop.is_some(), sound, "a .wav file"),
            ("--fit", self.fit.is_some(), pictures, "pictures"),
            ("--float-range", self.float_range.is_some(), pictures, "pictures"),
            ("--view", self.view, pictures, "pictures"),
            ("--seed", self.seed.is_some(), demo, "the synthetic camera"),
        ] {
            if is_given && !goes(&self.source) {
                bail!("{option} goes with {with}, which {} is not", self.source);
            }
        }
        Ok(())
    }
}

fn source_name(name: OsString) -> Result<String, String> {
    match name.into_string() {
        Ok(name) if name.is_empty() => Err("it names nothing".to_owned()),
        Ok(name) => Ok(name),
        Err(_) => Err("its name is not UTF-8".to_owned()),
    }
}

fn frames(text: &str) -> Result<u64, String> {
    match text.parse() {
        Ok(frames @ 1..) => Ok(frames),
        _ => Err(format!(
            "expected a whole number from 1 on; without the option the synthetic camera stops after \
             {DEFAULT_FRAMES} frames, anything else at its end"
        )),
    }
}

fn top(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(count @ 1..) => Ok(count),
        _ => Err(format!("expected a whole number from 1 to {}", u16::MAX)),
    }
}

fn score(text: &str) -> Result<f32, String> {
    match text.parse() {
        Ok(score) if (0.0..=1.0).contains(&score) => Ok(score),
        _ => Err("expected a score from 0 to 1".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::*;

    #[test]
    fn a_list_of_cameras_goes_with_no_option_but_those_for_its_form() {
        let command = Args::augment_args(Command::new("stream"));
        let ids = command.get_arguments().map(|argument| argument.get_id().as_str());
        let others: Vec<&str> = ids.filter(|id| !["list_sources", "json"].contains(id)).collect();
        assert_eq!(others, OF_A_STREAM);
    }
}
