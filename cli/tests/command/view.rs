//! `--view`: the page on the loopback, asked by a plain client. In a browser: `browser.rs`.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStderr, Stdio};

use burst_pictures::decode_motion_jpeg;
use serde_json::Value;

use crate::support::{HANG, Process, burst, run, wait_until};

burst_testing::tests![
    frames_come_with_their_results_and_advance(),
    without_the_token_nothing_is_shown(),
    the_page_names_no_other_address_and_may_load_from_none(),
    a_viewer_who_takes_nothing_holds_up_neither_the_stream_nor_others(),
    who_asks_late_gets_the_newest_frame_and_not_those_that_it_missed(),
    there_is_room_for_so_many_viewers(),
    a_request_that_is_too_long_or_none_or_never_ends_is_refused(),
    the_page_is_for_pictures(),
];

/// A stream with a page.
pub(crate) struct Viewed {
    pub(crate) process: Process,
    _err: BufReader<ChildStderr>,
    /// The whole address.
    pub(crate) url: String,
}

/// What was answered.
#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Viewed {
    pub(crate) fn start(args: &[&str], input: impl Into<Stdio>) -> Viewed {
        let mut command = burst(&[&["stream", "--view"], args].concat());
        command.stdin(input).stderr(Stdio::piped());
        let mut process = Process::start(command);
        let mut err = BufReader::new(process.child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        let url = line.strip_prefix("view: ").unwrap_or_else(|| panic!("{line}")).trim();
        let url = url.to_owned();
        Viewed { process, _err: err, url }
    }

    /// The synthetic camera, for as long as the test lasts; it prints nothing until its end.
    fn demo() -> Viewed {
        Viewed::start(&["--json", "--frames", "100000000"], Stdio::null())
    }

    fn authority(&self) -> &str {
        self.url.strip_prefix("http://").unwrap().split('/').next().unwrap()
    }

    fn token(&self) -> &str {
        self.url.trim_end_matches('/').rsplit('/').next().unwrap()
    }

    fn connect(&self) -> Viewer {
        let stream = TcpStream::connect(self.authority()).unwrap();
        stream.set_read_timeout(Some(HANG)).unwrap();
        Viewer { stream: BufReader::new(stream) }
    }

    /// A request for something below the token, as a browser makes it.
    fn request(&self, path: &str) -> String {
        let (token, host) = (self.token(), self.authority());
        format!("GET /{token}/{path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
    }

    fn get(&self, path: &str) -> Answer {
        let mut viewer = self.connect();
        viewer.send(&self.request(path));
        viewer.answer().unwrap()
    }
}

/// A connection.
struct Viewer {
    stream: BufReader<TcpStream>,
}

impl Viewer {
    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The next answer; `None` where the connection has ended.
    fn answer(&mut self) -> Option<Answer> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let mut lengths = head.lines().filter_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = lengths.next().map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).ok()?;
        Some(Answer { status, head, body })
    }
}

impl Answer {
    /// The result and the picture.
    fn frame(&self) -> (Value, burst_pictures::Picture) {
        assert_eq!(self.status, 200, "{}", self.head);
        let length = u32::from_be_bytes(self.body[..4].try_into().unwrap()) as usize;
        let (result, picture) = self.body[4..].split_at(length);
        (serde_json::from_slice(result).unwrap(), decode_motion_jpeg(picture).unwrap())
    }

    fn number(&self) -> u64 {
        self.frame().0["frame"].as_u64().unwrap()
    }
}

fn frames_come_with_their_results_and_advance() {
    let viewed = Viewed::demo();
    let mut viewer = viewed.connect();
    let mut last = 0;
    for _ in 0..5 {
        viewer.send(&viewed.request(&format!("frame?after={last}")));
        let answer = viewer.answer().unwrap();
        let (result, picture) = answer.frame();
        assert_eq!((picture.width, picture.height), (160, 120));
        assert!(picture.rgb.iter().any(|byte| *byte > 100), "something is to be seen");
        assert!(result["frame"].as_u64().unwrap() > last, "{result}");
        let top = result["top"].as_array().unwrap();
        assert_eq!((top.len(), &result["status"]), (3, &"NONE".into()), "{result}");
        assert!(result["latency_us"].as_f64().unwrap() > 0.0, "{result}");
        last = answer.number();
    }
}

fn without_the_token_nothing_is_shown() {
    let viewed = Viewed::demo();
    let (token, host) = (viewed.token().to_owned(), viewed.authority().to_owned());
    assert_eq!(token.len(), 32);
    assert_ne!(Viewed::demo().token(), token, "each has its own");
    let other = "0".repeat(32);
    for (method, path, host) in [
        ("GET", "/".to_owned(), host.as_str()),
        ("GET", "/page.js".to_owned(), &host),
        ("GET", format!("/{other}/"), &host),
        ("GET", format!("/{other}/frame?after=0"), &host),
        ("GET", format!("/{}/", &token[..31]), &host),
        ("POST", "/".to_owned(), &host),
        // As a page elsewhere would, whose name was given this address.
        ("GET", format!("/{token}/"), "evil.example"),
    ] {
        let mut viewer = viewed.connect();
        viewer.send(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let answer = viewer.answer().unwrap();
        assert_eq!((answer.status, answer.body.len()), (404, 0), "{path} {host}");
        assert!(!answer.head.contains(&token), "{}", answer.head);
        assert!(viewer.answer().is_none(), "hung up on");
    }
    assert_eq!(viewed.get("").status, 200);
}

fn the_page_names_no_other_address_and_may_load_from_none() {
    let viewed = Viewed::demo();
    for (path, kind) in
        [("", "text/html"), ("page.js", "text/javascript"), ("page.css", "text/css")]
    {
        let answer = viewed.get(path);
        let text = String::from_utf8(answer.body).unwrap();
        assert!(text.len() > 100 && !text.contains("//"), "{text}");
        // Nothing that the policy would keep from running, and no text that becomes more than text.
        let is_inline = |word: &str| word.starts_with("style=") || word.starts_with("on");
        let inline = text.split_whitespace().find(|word| is_inline(word) && word.contains('='));
        assert_eq!((inline, text.contains("innerHTML")), (None, false), "{path}");
        assert!(answer.head.contains(&format!("Content-Type: {kind}; charset=utf-8\r\n")));
        for header in [
            "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'\r\n",
            "X-Content-Type-Options: nosniff\r\n",
            "Referrer-Policy: no-referrer\r\n",
            "Cache-Control: no-store\r\n",
        ] {
            assert!(answer.head.contains(header), "{}", answer.head);
        }
    }
    assert!(viewed.url.starts_with("http://127.0.0.1:"), "{}", viewed.url);
}

/// 320 x 240 pixels of noise: some 100 KB as a JPEG picture.
fn noise(seed: u32) -> Vec<u8> {
    let byte = |at: u32| u8::try_from((at ^ seed).wrapping_mul(2_654_435_761) >> 24).unwrap();
    (0..320 * 240 * 3).map(byte).collect()
}

/// A stream of frames that the test writes.
struct Piped {
    viewed: Viewed,
    frames: std::process::ChildStdin,
    sent: u32,
}

impl Piped {
    fn start() -> Piped {
        let args = ["--source", "-", "--size", "320x240", "--json-lines"];
        let mut viewed = Viewed::start(&args, Stdio::piped());
        let frames = viewed.process.child.stdin.take().unwrap();
        Piped { viewed, frames, sent: 0 }
    }

    /// Sends a frame and waits until it is answered.
    fn answered(&mut self) {
        self.sent += 1;
        self.frames.write_all(&noise(self.sent)).unwrap();
        let line: Value = serde_json::from_str(&self.viewed.process.line()).unwrap();
        assert_eq!(line["frame"], self.sent, "{line}");
    }

    /// Sends frames until a viewer has got its answer.
    fn until_answered(&mut self, mut viewer: Viewer) -> (Viewer, Answer) {
        let waiting = std::thread::spawn(move || {
            let answer = viewer.answer().unwrap();
            (viewer, answer)
        });
        while !waiting.is_finished() {
            self.answered();
        }
        waiting.join().unwrap()
    }
}

fn a_viewer_who_takes_nothing_holds_up_neither_the_stream_nor_others() {
    let mut stream = Piped::start();
    let mut slow = stream.viewed.connect();
    slow.send(&stream.viewed.request("frame?after=0"));
    let (mut slow, first) = stream.until_answered(slow);
    assert!(first.body.len() > 50_000, "{}", first.body.len());
    // It asks for more than any buffer on the way holds, and takes none of it.
    let request = stream.viewed.request("frame?after=0");
    slow.send(&request.repeat(1_000));
    for _ in 0..20 {
        stream.answered();
    }
    let mut other = stream.viewed.connect();
    other.send(&stream.viewed.request("frame?after=0"));
    let (_, answer) = stream.until_answered(other);
    assert!(answer.number() > 20, "the newest: {}", answer.number());
    // Whoever takes nothing for so long is hung up on, whatever it still wants.
    wait_until("the slow viewer's end", || {
        stream.answered();
        slow.stream.get_ref().take_error().unwrap().is_some()
    });
}

fn who_asks_late_gets_the_newest_frame_and_not_those_that_it_missed() {
    let mut stream = Piped::start();
    let mut viewer = stream.viewed.connect();
    viewer.send(&stream.viewed.request("frame?after=0"));
    let (mut viewer, first) = stream.until_answered(viewer);
    let first = first.number();
    let before = stream.sent;
    for _ in 0..5 {
        stream.answered();
    }
    viewer.send(&stream.viewed.request(&format!("frame?after={first}")));
    let (_, next) = stream.until_answered(viewer);
    assert!(next.number() >= u64::from(before) + 5, "{} after {first}", next.number());
}

/// As many as `MAX_VIEWERS` in `cli/src/view/server.rs`.
const MOST_VIEWERS: usize = 8;

fn there_is_room_for_so_many_viewers() {
    let viewed = Viewed::demo();
    let never = viewed.request(&format!("frame?after={}", u64::MAX));
    let viewers: Vec<Viewer> = (0..MOST_VIEWERS)
        .map(|_| {
            let mut viewer = viewed.connect();
            // One that is answered, so that this one has its place, and one that waits.
            viewer.send(&viewed.request(""));
            assert_eq!(viewer.answer().unwrap().status, 200);
            viewer.send(&never);
            viewer
        })
        .collect();
    let mut refused = viewed.connect();
    let answer = refused.answer().unwrap();
    assert_eq!((answer.status, answer.body.len()), (503, 0), "{}", answer.head);
    drop(viewers);
    wait_until("a place", || viewed.connect_and_see());
}

impl Viewed {
    /// Whether a new viewer is let in.
    fn connect_and_see(&self) -> bool {
        let mut viewer = self.connect();
        let request = self.request("");
        // One that is refused may be hung up on while it writes.
        let _ = viewer.stream.get_mut().write_all(request.as_bytes());
        viewer.answer().is_some_and(|answer| answer.status == 200)
    }
}

fn a_request_that_is_too_long_or_none_or_never_ends_is_refused() {
    let viewed = Viewed::demo();
    let start = viewed.request("").trim_end().to_owned();
    for (sent, status) in [
        (format!("{start}\r\nX: {}", "x".repeat(8 << 10)), 431),
        ("nonsense\r\n\r\n".to_owned(), 400),
        (start.replace("GET", "POST") + "\r\n\r\n", 405),
        (start.clone() + "\r\nX: y", 408),
    ] {
        let mut viewer = viewed.connect();
        viewer.send(&sent);
        // Nothing more comes from here: after its time is over it is told so.
        let answer = viewer.answer();
        assert_eq!(
            answer.map(|answer| answer.status),
            Some(status),
            "{}",
            &sent[..sent.len().min(99)]
        );
        assert!(viewer.answer().is_none(), "hung up on");
    }
    assert_eq!(viewed.get("").status, 200, "others are served");
}

fn the_page_is_for_pictures() {
    let output = run(&["stream", "--view", "--source", "values.f32"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(err, "burst: --view goes with pictures, which values.f32 is not\n");
}
