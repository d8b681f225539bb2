//! `burst stream`: frames through a model in a driver process, one packet each way per frame.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use burst_client::Outages;
use burst_hal::trace::{Marks, SpanKind};
use burst_tflite::{Imported, TensorInfo};

use crate::fit::{Fit, Fitter, FloatRange, InputShape};
use crate::model_file::{self, Front, Loaded};
use crate::signals;
use crate::source::{self, RawFormat};
use crate::trace::Tracing;

mod answer;
mod args;
mod closing;
mod feed;
mod ledger;
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
use closing::{Closing, End, conclude};
use feed::{Feed, Feeding, Pictures, Values};
use ledger::{Heading, Ledger};
use live::Live;
use pace::Pace;
use run::{Run, Say};
use saver::{FrameSaver, OutputSaver};

pub(crate) use args::Args;
pub(crate) use path::{InProcess, Options as PathOptions, Path as ModelPath, open as open_path};

/// Frames of an endless source when `--frames` does not say.
const DEFAULT_FRAMES: u64 = 600;
/// Seed of the synthetic camera when `--seed` does not say.
const DEFAULT_SEED: u64 = 1;
/// Samples per second of models of waveforms when `--rate` does not say.
const DEFAULT_RATE: u32 = 16_000;
/// Least score of what a detector found when `--min-score` does not say.
const MIN_SCORE: f32 = 0.45;
/// Classes said of sound when `--top` does not say.
const SOUND_TOP: usize = 3;
/// Frames of less sound than this are said only when the best class changes.
const SHORT_SOUND: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    // Before any thread starts, so that none but one gets them.
    let signals = signals::block()?;
    args.threads.check(args.socket.as_deref())?;
    let args = &Args { threads: args.threads.useful(), ..args.clone() };
    let tracing = args.trace.begin()?;
    let ledger = Arc::new(Ledger::new()?);
    let closing = Closing { args: Arc::new(args.clone()), ledger, tracing };
    closing.end_at_signals(signals)?;
    let end = stream(args, &closing).unwrap_or_else(End::Failed);
    Ok(conclude(&closing, end))
}

/// What goes in, and what the model is known to take.
struct Input {
    feed: Box<dyn Feed>,
    picture: Option<InputShape>,
    float_range: FloatRange,
}

fn stream(args: &Args, closing: &Closing) -> Result<End> {
    args.check()?;
    let tracing = closing.tracing.as_ref();
    let spans = tracing.map(Tracing::sink);
    let kind = source::kind(&args.source);
    let pictures = match kind {
        source::Kind::Pictures => Some(open_pictures(args)?),
        source::Kind::Sound | source::Kind::Values => None,
    };
    let mut marks = Marks::begin(spans);
    let (loaded, front) = load(args, kind)?;
    marks.mark(SpanKind::MakeModel);
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
    let reader = reader(args, &loaded, &input)?;
    let states = loaded.imported.states.len();
    if args.state.is_some() && states == 0 {
        bail!("--state: {} has no states", loaded.name);
    }
    let state = args.state.unwrap_or(match kind {
        source::Kind::Pictures => State::Reset,
        source::Kind::Sound | source::Kind::Values => State::Carry,
    });
    let deadline = Duration::try_from_secs_f64(args.deadline)
        .map_err(|_| anyhow::anyhow!("--deadline {}: expected seconds", args.deadline))?;
    let output_saver = args.save_output.as_deref().map(OutputSaver::new).transpose()?;
    let options = PathOptions {
        route: args.path,
        wait: args.wait,
        socket: args.socket.as_deref(),
        device: &args.device,
        devices: &args.devices,
        preference: args.preference.into(),
        reconnect: args.reconnect,
        deadline,
        threads: args.threads,
        tracing,
    };
    let pace = Pace::new(args.fps, args.drop.unwrap_or_default())?;
    let mut path = open_path(&options, &loaded.imported)?;
    let wanted = args.frames.or_else(|| input.feed.is_endless().then_some(DEFAULT_FRAMES));
    let live = Live::start(wanted, args.wants_json());
    let say = say(args, &input, &reader, live.is_drawn());
    let heading = Heading {
        model: Some(loaded.name),
        states: (states > 0 && state == State::Carry).then_some(states),
        sound: input.feed.sound(),
        keeps_results: args.wants_json() && !args.json_lines && say != Say::Nothing,
        bar: live.bar(),
    };
    let ledger = &*closing.ledger;
    let feed = input.feed;
    let mut run = Run {
        args,
        feed,
        reader,
        say,
        pace,
        live,
        frame_saver,
        output_saver,
        ledger,
        deadline,
        wanted,
        state,
        number: 0,
        said: None,
        outages: Outages::default(),
        spans,
    };
    run.pace.start();
    ledger.write(|entries| entries.start(heading));
    run.all(&mut *path)
}

/// What reads the model's outputs; refuses options that say nothing about them.
fn reader(args: &Args, loaded: &Loaded, input: &Input) -> Result<Reader> {
    let known = Known {
        imported: &loaded.imported,
        picture: input.picture,
        labels: labels(args, loaded, &*input.feed)?,
        min_score: args.min_score.unwrap_or(MIN_SCORE),
        float_range: input.float_range,
    };
    let count = known.labels.len();
    let reader = Reader::new(known.clone());
    if args.top.is_some() && !reader.is_classifier() {
        bail!("{}: --top needs an output with one score per class", loaded.name);
    }
    if args.min_score.is_some() && !matches!(reader, Reader::Boxes(_)) {
        bail!("--min-score: {} finds no things with scores", loaded.name);
    }
    let needed = reader.labels_needed();
    if let Some(file) = &args.labels {
        let no_classes = || format!("--labels: the outputs of {} are no classes", loaded.name);
        let needed = needed.with_context(no_classes)?;
        needed.check(count).with_context(|| format!("--labels {}", file.display()))?;
    } else if let Some(needed) = needed
        && count > 0
        && let Err(error) = needed.check(count)
    {
        tracing::warn!("the labels in {} are not used: {error}", loaded.name);
        return Ok(Reader::new(Known { labels: Vec::new(), ..known }));
    }
    Ok(reader)
}

fn open_pictures(args: &Args) -> Result<Box<dyn source::Source>> {
    let pixels = args.pixels.unwrap_or_default();
    let raw = args.size.map(|size| RawFormat { size, pixels });
    source::open(&args.source, args.seed.unwrap_or(DEFAULT_SEED), raw)
}

/// The model; of an audio model only the driver's part of it, and the rest.
fn load(args: &Args, kind: source::Kind) -> Result<(Loaded, Option<Front>)> {
    let (loaded, front) = model_file::load_with_front(args.model.as_deref())?;
    if kind == source::Kind::Pictures && front.is_some() {
        bail!(
            "{} takes sound, which {} is not: a .wav file, or the samples as a .f32 file",
            loaded.name,
            args.source
        );
    }
    Ok((loaded, front))
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
    let rate = args.rate.unwrap_or(DEFAULT_RATE);
    let feeding = Feeding { source: &args.source, rate, hop, lenient: args.lenient };
    let values = match kind {
        source::Kind::Values => Values::file(&args.source, input, front)?,
        _ => Values::sound(&feeding, input, front)?,
    };
    Ok(Input { feed: Box::new(values), picture: None, float_range: FloatRange::default() })
}

/// Labels of the file that is named, else those in the model's own file; of the built-in model those of the source,
/// or the camera's.
fn labels(args: &Args, loaded: &Loaded, feed: &dyn Feed) -> Result<Vec<String>> {
    if let Some(file) = &args.labels {
        return answer::read_labels(file);
    }
    if args.model.is_some() {
        return Ok(loaded.labels.clone());
    }
    let names = feed.class_names().unwrap_or(&burst_camera::LABELS);
    Ok(names.iter().map(|name| (*name).to_owned()).collect())
}

/// Which results are said where `--top` does not say: of pictures the best class, of each of them, but of a video
/// in the live line where one is drawn, and as JSON only what changes; of sound always, but of short pieces only what
/// changes.
fn say(args: &Args, input: &Input, reader: &Reader, is_live: bool) -> Say {
    if let Some(top) = args.top {
        return Say::All(top.into());
    }
    let is_short = input.feed.span().is_none_or(|span| span < SHORT_SOUND);
    match reader {
        Reader::Classes(_) if input.picture.is_some() => {
            let is_repeated = source::is_single(&args.source) && args.frames.is_some();
            match source::is_stills(&args.source) {
                true if is_repeated => Say::Changes,
                true => Say::All(1),
                false if is_live => Say::Nothing,
                false if args.wants_json() => Say::Changes,
                false => Say::All(1),
            }
        }
        Reader::Values(..) if input.picture.is_some() => Say::Nothing,
        Reader::Classes(_) if reader.is_classifier() && is_short => Say::Changes,
        Reader::Nothing => Say::Nothing,
        _ => Say::All(SOUND_TOP),
    }
}
