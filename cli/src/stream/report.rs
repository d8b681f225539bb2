//! What a run came to, as text and as JSON.

use std::io::Write;

use anyhow::Result;
use comfy_table::Table;
use serde::Serialize;

use super::results::FrameResult;
use super::stats::Quantiles;

/// The summary of a run; its JSON form is `burst stream --json`.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) model: String,
    pub(crate) source: String,
    pub(crate) path: &'static str,
    pub(crate) wait: &'static str,
    /// Frames sent to the driver, failed ones included.
    pub(crate) frames: u64,
    pub(crate) errors: u64,
    /// With `--fps`: answers that came after the next frame was due.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) late: Option<u64>,
    /// With `--fps`: frames that were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dropped: Option<u64>,
    pub(crate) client_pid: u32,
    pub(crate) driver_pid: u32,
    /// With `--reconnect`: how often another driver went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reconnects: Option<u64>,
    /// With `--reconnect`: requests that were lost with their driver; they are errors too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) lost: Option<u64>,
    /// With `--reconnect`: longest time from an answer of one driver to the first of the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) longest_gap_ms: Option<f64>,
    /// Requests sent again because the driver was short of something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retries: Option<u64>,
    pub(crate) seconds: f64,
    pub(crate) throughput_fps: f64,
    /// Seconds of sound that were streamed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sound_seconds: Option<f64>,
    /// How many times faster than the sound lasts that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) times_real_time: Option<f64>,
    /// States that went from each frame to the next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) states: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) accuracy: Option<Accuracy>,
    pub(crate) latency_us: Option<Quantiles>,
    pub(crate) driver_us: Option<Quantiles>,
    pub(crate) transport_us: Option<Quantiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) results: Option<Vec<FrameResult>>,
    /// Results beyond as many as are kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) results_left_out: Option<u64>,
}

/// How often the model was right, where the source knows what it shows.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Accuracy {
    pub(crate) right: u64,
    pub(crate) of: u64,
    pub(crate) percent: f64,
}

impl Accuracy {
    pub(crate) fn of(right: u64, of: u64) -> Option<Self> {
        #[expect(clippy::cast_precision_loss, reason = "counts of frames")]
        let percent = right as f64 / of as f64 * 100.0;
        (of > 0).then_some(Accuracy { right, of, percent })
    }
}

impl Report {
    /// Whether every frame was answered.
    pub(crate) fn is_sound(&self) -> bool {
        self.errors == 0
    }

    pub(crate) fn write_json(&self, out: &mut impl Write) -> Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        writeln!(out)?;
        Ok(())
    }

    pub(crate) fn write_text(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "{} through {}", self.source, self.model)?;
        let mut table = Table::new();
        table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
        table.set_header(["microseconds", "p50", "p90", "p99", "p99.9", "max"]);
        for (name, quantiles) in [
            ("latency", self.latency_us),
            ("  in the driver", self.driver_us),
            ("  transport", self.transport_us),
        ] {
            if let Some(q) = quantiles {
                let cell = |value: f64| format!("{value:.1}");
                table.add_row([
                    name.to_owned(),
                    cell(q.p50),
                    cell(q.p90),
                    cell(q.p99),
                    cell(q.p999),
                    cell(q.max),
                ]);
            }
        }
        writeln!(out, "{table}")?;
        write!(
            out,
            "{} frames in {:.2} s ({:.0} per second), {} errors",
            self.frames, self.seconds, self.throughput_fps, self.errors
        )?;
        if let (Some(late), Some(dropped)) = (self.late, self.dropped) {
            write!(out, ", {late} late, {dropped} dropped")?;
        }
        writeln!(out)?;
        if let (Some(reconnects @ 1..), Some(lost), Some(gap)) =
            (self.reconnects, self.lost, self.longest_gap_ms)
        {
            let (times, requests) = (counted(reconnects, "reconnect"), counted(lost, "request"));
            writeln!(out, "{times}, {requests} lost, longest gap {gap:.0} ms")?;
        }
        if let Some(retries) = self.retries {
            writeln!(
                out,
                "{} because the driver was short of something",
                counted(retries, "retry")
            )?;
        }
        if let (Some(sound), Some(times)) = (self.sound_seconds, self.times_real_time) {
            write!(out, "{sound:.2} s of sound, {times:.1} times as fast as real time")?;
            match self.states {
                Some(1) => writeln!(out, ", 1 state carried from frame to frame")?,
                Some(states) => writeln!(out, ", {states} states carried from frame to frame")?,
                None => writeln!(out)?,
            }
        }
        if let Some(Accuracy { right, of, percent }) = self.accuracy {
            writeln!(out, "accuracy {percent:.2} % ({right} of {of} frames named right)")?;
        }
        writeln!(
            out,
            "path {}, wait {}; client process {}, driver process {}",
            self.path, self.wait, self.client_pid, self.driver_pid
        )?;
        Ok(())
    }
}

/// A number with its noun, in the plural where need be.
fn counted(count: u64, noun: &str) -> String {
    match (count, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {noun}s"),
    }
}
