//! The live line: progress, rate and latency of the last second, what the model sees now.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::answer::Class;
use super::stats::Recent;

/// How often the line changes.
const EVERY: Duration = Duration::from_millis(100);

/// A line on standard error while that is a terminal; nothing otherwise.
pub(crate) struct Live {
    bar: Option<ProgressBar>,
    next: Instant,
    recent: Option<Recent>,
}

impl Live {
    pub(crate) fn start(frames: Option<u64>, quiet: bool) -> Self {
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| {
            // Drawn only when asked to: no ticking thread beside the one that measures.
            let target = ProgressDrawTarget::stderr();
            let bar = ProgressBar::with_draw_target(frames, target);
            bar.set_style(style(frames.is_some()));
            bar
        });
        Live { bar, next: Instant::now(), recent: None }
    }

    /// Whether the line is due.
    pub(crate) fn wants(&self, now: Instant) -> bool {
        self.bar.is_some() && now >= self.next
    }

    /// Does something that prints, with the line out of the way.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    pub(crate) fn show(&mut self, frames: u64, recent: Option<Recent>, class: Option<&Class>) {
        let Some(bar) = &self.bar else { return };
        self.next = Instant::now() + EVERY;
        self.recent = recent.or(self.recent);
        let mut text = String::new();
        if let Some(Recent { fps, quantiles }) = self.recent {
            text =
                format!("{fps:.0} fps  p50 {:.0} us  p99 {:.0} us  ", quantiles.p50, quantiles.p99);
        }
        if let Some(class) = class {
            text.push_str(&format!("sees {} ({:.2})", class.name(), class.score));
        }
        bar.set_position(frames);
        bar.set_message(text);
    }

    pub(crate) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn style(bounded: bool) -> ProgressStyle {
    let template =
        if bounded { "{bar:24} {pos}/{len}  {msg}" } else { "{spinner} {pos} frames  {msg}" };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
