use super::*;
use crate::transport::More;
use crate::transport::checks::checks;

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
        rounds_ratio_to_floor: Vec::new(),
        rounds_kept: 5,
        rounds_dropped: 0,
        modes: None,
        client_memory_kib: None,
        server_memory_kib: Some(2048),
        more: More {
            peer,
            service_ns,
            curve: vec![(0.0, 90.0), (0.5, 100.0), (0.99, 150.0), (1.0, 1e6)],
            ..More::default()
        },
    }
}

#[test]
fn a_row_that_was_not_quiet_is_marked() {
    let rounds = |is_quiet, dropped| {
        let more = More { is_quiet, ..More::default() };
        counted_rounds(&Row { rounds_kept: 15, rounds_dropped: dropped, more, ..row("ours", 0) })
    };
    assert_eq!((rounds(true, 0), rounds(true, 3)), ("15".to_owned(), "15 (-3)".to_owned()));
    assert_eq!((rounds(false, 0), rounds(false, 3)), ("15*".to_owned(), "15* (-3)".to_owned()));
}

#[test]
fn each_mode_has_a_line_of_its_own_and_the_limit_is_told() {
    let ratio = |median| Spread { median, min: median, max: median };
    let mode = |median| InMode { rounds: 7, p50_ns: 150.0, ratio_to_floor: ratio(median) };
    let modes = Modes { near: Some(mode(1.25)), far: Some(mode(1.5)), between: 2 };
    let rows = vec![Row { modes: Some(modes), ..row("ours", 0) }, row("pipe", 0)];
    let found =
        RoundTripReport { rows, checks: Vec::new(), ended_early: true, failures: Vec::new() };
    let report = Report { machine: Machine::detect(), rounds: 5, found };
    let mut text = Vec::new();
    report.write_text(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let line = |mode: &str| text.lines().find(|line| line.contains(mode)).unwrap_or_default();
    assert!(line(" near ").contains("1.250") && line(" far ").contains("1.500"), "{text}");
    assert!(text.contains("ended at its limit"), "{text}");
    assert_eq!(
        mode_cells(report.found.rows[0].modes.as_ref()),
        ["1.2500", "7", "1.5000", "7", "2"]
    );
    assert_eq!(mode_cells(None), [""; 5]);
    let page = report.page().unwrap();
    assert!(page.contains("all rounds, by how long a cache line takes"), "the page has them too");
}

#[test]
fn a_page_needs_no_other_file_and_draws_what_was_swept() {
    let mut rows = vec![row("ours", 0), row("ours", 50_000), row("<peer>", 0)];
    rows[1].name += ", 50 us of service";
    let checks = checks(&rows);
    let found = RoundTripReport { rows, checks, ended_early: false, failures: Vec::new() };
    let page = Report { machine: Machine::detect(), rounds: 5, found }.page().unwrap();
    assert_eq!(page.matches("<svg").count(), 2, "one distribution, one sweep");
    assert!(page.contains("&lt;peer&gt;") && !page.contains("<peer>"), "names are escaped");
    // The only address is the name of SVG's own elements.
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("Overhead over the service time"));
    assert!(!page.contains("must") && !page.contains("not measured"), "no verdicts");
    assert!(page.trim_end().ends_with("</html>"));
}

#[test]
fn a_page_says_which_rounds_and_trials_do_not_count() {
    let mut rows = vec![row("ours", 0), row("pipe", 0)];
    rows[1].rounds_dropped = 3;
    let failures = vec!["pipe: no answer <in time>".to_owned()];
    let found = RoundTripReport { rows, checks: Vec::new(), ended_early: false, failures };
    let page = Report { machine: Machine::detect(), rounds: 5, found }.page().unwrap();
    let (_, left_out) = page.split_once("<h2>Left out").unwrap();
    assert!(left_out.contains("<li>10 rounds are in the figures, 3 are not: "), "{left_out}");
    assert!(left_out.contains("<li>a run failed: pipe: no answer &lt;in time&gt;"), "{left_out}");
    assert!(page.contains("server&#39;s memory") || page.contains("server's memory"), "{page}");
    assert_eq!(
        page.matches("<td>-<td>2.0 MiB").count(),
        2,
        "what is not known is not made up: {page}"
    );
}

#[test]
fn requests_that_come_when_the_last_was_answered_are_no_point_of_a_sweep_over_rates() {
    let at = |period_ns, p50_ns| {
        let mut row = row(names::OURS, 0);
        (row.more.period_ns, row.p50_ns) = (period_ns, p50_ns);
        row
    };
    let rows = vec![at(0, 100.0), at(1_000_000, 300.0), at(100_000, 200.0)];
    let found =
        RoundTripReport { rows, checks: Vec::new(), ended_early: false, failures: Vec::new() };
    let lines = found.rates().lines;
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].points, [(3.0, 300.0), (4.0, 200.0)], "requests per second as decades");
}

#[test]
fn requests_under_way_are_swept_and_a_spreadsheet_has_every_row() {
    let at = |in_flight, round_trips_per_s| {
        let mut row = row(names::OURS, 0);
        (row.more.in_flight, row.round_trips_per_s) = (in_flight, round_trips_per_s);
        row
    };
    let rows = vec![at(8, 1e8), at(1, 1e7)];
    let found =
        RoundTripReport { rows, checks: Vec::new(), ended_early: false, failures: Vec::new() };
    let lines = found.depths().lines;
    assert_eq!(lines[0].points, [(1.0, 100.0), (8.0, 10.0)], "nanoseconds for each round trip");
    assert!(found.services().lines.is_empty());
    let report = Report { machine: Machine::detect(), rounds: 5, found };
    let mut csv = Vec::new();
    let format = crate::report::Format::Csv;
    report.write(&mut Paper { format, ..Paper::plain(&mut csv) }).unwrap();
    let csv = String::from_utf8(csv).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines.len(), 3);
    assert_eq!(
        lines[1],
        "ours,adaptive,pinned-apart,64,1.0000,0.9000,1.1000,100.0,110.0,150.0,200.0,1000000.0,100000000.0,200.0,,,2048,5,0,,,,,"
    );
    let columns = |line: &str| line.split(',').count();
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])));
}
