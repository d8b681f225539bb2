//! Looks that are made up: three clients and eight bursts.

use super::figures::Report;
use super::look::{Account, Burst, Counts, Look, Model, Session, User};
use super::text::{cut, text};
use super::wanted::{SortBy, Trouble, Wanted};

const SECOND: u64 = 1_000_000_000;

fn wanted() -> Wanted {
    Wanted { user: None, client: None, device: None, trouble: None, sort: SortBy::Client }
}

fn burst(client: u64, number: u32, counts: (u64, u64)) -> Burst {
    let (requests, nanos) = counts;
    Burst {
        client,
        uid: if client == 3 { 1003 } else { 1001 },
        model: client * 10,
        burst: number,
        device: if client == 2 { "gpu".into() } else { "cpu".into() },
        state: "idle".into(),
        wait: "adaptive".into(),
        depth: 1,
        requests_room: 170,
        results_room: 170,
        age_ns: 10 * SECOND,
        counts: Counts { requests, failed: 0, nanos, buckets: vec![0, requests, 0] },
        ..Burst::default()
    }
}

fn session(client: u64) -> Session {
    let uid = if client == 3 { 1003 } else { 1001 };
    let (pid, program) =
        (Some(u32::MAX - u32::try_from(client).unwrap()), format!("app\u{1b}{client}"));
    Session { client, pid, uid, program, connected_ns: 5 * SECOND }
}

/// Clients 1 and 2 of one user, client 3 of another one; bursts with 5, 2 and 1 of them.
fn look(time: u64, change: impl Fn(&mut Burst)) -> Look {
    let of = [(1, 5), (2, 2), (3, 1)];
    let mut bursts: Vec<Burst> = Vec::new();
    for (client, count) in of {
        bursts.extend((0..count).map(|number| burst(client, number, (0, 0))));
    }
    bursts.iter_mut().for_each(change);
    let account = |used| vec![Account { resource: "memory_bytes".into(), used, limit: 100 << 20 }];
    Look {
        schema: 1,
        version: "0.1.0".into(),
        time_ns: time,
        bounds_ns: vec![1000, 2000],
        users: vec![
            User { uid: 1001, accounts: account(10 << 20) },
            User { uid: 1003, accounts: account(95 << 20) },
        ],
        sessions: [1, 2, 3].map(session).into(),
        models: [1, 2, 3]
            .map(|client| Model {
                client,
                uid: 1001,
                model: client * 10,
                device: "cpu".into(),
                memory_bytes: client << 20,
                ..Model::default()
            })
            .into(),
        bursts,
        ..Look::default()
    }
}

fn trouble(report: &Report, client: u64, burst: u32) -> Vec<Trouble> {
    let found = report.bursts.iter().find(|one| (one.client, one.burst) == (client, burst));
    found.unwrap().trouble.clone()
}

/// One burst stuck on its results, one that polls, one client that computes nearly everything.
fn in_trouble() -> (Look, Look) {
    let stuck = |one: &mut Burst| {
        if (one.client, one.burst) == (1, 0) {
            one.state = "results-full".into();
            one.results_queued = 168;
        }
        one.polls = (one.client, one.burst) == (1, 1);
    };
    let before = look(SECOND, stuck);
    let after = look(2 * SECOND, |one| {
        stuck(one);
        let of_client = match one.client {
            2 => (100, 900_000_000),
            3 => (10, 150_000_000),
            _ => (0, 0),
        };
        if one.burst == 0 && one.client > 1 {
            one.counts = burst(one.client, 0, of_client).counts;
        }
        if one.client == 3 {
            one.waited_for_turn_ns = 100_000_000;
        }
    });
    (before, after)
}

#[test]
fn each_trouble_is_told_of_the_burst_that_has_it_and_of_no_other() {
    let (before, after) = in_trouble();
    let report = Report::of(Some(&before), &after, &wanted());
    assert_eq!((report.sessions.len(), report.bursts.len()), (3, 8));
    assert_eq!(trouble(&report, 1, 0), [Trouble::FullQueue]);
    assert_eq!(trouble(&report, 1, 1), [Trouble::Spins]);
    assert_eq!(trouble(&report, 2, 0), [Trouble::OverShare]);
    let others: usize = report.bursts.iter().map(|burst| burst.trouble.len()).sum();
    assert_eq!(others, 3, "{report:#?}");
    let over: Vec<u64> =
        report.sessions.iter().filter(|one| one.is_over_share).map(|one| one.client).collect();
    assert_eq!(over, [2]);
    let short: Vec<u32> =
        report.users.iter().filter(|user| user.is_short_of_memory).map(|user| user.uid).collect();
    assert_eq!(short, [1003]);
}

#[test]
fn rates_times_and_shares_are_those_between_the_looks() {
    let (before, after) = in_trouble();
    let report = Report::of(Some(&before), &after, &wanted());
    let busy = report.bursts.iter().find(|one| one.client == 2 && one.burst == 0).unwrap();
    assert_eq!(busy.times.requests_per_second, Some(100.0));
    assert_eq!(busy.times.p50_us, Some(1.5));
    assert!((busy.busy_share.unwrap() - 0.9).abs() < 1e-9, "{busy:?}");
    let other = report.bursts.iter().find(|one| one.client == 3).unwrap();
    assert!((other.waiting_share.unwrap() - 0.1).abs() < 1e-9, "{other:?}");
    assert!((other.busy_share.unwrap() - 0.05).abs() < 1e-9, "without waiting for its turn");
    assert!((busy.computing_share - 900.0 / 950.0).abs() < 1e-9, "{busy:?}");
    let since_start = Report::of(None, &after, &wanted());
    assert_eq!(since_start.seconds, None);
    let busy = since_start.bursts.iter().find(|one| one.client == 2 && one.burst == 0).unwrap();
    assert!((busy.busy_share.unwrap() - 0.09).abs() < 1e-9, "of its ten seconds: {busy:?}");
}

#[test]
fn who_computes_much_while_nobody_waits_is_not_over_its_share() {
    let (before, mut after) = in_trouble();
    after.bursts.iter_mut().for_each(|burst| burst.waited_for_turn_ns = 0);
    let report = Report::of(Some(&before), &after, &wanted());
    assert!(report.sessions.iter().all(|one| !one.is_over_share), "{report:#?}");
}

#[test]
fn a_queue_that_is_full_for_an_instant_is_not_stuck() {
    let (mut before, after) = in_trouble();
    before.bursts[0].state = "computes".into();
    before.bursts[0].results_queued = 0;
    let report = Report::of(Some(&before), &after, &wanted());
    assert_eq!(trouble(&report, 1, 0), []);
    let (before, mut after) = in_trouble();
    after.bursts[0].counts = burst(1, 0, (5, 5000)).counts;
    let report = Report::of(Some(&before), &after, &wanted());
    assert_eq!(trouble(&report, 1, 0), [], "answers go out");
}

#[test]
fn filters_and_orders_are_kept_to() {
    let (before, after) = in_trouble();
    let of = |wanted: Wanted| {
        let report = Report::of(Some(&before), &after, &wanted);
        report.bursts.iter().map(|one| (one.client, one.burst)).collect::<Vec<_>>()
    };
    assert_eq!(of(Wanted { user: Some(1003), ..wanted() }), [(3, 0)]);
    assert_eq!(of(Wanted { client: Some(2), ..wanted() }), [(2, 0), (2, 1)]);
    let pid = u64::from(u32::MAX - 3);
    assert_eq!(of(Wanted { client: Some(pid), ..wanted() }), [(3, 0)], "by its process");
    assert_eq!(of(Wanted { device: Some("gpu".into()), ..wanted() }), [(2, 0), (2, 1)]);
    assert_eq!(of(Wanted { trouble: Some(Trouble::Any), ..wanted() }), [(1, 0), (1, 1), (2, 0)]);
    assert_eq!(of(Wanted { trouble: Some(Trouble::Spins), ..wanted() }), [(1, 1)]);
    assert_eq!(of(Wanted { sort: SortBy::Busy, ..wanted() })[..2], [(2, 0), (3, 0)]);
    assert_eq!(of(Wanted { sort: SortBy::Rate, ..wanted() })[..2], [(2, 0), (3, 0)]);
    assert_eq!(of(Wanted { sort: SortBy::Queue, ..wanted() })[0], (1, 0));
    assert_eq!(of(Wanted { sort: SortBy::P99, ..wanted() })[0], (2, 0));
}

/// The first client executes with its model over the socket, as the second one does on bursts.
fn over_the_socket() -> (Look, Look) {
    let (before, mut after) = in_trouble();
    let model = &mut after.models[0];
    (model.computed_ns, model.waited_for_turn_ns) = (50_000_000, 10_000_000);
    model.counts = Counts { requests: 40, failed: 2, nanos: 90_000_000, buckets: vec![0, 40, 0] };
    (before, after)
}

#[test]
fn what_is_executed_over_the_socket_counts_as_what_is_executed_on_bursts() {
    let (before, after) = over_the_socket();
    let report = Report::of(Some(&before), &after, &wanted());
    let first = &report.models[0];
    assert_eq!((first.client, first.model, first.bursts), (1, 10, 5));
    assert_eq!((first.times.requests, first.times.failed, first.burst_requests), (40, 2, 0));
    assert_eq!(first.times.requests_per_second, Some(40.0));
    assert!((first.computing_share - 50.0 / 1000.0).abs() < 1e-9, "of all: {report:#?}");
    assert_eq!(first.memory_bytes, 1 << 20);
    let second = &report.models[1];
    assert_eq!((second.times.requests, second.burst_requests), (0, 100));
    assert_eq!(second.burst_requests_per_second, Some(100.0));
    let sessions = &report.sessions;
    assert_eq!(sessions[0].requests_per_second, Some(40.0));
    assert!((sessions[0].computing_share - first.computing_share).abs() < 1e-9);
    assert_eq!(sessions.iter().map(|one| one.memory_bytes >> 20).collect::<Vec<_>>(), [1, 2, 3]);
    let text = text(&report, 60);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("1/10 "));
    let words: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(words, ["1/10", "1.0", "MiB", "40.0", "2", "us", "2", "us", "5%"], "{text}");
    assert_eq!(lines.next(), Some("  cpu, 5 bursts, 40 over the socket, 2 failed"), "{text}");
}

#[test]
fn who_waits_over_the_socket_waits_for_its_share_too() {
    let (before, mut after) = over_the_socket();
    // Of all bursts none waits any more, but the socket's did.
    after.bursts.iter_mut().for_each(|burst| burst.waited_for_turn_ns = 0);
    let over = |after: &Look| {
        let report = Report::of(Some(&before), after, &wanted());
        report.sessions.iter().filter(|one| one.is_over_share).map(|one| one.client).collect()
    };
    let who: Vec<u64> = over(&after);
    assert_eq!(who, [2]);
    after.models[0].waited_for_turn_ns = 0;
    let who: Vec<u64> = over(&after);
    assert!(who.is_empty(), "{who:?}");
}

#[test]
fn models_come_in_the_order_that_is_asked_for() {
    let (before, after) = over_the_socket();
    let of = |wanted: Wanted| {
        let report = Report::of(Some(&before), &after, &wanted);
        report.models.iter().map(|one| one.client).collect::<Vec<_>>()
    };
    assert_eq!(of(Wanted { sort: SortBy::Rate, ..wanted() }), [1, 2, 3]);
    assert_eq!(of(Wanted { client: Some(2), ..wanted() }), [2]);
    assert_eq!(of(Wanted { device: Some("gpu".into()), ..wanted() }), [0; 0]);
    let (before, mut after) = over_the_socket();
    after.models[2].computed_ns = 60_000_000;
    let busy = Report::of(Some(&before), &after, &Wanted { sort: SortBy::Busy, ..wanted() });
    assert_eq!(busy.models.iter().map(|one| one.client).collect::<Vec<_>>(), [3, 1, 2]);
}

#[test]
fn what_does_not_fit_a_screen_is_counted_and_the_beginning_stays() {
    let (before, after) = in_trouble();
    let text = text(&Report::of(Some(&before), &after, &wanted()), 60);
    let all = text.lines().count();
    assert_eq!(cut(&text, all + 1), text);
    for lines in [24, all, 3] {
        let shown = cut(&text, lines);
        let seen: Vec<&str> = shown.lines().collect();
        assert_eq!(seen.len(), lines - 1, "one stays free for the cursor: {shown}");
        assert!(seen[0].starts_with("burst 0.1.0: 3 clients") && text.starts_with(seen[0]));
        let more = format!("{} more lines: ", all - (lines - 2));
        assert!(seen[lines - 2].starts_with(&more), "{shown}");
        assert!(seen[lines - 2].len() <= 60);
    }
    assert_eq!(cut(&text, 0).lines().count(), 1);
}

#[test]
fn sixty_columns_hold_it_and_names_do_not_move_the_cursor() {
    let (before, after) = in_trouble();
    let report = Report::of(Some(&before), &after, &wanted());
    let text = text(&report, 60);
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
    for said in [
        "3 clients, 3 models, 8 bursts",
        "FULL-QUEUE",
        "SPINS",
        "OVER-SHARE",
        "NEARLY ALL",
        "168/170",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
}
