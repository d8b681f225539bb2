//! The server: connections of viewers, a thread for each.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::frames::{Frames, Next};
use super::request::{Fault, ReadUntil, Wanted, read_head, wanted};

/// Most connections at a time: a page needs one, and browsers open some more on suspicion.
const MAX_VIEWERS: usize = 8;
/// How long the head of a request may take, from when it is waited for.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// How long a viewer may take no byte of an answer.
const WRITE_TIME: Duration = Duration::from_secs(5);
/// How long a viewer waits for the next frame until it is told that there is none.
const FRAME_TIME: Duration = Duration::from_secs(10);
/// Between attempts to accept a connection where one fails, such as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// What a page may load: itself, from here, and nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const PAGE: &str = include_str!("page.html");
const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");

#[derive(Debug)]
pub(super) struct Server {
    frames: Arc<Frames>,
    token: String,
    port: u16,
    viewers: AtomicUsize,
}

impl Server {
    pub(super) fn new(frames: Arc<Frames>, token: String, port: u16) -> Self {
        Server { frames, token, port, viewers: AtomicUsize::new(0) }
    }

    /// Accepts viewers from now on, on a thread that ends with the process.
    pub(super) fn start(self, listener: TcpListener) -> Result<()> {
        let server = Arc::new(self);
        let accept = move || {
            loop {
                match listener.accept() {
                    Ok((stream, _)) => server.welcome(stream),
                    Err(_) => std::thread::sleep(PAUSE),
                }
            }
        };
        let thread = std::thread::Builder::new().name("view".into()).spawn(accept);
        thread.context("--view: no thread").map(drop)
    }

    fn welcome(self: &Arc<Self>, stream: TcpStream) {
        let Some(place) = Place::take(self) else {
            return refuse(stream);
        };
        // Where there is no thread, the connection is closed.
        let talk = move || place.talk(stream);
        let _ = std::thread::Builder::new().name("viewer".into()).spawn(talk);
    }
}

/// One too many: told so as far as that needs no waiting.
fn refuse(mut stream: TcpStream) {
    let _ = stream.set_nonblocking(true);
    let _ = stream.write_all(&head("503 Service Unavailable", "text/plain", 0, false));
    let _ = stream.shutdown(Shutdown::Write);
}

/// The place of one viewer.
struct Place(Arc<Server>);

impl Place {
    fn take(server: &Arc<Server>) -> Option<Place> {
        // Only one thread takes places.
        if server.viewers.load(Ordering::Acquire) >= MAX_VIEWERS {
            return None;
        }
        server.viewers.fetch_add(1, Ordering::AcqRel);
        Some(Place(Arc::clone(server)))
    }

    /// Answers one request after the other.
    fn talk(&self, stream: TcpStream) {
        let mut viewer = Viewer { stream, left: Vec::new() };
        // A viewer that goes away, or takes nothing, ends this.
        while let Ok(true) = self.answer(&mut viewer) {}
    }

    /// Answers a request; false where it was the last one.
    fn answer(&self, viewer: &mut Viewer) -> std::io::Result<bool> {
        let Server { frames, token, port, .. } = &*self.0;
        let end = Instant::now() + HEAD_TIME;
        let read = read_head(&mut viewer.stream, &mut viewer.left, end);
        match read.and_then(|head| wanted(&head, token, *port)) {
            Ok(Wanted::Page) => viewer.send("text/html; charset=utf-8", PAGE.as_bytes()),
            Ok(Wanted::Script) => viewer.send("text/javascript; charset=utf-8", SCRIPT.as_bytes()),
            Ok(Wanted::Style) => viewer.send("text/css; charset=utf-8", STYLE.as_bytes()),
            Ok(Wanted::Frame { after }) => match frames.next(after, FRAME_TIME) {
                Next::Frame(shown) => viewer.send("application/octet-stream", shown.body()),
                Next::Nothing => viewer.status("204 No Content", true),
                Next::End => viewer.status("410 Gone", false),
            },
            Err(fault) => viewer.refuse(fault),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.viewers.fetch_sub(1, Ordering::AcqRel);
    }
}

struct Viewer {
    stream: TcpStream,
    /// What was read beyond the last request.
    left: Vec<u8>,
}

impl Viewer {
    fn send(&mut self, kind: &str, body: &[u8]) -> std::io::Result<bool> {
        self.stream.set_write_timeout(Some(WRITE_TIME))?;
        self.stream.write_all(&head("200 OK", kind, body.len(), true))?;
        self.stream.write_all(body)?;
        Ok(true)
    }

    /// An answer without a body.
    fn status(&mut self, status: &str, goes_on: bool) -> std::io::Result<bool> {
        self.stream.set_write_timeout(Some(WRITE_TIME))?;
        self.stream.write_all(&head(status, "text/plain", 0, goes_on))?;
        Ok(goes_on)
    }

    fn refuse(&mut self, fault: Fault) -> std::io::Result<bool> {
        let status = match fault {
            Fault::Gone => return Ok(false),
            Fault::Slow => "408 Request Timeout",
            Fault::Long => "431 Request Header Fields Too Large",
            Fault::Malformed => "400 Bad Request",
            Fault::Method => "405 Method Not Allowed",
            Fault::Unknown => "404 Not Found",
        };
        // What may stand behind such a head is not read.
        self.status(status, false)?;
        self.stream.shutdown(Shutdown::Write)?;
        Ok(false)
    }
}

impl ReadUntil for TcpStream {
    fn read_until(&mut self, end: Instant, into: &mut [u8]) -> std::io::Result<usize> {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        self.set_read_timeout(Some(left))?;
        self.read(into)
    }
}

/// The head of an answer. Nothing of it is kept, shown inside another page, or told to another one.
fn head(status: &str, kind: &str, bytes: usize, goes_on: bool) -> Vec<u8> {
    let connection = if goes_on { "keep-alive" } else { "close" };
    // 204 has no body, and no length of one.
    let length = match status.starts_with("204") {
        true => String::new(),
        false => format!("Content-Length: {bytes}\r\n"),
    };
    format!(
        "HTTP/1.1 {status}\r\n\
         Content-Type: {kind}\r\n\
         {length}\
         Connection: {connection}\r\n\
         Content-Security-Policy: {POLICY}\r\n\
         X-Content-Type-Options: nosniff\r\n\
         Referrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\n\
         Cross-Origin-Opener-Policy: same-origin\r\n\
         Cache-Control: no-store\r\n\r\n"
    )
    .into_bytes()
}
