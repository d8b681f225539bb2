//! `burst stream`: frames through a model in a driver process, one packet each way per frame.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use burst_client::Outages;
use burst_driver::Variant;
use burst_hal::OperandType;
use burst_hal::trace::{Marks, SpanKind};
use burst_tasks::{Decoder, PictureFitter, SoundFitter, TaskModel, TaskOptions, picture_fitter};

use crate::model_file;
use crate::seconds::{seconds, time};
use crate::source::{self, CameraOptions, RawFormat};
use crate::threads::Threads;
use crate::trace::Tracing;
use crate::view::View;
use crate::{json, out, signals};

mod args;
mod closing;
mod drawn;
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

use args::State;
use closing::{Closing, End, conclude};
use feed::{Feed, Feeding, Pictures, Values};
use ledger::{Heading, Ledger};
use live::Live;
use pace::Pace;
use run::{Run, Say};
use saver::{FrameSaver, OutputSaver};

pub(crate) use args::Args;
pub(crate) use path::{Options as PathOptions, Path as ModelPath, open as open_path};

/// Frames of an endless source when `--frames` does not say.
const DEFAULT_FRAMES: u64 = 600;
/// Seed of the synthetic camera when `--seed` does not say.
const DEFAULT_SEED: u64 = 1;
/// Classes said of sound when `--top` does not say.
const SOUND_TOP: usize = 3;
/// Frames of less sound than this are said only when the best class changes.
const SHORT_SOUND: Duration = Duration::from_millis(250);

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if args.list_sources {
        return list_sources(args);
    }
    args.check_files()?;
    // Before any thread starts, so that none but one gets them.
    let signals = signals::block()?;
    let tracing = args.trace.begin()?;
    let ledger = Arc::new(Ledger::new()?);
    let closing = Closing { args: Arc::new(args.clone()), ledger, tracing };
    closing.end_at_signals(signals)?;
    let end = stream(args, &closing).unwrap_or_else(End::Failed);
    Ok(conclude(&closing, end))
}

/// `--list-sources`.
fn list_sources(args: &Args) -> Result<ExitCode> {
    let (listed, mut to) = (source::list(), out::stdout());
    if args.wants_json() {
        writeln!(to, "{}", json::object(&json::STREAM, &listed)?)?;
    } else {
        listed.write_text(&mut to, out::columns())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What goes in, and what reads what comes out.
struct Ends {
    feed: Box<dyn Feed>,
    decoder: Decoder,
    takes_pictures: bool,
}

fn stream(args: &Args, closing: &Closing) -> Result<End> {
    args.check()?;
    // Checked before a camera is asked for its rate.
    let pace = Pace::new(args.fps, args.drop.unwrap_or_default())?;
    let tracing = closing.tracing.as_ref();
    let spans = tracing.map(Tracing::sink);
    let kind = source::kind(&args.source);
    let pictures = match kind {
        source::Kind::Pictures => Some(open_pictures(args)?),
        source::Kind::Sound | source::Kind::Values => None,
    };
    let mut marks = Marks::begin(spans);
    let model = load(args, kind)?;
    marks.mark(SpanKind::MakeModel);
    model.own_input()?;
    let ends = match pictures {
        Some(source) => picture_ends(args, source, &model)?,
        None => values_ends(args, kind, &model)?,
    };
    let frame_saver = args.save_frames.as_deref().map(FrameSaver::new).transpose()?;
    if frame_saver.is_some() && !ends.takes_pictures {
        bail!("--save-frames: {} has no pictures", args.source);
    }
    let states = model.imported.states.len();
    if args.state.is_some() && states == 0 {
        bail!("--state: {} has no states", model.name);
    }
    let state = args.state.unwrap_or(match kind {
        source::Kind::Pictures => State::Reset,
        source::Kind::Sound | source::Kind::Values => State::Carry,
    });
    let deadline = time("--deadline", args.deadline)?;
    let output_saver = args.save_output.as_deref().map(OutputSaver::new).transpose()?;
    let options = PathOptions {
        route: args.path.unwrap_or_default(),
        falls_back: args.path.is_none(),
        wait: args.wait(),
        socket: args.socket.as_deref(),
        device: &args.device,
        devices: &args.devices,
        preference: args.preference.into(),
        priority: args.priority.into(),
        reconnect: args.reconnect,
        deadline,
        threads: args.threads,
        tracing,
    };
    let camera = ends.feed.camera();
    let pace = if camera.is_some() { pace.without_schedule() } else { pace };
    let mut path = open_path(&options, &model.imported)?;
    let wanted = args.frames.or_else(|| ends.feed.is_endless().then_some(DEFAULT_FRAMES));
    let view = args.view.then(View::start).transpose()?;
    if let Some(view) = &view {
        out::say(format_args!("view: {}", view.address()));
    }
    let live = Live::start(wanted, args.wants_json());
    let say = say(args, &ends, live.is_drawn());
    let heading = Heading {
        model: Some(model.name),
        states: (states > 0 && state == State::Carry).then_some(states),
        sound: ends.feed.sound(),
        camera,
        keeps_results: args.wants_json() && !args.json_lines && say != Say::Nothing,
        bar: live.bar(),
    };
    let ledger = &*closing.ledger;
    let Ends { feed, decoder, .. } = ends;
    let mut run = Run {
        args,
        feed,
        decoder,
        say,
        pace,
        live,
        view,
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
    run.note_driver(&*path);
    run.all(&mut *path)
}

/// What the command line asks of a task. Labels of the file that is named, or else of the model's own; of the
/// built-in model those of the source, or the camera's.
fn options(args: &Args, names: Option<&[&str]>) -> Result<TaskOptions> {
    let mut options = TaskOptions::default();
    options.fit = args.fit.map(Into::into);
    options.normalisation = args.float_range.map(Into::into);
    options.score_threshold = args.min_score;
    if let Some(file) = &args.labels {
        options.labels = Some(burst_tasks::read_labels(file)?);
    } else if args.model.is_none() {
        let names = names.unwrap_or(&burst_camera::LABELS);
        options = options.with_labels(names.iter().copied());
    }
    Ok(options)
}

/// What reads the model's outputs; refuses options that say nothing about them.
fn decoder(
    args: &Args,
    model: &TaskModel,
    fitter: Option<&PictureFitter>,
    options: &TaskOptions,
) -> Result<Decoder> {
    let decoder = Decoder::new(model, fitter, options);
    let decoder = match &args.labels {
        Some(file) => decoder.with_context(|| format!("--labels {}", file.display()))?,
        None => decoder?,
    };
    if args.top.is_some() && !decoder.is_classifier() {
        bail!("{}: --top needs an output with one score per class", model.name);
    }
    if args.min_score.is_some() && !matches!(decoder, Decoder::Boxes(_)) {
        bail!("--min-score: {} finds no things with scores", model.name);
    }
    if args.labels.is_some() && decoder.labels_needed().is_none() {
        bail!("--labels: the outputs of {} are no classes", model.name);
    }
    Ok(decoder)
}

fn open_pictures(args: &Args) -> Result<Box<dyn source::Source>> {
    let (size, pixels) = (args.size, args.pixels.unwrap_or_default());
    let camera = CameraOptions {
        size,
        fps: args.fps,
        format: args.camera_format,
        every_frame: args.drop == Some(pace::Drop::None),
    };
    let options = source::Options {
        seed: args.seed.unwrap_or(DEFAULT_SEED),
        raw: size.map(|size| RawFormat { size, pixels }),
        camera,
    };
    source::open(&args.source, options)
}

/// The model, which has to take what the source gives.
fn load(args: &Args, kind: source::Kind) -> Result<TaskModel> {
    let model = model_file::task_model(args.model.as_deref())?;
    if kind == source::Kind::Pictures && model.front.is_some() {
        bail!(
            "{} takes sound, which {} is not: a .wav file, or the samples as a .f32 file",
            model.name,
            args.source
        );
    }
    Ok(model)
}

fn picture_ends(args: &Args, source: Box<dyn source::Source>, model: &TaskModel) -> Result<Ends> {
    let options = options(args, source.class_names())?;
    let fitter = picture_fitter(model, &options)
        .with_context(|| format!("{} takes no pictures", model.name))?;
    if args.float_range.is_some() && fitter.shape().ty != OperandType::TensorFloat32 {
        bail!("--float-range: the input of {} takes bytes as they are", model.name);
    }
    let decoder = decoder(args, model, Some(&fitter), &options)?;
    Ok(Ends { feed: Box::new(Pictures::new(source, fitter)), decoder, takes_pictures: true })
}

fn values_ends(args: &Args, kind: source::Kind, model: &TaskModel) -> Result<Ends> {
    let feed = values(args, kind, model)
        .with_context(|| format!("{} cannot take {}", model.name, args.source))?;
    let decoder = decoder(args, model, None, &options(args, None)?)?;
    Ok(Ends { feed: Box::new(feed), decoder, takes_pictures: false })
}

/// Sound or values for a model; what lies before a spectrum inside of it, this process computes.
fn values(args: &Args, kind: source::Kind, model: &TaskModel) -> Result<Values> {
    let hop = args.hop.map(|hop| seconds("--hop", hop)).transpose()?;
    let device = Threads { count: 1 }.device(Variant::CPU.name)?;
    let fitter = SoundFitter::new(model, &device)?;
    let feeding = Feeding { source: &args.source, rate: args.rate, hop, lenient: args.lenient };
    match kind {
        source::Kind::Values => Values::file(&args.source, fitter),
        _ => Values::sound(&feeding, fitter),
    }
}

/// Which results are said where `--top` does not say: of pictures the best class, of each of them, but of a video
/// in the live line where one is drawn, and as JSON only what changes; of sound always, but of short pieces only what
/// changes.
fn say(args: &Args, ends: &Ends, is_live: bool) -> Say {
    if let Some(top) = args.top {
        return Say::All(top.into());
    }
    let Ends { feed, decoder, takes_pictures } = ends;
    let is_short = feed.span().is_none_or(|span| span < SHORT_SOUND);
    match decoder {
        Decoder::Classes(_) if *takes_pictures => {
            let is_repeated = source::is_single(&args.source) && args.frames.is_some();
            match source::is_stills(&args.source) {
                true if is_repeated => Say::Changes,
                true => Say::All(1),
                false if is_live => Say::Nothing,
                false if args.wants_json() => Say::Changes,
                false => Say::All(1),
            }
        }
        Decoder::Values(_) if *takes_pictures => Say::Nothing,
        Decoder::Classes(_) if decoder.is_classifier() && is_short => Say::Changes,
        Decoder::Nothing => Say::Nothing,
        _ => Say::All(SOUND_TOP),
    }
}
