//! What was so, for people: in sixty columns, as they may look through a phone.

use std::fmt::Write;

use super::bursts::BurstFigures;
use super::figures::{Report, SessionFigures, UserFigures};
use super::models::ModelFigures;
use crate::out::counted;

/// Where no terminal says how wide it is.
pub(super) const USUAL_COLUMNS: usize = 80;
/// Fewer than these are not kept to.
const FEWEST: usize = 60;

pub(super) fn text(report: &Report, columns: usize) -> String {
    let columns = columns.max(FEWEST);
    let mut lines = vec![summary(report)];
    for user in &report.users {
        lines.push(of_user(user));
    }
    if !report.sessions.is_empty() {
        lines.push(String::new());
        lines.push(format!(
            "{:>6} {:>7} {:>6} {:>9} {:>6}  {}",
            "client", "pid", "user", "rate/s", "share", "command"
        ));
        lines.extend(report.sessions.iter().map(of_session));
    }
    if !report.models.is_empty() {
        lines.push(String::new());
        lines.push(format!(
            "{:<11} {:>11} {:>9} {:>8} {:>8} {:>5}",
            "model", "memory", "socket/s", "p50", "p99", "share"
        ));
    }
    for model in &report.models {
        lines.push(of_model(model));
        lines.push(what_uses_it(model));
    }
    if !report.bursts.is_empty() {
        lines.push(String::new());
        lines.push(format!(
            "{:<11} {:>9} {:>8} {:>8} {:>5} {:>5} {:>7}",
            "burst", "rate/s", "p50", "p99", "busy", "turn", "queue"
        ));
    }
    for burst in &report.bursts {
        lines.push(of_burst(burst));
        lines.push(what_it_does(burst));
    }
    if report.left_out > 0 {
        lines.push(format!("{} more are not shown", report.left_out));
    }
    let mut text = String::new();
    for line in lines {
        let shown: String = line.chars().map(harmless).take(columns).collect();
        let _ = writeln!(text, "{}", shown.trim_end()); // a string takes all
    }
    text
}

/// As much as a terminal with so many lines shows at once, the last of which stays free; what comes first would
/// scroll away otherwise.
pub(super) fn cut(text: &str, lines: usize) -> String {
    let room = lines.saturating_sub(1).max(1);
    let all = text.lines().count();
    if all <= room {
        return text.to_owned();
    }
    let shown = room - 1;
    let mut cut: String = text.lines().take(shown).flat_map(|line| [line, "\n"]).collect();
    let more = all - shown;
    let _ = writeln!(cut, "{more} more lines: --once, or --client, --device, --trouble"); // a string takes all
    cut
}

/// Names come from clients: what would move the cursor is not shown.
fn harmless(c: char) -> char {
    if c.is_control() { '?' } else { c }
}

fn summary(report: &Report) -> String {
    let waiting = match report.waiting_for_turn {
        0 => String::new(),
        waiting => format!(", {waiting} waiting for a turn"),
    };
    let beside = match report.computing_beside {
        0 => String::new(),
        beside => format!(", {beside} computing beside"),
    };
    format!(
        "burst {}: {}, {}, {}{waiting}{beside}",
        report.service_version,
        counted(report.sessions.len() as u64, "client"),
        counted(report.models.len() as u64, "model"),
        counted(report.bursts.len() as u64, "burst"),
    )
}

fn of_user(user: &UserFigures) -> String {
    let name = user.name.clone().unwrap_or_else(|| user.uid.to_string());
    let short = if user.is_short_of_memory { "; NEARLY ALL" } else { "" };
    format!("{name}: {} of {}{short}", mib(user.memory_bytes), mib(user.memory_limit_bytes))
}

#[expect(clippy::cast_precision_loss, reason = "a size for people")]
fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn of_session(session: &SessionFigures) -> String {
    let pid = session.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
    let over = if session.is_over_share { "*" } else { " " };
    let command = session.command.as_ref().unwrap_or(&session.program);
    format!(
        "{:>6} {pid:>7} {:>6} {:>9} {:>5}{over}  {command}",
        session.client,
        session.uid,
        rate(session.requests_per_second),
        percent(Some(session.computing_share)),
    )
}

/// What is executed with it over the socket; its bursts have lines of their own.
fn of_model(model: &ModelFigures) -> String {
    let name = format!("{}/{}", model.client, model.model);
    format!(
        "{name:<11} {:>11} {:>9} {:>8} {:>8} {:>5}",
        mib(model.memory_bytes),
        rate(model.times.requests_per_second),
        time(model.times.p50_us),
        time(model.times.p99_us),
        percent(Some(model.computing_share)),
    )
}

/// The second line of a model.
fn what_uses_it(model: &ModelFigures) -> String {
    let over_socket = match model.times.requests {
        0 => String::new(),
        requests => format!(", {requests} over the socket"),
    };
    let failed = match model.times.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let bursts = counted(model.bursts as u64, "burst");
    format!("  {}, {bursts}{over_socket}{failed}", model.device)
}

fn of_burst(burst: &BurstFigures) -> String {
    let name = format!("{}/{}/{}", burst.client, burst.model, burst.burst);
    let times = &burst.times;
    // A result that nobody takes is a queue, too: the longer of the two.
    let (queued, room) = match (burst.requests_queued, burst.results_queued) {
        (requests, results) if results > requests => (results, burst.results_room),
        (requests, _) => (requests, burst.requests_room),
    };
    format!(
        "{name:<11} {:>9} {:>8} {:>8} {:>5} {:>5} {:>7}",
        rate(times.requests_per_second),
        time(times.p50_us),
        time(times.p99_us),
        percent(burst.busy_share),
        percent(burst.waiting_share),
        format!("{queued}/{room}"),
    )
}

/// The second line of a burst.
fn what_it_does(burst: &BurstFigures) -> String {
    let words: Vec<&str> = burst.trouble.iter().map(|trouble| trouble.word()).collect();
    let trouble = if words.is_empty() {
        String::new()
    } else {
        format!("; {}", words.join(", ").to_uppercase())
    };
    let failed = match burst.times.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    format!("  {}, {}, waits: {}{failed}{trouble}", burst.device, burst.state, burst.wait)
}

fn rate(per_second: Option<f64>) -> String {
    per_second.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.1}"))
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0))
}

/// Microseconds in at most eight characters.
fn time(us: Option<f64>) -> String {
    match us {
        None => "-".to_owned(),
        Some(us) if us < 1e3 => format!("{us:.0} us"),
        Some(us) if us < 1e6 => format!("{:.1} ms", us / 1e3),
        Some(us) => format!("{:.1} s", us / 1e6),
    }
}
