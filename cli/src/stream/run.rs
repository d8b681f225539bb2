//! A run in progress: frame after frame through the model.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use burst_client::Outages;
use burst_hal::ErrorStatus;

use super::answer::Reader;
use super::args::{Args, State};
use super::feed::Feed;
use super::live::Live;
use super::pace::Pace;
use super::path::Path;
use super::report::{Accuracy, Report};
use super::results::{FrameResult, Results};
use super::saver::{FrameSaver, OutputSaver};
use super::stats::{FrameTimes, Stats};
use crate::source;

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
    pub(super) reader: Reader,
    pub(super) say: Say,
    pub(super) stats: Stats,
    pub(super) pace: Pace,
    pub(super) live: Live,
    pub(super) frame_saver: Option<FrameSaver>,
    pub(super) output_saver: Option<OutputSaver>,
    pub(super) results: Results,
    pub(super) deadline: Duration,
    /// Frames to send; `None`: all there are.
    pub(super) wanted: Option<u64>,
    /// States that the model has.
    pub(super) states: usize,
    /// What becomes of them between frames.
    pub(super) state: State,
    pub(super) tally: Tally,
}

/// What a run counts.
#[derive(Debug, Default)]
pub(super) struct Tally {
    errors: u64,
    /// Frames whose best class was the one they are known to show.
    right: u64,
    /// Frames that are known to show something.
    judged: u64,
    /// The best class that was said last.
    said: Option<usize>,
    /// Where the sound streamed so far ends.
    sound: Option<Duration>,
    /// What was lost up to the last gap that was said.
    outages: Outages,
}

impl Run<'_> {
    /// Sends every frame; returns how many were answered or failed.
    pub(super) fn all(&mut self, path: &mut dyn Path) -> Result<u64> {
        let wanted = self.wanted;
        let repeat = source::is_single(&self.args.source) && self.args.frames.is_some();
        let mut frames = 0;
        while wanted.is_none_or(|wanted| frames + self.pace.dropped < wanted) {
            if !self.feed.advance()? {
                break;
            }
            loop {
                let is_last = wanted.is_some_and(|w| frames + self.pace.dropped + 1 >= w);
                if let Some(due) = self.pace.due(is_last) {
                    self.one(frames, due, path)?;
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
        if let Some(saver) = self.output_saver.take() {
            saver.finish()?;
        }
        Ok(frames)
    }

    fn one(&mut self, index: u64, due: Instant, path: &mut dyn Path) -> Result<()> {
        self.feed.write(path.input())?;
        if self.state == State::Reset {
            path.reset_states();
        }
        let sent = Instant::now();
        let (status, driver) = path.execute(self.deadline)?;
        let answered = Instant::now();
        self.pace.done(answered);
        if status != ErrorStatus::None {
            tracing::warn!(frame = index, %status, "a frame failed");
            self.tally.errors += 1;
            return Ok(());
        }
        self.say_gap(path);
        let execution = answered.duration_since(sent);
        let latency =
            if self.args.fps.is_some() { answered.duration_since(due) } else { execution };
        self.stats.record(FrameTimes { latency, execution, driver });
        if let Some(saver) = &mut self.output_saver {
            saver.save(path.output(0)?)?;
        }
        self.reader.read(path)?;
        self.look(index)?;
        if self.live.wants(answered) {
            let seen = self.reader.best_class();
            self.live.show(index + 1, self.stats.take_second(answered), seen.as_ref());
        }
        Ok(())
    }

    /// Says how long nothing was answered, once something is again.
    fn say_gap(&mut self, path: &dyn Path) {
        let Some(now) = path.outages() else { return };
        let before = std::mem::replace(&mut self.tally.outages, now);
        if now.reconnects == before.reconnects || self.args.json {
            return;
        }
        let (gap, lost) = (now.last_gap.as_millis(), now.lost - before.lost);
        let requests = if lost == 1 { "request" } else { "requests" };
        let driver = path.driver_pid();
        self.live
            .aside(|| eprintln!("gap {gap} ms, {lost} {requests} lost; driver process {driver}"));
    }

    /// What the model makes of the frame.
    fn look(&mut self, index: u64) -> Result<()> {
        let label = self.feed.label();
        self.tally.sound = label.at.zip(self.feed.span()).map(|(at, span)| at + span);
        let best = self.reader.best();
        if self.args.model.is_none()
            && let (Some(truth), Some(best)) = (label.truth, best)
        {
            self.tally.judged += 1;
            self.tally.right += u64::from(best == truth);
        }
        let placed = self.feed.picture();
        if let (Some(saver), Some(placed)) = (&mut self.frame_saver, &placed) {
            saver.save(&self.reader.picture(placed))?;
        }
        let top = match self.say {
            Say::All(top) => top,
            Say::Changes if best.is_none() || self.tally.said != best => 1,
            Say::Changes | Say::Nothing => return Ok(()),
        };
        self.tally.said = best;
        let Some(answer) = self.reader.answer(top, placed.as_ref()) else { return Ok(()) };
        let result = FrameResult {
            frame: index,
            source: label.name.to_owned(),
            at_seconds: label.at.map(|at| at.as_secs_f64()),
            span_seconds: self.feed.span().map(|span| span.as_secs_f64()),
            answer,
        };
        let Run { live, results, .. } = self;
        live.aside(|| results.add(result))
    }

    pub(super) fn report(
        self,
        model: String,
        frames: u64,
        seconds: f64,
        path: &dyn Path,
    ) -> Report {
        #[expect(clippy::cast_precision_loss, reason = "counts of frames")]
        let throughput_fps = (frames - self.tally.errors) as f64 / seconds;
        let whole = self.feed.sound();
        let sound = self.tally.sound.map(|end| end.min(whole.unwrap_or(end)).as_secs_f64());
        Report {
            model,
            source: self.args.source.clone(),
            path: self.args.path.name(),
            wait: self.args.wait.name(),
            frames,
            errors: self.tally.errors,
            late: self.args.fps.is_some().then_some(self.pace.late),
            dropped: self.args.fps.is_some().then_some(self.pace.dropped),
            client_pid: std::process::id(),
            driver_pid: path.driver_pid(),
            reconnects: path.outages().map(|outages| outages.reconnects),
            lost: path.outages().map(|outages| outages.lost),
            longest_gap_ms: path
                .outages()
                .map(|outages| outages.longest_gap.as_secs_f64() * 1000.0),
            retries: Some(path.retries()).filter(|retries| *retries > 0),
            seconds,
            throughput_fps,
            sound_seconds: sound,
            times_real_time: sound.map(|sound| sound / seconds),
            states: (self.states > 0 && self.state == State::Carry).then_some(self.states),
            accuracy: Accuracy::of(self.tally.right, self.tally.judged),
            latency_us: self.stats.latency.quantiles(),
            driver_us: self.stats.driver.quantiles(),
            transport_us: self.stats.transport.quantiles(),
            results_left_out: Some(self.results.left_out).filter(|left_out| *left_out > 0),
            results: (self.say != Say::Nothing).then(|| self.results.into_kept()),
        }
    }
}
