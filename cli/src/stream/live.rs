//! The live line: progress, rate and latency of the last second, what the model sees now.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use burst_tasks::Class;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::stats::Recent;
use crate::out;

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

    /// Whether a line is drawn at all.
    pub(crate) fn is_drawn(&self) -> bool {
        self.bar.is_some()
    }

    /// The line, for who ends it.
    pub(crate) fn bar(&self) -> Option<ProgressBar> {
        self.bar.clone()
    }

    /// Draws the line: how many frames the source gave, of which so many were dropped.
    pub(crate) fn show(
        &mut self,
        (seen, dropped): (u64, u64),
        recent: Option<Recent>,
        class: Option<&Class>,
    ) {
        let Some(bar) = &self.bar else { return };
        self.next = Instant::now() + EVERY;
        self.recent = recent.or(self.recent);
        // What it sees first: a narrow terminal cuts the line off at its end.
        let mut text = String::new();
        if let Some(class) = class {
            text.push_str(&format!("sees {} ({:.2})  ", out::harmless(&class.name()), class.score));
        }
        if dropped > 0 {
            text.push_str(&format!("{dropped} dropped  "));
        }
        if let Some(Recent { fps, quantiles }) = self.recent {
            let (p50, p99) = (quantiles.p50, quantiles.p99);
            text.push_str(&format!("{fps:.0} fps  p50 {p50:.0} us  p99 {p99:.0} us"));
        }
        bar.set_position(seen);
        bar.set_message(text);
    }
}

fn style(bounded: bool) -> ProgressStyle {
    let template =
        if bounded { "{bar:16} {pos}/{len}  {wide_msg}" } else { "{spinner} {pos}  {wide_msg}" };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
