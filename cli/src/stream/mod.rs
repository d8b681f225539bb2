//! `burst stream`: frames through a model in a driver process, one packet each way per frame.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use burst_tflite::{Imported, TensorInfo};

use crate::failure;
use crate::fit::{Fit, Fitter, FloatRange, InputShape};
use crate::model_file::{self, Front, Loaded};
use crate::source::{self, RawFormat};

mod answer;
mod args;
mod feed;
mod live;
mod pace;
mod path;
mod report;
mod results;
mod run;
mod saver;
mod stats;

use answer::{Known, Reader, Task};
use args::State;
use feed::{Feed, Feeding, Pictures, Values};
use live::Live;
use pace::Pace;
use report::Report;
use results::Results;
use run::{Run, Say, Tally};
use saver::{FrameSaver, OutputSaver};
use stats::Stats;

pub(crate) use args::Args;
pub(crate) use path::{Options as PathOptions, open as open_path};

/// Frames of an endless source when `--frames` does not say.
const DEFAULT_FRAMES: u64 = 600;
/// Classes said of sound when `--top` does not say.
const SOUND_TOP: usize = 3;
/// Frames of less sound than this are said only when the best class changes.
const SHORT_SOUND: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let report = stream(args)?;
    if args.json {
        report.write_json(&mut std::io::stdout())?;
    } else {
        report.write_text(&mut std::io::stdout())?;
    }
    Ok(if report.is_sound() { ExitCode::SUCCESS } else { ExitCode::from(failure::NO) })
}

/// What goes in, and what the model is known to take.
struct Input {
    feed: Box<dyn Feed>,
    picture: Option<InputShape>,
    float_range: FloatRange,
}

fn stream(args: &Args) -> Result<Report> {
    let kind = source::kind(&args.source);
    let pictures = match kind {
        source::Kind::Pictures => Some(open_pictures(args)?),
        source::Kind::Sound | source::Kind::Values => None,
    };
    let (loaded, front) = load(args, kind)?;
    let own = own_input(&loaded)?;
    let input = match pictures {
        Some(source) => picture_input(args, source, &loaded)?,
        None => values_input(args, kind, own, front)
            .with_context(|| format!("{} cannot take {}", loaded.name, args.source))?,
    };
    let frame_saver = args.save_frames.as_deref().map(FrameSaver::new).transpose()?;
    if frame_saver.is_some() && input.picture.is_none() {
        bail!("--save-frames: {} has no pictures", args.source);
    }
    let reader = Reader::new(Known {
        imported: &loaded.imported,
        picture: input.picture,
        labels: labels(args, &*input.feed)?,
        min_score: args.min_score,
        float_range: input.float_range,
    });
    if args.top.is_some() && !reader.is_classifier() {
        bail!("{}: --top needs an output with one score per class", loaded.name);
    }
    let deadline = Duration::try_from_secs_f64(args.deadline)
        .map_err(|_| anyhow::anyhow!("--deadline {}: expected seconds", args.deadline))?;
    let output_saver = args.save_output.as_deref().map(OutputSaver::new).transpose()?;
    let options = PathOptions {
        route: args.path,
        wait: args.wait,
        socket: args.socket.as_deref(),
        device: &args.device,
        preference: args.preference.into(),
        reconnect: args.reconnect,
        deadline,
        threads: args.threads,
    };
    let pace = Pace::new(args.fps, args.drop)?;
    let mut path = open_path(&options, &loaded.imported)?;
    let wanted = args.frames.or_else(|| input.feed.is_endless().then_some(DEFAULT_FRAMES));
    let mut run = Run {
        args,
        say: say(args, &input, &reader),
        feed: input.feed,
        reader,
        stats: Stats::new()?,
        pace,
        live: Live::start(wanted, args.json),
        frame_saver,
        output_saver,
        results: Results::new(!args.json),
        deadline,
        wanted,
        states: loaded.imported.states.len(),
        state: args.state.unwrap_or(match kind {
            source::Kind::Pictures => State::Reset,
            source::Kind::Sound | source::Kind::Values => State::Carry,
        }),
        tally: Tally::default(),
    };
    let started = Instant::now();
    run.pace.start();
    let frames = run.all(&mut *path)?;
    let seconds = started.elapsed().as_secs_f64();
    run.live.finish();
    Ok(run.report(loaded.name, frames, seconds, &*path))
}

fn open_pictures(args: &Args) -> Result<Box<dyn source::Source>> {
    let raw = args.size.map(|size| RawFormat { size, pixels: args.pixels });
    source::open(&args.source, args.seed, raw)
}

/// The model; of an audio model that is fed with sound only the driver's part of it, and the rest.
fn load(args: &Args, kind: source::Kind) -> Result<(Loaded, Option<Front>)> {
    match kind {
        source::Kind::Pictures => Ok((model_file::load(args.model.as_deref())?, None)),
        _ => model_file::load_with_front(args.model.as_deref()),
    }
}

/// The one input of a model that is not a state.
fn own_input(loaded: &Loaded) -> Result<&TensorInfo> {
    let Imported { inputs, states, .. } = &loaded.imported;
    let is_state = |index| states.iter().any(|pair| pair.input_index == index);
    let own: Vec<usize> = (0..inputs.len()).filter(|index| !is_state(*index)).collect();
    match own[..] {
        [0] => Ok(&inputs[0]),
        _ => bail!("{} has {} inputs; a stream feeds exactly one", loaded.name, own.len()),
    }
}

fn picture_input(args: &Args, source: Box<dyn source::Source>, loaded: &Loaded) -> Result<Input> {
    let input = own_input(loaded)?;
    let shape = InputShape::new(input.ty, &input.dims)
        .with_context(|| format!("{} takes no pictures", loaded.name))?;
    let task = answer::task(&loaded.imported, shape);
    let fit = args.fit.unwrap_or(match task {
        Task::Locate => Fit::Stretch,
        Task::Picture | Task::Other => Fit::Crop,
    });
    let float_range = args.float_range.unwrap_or(match task {
        Task::Picture => FloatRange::Byte,
        Task::Locate | Task::Other => FloatRange::Signed,
    });
    let feed = Box::new(Pictures::new(source, Fitter::new(shape, fit, float_range)));
    Ok(Input { feed, picture: Some(shape), float_range })
}

fn values_input(
    args: &Args,
    kind: source::Kind,
    input: &TensorInfo,
    front: Option<Front>,
) -> Result<Input> {
    let hop = args.hop.map(Duration::try_from_secs_f64).transpose();
    let hop = hop.context("--hop: expected seconds")?;
    let feeding = Feeding { source: &args.source, rate: args.rate, hop };
    let values = match kind {
        source::Kind::Values => Values::file(&args.source, input, front)?,
        _ => Values::sound(&feeding, input, front)?,
    };
    Ok(Input { feed: Box::new(values), picture: None, float_range: FloatRange::default() })
}

/// Labels of the file, or of the source when the model is the built-in one.
fn labels(args: &Args, feed: &dyn Feed) -> Result<Vec<String>> {
    if let Some(file) = &args.labels {
        return answer::read_labels(file);
    }
    if args.model.is_some() {
        return Ok(Vec::new());
    }
    let names = feed.class_names().unwrap_or(&burst_camera::LABELS);
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Which results are said: of pictures classes only when asked for, of sound always, but of short
/// pieces only what changes.
fn say(args: &Args, input: &Input, reader: &Reader) -> Say {
    if let Some(top) = args.top {
        return Say::All(top.into());
    }
    let is_short = input.feed.span().is_none_or(|span| span < SHORT_SOUND);
    match reader {
        Reader::Classes(_) | Reader::Values(..) if input.picture.is_some() => Say::Nothing,
        Reader::Classes(_) if reader.is_classifier() && is_short => Say::Changes,
        Reader::Nothing => Say::Nothing,
        _ => Say::All(SOUND_TOP),
    }
}
