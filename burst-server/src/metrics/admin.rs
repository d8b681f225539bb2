//! The admin socket: `GET /metrics`, `/sessions` or `/healthz` over HTTP/1.1 on a Unix socket, for
//! `curl --unix-socket PATH http://burst/metrics`, for collectors of OpenMetrics and for `burst top`.
//!
//! One thread holds several conversations at once, none of which it waits for. Who may not read the
//! metrics is told so before a byte is read. The others have two seconds, to the last byte of the answer,
//! and 8 KiB for the request; a body is not read.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

use super::{Metrics, Reader};
use crate::ServerError;
use crate::admission::{Access, Peer};
use crate::process::{Accept, Listener, RECOVERY, Stop};

/// Longest request line with its headers.
const REQUEST_MAX: usize = 8 << 10;
/// How long one request may take from the connection to the last byte of the answer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Conversations at once, and those of one user: nobody else's request waits for a user who says
/// nothing.
const CONVERSATIONS_MAX: usize = 64;
const CONVERSATIONS_PER_USER: usize = 8;

/// The media type of the text.
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Answers requests about a service until it is stopped. `listener` is one of
/// [`Listener::bind_admin`]. Root and the service's own user are told everything; others whom `access`
/// lets in are told the totals and what their own clients have.
///
/// # Errors
/// The listening socket fails. A request that fails ends only its own connection.
pub fn serve_admin(
    listener: &Listener,
    metrics: &Arc<Metrics>,
    access: &Access,
    stop: &Stop,
) -> Result<(), ServerError> {
    let mut desk = Desk { metrics, access, conversations: Vec::new(), closed_until: None };
    while desk.wait(listener, stop.as_fd())? {
        desk.go_on();
        desk.accept(listener)?;
    }
    Ok(())
}

/// Everybody who is talked to.
struct Desk<'a> {
    metrics: &'a Arc<Metrics>,
    access: &'a Access,
    conversations: Vec<Conversation>,
    /// When to accept again, after the system had nothing left for a connection.
    closed_until: Option<Instant>,
}

/// One request and its answer.
struct Conversation {
    socket: OwnedFd,
    peer: Peer,
    /// When it ends at the latest.
    until: Instant,
    state: State,
}

enum State {
    /// The request as far as it has come.
    Asking(Vec<u8>),
    /// The answer, and how much of it was sent.
    Answering(Vec<u8>, usize),
}

/// Whether a conversation is over.
#[derive(PartialEq, Eq)]
enum Talk {
    GoesOn,
    IsOver,
}

impl Desk<'_> {
    /// Waits until somebody has something to say, or is out of time; gives whether to go on.
    fn wait(&mut self, listener: &Listener, stop: BorrowedFd<'_>) -> Result<bool, ServerError> {
        let now = Instant::now();
        self.closed_until = self.closed_until.filter(|until| *until > now);
        let mut fds = vec![PollFd::from_borrowed_fd(stop, PollFlags::IN)];
        if self.closed_until.is_none() {
            fds.push(PollFd::new(listener, PollFlags::IN));
        }
        fds.extend(self.conversations.iter().map(|one| PollFd::new(&one.socket, one.awaits())));
        let ends = self.conversations.iter().map(|one| one.until);
        let first = ends.chain(self.closed_until).min();
        let patience = first.map(|first| {
            let left = first.saturating_duration_since(now) + Duration::from_millis(1);
            Timespec::try_from(left).unwrap_or_default()
        });
        retry_on_intr(|| poll(&mut fds, patience.as_ref()))
            .map_err(|errno| ServerError::System { call: "poll", errno })?;
        Ok(fds[0].revents().is_empty())
    }

    /// Goes on with everybody who is ready, and ends with those whose time is over.
    fn go_on(&mut self) {
        let Desk { metrics, conversations, .. } = self;
        let now = Instant::now();
        conversations.retain_mut(|one| {
            let talk = one.go_on(|head, peer| route(head, metrics, Reader::new(peer)));
            talk == Talk::GoesOn && one.until > now
        });
    }

    fn accept(&mut self, listener: &Listener) -> Result<(), ServerError> {
        if self.closed_until.is_some() {
            return Ok(());
        }
        match listener.accept_now(|| {})? {
            Accept::Connection(socket) => self.begin(socket),
            Accept::None => {}
            Accept::Shortage => self.closed_until = Some(Instant::now() + RECOVERY),
        }
        Ok(())
    }

    /// Begins to talk with somebody, or says at once why not.
    fn begin(&mut self, socket: OwnedFd) {
        let peer = match Peer::of(&socket) {
            Ok(peer) => peer,
            Err(error) => return tracing::debug!(%error, "a connection to the admin socket failed"),
        };
        let refusal = if !self.access.permits(peer.uid, peer.gid) {
            Some(Reply::plain("403 Forbidden", "not permitted\n"))
        } else if self.is_busy_for(peer.uid) {
            Some(Reply::plain("503 Service Unavailable", "too many requests at once\n"))
        } else {
            None
        };
        let until = Instant::now() + PATIENCE;
        match refusal {
            None => {
                let state = State::Asking(Vec::new());
                self.conversations.push(Conversation { socket, peer, until, state });
            }
            // An answer this short fits into the socket, or else nobody reads it.
            Some(reply) => {
                let _ = send(&socket, &reply.encode(), SEND);
            }
        }
    }

    fn is_busy_for(&self, uid: u32) -> bool {
        let own = self.conversations.iter().filter(|one| one.peer.uid == uid).count();
        own >= CONVERSATIONS_PER_USER || self.conversations.len() >= CONVERSATIONS_MAX
    }
}

const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

impl Conversation {
    /// What it waits for.
    fn awaits(&self) -> PollFlags {
        match &self.state {
            State::Asking(_) => PollFlags::IN,
            State::Answering(..) => PollFlags::OUT,
        }
    }

    /// Reads or writes what it can without waiting; `answer` makes the answer to a whole request.
    fn go_on(&mut self, answer: impl Fn(&[u8], Peer) -> Reply) -> Talk {
        loop {
            let step = match &mut self.state {
                State::Asking(head) => match read_some(&self.socket, head) {
                    Ok(Asked::InPart) => Ok(()),
                    Ok(Asked::Wholly) => {
                        self.state = State::Answering(answer(head, self.peer).encode(), 0);
                        Ok(())
                    }
                    Ok(Asked::TooMuch) => {
                        let status = "431 Request Header Fields Too Large";
                        let reply = Reply::plain(status, "too long\n");
                        self.state = State::Answering(reply.encode(), 0);
                        Ok(())
                    }
                    Err(errno) => Err(errno),
                },
                State::Answering(bytes, sent) if *sent == bytes.len() => {
                    // The reader finds the end of the answer even where it has more to say.
                    let _ = shutdown(&self.socket, Shutdown::Write);
                    return Talk::IsOver;
                }
                State::Answering(bytes, sent) => {
                    send(&self.socket, &bytes[*sent..], SEND).map(|count| *sent += count)
                }
            };
            match step {
                Ok(()) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Talk::GoesOn,
                Err(errno) => {
                    tracing::debug!(%errno, "a request at the admin socket failed");
                    return Talk::IsOver;
                }
            }
        }
    }
}

/// How much of a request has come.
enum Asked {
    InPart,
    /// Up to the empty line.
    Wholly,
    /// More than [`REQUEST_MAX`] bytes without an empty line.
    TooMuch,
}

fn read_some(socket: &OwnedFd, head: &mut Vec<u8>) -> Result<Asked, Errno> {
    let mut part = [0; 1024];
    let (_, length) = recv(socket, &mut part, RecvFlags::DONTWAIT)?;
    if length == 0 {
        return Err(Errno::CONNRESET);
    }
    head.extend_from_slice(&part[..length]);
    Ok(if head.windows(4).any(|end| end == b"\r\n\r\n") {
        Asked::Wholly
    } else if head.len() > REQUEST_MAX {
        Asked::TooMuch
    } else {
        Asked::InPart
    })
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

    fn encode(&self) -> Vec<u8> {
        let Reply { status, content_type, body, with_body } = self;
        let length = body.len();
        let allow = if status.starts_with("405") { "Allow: GET, HEAD\r\n" } else { "" };
        let body = if *with_body { body.as_str() } else { "" };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             {allow}Connection: close\r\n\r\n{body}"
        )
        .into_bytes()
    }
}

/// What the request line asks for.
fn route(head: &[u8], metrics: &Arc<Metrics>, reader: Reader) -> Reply {
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
    if !matches!(method, b"GET" | b"HEAD") {
        return Reply::plain("405 Method Not Allowed", "there is nothing to change here\n");
    }
    let (content_type, body) = match path {
        b"/metrics" => (OPENMETRICS, metrics.text_for(reader)),
        b"/sessions" => (JSON, metrics.sessions_for(reader)),
        b"/healthz" => (PLAIN, "ok\n".to_owned()),
        _ => return Reply::plain("404 Not Found", "there are /metrics, /sessions and /healthz\n"),
    };
    Reply { status: "200 OK", content_type, body, with_body: method == b"GET" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Limits, Users};
    use crate::process::{Performance, SandboxReport};

    #[test]
    fn three_things_can_be_asked_for_and_all_else_has_its_code() {
        let performance = Arc::new(Performance::off());
        let users = Arc::new(Users::new(&Limits::default()));
        let turns = Arc::default();
        let metrics = Metrics::new(false, performance, SandboxReport::off(), users, turns);
        let metrics = Arc::new(metrics);
        let status = |line: &str| route(line.as_bytes(), &metrics, Reader::Owner).status;
        for (line, want) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "200"),
            ("GET /metrics?name=x HTTP/1.0\r\n\r\n", "200"),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", "200"),
            ("GET /sessions HTTP/1.1\r\n\r\n", "200"),
            ("GET /healthz HTTP/1.1\r\n\r\n", "200"),
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
        let head = route(b"HEAD /metrics HTTP/1.1\r\n\r\n", &metrics, Reader::Owner).encode();
        let head = String::from_utf8(head).unwrap();
        assert!(head.ends_with("\r\n\r\n") && !head.contains("Content-Length: 0"));
    }
}
