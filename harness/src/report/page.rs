//! A run as one page that needs no other file: drawings, what must be reached, every row.

use std::fmt::Write;

use crate::error::HarnessError;
use crate::machine::Machine;
use crate::report::plot::{Drawing, Line, draw};
use crate::transport::case::{Placement, WaitKind};
use crate::transport::report::{Report, Row, rounds, time};
use crate::transport::sample::to_f64;

const STYLE: &str = "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;padding:0 1em;\
max-width:96em;color:#222}h2{margin-top:2em}table{border-collapse:collapse;margin:1em 0;\
font-size:13px;font-variant-numeric:tabular-nums}td,th{border:1px solid #ccc;padding:.2em .5em;\
text-align:right;white-space:nowrap}th{background:#f4f4f4;vertical-align:bottom}\
td:first-child,th:first-child,.text{text-align:left}.no{color:#b00}.good{color:#070}\
.wide{overflow-x:auto}svg{max-width:100%;height:auto}";

/// The beginning of a page, up to its first paragraph: `how` says how the numbers were got.
pub(crate) fn begin(title: &str, heading: &str, machine: &Machine, how: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>{}</title>\
         <style>{STYLE}</style><h1>{}</h1><p>{}, {} CPUs, Linux {}, clock step {} ns. {}</p>",
        escape(title),
        escape(heading),
        escape(&machine.processor),
        machine.cpus,
        escape(&machine.kernel),
        machine.clock_step_ns,
        escape(how)
    )
}

/// The end of a page.
pub(crate) fn end() -> &'static str {
    "</html>\n"
}

/// The page.
///
/// # Errors
/// [`HarnessError::Peer`] where a drawing fails.
pub fn page(report: &Report) -> Result<String, HarnessError> {
    let how = format!(
        "{} rounds, peers taking turns; each ratio is taken against floors measured right before \
         and right after.",
        report.rounds
    );
    let title = "Round trips between two processes";
    let mut out = begin("Transport", title, &report.machine, &how);
    checks(&mut out, report);
    for (wait, placement) in groups(report) {
        let title = format!("Latency, {}, {}, smallest requests", wait.name(), placement.name());
        out += &draw(&distribution(report, &title, (wait, placement)))?;
    }
    out += &draw(&services(report))?;
    out += &draw(&rates(report))?;
    rows(&mut out, report);
    out += end();
    Ok(out)
}

fn groups(report: &Report) -> Vec<(WaitKind, Placement)> {
    let mut groups = Vec::new();
    for wait in WaitKind::ALL {
        for placement in Placement::ALL {
            if report.rows.iter().any(|row| (row.wait, row.placement) == (wait, placement)) {
                groups.push((wait, placement));
            }
        }
    }
    groups
}

/// Quantiles as nines: 0.9 is one, 0.999 is three, so that the tail is as wide as the middle.
pub(crate) fn nines(quantile: f64) -> f64 {
    -(1.0 - quantile).log10()
}

/// A quantile in nines as a percentage, with as many digits as tell it from its neighbours.
pub(crate) fn nines_label(nines: &f64) -> String {
    let share = 100.0 * (1.0 - 10_f64.powf(-nines));
    let digits = (1_u8..).take_while(|digit| f64::from(*digit) < *nines).count();
    let text = format!("{share:.digits$}");
    let text = if digits > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    text.to_owned() + "%"
}

fn distribution<'d>(
    report: &Report,
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
        colour: colour(report, row.more.peer),
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
        y: "round trip",
        lines: report.rows.iter().filter(plain).map(line).collect(),
        x_label: nines_label,
    }
}

/// One for each peer, the same in every drawing.
fn colour(report: &Report, peer: &str) -> usize {
    let mut peers: Vec<&str> = Vec::new();
    for row in report.rows.iter().filter(|row| row.request_bytes <= SMALL) {
        if !peers.contains(&row.more.peer) {
            peers.push(row.more.peer);
        }
    }
    peers.iter().position(|one| *one == peer).unwrap_or(0)
}

/// Bytes of the requests whose distributions are drawn; floors have fewer.
const SMALL: usize = 64;

/// What a wait costs beyond the service itself.
fn services(report: &Report) -> Drawing<'static> {
    let point = |row: &Row| {
        let service = to_f64(row.more.service_ns);
        (service / 1000.0, (row.p50_ns - service).max(1.0))
    };
    Drawing {
        title: "Overhead over the service time, two CPUs",
        x: "service time, us",
        y: "p50 less the service time",
        lines: sweep(report, |row| row.more.period_ns == 0, |row| row.more.service_ns, point),
        x_label: |us| format!("{us:.0}"),
    }
}

fn rates(report: &Report) -> Drawing<'static> {
    let rate = |row: &Row| match row.more.period_ns {
        0 => row.round_trips_per_s,
        period => 1e9 / to_f64(period),
    };
    Drawing {
        title: "Round trip by rate of requests, two CPUs",
        x: "requests per second",
        y: "p50",
        lines: sweep(
            report,
            |row| row.more.service_ns == 0,
            |row| row.more.period_ns,
            |row| (rate(row).max(1.0).log10(), row.p50_ns),
        ),
        x_label: |decade| format!("{:.0}", 10_f64.powf(*decade)),
    }
}

/// One line for each way to wait of ours and of the floor, where there are points of a sweep.
fn sweep(
    report: &Report,
    belongs: impl Fn(&Row) -> bool,
    swept: impl Fn(&Row) -> u64,
    point: impl Fn(&Row) -> (f64, f64),
) -> Vec<Line> {
    let mut lines = Vec::new();
    for peer in
        [crate::transport::checks::names::OURS, crate::transport::checks::names::FUTEX_FLOOR]
    {
        for wait in WaitKind::ALL {
            let rows: Vec<&Row> = report
                .rows
                .iter()
                .filter(|row| {
                    row.more.peer == peer
                        && (row.wait, row.placement) == (wait, Placement::PinnedApart)
                        && row.request_bytes <= SMALL
                        && belongs(row)
                })
                .collect();
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

fn checks(out: &mut String, report: &Report) {
    *out += "<table><tr><th>what<th>value<th>must<th>reach<th></tr>";
    for check in &report.checks {
        let class = match check.ok {
            Some(true) => "good",
            Some(false) => "no",
            None => "",
        };
        let value = check.value.map_or_else(|| "–".to_owned(), |value| format!("{value:.4}"));
        let _ = write!(
            out,
            "<tr><td>{}<td>{value}<td>{}<td>{}<td class=\"{class}\">{}</tr>",
            escape(&check.what),
            escape(&check.must.to_string()),
            escape(&check.reach.to_string()),
            check.verdict()
        );
    }
    *out += "</table>";
}

fn rows(out: &mut String, report: &Report) {
    for (wait, placement) in groups(report) {
        let _ = write!(
            out,
            "<h2>{}, {}</h2><div class=\"wide\"><table><tr><th>peer<th>bytes<th>p50 : floor\
             <th>min – max<th>p50<th>p90<th>p99<th>p99.9<th>max<th>round trips/s<th>CPU per trip\
             <th>calls per message<th>rounds (dropped; * on shared cores too)</tr>",
            wait.name(),
            placement.name()
        );
        let rows = report.rows.iter();
        for row in rows.filter(|row| (row.wait, row.placement) == (wait, placement)) {
            one_row(out, row);
        }
        *out += "</table></div>";
    }
}

fn one_row(out: &mut String, row: &Row) {
    let ratio = &row.ratio_to_floor;
    let calls =
        row.syscalls_per_message.map_or_else(|| "–".to_owned(), |calls| format!("{calls:.3}"));
    let _ = write!(
        out,
        "<tr><td>{}<td>{}<td>{:.3}<td>{:.3} – {:.3}",
        escape(&row.name),
        row.request_bytes,
        ratio.median,
        ratio.min,
        ratio.max,
    );
    for ns in [row.p50_ns, row.p90_ns, row.p99_ns, row.p999_ns, row.max_ns] {
        let _ = write!(out, "<td>{}", time(ns));
    }
    let _ = write!(
        out,
        "<td>{:.0}<td>{}<td>{calls}<td>{}</tr>",
        row.round_trips_per_s,
        time(row.cpu_ns_per_round_trip),
        rounds(&row.more)
    );
}

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::verdict::Spread;
    use crate::transport::checks::checks;
    use crate::transport::report::More;

    fn row(peer: &'static str, service_ns: u64) -> Row {
        Row {
            name: peer.to_owned(),
            request_bytes: 64,
            wait: WaitKind::Adaptive,
            placement: Placement::PinnedApart,
            p50_ns: 100.0 + to_f64(service_ns),
            p90_ns: 110.0,
            p99_ns: 150.0,
            p999_ns: 200.0,
            max_ns: 1e6,
            ratio_to_floor: Spread { median: 1.0, min: 0.9, max: 1.1 },
            round_trips_per_s: 1e7,
            cpu_ns_per_round_trip: 200.0,
            syscalls_per_message: None,
            ratio_on_shared_cores: None,
            more: More {
                peer,
                service_ns,
                curve: vec![(0.0, 90.0), (0.5, 100.0), (0.99, 150.0), (1.0, 1e6)],
                ..More::default()
            },
        }
    }

    #[test]
    fn nines_are_written_as_percentages() {
        let labels = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0].map(|nines| nines_label(&nines));
        assert_eq!(labels, ["0%", "68%", "90%", "96.8%", "99%", "99.68%", "99.9%", "99.99%"]);
    }

    #[test]
    fn a_page_needs_no_other_file_and_draws_what_was_swept() {
        let mut rows = vec![row("ours", 0), row("ours", 50_000), row("<peer>", 0)];
        rows[1].name += ", 50 us of service";
        let checks = checks(&rows);
        let report =
            Report { rounds: 5, machine: Machine::look(), rows, checks, failures: Vec::new() };
        let page = page(&report).unwrap();
        assert_eq!(page.matches("<svg").count(), 2, "one distribution, one sweep");
        assert!(page.contains("&lt;peer&gt;") && !page.contains("<peer>"), "names are escaped");
        // The only address is the name of SVG's own elements.
        for outside in ["src=", "href=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(page.contains("Overhead over the service time"));
        assert!(page.trim_end().ends_with("</html>"));
    }
}
