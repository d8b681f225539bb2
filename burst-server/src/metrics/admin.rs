//! The admin socket: `GET /metrics` over HTTP/1.1 on a Unix socket, for
//! `curl --unix-socket PATH http://burst/metrics` and for collectors of OpenMetrics.
//!
//! One thread answers one request after the other. A request has two seconds, to the last byte of the
//! answer, and 8 KiB; a body is not read.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Metrics;
use crate::ServerError;
use crate::admission::Access;
use crate::process::{Listener, Stop};

/// Longest request line with its headers.
const REQUEST_MAX: usize = 8 << 10;
/// How long one request may take from the connection to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// The media type of the text.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Answers requests about a service until it is stopped. `listener` is one of
/// [`Listener::bind_admin`].
///
/// # Errors
/// The listening socket fails. A request that fails ends only its own connection.
pub fn serve_admin(
    listener: &Listener,
    metrics: &Arc<Metrics>,
    access: &Access,
    stop: &Stop,
) -> Result<(), ServerError> {
    while let Some(socket) = listener.accept(stop, || {})? {
        if let Err(error) = answer(socket, metrics, access) {
            tracing::debug!(%error, "a request at the admin socket failed");
        }
    }
    Ok(())
}

fn answer(socket: OwnedFd, metrics: &Arc<Metrics>, access: &Access) -> std::io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let credentials = rustix::net::sockopt::socket_peercred(&socket)?;
    let is_let_in = access.permits(credentials.uid.as_raw(), credentials.gid.as_raw());
    let mut stream = UnixStream::from(socket);
    let reply = match read_head(&mut stream, until)? {
        Some(_) if !is_let_in => Reply::plain("403 Forbidden", "not permitted\n"),
        Some(head) => route(&head, metrics),
        None => Reply::plain("431 Request Header Fields Too Large", "too long\n"),
    };
    stream.set_write_timeout(Some(remaining(until)?))?;
    stream.write_all(reply.encode().as_bytes())?;
    stream.shutdown(std::net::Shutdown::Write)
}

/// Everything up to the empty line; `None` where it does not come within [`REQUEST_MAX`] bytes.
fn read_head(stream: &mut UnixStream, until: Instant) -> std::io::Result<Option<Vec<u8>>> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    loop {
        stream.set_read_timeout(Some(remaining(until)?))?;
        let length = stream.read(&mut part)?;
        if length == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        head.extend_from_slice(&part[..length]);
        if head.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(Some(head));
        }
        if head.len() > REQUEST_MAX {
            return Ok(None);
        }
    }
}

/// Never zero, which would mean for ever.
fn remaining(until: Instant) -> std::io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(std::io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

struct Reply {
    status: &'static str,
    content_type: &'static str,
    body: String,
    with_body: bool,
}

impl Reply {
    fn plain(status: &'static str, body: &str) -> Self {
        Reply { status, content_type: PLAIN, body: body.to_owned(), with_body: true }
    }

    fn encode(&self) -> String {
        let Reply { status, content_type, body, with_body } = self;
        let length = body.len();
        let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
        let body = if *with_body { body.as_str() } else { "" };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             {allow}Connection: close\r\n\r\n{body}"
        )
    }
}

/// What the request line asks for.
fn route(head: &[u8], metrics: &Arc<Metrics>) -> Reply {
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Reply::plain("400 Bad Request", "not a request line\n");
    };
    if !matches!(version, b"HTTP/1.1" | b"HTTP/1.0") {
        return Reply::plain("505 HTTP Version Not Supported", "HTTP/1.1, please\n");
    }
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    match (method, path) {
        (b"GET" | b"HEAD", b"/metrics") => Reply {
            status: "200 OK",
            content_type: OPENMETRICS,
            body: metrics.encode(),
            with_body: method == b"GET",
        },
        (b"GET" | b"HEAD", _) => Reply::plain("404 Not Found", "there is only /metrics\n"),
        _ => Reply::plain("405 Method Not Allowed", "there is nothing to change here\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::{Performance, SandboxReport};

    #[test]
    fn only_one_thing_can_be_asked_for_and_all_else_has_its_code() {
        let performance = Arc::new(Performance::off());
        let metrics = Arc::new(Metrics::new(false, performance, SandboxReport::off()));
        let status = |line: &str| route(line.as_bytes(), &metrics).status;
        for (line, want) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
            ("GET /metrics?name=x HTTP/1.0\r\n\r\n", "200"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
            ("GET / HTTP/1.1\r\n\r\n", "404"),
            ("GET /metrics/../x HTTP/1.1\r\n\r\n", "404"),
            ("POST /metrics HTTP/1.1\r\n\r\n", "405"),
            ("GET /metrics\r\n\r\n", "400"),
            ("GET  /metrics HTTP/1.1\r\n\r\n", "400"),
            ("\r\n\r\n", "400"),
            ("GET /metrics HTTP/2\r\n\r\n", "505"),
            ("\u{0}\u{1} \u{2} HTTP/1.1\r\n\r\n", "405"),
        ] {
            assert!(status(line).starts_with(want), "{line:?}: {}", status(line));
        }
        let head = route(b"HEAD /metrics HTTP/1.1\r\n\r\n", &metrics).encode();
        assert!(head.ends_with("\r\n\r\n") && !head.contains("Content-Length: 0"));
    }
}
