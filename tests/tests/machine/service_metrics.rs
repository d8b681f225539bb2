//! The admin socket: OpenMetrics text over HTTP on a Unix socket, and what it counts.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::thread::JoinHandle;

use burst_client::{Route, StreamOptions};
use burst_server::{Access, Listener, ServiceOptions, Stop, Stopper, serve_admin};
use burst_testing::program;

use crate::burst_support::raw::{RawBurst, request};
use crate::burst_support::{FakeDevice, LONG, long, model, wait_until};
use crate::service_support::context::Contexts;
use crate::service_support::{Shared, value};

burst_testing::tests![
    the_text_is_openmetrics_and_counts_what_clients_did(),
    malformed_packets_and_refused_requests_are_counted_by_their_status(),
    bursts_that_somebody_else_serves_are_counted_as_others_are(),
    who_asks_for_anything_else_gets_its_code(),
    who_says_nothing_is_hung_up_on_and_the_next_is_answered(),
    the_admin_socket_is_for_its_owner(),
    curl_gets_the_text(&program("curl")?),
];

/// A service with its admin socket.
struct Admin {
    service: Shared,
    path: PathBuf,
    stopper: Option<Stopper>,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    fn start() -> Admin {
        Admin::start_with(ServiceOptions::default())
    }

    fn start_with(mut options: ServiceOptions) -> Admin {
        options.time_requests = true;
        let service = Shared::start(Arc::new(FakeDevice::default()), options);
        let path = service.folder.path().join("admin.sock");
        let listener = Listener::bind_admin(&path, 0o600).unwrap();
        let (stopper, stop) = Stop::new().unwrap();
        let metrics = Arc::clone(&service.metrics);
        let thread = std::thread::spawn(move || {
            serve_admin(&listener, &metrics, &Access::default(), &stop).unwrap();
        });
        Admin { service, path, stopper: Some(stopper), thread: Some(thread) }
    }

    fn ask(&self, question: &[u8]) -> String {
        let mut socket = connect(&self.path);
        // It may have answered and hung up before it was told everything.
        let _ = socket.write_all(question);
        answer(&mut socket)
    }

    /// The text of the metrics.
    fn scrape(&self) -> String {
        let answer = self.ask(b"GET /metrics HTTP/1.1\r\nHost: burst\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: application/openmetrics-text; version=1.0.0"));
        assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
        body.to_owned()
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop(self.stopper.take());
        let _ = self.thread.take().unwrap().join();
    }
}

fn connect(path: &Path) -> UnixStream {
    let socket = UnixStream::connect(path).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket
}

fn answer(socket: &mut UnixStream) -> String {
    let mut answer = Vec::new();
    match socket.read_to_end(&mut answer) {
        Ok(_) => {}
        // Bytes of ours that it never read.
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{error}"),
    }
    String::from_utf8(answer).unwrap()
}

/// A family of series as the text declares it.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    has_help: bool,
    /// Name with its suffix, labels, value.
    series: Vec<(String, BTreeMap<String, String>, f64)>,
}

/// Reads OpenMetrics text by its own rules: families are declared before their series and not
/// mixed, and the last line is `# EOF`.
fn parse(text: &str) -> HashMap<String, Family> {
    let body = text.strip_suffix("# EOF\n").expect("ends with EOF");
    let mut families: HashMap<String, Family> = HashMap::new();
    let mut current = String::new();
    for line in body.lines() {
        if let Some(declared) = line.strip_prefix("# ") {
            let mut words = declared.splitn(3, ' ');
            let (what, name, rest) = (words.next(), words.next().unwrap(), words.next());
            if what == Some("EOF") {
                panic!("EOF in the middle");
            }
            if name != current {
                assert!(!families.contains_key(name), "{name} is declared twice");
                name.clone_into(&mut current);
            }
            let family = families.entry(name.to_owned()).or_default();
            match what {
                Some("TYPE") => rest.unwrap().clone_into(&mut family.kind),
                Some("HELP") => family.has_help = true,
                Some("UNIT") => {}
                other => panic!("{other:?} in {line}"),
            }
            continue;
        }
        let (series, value) = line.rsplit_once(' ').expect(line);
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, parse_labels(labels.strip_suffix('}').expect(line))),
            None => (series, BTreeMap::new()),
        };
        assert!(name.starts_with(&current), "{name} is not of {current}");
        let value = value.parse().unwrap_or_else(|_| panic!("{line}"));
        families.get_mut(&current).unwrap().series.push((name.to_owned(), labels, value));
    }
    families
}

/// `name="value",…`; no value here holds a quote.
fn parse_labels(text: &str) -> BTreeMap<String, String> {
    text.split("\",")
        .map(|label| {
            let (name, value) = label.split_once("=\"").expect(label);
            (name.to_owned(), value.trim_end_matches('"').to_owned())
        })
        .collect()
}

#[track_caller]
fn check_histogram(name: &str, family: &Family) {
    let mut groups: BTreeMap<BTreeMap<String, String>, Vec<(f64, f64)>> = BTreeMap::new();
    let mut counts = BTreeMap::new();
    for (series, labels, value) in &family.series {
        let mut labels = labels.clone();
        match series.strip_prefix(name).unwrap() {
            "_bucket" => {
                let bound = match labels.remove("le").expect("a bound").as_str() {
                    "+Inf" => f64::INFINITY,
                    bound => bound.parse().unwrap(),
                };
                groups.entry(labels).or_default().push((bound, *value));
            }
            "_count" => assert!(counts.insert(labels, *value).is_none()),
            "_sum" => assert!(*value >= 0.0),
            other => panic!("{name}{other}"),
        }
    }
    assert_eq!(groups.len(), counts.len());
    for (labels, buckets) in groups {
        assert!(buckets.is_sorted(), "{name} {labels:?}: bounds and counts only grow");
        let last = buckets.last().unwrap();
        assert_eq!(*last, (f64::INFINITY, counts[&labels]), "{name} {labels:?}");
    }
}

fn the_text_is_openmetrics_and_counts_what_clients_did() {
    let admin = Admin::start();
    let client = admin.service.connect().unwrap();
    let device = client.device("fake").unwrap();
    let mut burst = device.stream(&model(), &StreamOptions::default()).unwrap();
    let mut options = StreamOptions::default();
    options.route = Route::Synchronous;
    let mut socket = device.stream(&model(), &options).unwrap();
    for _ in 0..10 {
        burst.run(long()).unwrap();
    }
    for _ in 0..3 {
        socket.run(long()).unwrap();
    }
    // The last answer is on its way before it is counted.
    let requests = "burst_requests_total{path=\"burst\",status=\"OK\"}";
    wait_until("ten requests", || admin.service.metric(requests) == 10);
    let text = admin.scrape();
    let families = parse(&text);
    for (name, family) in &families {
        assert!(family.has_help, "{name} has no help");
        match family.kind.as_str() {
            "counter" => {
                let named = |(series, _, value): &(String, _, f64)| {
                    *series == format!("{name}_total") && *value >= 0.0
                };
                assert!(family.series.iter().all(named), "{name}");
            }
            "gauge" => assert!(family.series.iter().all(|(series, ..)| series == name)),
            "histogram" => check_histogram(name, family),
            "info" => assert!(family.series.iter().all(|(_, _, value)| *value == 1.0)),
            other => panic!("{name} is a {other:?}"),
        }
    }
    for (series, want) in [
        (requests, 10),
        ("burst_requests_total{path=\"socket\",status=\"OK\"}", 3),
        ("burst_executions_total{path=\"burst\"}", 10),
        ("burst_executions_total{path=\"socket\"}", 3),
        ("burst_clients_total", 1),
        ("burst_bursts_total", 1),
        ("burst_in_use{limit=\"clients\"}", 1),
        ("burst_in_use{limit=\"models\"}", 2),
        ("burst_in_use{limit=\"bursts\"}", 1),
        ("burst_malformed_packets_total", 0),
        ("burst_request_duration_seconds_count{path=\"burst\"}", 10),
        ("burst_request_duration_seconds_count{path=\"socket\"}", 3),
    ] {
        assert_eq!(value(&text, series), want, "{series}");
    }
    let models = &families["burst_model_request_duration_seconds"];
    let devices: Vec<_> = models.series.iter().map(|(_, labels, _)| &labels["device"]).collect();
    assert!(!devices.is_empty() && devices.iter().all(|device| *device == "fake"));
}

fn malformed_packets_and_refused_requests_are_counted_by_their_status() {
    let admin = Admin::start();
    let socket = burst_client_socket(&admin.service.path);
    let mut burst = RawBurst::start(socket, &model(), 1024);
    let good = request(1, true);
    burst.send(&good[1..]);
    burst.receive();
    assert_eq!(burst.run(&good, 1).status, burst_hal::ErrorStatus::None);
    let ok = "burst_requests_total{path=\"burst\",status=\"OK\"}";
    wait_until("the good one", || admin.service.metric(ok) == 1);
    let text = admin.scrape();
    assert_eq!(value(&text, "burst_malformed_packets_total"), 1);
    let families = parse(&text);
    let requests = &families["burst_requests"].series;
    let of_burst = requests.iter().filter(|(_, labels, _)| labels["path"] == "burst");
    assert_eq!(of_burst.map(|(.., value)| value).sum::<f64>(), 2.0);
    assert_eq!(value(&text, "burst_executions_total{path=\"burst\"}"), 1);
    // Something that is no message at all.
    burst_wire::socket::send(&burst.client.socket, &[0xA5; 64], &[]).unwrap();
    let messages = || admin.service.metric("burst_malformed_messages_total");
    wait_until("the malformed message", || messages() == 1);
}

fn bursts_that_somebody_else_serves_are_counted_as_others_are() {
    let mut options = ServiceOptions::default();
    options.contexts.insert("fake".to_owned(), Arc::new(Contexts));
    let admin = Admin::start_with(options);
    let client = admin.service.connect().unwrap();
    let device = client.device("fake").unwrap();
    let mut stream = device.stream(&model(), &StreamOptions::default()).unwrap();
    for _ in 0..5 {
        stream.run(long()).unwrap();
    }
    let mut burst = RawBurst::start(burst_client_socket(&admin.service.path), &model(), 1024);
    let good = request(1, true);
    burst.send(&good[1..]);
    burst.receive();
    assert_eq!(burst.run(&good, 1).status, burst_hal::ErrorStatus::None);
    let ok = "burst_requests_total{path=\"burst\",status=\"OK\"}";
    wait_until("six good requests", || admin.service.metric(ok) == 6);
    let want = [
        ("burst_requests_total{path=\"burst\",status=\"GENERAL_FAILURE\"}", 1),
        ("burst_executions_total{path=\"burst\"}", 6),
        ("burst_request_duration_seconds_count{path=\"burst\"}", 7),
        ("burst_malformed_packets_total", 1),
        ("burst_bursts_total", 2),
        ("burst_bursts_given_up_total{reason=\"queue\"}", 0),
    ];
    let text = admin.scrape();
    for (series, want) in want {
        assert_eq!(value(&text, series), want, "{series}");
    }
    // No total goes back with the burst and its model.
    drop((stream, burst, device, client));
    let used = |limit: &str| admin.service.metric(&format!("burst_in_use{{limit=\"{limit}\"}}"));
    wait_until("nobody left", || used("clients") + used("bursts") + used("models") == 0);
    let text = admin.scrape();
    assert_eq!(value(&text, ok), 6);
    for (series, want) in want {
        assert_eq!(value(&text, series), want, "{series}");
    }
}

/// A connection to the service, before any greeting.
fn burst_client_socket(path: &Path) -> std::os::fd::OwnedFd {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = rustix::net::socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    socket
}

fn who_asks_for_anything_else_gets_its_code() {
    let admin = Admin::start();
    for (question, code) in [
        ("GET /metrics HTTP/1.0\r\n\r\n".to_owned(), "200"),
        ("GET /healthz HTTP/1.1\r\n\r\n".to_owned(), "200"),
        ("GET /sessions HTTP/1.1\r\n\r\n".to_owned(), "200"),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), "404"),
        ("DELETE /metrics HTTP/1.1\r\n\r\n".to_owned(), "405"),
        ("what is this\r\n\r\n".to_owned(), "505"),
        ("\r\n\r\n".to_owned(), "400"),
        (format!("GET /metrics HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000)), "431"),
    ] {
        let answer = admin.ask(question.as_bytes());
        assert!(answer.starts_with(&format!("HTTP/1.1 {code}")), "{answer}");
    }
    let head = admin.ask(b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n") && head.contains("Content-Length: "), "{head}");
}

fn who_says_nothing_is_hung_up_on_and_the_next_is_answered() {
    let admin = Admin::start();
    let mut silent = connect(&admin.path);
    let mut slow = connect(&admin.path);
    slow.write_all(b"GET /metr").unwrap();
    drop(connect(&admin.path));
    assert!(admin.scrape().ends_with("# EOF\n"));
    assert_eq!(answer(&mut silent), "");
    assert_eq!(answer(&mut slow), "");
}

fn the_admin_socket_is_for_its_owner() {
    let admin = Admin::start();
    let mode = std::fs::metadata(&admin.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let path = admin.path.clone();
    drop(admin);
    assert!(!path.exists());
}

fn curl_gets_the_text(curl: &Path) {
    let admin = Admin::start();
    let path = admin.path.to_str().unwrap();
    let output = Command::new(curl)
        .args(["--silent", "--show-error", "--fail", "--max-time", "60"])
        .args(["--unix-socket", path, "http://burst/metrics"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    parse(&String::from_utf8(output.stdout).unwrap());
}
