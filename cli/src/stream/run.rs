//! A run in progress: frame after frame through the model.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use burst_client::Outages;
use burst_hal::ErrorStatus;
use burst_hal::trace::{Marks, SpanKind, SpanSink};
use burst_tasks::{Answer, Decoder};

use super::args::{Args, State};
use super::closing::End;
use super::drawn;
use super::feed::Feed;
use super::ledger::{Driver, Entries, Ledger};
use super::live::Live;
use super::pace::Pace;
use super::path::Path;
use super::results::{FrameLine, FrameResult};
use super::saver::{FrameSaver, OutputSaver};
use super::stats::FrameTimes;
use crate::failure::error_text;
use crate::out::{self, counted};
use crate::source;
use crate::view::{Shown, View};

/// Which results are said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Say {
    /// That of every frame, with so many classes.
    All(usize),
    /// Those with another best class than the one before.
    Changes,
    /// None.
    Nothing,
}

/// Everything that a run needs.
pub(super) struct Run<'a> {
    pub(super) args: &'a Args,
    pub(super) feed: Box<dyn Feed>,
    pub(super) decoder: Decoder,
    pub(super) say: Say,
    pub(super) pace: Pace,
    pub(super) live: Live,
    /// The page that shows the frames.
    pub(super) view: Option<View>,
    pub(super) frame_saver: Option<FrameSaver>,
    pub(super) output_saver: Option<OutputSaver>,
    /// Where everything that is measured is written down.
    pub(super) ledger: &'a Ledger,
    pub(super) deadline: Duration,
    /// Frames to take from the source; `None`: all there are.
    pub(super) wanted: Option<u64>,
    /// What becomes of the model's states between frames.
    pub(super) state: State,
    /// The place of the current frame in the source, from 1: in results, in saved files, in a trace.
    pub(super) number: u64,
    /// The best class that was said last.
    pub(super) said: Option<usize>,
    /// What was lost up to the last gap that was said.
    pub(super) outages: Outages,
    /// Where the spans of each frame go, where somebody wants them.
    pub(super) spans: Option<&'a dyn SpanSink>,
}

/// How the execution of a frame ended.
struct Executed {
    status: ErrorStatus,
    /// `None` where it failed.
    times: Option<FrameTimes>,
}

impl Executed {
    /// The frame's line of `--json-lines`.
    fn line<'a>(&self, result: &'a FrameResult) -> FrameLine<'a> {
        let micros = |time: Duration| time.as_secs_f64() * 1e6;
        FrameLine {
            result,
            status: self.status.name(),
            latency_us: self.times.map(|times| micros(times.latency)),
            driver_us: self.times.and_then(|times| times.driver).map(micros),
        }
    }
}

/// Classes that the page shows.
const CLASSES_IN_VIEW: usize = 3;

impl Run<'_> {
    /// Sends every frame, until there are no more or a signal asks for the end.
    pub(super) fn all(&mut self, path: &mut dyn Path) -> Result<End> {
        let repeat = source::is_single(&self.args.source) && self.args.frames.is_some();
        while self.wants_more() {
            if let Some(signal) = self.ledger.asked() {
                return Ok(End::Interrupted(signal));
            }
            let asked = Instant::now();
            let advanced = self.feed.advance();
            self.pace.source_took(asked, Instant::now(), self.feed.comes_by_itself());
            self.note_live();
            match advanced {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    self.leave_out(error)?;
                    continue;
                }
            }
            loop {
                if let Some(signal) = self.due_frame(path)? {
                    return Ok(signal);
                }
                if !repeat || !self.wants_more() {
                    break;
                }
            }
        }
        self.has_seen_any()?;
        Ok(End::Done)
    }

    fn wants_more(&self) -> bool {
        self.wanted.is_none_or(|wanted| self.number < wanted)
    }

    /// Sends the current frame when it is due, or skips it. Something where a signal asked for the end meanwhile.
    fn due_frame(&mut self, path: &mut dyn Path) -> Result<Option<End>> {
        self.number += 1;
        let is_last = self.wanted.is_some_and(|wanted| self.number >= wanted);
        let due = self.pace.due(is_last, |time| self.ledger.sleep(time));
        if let Some(signal) = self.ledger.asked() {
            return Ok(Some(End::Interrupted(signal)));
        }
        match due {
            Some(due) => self.one(due, path)?,
            None => {
                self.ledger.write(|entries| entries.counts.dropped += 1);
                self.draw(Instant::now());
            }
        }
        Ok(None)
    }

    /// Counts what a camera gave beside the current frame; each has its place in the source.
    fn note_live(&mut self) {
        if let Some(live) = self.feed.live() {
            self.number += self.ledger.write(|entries| entries.note_live(live));
        }
    }

    /// A frame that cannot be read: the end of the stream, unless it is to go on.
    fn leave_out(&mut self, error: anyhow::Error) -> Result<()> {
        if !self.args.lenient {
            return Err(error);
        }
        self.number += 1;
        self.ledger.write(|entries| entries.counts.damaged += 1);
        let text = error_text(&error);
        self.live.aside(|| out::say(format_args!("left out: {text}")));
        Ok(())
    }

    fn has_seen_any(&self) -> Result<()> {
        let counts = self.ledger.write(|entries| entries.counts);
        match counts.frames + counts.dropped {
            0 if counts.damaged == 0 => bail!("{}: no frames", self.args.source),
            0 => bail!(
                "{}: none of {}",
                self.args.source,
                counted(counts.damaged, "frame") + " could be read"
            ),
            _ => Ok(()),
        }
    }

    fn one(&mut self, due: Instant, path: &mut dyn Path) -> Result<()> {
        let mut marks = Marks::begin(self.spans);
        let answered = self.answer(due, path, &mut marks);
        marks.mark(SpanKind::ReadOutputs);
        // As many frames as have room for spans have smaller numbers.
        marks.whole(SpanKind::Frame, u32::try_from(self.number).unwrap_or(u32::MAX));
        answered
    }

    fn answer(&mut self, due: Instant, path: &mut dyn Path, marks: &mut Marks<'_>) -> Result<()> {
        self.feed.write(path.input())?;
        if self.state == State::Reset {
            path.reset_states();
        }
        marks.mark(SpanKind::WriteInputs);
        let sent = Instant::now();
        let executed = path.execute(self.deadline);
        let answered = Instant::now();
        marks.mark(SpanKind::Execute);
        self.note_driver(path);
        let (status, driver) = executed?;
        self.pace.done(answered);
        if status != ErrorStatus::None {
            tracing::warn!(frame = self.number, %status, "a frame failed");
            let late = self.pace.late;
            self.ledger.write(|entries| {
                entries.note_failure(status);
                entries.counts.late = late;
            });
            return self.print_line(None, &Executed { status, times: None });
        }
        self.say_gap(path);
        let execution = answered.duration_since(sent);
        let latency = match self.feed.live() {
            Some(live) => answered.saturating_duration_since(live.taken),
            None if self.args.fps.is_some() => answered.duration_since(due),
            None => execution,
        };
        let times = FrameTimes { latency, execution, driver };
        if let Some(saver) = &mut self.output_saver {
            saver.save(path.output(0)?)?;
        }
        self.decoder.read(path)?;
        self.look(times)?;
        self.draw(answered);
        Ok(())
    }

    /// What is known of the driver by now, for whoever says it.
    pub(super) fn note_driver(&self, path: &dyn Path) {
        let driver = Driver {
            pid: Some(path.driver_pid()),
            route: Some(path.route()),
            wait: path.wait(),
            outages: path.outages(),
            retries: path.retries(),
        };
        self.ledger.write(|entries| entries.driver = driver);
    }

    /// Says how long nothing was answered, once something is again.
    fn say_gap(&mut self, path: &dyn Path) {
        let Some(now) = path.outages() else { return };
        let before = std::mem::replace(&mut self.outages, now);
        if now.reconnects == before.reconnects || self.args.wants_json() {
            return;
        }
        let (gap, lost) = (now.last_gap.as_millis(), counted(now.lost - before.lost, "request"));
        let driver = path.driver_pid();
        let line = format!("gap {gap} ms, {lost} lost; driver process {driver}");
        self.live.aside(|| out::say(line));
    }

    /// What the model makes of the frame: written down first, then said and drawn.
    fn look(&mut self, times: FrameTimes) -> Result<()> {
        let result = self.result();
        let label = self.feed.label();
        let end = label.at.zip(self.feed.span()).map(|(at, span)| at + span);
        let judged = match (label.truth, self.decoder.best()) {
            (Some(truth), Some(best)) if self.args.model.is_none() => Some(best == truth),
            _ => None,
        };
        let late = self.pace.late;
        let note = |entries: &mut Entries| {
            entries.stats.record(times);
            entries.sound = end;
            let counts = &mut entries.counts;
            counts.frames += 1;
            counts.late = late;
            counts.judged += u64::from(judged.is_some());
            counts.right += u64::from(judged == Some(true));
        };
        let result = self.ledger.write(|entries| {
            note(entries);
            match result {
                Some(result) if entries.heading.keeps_results => {
                    entries.keep(result);
                    None
                }
                result => result,
            }
        });
        let status = ErrorStatus::None;
        if self.args.json_lines {
            self.print_line(result, &Executed { status, times: Some(times) })?;
        } else if let Some(result) = result {
            let is_brief = self.args.top.is_none();
            self.live.aside(|| out::text(|to| result.write_text(is_brief, to)))?;
        }
        let placed = self.feed.picture();
        if let (Some(saver), Some(placed)) = (&mut self.frame_saver, &placed) {
            saver.save(self.number, &drawn::picture(&self.decoder, placed))?;
        }
        self.view(times)
    }

    /// Hands the frame to viewers of the page who wait for one.
    fn view(&self, times: FrameTimes) -> Result<()> {
        let Some(view) = self.view.as_ref().filter(|view| view.is_awaited(self.number)) else {
            return Ok(());
        };
        let Some(placed) = self.feed.picture() else { return Ok(()) };
        let result = self.about(self.decoder.answer(CLASSES_IN_VIEW, Some(&placed.placement)));
        let executed = Executed { status: ErrorStatus::None, times: Some(times) };
        let picture = drawn::picture(&self.decoder, &placed);
        view.show(Shown {
            number: self.number,
            width: picture.width(),
            height: picture.height(),
            result: serde_json::to_string(&executed.line(&result))?,
            rgb: picture.into_rgb(),
            ..Shown::default()
        });
        Ok(())
    }

    /// What is to be said of the frame.
    fn result(&mut self) -> Option<FrameResult> {
        let best = self.decoder.best();
        let top = match self.say {
            Say::All(top) => top,
            _ if self.args.json_lines => 1,
            Say::Changes if best.is_none() || self.said != best => 1,
            Say::Changes | Say::Nothing => return None,
        };
        self.said = best;
        let placement = self.feed.picture().map(|placed| placed.placement);
        let answer = self.decoder.answer(top, placement.as_ref());
        // Where nothing is known of the outputs there is nothing to say, but in a line for each frame.
        (answer.is_some() || self.args.json_lines).then(|| self.about(answer))
    }

    fn about(&self, answer: Option<Answer>) -> FrameResult {
        let label = self.feed.label();
        FrameResult {
            frame: self.number,
            source: label.name.to_owned(),
            at_seconds: label.at.map(|at| at.as_secs_f64()),
            span_seconds: self.feed.span().map(|span| span.as_secs_f64()),
            answer,
        }
    }

    /// With `--json-lines`: the frame, whatever came of it.
    fn print_line(&self, result: Option<FrameResult>, executed: &Executed) -> Result<()> {
        if !self.args.json_lines {
            return Ok(());
        }
        let result = result.unwrap_or_else(|| self.about(None));
        executed.line(&result).write(&mut out::stdout())
    }

    fn draw(&mut self, answered: Instant) {
        if !self.live.wants(answered) {
            return;
        }
        let (counts, recent) =
            self.ledger.write(|entries| (entries.counts, entries.stats.take_second(answered)));
        let seen = self.decoder.best_class();
        self.live.show((counts.seen(), counts.dropped), recent, seen.as_ref());
    }
}
