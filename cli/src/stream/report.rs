//! What a run came to, as text and as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use comfy_table::{ContentArrangement, Table};
use serde::Serialize;

use super::results::FrameResult;
use super::stats::Quantiles;
use crate::out::{self, counted};
use crate::source::{CameraFacts, Live};
use crate::trace::Summary;

/// The summary of a run; its JSON form is `burst stream --json`, whose keys are always there.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// `None` where the run ended before it was read.
    pub(crate) model: Option<String>,
    pub(crate) source: String,
    pub(crate) path: &'static str,
    /// How this end of a burst waits; `None` where there is no burst.
    pub(crate) wait: Option<&'static str>,
    /// Threads that compute, unless a service has its own.
    pub(crate) threads: Option<u32>,
    /// Frames sent to the driver, failed ones included.
    pub(crate) frames: u64,
    pub(crate) errors: u64,
    pub(crate) errors_by_status: BTreeMap<&'static str, u64>,
    /// Frames that could not be read.
    pub(crate) damaged: u64,
    /// With `--fps`: answers that came after the next frame was due.
    pub(crate) late: Option<u64>,
    /// With `--fps`: frames that were skipped.
    pub(crate) dropped: Option<u64>,
    pub(crate) client_pid: u32,
    pub(crate) driver_pid: Option<u32>,
    /// With `--reconnect`: how often another driver went on.
    pub(crate) reconnects: Option<u64>,
    /// With `--reconnect`: requests that were lost with their driver; they are errors too.
    pub(crate) lost: Option<u64>,
    /// With `--reconnect`: longest time from an answer of one driver to the first of the next.
    pub(crate) longest_gap_ms: Option<f64>,
    /// Requests sent again because the driver was short of something.
    pub(crate) retries: u64,
    pub(crate) seconds: f64,
    pub(crate) throughput_fps: f64,
    /// Seconds of sound that were streamed.
    pub(crate) sound_seconds: Option<f64>,
    /// How many times faster than the sound lasts that was.
    pub(crate) times_real_time: Option<f64>,
    /// States that went from each frame to the next.
    pub(crate) states: Option<usize>,
    pub(crate) accuracy: Option<Accuracy>,
    pub(crate) latency_us: Option<Quantiles>,
    pub(crate) driver_us: Option<Quantiles>,
    pub(crate) transport_us: Option<Quantiles>,
    pub(crate) results: Option<Vec<FrameResult>>,
    /// Results beyond as many as are kept.
    pub(crate) results_left_out: u64,
    /// Of a camera: what it is, and what became of its frames.
    pub(crate) camera: Option<CameraReport>,
    /// With `--trace`: what is in the file.
    pub(crate) trace: Option<Summary>,
}

/// A camera, and what became of its frames.
#[derive(Debug, Serialize)]
pub(crate) struct CameraReport {
    #[serde(flatten)]
    facts: CameraFacts,
    /// Frames that it had no room for.
    missed: u64,
    /// Frames whose latency counts from when they arrived.
    untimed: u64,
    /// Why it does.
    untimed_because: Option<String>,
}

impl CameraReport {
    pub(crate) fn new(facts: CameraFacts, live: Option<Live>) -> Self {
        CameraReport {
            facts,
            missed: live.map_or(0, |live| live.missed),
            untimed: live.map_or(0, |live| live.untimed),
            untimed_because: live.and_then(|live| live.distrust).map(|why| why.to_string()),
        }
    }

    fn write_text(&self, dropped: u64, to: &mut impl Write) -> Result<()> {
        let CameraFacts { name, format, width, height, fps, .. } = &self.facts;
        write!(to, "camera {name}: {format}, {width} x {height} pixels")?;
        if let Some(fps) = fps {
            write!(to, ", {fps:.0} frames per second")?;
        }
        writeln!(to, "; {dropped} skipped for newer ones, {} missed", self.missed)?;
        match &self.untimed_because {
            None => writeln!(to, "latency counts from when the camera took a frame")?,
            Some(why) => {
                let frames = counted(self.untimed, "frame");
                writeln!(to, "latency of {frames} counts from when they arrived: {why}")?;
            }
        }
        Ok(())
    }
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

    pub(crate) fn write_text(&self, to: &mut impl Write) -> Result<()> {
        writeln!(to, "{} through {}", self.source, self.model.as_deref().unwrap_or("no model"))?;
        if let Some(table) = self.table(out::columns()) {
            writeln!(to, "{table}")?;
        }
        write!(
            to,
            "{} in {:.2} s ({:.0} per second), {}",
            counted(self.frames, "frame"),
            self.seconds,
            self.throughput_fps,
            counted(self.errors, "error")
        )?;
        if !self.errors_by_status.is_empty() {
            let each = self.errors_by_status.iter();
            let each: Vec<String> =
                each.map(|(status, count)| format!("{status} {count}")).collect();
            write!(to, " ({})", each.join(", "))?;
        }
        if let (Some(late), Some(dropped)) = (self.late, self.dropped) {
            write!(to, ", {late} late, {dropped} dropped")?;
        }
        if self.damaged > 0 {
            write!(to, ", {} damaged and left out", self.damaged)?;
        }
        writeln!(to)?;
        if let Some(camera) = &self.camera {
            camera.write_text(self.dropped.unwrap_or(0), to)?;
        }
        if let (Some(reconnects @ 1..), Some(lost), Some(gap)) =
            (self.reconnects, self.lost, self.longest_gap_ms)
        {
            let (times, requests) = (counted(reconnects, "reconnect"), counted(lost, "request"));
            writeln!(to, "{times}, {requests} lost, longest gap {gap:.0} ms")?;
        }
        if self.retries > 0 {
            let times = counted(self.retries, "retry");
            writeln!(to, "{times} because the driver was short of something")?;
        }
        if let (Some(sound), Some(times)) = (self.sound_seconds, self.times_real_time) {
            write!(to, "{sound:.2} s of sound, {times:.1} times as fast as real time")?;
            match self.states {
                Some(states) => {
                    let states = counted(states as u64, "state");
                    writeln!(to, ", {states} carried from frame to frame")?;
                }
                None => writeln!(to)?,
            }
        }
        if let Some(Accuracy { right, of, percent }) = self.accuracy {
            let of = counted(of, "frame");
            writeln!(to, "accuracy {percent:.2} % ({right} of {of} named right)")?;
        }
        let wait = self.wait.map_or_else(String::new, |wait| format!(", wait {wait}"));
        write!(to, "path {}{wait}; client process {}", self.path, self.client_pid)?;
        match self.driver_pid {
            Some(driver) => writeln!(to, ", driver process {driver}")?,
            None => writeln!(to)?,
        }
        if let Some(trace) = &self.trace {
            writeln!(to, "{trace}")?;
        }
        Ok(())
    }

    /// The distributions, in a table no wider than this; `None` where nothing was measured.
    fn table(&self, columns: Option<u16>) -> Option<Table> {
        self.latency_us?;
        let mut table = Table::new();
        if columns.is_some_and(|columns| columns < FRAMED_COLUMNS) {
            table.load_style(comfy_table::presets::NOTHING);
        } else {
            table.load_style(comfy_table::presets::UTF8_FULL_CONDENSED);
        }
        table.set_header(["microseconds", "p50", "p90", "p99", "p99.9", "max"]);
        for (name, quantiles) in [
            ("latency", self.latency_us),
            ("  in the driver", self.driver_us),
            ("  transport", self.transport_us),
        ] {
            if let Some(q) = quantiles {
                let figures = [q.p50, q.p90, q.p99, q.p999, q.max].map(figure);
                table.add_row([name.to_owned()].into_iter().chain(figures));
            }
        }
        if let Some(columns) = columns {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns);
        }
        Some(table)
    }
}

/// Below this width of a terminal the table has no frame.
const FRAMED_COLUMNS: u16 = 80;

/// A time with as many digits as say something.
fn figure(micros: f64) -> String {
    if micros < 100_000.0 { format!("{micros:.1}") } else { format!("{micros:.0}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_as_wide_as_there_is_room() {
        let slow = Quantiles { p50: 9.5, p90: 99_999.9, p99: 1e6, p999: 1.2e6, max: 12_345_678.0 };
        let report = Report { latency_us: Some(slow), driver_us: Some(slow), ..empty() };
        for columns in [60, 79, 80, 120] {
            let table = report.table(Some(columns)).unwrap().to_string();
            let widest = table.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= columns.into(), "{columns}: {widest}\n{table}");
            assert!(table.contains("12345678") && table.contains("99999.9"), "{table}");
            assert_eq!(table.contains('│'), columns >= FRAMED_COLUMNS);
            let lines = table.lines().filter(|line| line.contains("in the driver")).count();
            assert_eq!(lines, 1, "no cell is broken: {table}");
        }
        assert!(empty().table(None).is_none());
    }

    #[test]
    fn one_frame_is_no_frames() {
        let mut text = Vec::new();
        Report { frames: 1, ..empty() }.write_text(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("1 frame in ") && text.contains(", 0 errors"), "{text}");
    }

    fn empty() -> Report {
        Report {
            model: None,
            source: "demo".into(),
            path: "burst",
            wait: Some("spin"),
            threads: Some(1),
            frames: 0,
            errors: 0,
            errors_by_status: BTreeMap::new(),
            damaged: 0,
            late: None,
            dropped: None,
            client_pid: 1,
            driver_pid: None,
            reconnects: None,
            lost: None,
            longest_gap_ms: None,
            retries: 0,
            seconds: 1.0,
            throughput_fps: 0.0,
            sound_seconds: None,
            times_real_time: None,
            states: None,
            accuracy: None,
            latency_us: None,
            driver_us: None,
            transport_us: None,
            results: None,
            results_left_out: 0,
            camera: None,
            trace: None,
        }
    }
}
