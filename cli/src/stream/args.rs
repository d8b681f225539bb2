//! Arguments of `burst stream`.

use std::path::PathBuf;

use burst_harness::WaitKind;

use super::pace;
use crate::fit::{Fit, FloatRange};
use crate::preference::PreferenceArg;
use crate::route::RouteArg;
use crate::source;
use crate::threads::Threads;

/// What becomes of a model's states between frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum State {
    /// They go from each frame into the next, where they lie.
    Carry,
    /// Every frame begins as the first one did.
    Reset,
}

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where frames come from: `demo` (synthetic camera), a .jpg or .png, a folder of them, a
    /// .y4m video, `-` for raw frames on standard input, a .wav file, or a .f32 file with values
    /// of the model's input.
    #[arg(long, default_value = "demo")]
    pub(super) source: String,
    /// Model file (.tflite); without it the built-in one.
    #[arg(long)]
    pub(super) model: Option<PathBuf>,
    /// Stop after this many frames; a single picture is repeated. Default: 600 of the synthetic
    /// camera, all there are of anything else.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) frames: Option<u64>,
    /// How requests reach the driver.
    #[arg(long, value_enum, default_value_t)]
    pub(super) path: RouteArg,
    /// How both ends wait for each other.
    #[arg(long, value_enum, default_value_t = WaitKind::Adaptive)]
    pub(super) wait: WaitKind,
    /// Socket of a running service; without it a private driver process is started.
    #[arg(long)]
    pub(super) socket: Option<PathBuf>,
    /// Device: of the service, or of the private driver process; `burst devices` lists them.
    #[arg(long, default_value = "cpu")]
    pub(super) device: String,
    /// What the driver should be good at. With low-power neither end polls, whatever --wait says.
    #[arg(long, value_enum, default_value_t)]
    pub(super) preference: PreferenceArg,
    /// Frames per second; latency then counts from when a frame was due.
    #[arg(long)]
    pub(super) fps: Option<f64>,
    /// Which frames are skipped when the driver does not keep up with --fps.
    #[arg(long, value_enum, default_value_t)]
    pub(super) drop: pace::Drop,
    /// Label file: line number (from 0) is the class.
    #[arg(long)]
    pub(super) labels: Option<PathBuf>,
    /// Say the best N classes of every frame.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(super) top: Option<u16>,
    /// Say only what a detector found with at least this score.
    #[arg(long, value_name = "SCORE", default_value_t = 0.45)]
    pub(super) min_score: f32,
    /// Write each frame into this folder as a PNG with the result drawn in; of super-resolution
    /// the larger picture.
    #[arg(long, value_name = "DIR")]
    pub(super) save_frames: Option<PathBuf>,
    /// Write the bytes of the first output of every execution into this file, one after the other.
    #[arg(long, value_name = "FILE")]
    pub(super) save_output: Option<PathBuf>,
    /// How frames of another aspect are fitted into the model's input. Default: stretch for
    /// detection and segmentation, crop for anything else.
    #[arg(long, value_enum)]
    pub(super) fit: Option<Fit>,
    /// What bytes 0 to 255 become in a float input. Default: byte for super-resolution, signed for
    /// anything else.
    #[arg(long, value_enum)]
    pub(super) float_range: Option<FloatRange>,
    /// Size of raw frames on standard input or in a .rgb, .gray or .raw file.
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    pub(super) size: Option<source::Size>,
    /// Pixels of raw frames.
    #[arg(long, value_enum, default_value_t = source::PixelFormat::Rgb24)]
    pub(super) pixels: source::PixelFormat,
    /// Samples per second that a model of waveforms takes; sound of another rate is resampled.
    #[arg(long, value_name = "HERTZ", default_value_t = 16_000)]
    pub(super) rate: u32,
    /// Seconds of sound from one execution to the next. Default: as much as the model takes.
    #[arg(long, value_name = "SECONDS")]
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
    #[arg(long, default_value_t = 60.0)]
    pub(super) deadline: f64,
    /// Seed of the synthetic camera.
    #[arg(long, default_value_t = 1)]
    pub(super) seed: u64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
