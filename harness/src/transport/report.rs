//! What a run of round trips found: text and page.

use std::io::Write;

use serde::{Deserialize, Serialize};

use crate::bounds::Check;
use crate::engine::{Spread, to_f64};
use crate::error::HarnessError;
use crate::machine::Machine;
use crate::report::{
    Column, Drawing, Findings, Heights, Line, Page, Paper, Scale, Table, counted, dash, mib, nines,
    time,
};
use crate::transport::case::Placement;
use crate::transport::mode::{InMode, Modes};
use crate::transport::names;
use crate::transport::row::Row;
use crate::wait::WaitKind;

/// A whole run of round trips.
pub type Report = crate::report::Report<RoundTripReport>;

/// What is known of round trips at the end of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RoundTripReport {
    /// One per peer and case.
    pub rows: Vec<Row>,
    /// Ratios that say most, and what became of them where the run is held to bounds.
    pub checks: Vec<Check>,
    /// Whether the run came to its limit before everything had its rounds and its system calls were counted.
    pub ended_early: bool,
    /// Trials that failed and were repeated, and counts of system calls that are missing.
    #[serde(skip)]
    pub failures: Vec<String>,
}

impl Findings for RoundTripReport {
    fn write_text(
        &self,
        machine: &Machine,
        rounds: u32,
        paper: &mut Paper<'_>,
    ) -> Result<(), HarnessError> {
        let out = &mut *paper.out;
        let Machine { processor, cpus, kernel, clock_step_ns, load, keep_awake, .. } = machine;
        let (cpus, rounds) = (counted(*cpus as u64, "CPU"), counted(rounds.into(), "round"));
        writeln!(out, "{processor}, {cpus}, Linux {kernel}, clock step {clock_step_ns} ns")?;
        writeln!(out, "{rounds} asked for, peers taking turns; load at the start {load:.2}")?;
        writeln!(out, "keeping CPUs awake while a burst lives: {keep_awake}")?;
        self.write_counts(out)?;
        writeln!(out)?;
        self.write_warnings(out)?;
        let mut groups: Vec<(WaitKind, Placement)> = Vec::new();
        for row in &self.rows {
            let group = (row.wait, row.placement);
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        for group in groups {
            writeln!(paper.out, "{}, {}", group.0.name(), group.1.name())?;
            paper.table(&self.row_table(group))?;
            writeln!(paper.out)?;
        }
        let modes = self.mode_table();
        if !modes.is_empty() {
            writeln!(paper.out, "{MODES}")?;
            paper.table(&modes)?;
            writeln!(paper.out)?;
        }
        let checks = self.check_table();
        if !checks.is_empty() {
            paper.table(&checks)?;
        }
        Ok(())
    }

    fn figures(&self) -> Table {
        let words = ["peer", "wait", "placement"].map(Column::text);
        let numbers = [
            "bytes",
            "p50 : floor",
            "min",
            "max",
            "p50 ns",
            "p90 ns",
            "p99 ns",
            "p99.9 ns",
            "max ns",
            "round trips/s",
            "CPU ns per trip",
            "calls per message",
            "client memory KiB",
            "server memory KiB",
            "rounds",
            "rounds dropped",
            "near p50 : floor",
            "near rounds",
            "far p50 : floor",
            "far rounds",
            "rounds between",
        ];
        let mut table = Table::new([&words[..], &numbers.map(Column::number)].concat());
        for row in &self.rows {
            let Spread { median, min, max } = row.ratio_to_floor;
            let words = [row.name.clone(), row.wait.name().into(), row.placement.name().into()];
            let ratios = [median, min, max].map(|ratio| format!("{ratio:.4}"));
            let times = [row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns];
            let rates = [row.round_trips_per_s, row.cpu_ns_per_round_trip];
            let plain = |value: f64| format!("{value:.1}");
            let calls =
                row.syscalls_per_message.map_or_else(String::new, |calls| calls.to_string());
            let cells = words.into_iter().chain([row.request_bytes.to_string()]).chain(ratios);
            let cells = cells.chain(times.map(plain)).chain(rates.map(plain)).chain([calls]);
            let kib = |kib: Option<u64>| kib.map_or_else(String::new, |kib| kib.to_string());
            let cells = cells.chain([row.client_memory_kib, row.server_memory_kib].map(kib));
            let cells = cells.chain([row.rounds_kept, row.rounds_dropped].map(|n| n.to_string()));
            table.add(cells.chain(mode_cells(row.modes.as_ref())));
        }
        table
    }

    fn write_warnings(&self, out: &mut dyn Write) -> Result<(), HarnessError> {
        if self.ended_early {
            writeln!(out, "ended at its limit (--minutes), before everything had its rounds")?;
        }
        for failure in &self.failures {
            writeln!(out, "a run failed: {failure}")?;
        }
        Ok(())
    }

    fn page(&self, machine: &Machine, rounds: u32) -> Result<String, HarnessError> {
        let how = format!(
            "{}, peers taking turns; each ratio is taken against floors measured right before and right \
             after.",
            counted(rounds.into(), "round")
        );
        let mut page = Page::new("Transport", "Round trips between two processes", machine, &how);
        page.table(&self.ratio_table());
        let modes = self.mode_table();
        if !modes.is_empty() {
            page.heading(MODES);
            page.table(&modes);
        }
        page.heading("Left out");
        let mut left_out = Vec::new();
        self.write_counts(&mut left_out)?;
        self.write_warnings(&mut left_out)?;
        let left_out = String::from_utf8_lossy(&left_out).into_owned();
        page.list(&left_out.lines().map(str::to_owned).collect::<Vec<_>>());
        for (wait, placement) in self.groups() {
            let title =
                format!("Latency, {}, {}, smallest requests", wait.name(), placement.name());
            page.drawing(&self.distribution(&title, (wait, placement)));
        }
        page.drawing(&self.services());
        page.drawing(&self.rates());
        page.drawing(&self.depths());
        for group in self.groups() {
            page.heading(&format!("{}, {}", group.0.name(), group.1.name()));
            page.table(&self.row_table(group));
        }
        Ok(page.finish())
    }
}

impl RoundTripReport {
    /// How many rounds count, and why others do not.
    fn write_counts(&self, out: &mut dyn Write) -> Result<(), HarnessError> {
        let dropped: usize = self.rows.iter().map(|row| row.rounds_dropped).sum();
        let kept: usize = self.rows.iter().map(|row| row.rounds_kept).sum();
        let quiet = self.rows.iter().filter(|row| row.more.is_quiet);
        let shared: usize = quiet.map(|row| row.more.shared).sum();
        let are = |count: usize| if count == 1 { "is" } else { "are" };
        writeln!(
            out,
            "{} {} in the figures, {dropped} {} not: in {} the floor was not the same right before and \
             after, in {shared} an end shared its core with somebody else's thread",
            counted(kept as u64, "round"),
            are(kept),
            are(dropped),
            dropped.saturating_sub(shared)
        )?;
        if self.rows.iter().any(|row| !row.more.is_quiet) {
            writeln!(
                out,
                "in rows marked {MARK} such rounds are in the figures too, there were too few others"
            )?;
        }
        Ok(())
    }

    fn groups(&self) -> Vec<(WaitKind, Placement)> {
        let all = WaitKind::ALL.into_iter();
        let all = all.flat_map(|wait| Placement::ALL.map(|placement| (wait, placement)));
        all.filter(|group| self.rows.iter().any(|row| (row.wait, row.placement) == *group))
            .collect()
    }

    fn row_table(&self, group: (WaitKind, Placement)) -> Table {
        let mut table = Table::new(vec![
            Column::text("peer"),
            Column::number("B").in_full("bytes"),
            Column::number("p50 : floor"),
            Column::number("min - max"),
            Column::number("p50"),
            Column::number("p90"),
            Column::number("p99"),
            Column::number("p99.9"),
            Column::number("max"),
            Column::number("RT/s").in_full("round trips/s"),
            Column::number("CPU/RT").in_full("CPU per trip"),
            Column::number("calls/msg").in_full("calls per message"),
            Column::number("client's memory").on_pages(),
            Column::number("server's memory").on_pages(),
            Column::number("rounds").in_full("rounds (dropped; * on shared cores too)"),
        ]);
        for row in self.rows.iter().filter(|row| (row.wait, row.placement) == group) {
            let Spread { median, min, max } = row.ratio_to_floor;
            let calls = row.syscalls_per_message;
            table.add([
                row.name.clone(),
                row.request_bytes.to_string(),
                format!("{median:.3}"),
                format!("{min:.3} - {max:.3}"),
                time(row.p50_ns),
                time(row.p90_ns),
                time(row.p99_ns),
                time(row.p999_ns),
                time(row.max_ns),
                format!("{:.0}", row.round_trips_per_s),
                time(row.cpu_ns_per_round_trip),
                calls.map_or_else(dash, |calls| format!("{calls:.3}")),
                row.client_memory_kib.map_or_else(dash, mib),
                row.server_memory_kib.map_or_else(dash, mib),
                counted_rounds(row),
            ]);
        }
        table
    }

    /// Who polls, over all rounds of each mode.
    fn mode_table(&self) -> Table {
        let mut table = Table::new(vec![
            Column::text("peer"),
            Column::number("B").in_full("bytes"),
            Column::text("CPUs"),
            Column::number("p50 : floor"),
            Column::number("min - max"),
            Column::number("p50"),
            Column::number("rounds"),
        ]);
        for row in &self.rows {
            let Some(modes) = &row.modes else { continue };
            for (name, mode) in [("near", &modes.near), ("far", &modes.far)] {
                let Some(InMode { rounds, p50_ns, ratio_to_floor }) = mode else { continue };
                let Spread { median, min, max } = ratio_to_floor;
                table.add([
                    row.name.clone(),
                    row.request_bytes.to_string(),
                    name.to_owned(),
                    format!("{median:.3}"),
                    format!("{min:.3} - {max:.3}"),
                    time(*p50_ns),
                    rounds.to_string(),
                ]);
            }
        }
        table
    }

    /// Ratios, and where the run is held to bounds what became of each.
    fn check_table(&self) -> Table {
        if self.checks.iter().all(|check| check.must.is_none()) {
            return self.ratio_table();
        }
        let mut table = Table::new(Check::columns().to_vec());
        for check in &self.checks {
            table.add(check.cells());
        }
        table
    }

    /// Those that were measured.
    fn ratio_table(&self) -> Table {
        let mut table = Table::new(vec![Column::text("ratio"), Column::number("value")]);
        for check in &self.checks {
            if let Some(value) = check.value {
                table.add([check.what.clone(), format!("{value:.4}")]);
            }
        }
        table
    }

    fn distribution<'d>(
        &self,
        title: &'d str,
        (wait, placement): (WaitKind, Placement),
    ) -> Drawing<'d> {
        let plain = |row: &&Row| {
            (row.wait, row.placement) == (wait, placement)
                && row.name == row.more.peer
                && row.request_bytes <= SMALL
        };
        let line = |row: &Row| Line {
            name: row.name.clone(),
            colour: self.colour(row.more.peer),
            points: row
                .more
                .curve
                .iter()
                .filter(|(quantile, _)| *quantile < 1.0)
                .map(|(quantile, ns)| (nines(*quantile), *ns))
                .collect(),
        };
        Drawing {
            title,
            x: "share of round trips that took no longer",
            y: "time of a round trip",
            lines: self.rows.iter().filter(plain).map(line).collect(),
            x_scale: Scale::Shares,
            y_scale: Heights::Times,
        }
    }

    /// One for each peer, the same in every drawing.
    fn colour(&self, peer: &str) -> usize {
        let mut peers: Vec<&str> = Vec::new();
        for row in self.rows.iter().filter(|row| row.request_bytes <= SMALL) {
            if !peers.contains(&row.more.peer) {
                peers.push(row.more.peer);
            }
        }
        peers.iter().position(|one| *one == peer).unwrap_or(0)
    }

    /// What a wait costs beyond the service itself.
    fn services(&self) -> Drawing<'static> {
        let point = |row: &Row| {
            let service = to_f64(row.more.service_ns);
            (service / 1000.0, (row.p50_ns - service).max(1.0))
        };
        Drawing {
            title: "Overhead over the service time, two CPUs",
            x: "service time, us",
            y: "p50 less the service time",
            lines: self.sweep(
                |row| row.more.period_ns == 0 && row.more.in_flight <= 1,
                |row| row.more.service_ns,
                point,
            ),
            x_scale: Scale::Numbers,
            y_scale: Heights::Times,
        }
    }

    /// Requests at given rates alone: one that comes as soon as the last was answered is of another kind.
    fn rates(&self) -> Drawing<'static> {
        let rate = |row: &Row| 1e9 / to_f64(row.more.period_ns);
        Drawing {
            title: "Round trip by rate of requests, two CPUs",
            x: "requests per second",
            y: "p50 of round trips",
            lines: self.sweep(
                |row| row.more.service_ns == 0 && row.more.period_ns > 0,
                |row| row.more.period_ns,
                |row| (rate(row).max(1.0).log10(), row.p50_ns),
            ),
            x_scale: Scale::Decades,
            y_scale: Heights::Times,
        }
    }

    /// What several requests under way bring: their round trips overlap.
    fn depths(&self) -> Drawing<'static> {
        Drawing {
            title: "Time per round trip by requests under way, two CPUs",
            x: "requests under way",
            y: "time per round trip",
            lines: self.sweep(
                |row| row.more.service_ns == 0 && row.more.period_ns == 0,
                |row| u64::from(row.more.in_flight.saturating_sub(1)),
                |row| (f64::from(row.more.in_flight), 1e9 / row.round_trips_per_s),
            ),
            x_scale: Scale::Numbers,
            y_scale: Heights::Times,
        }
    }

    /// One line for each way to wait of ours and of the floor, where there are points of a sweep.
    fn sweep(
        &self,
        belongs: impl Fn(&Row) -> bool,
        swept: impl Fn(&Row) -> u64,
        point: impl Fn(&Row) -> (f64, f64),
    ) -> Vec<Line> {
        let mut lines = Vec::new();
        for peer in [names::OURS, names::FUTEX_FLOOR] {
            for wait in WaitKind::ALL {
                let is_part = |row: &&Row| {
                    row.more.peer == peer
                        && (row.wait, row.placement) == (wait, Placement::PinnedApart)
                        && row.request_bytes <= SMALL
                        && belongs(row)
                };
                let rows: Vec<&Row> = self.rows.iter().filter(is_part).collect();
                if !rows.iter().any(|row| swept(row) > 0) {
                    continue;
                }
                let mut points: Vec<(f64, f64)> = rows.into_iter().map(&point).collect();
                points.sort_by(|a, b| a.0.total_cmp(&b.0));
                let (name, colour) = (format!("{peer}, {}", wait.name()), lines.len());
                lines.push(Line { name, colour, points });
            }
        }
        lines
    }
}

/// What the figures say of the modes of a row: nothing where it has none.
fn mode_cells(modes: Option<&Modes>) -> [String; 5] {
    let ratio = |mode: Option<&InMode>| {
        mode.map_or_else(String::new, |mode| format!("{:.4}", mode.ratio_to_floor.median))
    };
    let rounds = |mode: Option<&InMode>| mode.map_or(0, |mode| mode.rounds).to_string();
    let Some(Modes { near, far, between }) = modes else { return [const { String::new() }; 5] };
    let (near, far) = (near.as_ref(), far.as_ref());
    [ratio(near), rounds(near), ratio(far), rounds(far), between.to_string()]
}

/// Bytes of the requests whose distributions are drawn; floors have fewer.
const SMALL: usize = 64;

/// Over the table of rounds by mode.
const MODES: &str = "all rounds, by how long a cache line takes between the two CPUs (near, far)";

/// At the rounds of a row that had to count those on shared cores.
const MARK: &str = "*";

/// Rounds that count, with the mark where it belongs, and those that were dropped.
fn counted_rounds(row: &Row) -> String {
    let mark = if row.more.is_quiet { "" } else { MARK };
    match row.rounds_dropped {
        0 => format!("{}{mark}", row.rounds_kept),
        dropped => format!("{}{mark} (-{dropped})", row.rounds_kept),
    }
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
