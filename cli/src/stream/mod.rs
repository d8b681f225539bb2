//! `burst stream`: frames through a model in a driver process, one packet each way per frame.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use burst_hal::ErrorStatus;

use crate::failure;
use crate::fit::{Fit, Fitter, FloatRange, InputShape};
use crate::model_file;
use crate::source::{self, RawFormat, Source};

mod classes;
mod live;
mod pace;
mod path;
mod report;
mod stats;

use classes::{Class, Classifier};
use live::Live;
use pace::Pace;

use report::{Accuracy, FrameResult, Report};
use stats::{FrameTimes, Stats};

pub(crate) use path::{
    Kind as PathKind, Options as PathOptions, Path, WaitKind, open as open_path,
};
pub(crate) use stats::{Durations, Quantiles};

/// Frames of an endless source when `--frames` does not say.
const DEFAULT_FRAMES: u64 = 600;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where frames come from: `demo` (synthetic camera), a .jpg or .png, a folder of them, a
    /// .y4m video, or `-` for raw frames on standard input.
    #[arg(long, default_value = "demo")]
    source: String,
    /// Model file (.tflite); without it the built-in one.
    #[arg(long)]
    model: Option<PathBuf>,
    /// Stop after this many frames; a single picture is repeated. Default: 600 of the synthetic
    /// camera, all there are of anything else.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    frames: Option<u64>,
    /// How requests reach the driver.
    #[arg(long, value_enum, default_value_t)]
    path: path::Kind,
    /// How both ends wait for each other.
    #[arg(long, value_enum, default_value_t)]
    wait: path::WaitKind,
    /// Socket of a running service; without it a private driver process is started.
    #[arg(long)]
    socket: Option<PathBuf>,
    /// Device of the service.
    #[arg(long, default_value = "cpu")]
    device: String,
    /// Frames per second; latency then counts from when a frame was due.
    #[arg(long)]
    fps: Option<f64>,
    /// Which frames are skipped when the driver does not keep up with --fps.
    #[arg(long, value_enum, default_value_t)]
    drop: pace::Drop,
    /// Label file: line number (from 0) is the class.
    #[arg(long)]
    labels: Option<PathBuf>,
    /// Say the best N classes of every frame.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    top: Option<u16>,
    /// How frames of another aspect are fitted into the model's input.
    #[arg(long, value_enum, default_value_t)]
    fit: Fit,
    /// What bytes 0 to 255 become in a float input.
    #[arg(long, value_enum, default_value_t)]
    float_range: FloatRange,
    /// Size of raw frames on standard input.
    #[arg(long, value_name = "WIDTHxHEIGHT")]
    size: Option<source::Size>,
    /// Pixels of raw frames on standard input.
    #[arg(long, value_enum, default_value_t = source::PixelFormat::Rgb24)]
    pixels: source::PixelFormat,
    /// Threads that compute in the private driver process. Only 1 is there yet.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1))]
    threads: u16,
    /// Give up on a request after this many seconds.
    #[arg(long, default_value_t = 60.0)]
    deadline: f64,
    /// Seed of the synthetic camera.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let report = stream(args)?;
    if args.json {
        report.write_json(&mut std::io::stdout())?;
    } else {
        report.write_text(&mut std::io::stdout())?;
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(failure::NO) })
}

fn stream(args: &Args) -> Result<Report> {
    let raw = args.size.map(|size| RawFormat { size, pixels: args.pixels });
    let mut source = source::open(&args.source, args.seed, raw)?;
    let loaded = model_file::load(args.model.as_deref())?;
    let imported = &loaded.imported;
    let [input] = imported.inputs.as_slice() else {
        bail!(
            "{} has {} inputs; a stream of pictures feeds exactly one",
            loaded.name,
            imported.inputs.len()
        );
    };
    let shape = InputShape::new(input.ty, &input.dims)
        .with_context(|| format!("{} takes no pictures", loaded.name))?;
    let labels = labels(args, &*source)?;
    let classifier = imported.outputs.first().and_then(|output| Classifier::new(output, labels));
    if args.top.is_some() && classifier.is_none() {
        bail!("{}: --top needs an output with one score per class", loaded.name);
    }
    let deadline = Duration::try_from_secs_f64(args.deadline)
        .map_err(|_| anyhow::anyhow!("--deadline {}: expected seconds", args.deadline))?;
    let options = PathOptions {
        kind: args.path,
        wait: args.wait,
        socket: args.socket.as_deref(),
        device: &args.device,
    };
    let mut path = open_path(&options, imported)?;
    let mut run = Run {
        args,
        fitter: Fitter::new(shape, args.fit, args.float_range),
        classifier,
        stats: Stats::new()?,
        pace: Pace::new(args.fps, args.drop)?,
        live: Live::start(frames_wanted(args, &*source), args.json),
        deadline,
        errors: 0,
        right: 0,
        judged: 0,
        results: Vec::new(),
    };
    let started = Instant::now();
    run.pace.start();
    let frames = run.all(&mut *source, &mut *path)?;
    let seconds = started.elapsed().as_secs_f64();
    run.live.finish();
    Ok(run.report(loaded.name, frames, seconds, &*path))
}

fn frames_wanted(args: &Args, source: &dyn Source) -> Option<u64> {
    args.frames.or_else(|| source.is_endless().then_some(DEFAULT_FRAMES))
}

/// Labels of the file, or of the source when the model is the built-in one.
fn labels(args: &Args, source: &dyn Source) -> Result<Vec<String>> {
    if let Some(file) = &args.labels {
        return classes::read_labels(file);
    }
    if args.model.is_some() {
        return Ok(Vec::new());
    }
    let names = source.class_names().unwrap_or(&burst_camera::LABELS);
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

/// A run in progress.
struct Run<'a> {
    args: &'a Args,
    fitter: Fitter,
    classifier: Option<Classifier>,
    stats: Stats,
    pace: Pace,
    live: Live,
    deadline: Duration,
    errors: u64,
    /// Frames whose best class was the one they are known to show.
    right: u64,
    /// Frames that are known to show something.
    judged: u64,
    results: Vec<FrameResult>,
}

impl Run<'_> {
    /// Sends every frame; returns how many were answered or failed.
    fn all(&mut self, source: &mut dyn Source, path: &mut dyn Path) -> Result<u64> {
        let wanted = frames_wanted(self.args, source);
        let repeat = source::is_single(&self.args.source) && self.args.frames.is_some();
        let mut frames = 0;
        while wanted.is_none_or(|wanted| frames + self.pace.dropped < wanted) {
            let Some(frame) = source.next_frame()? else { break };
            loop {
                if let Some(due) = self.pace.due() {
                    self.one(frames, &frame, due, path)?;
                    frames += 1;
                }
                if !repeat || wanted.is_some_and(|w| frames + self.pace.dropped >= w) {
                    break;
                }
            }
        }
        if frames == 0 && self.pace.dropped == 0 {
            bail!("{}: no frames", self.args.source);
        }
        Ok(frames)
    }

    fn one(
        &mut self,
        index: u64,
        frame: &source::Frame<'_>,
        due: Instant,
        path: &mut dyn Path,
    ) -> Result<()> {
        self.fitter.write(frame, path.input())?;
        let sent = Instant::now();
        let (status, driver) = path.execute(self.deadline)?;
        let answered = Instant::now();
        self.pace.done(answered);
        if status != ErrorStatus::None {
            tracing::warn!(frame = index, %status, "a frame failed");
            self.errors += 1;
            return Ok(());
        }
        let execution = answered.duration_since(sent);
        let latency =
            if self.args.fps.is_some() { answered.duration_since(due) } else { execution };
        self.stats.record(FrameTimes { latency, execution, driver });
        self.look(index, frame, path.output()?);
        if self.live.wants(answered) {
            let seen = self.classifier.as_ref().map(|c| c.class(self.live.seen()));
            self.live.show(index + 1, self.stats.take_second(answered), seen.as_ref());
        }
        Ok(())
    }

    /// What the model makes of the frame.
    fn look(&mut self, index: u64, frame: &source::Frame<'_>, output: &[u8]) {
        let Some(classifier) = &mut self.classifier else { return };
        let best = classifier.best(output);
        self.live.see(best);
        if self.args.model.is_none()
            && let Some(truth) = frame.truth
        {
            self.judged += 1;
            self.right += u64::from(best == truth);
        }
        if let Some(top) = self.args.top {
            let top: Vec<Class> = classifier.top(output, top.into());
            self.results.push(FrameResult { frame: index, source: frame.name.to_owned(), top });
        }
    }

    fn report(self, model: String, frames: u64, seconds: f64, path: &dyn Path) -> Report {
        #[expect(clippy::cast_precision_loss, reason = "counts of frames")]
        let throughput_fps = (frames - self.errors) as f64 / seconds;
        Report {
            model,
            source: self.args.source.clone(),
            path: self.args.path.name(),
            wait: self.args.wait.name(),
            frames,
            errors: self.errors,
            late: self.args.fps.is_some().then_some(self.pace.late),
            dropped: self.args.fps.is_some().then_some(self.pace.dropped),
            client_pid: std::process::id(),
            driver_pid: path.driver_pid(),
            seconds,
            throughput_fps,
            accuracy: Accuracy::of(self.right, self.judged),
            latency_us: self.stats.latency.quantiles(),
            driver_us: self.stats.driver.quantiles(),
            transport_us: self.stats.transport.quantiles(),
            results: self.args.top.map(|_| self.results),
        }
    }
}
