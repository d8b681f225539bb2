//! Asking the admin socket of a service.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};

/// How long a service may take to answer; it gives up after two seconds itself.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer: that of a service with as many bursts as it shows is some hundred KiB.
const ANSWER_MAX: u64 = 16 << 20;

/// What the socket answers to `GET path`.
///
/// # Errors
/// Nobody answers there, or not with what was asked for; the message names the socket.
pub(super) fn get(admin: &Path, path: &str) -> Result<String> {
    let name = admin.display();
    let mut socket = UnixStream::connect(admin)
        .with_context(|| format!("cannot reach the admin socket at {name}"))?;
    let unanswered = || format!("the admin socket at {name} does not answer");
    socket.set_read_timeout(Some(PATIENCE)).with_context(unanswered)?;
    socket.set_write_timeout(Some(PATIENCE)).with_context(unanswered)?;
    // It may have refused and hung up before it was asked; the answer is there all the same.
    let asked = socket.write_all(format!("GET {path} HTTP/1.1\r\nHost: burst\r\n\r\n").as_bytes());
    let mut answer = Vec::new();
    let read = socket.take(ANSWER_MAX + 1).read_to_end(&mut answer);
    if answer.is_empty() {
        read.and(asked).with_context(unanswered)?;
    }
    body(&answer).with_context(|| format!("the admin socket at {name}"))
}

/// What an answer says, where its status is a good one.
fn body(answer: &[u8]) -> Result<String> {
    if answer.len() as u64 > ANSWER_MAX {
        bail!("an answer of more than {} MiB", ANSWER_MAX >> 20);
    }
    let text = std::str::from_utf8(answer).context("an answer that is no text")?;
    let (head, body) = text.split_once("\r\n\r\n").context("an answer that is no HTTP")?;
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 "));
    let status = status.context("an answer that is no HTTP")?;
    if !status.starts_with("200") {
        bail!("{status}: {}", body.trim());
    }
    let length = lines.find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok());
    if length != Some(body.len()) {
        bail!("an answer that was cut off");
    }
    Ok(body.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_answer_with_a_good_status_is_one() {
        let said = |answer: &str| body(answer.as_bytes()).map_err(|error| format!("{error:#}"));
        assert_eq!(said("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), Ok("ok".to_owned()));
        for (answer, part) in [
            ("HTTP/1.1 403 Forbidden\r\nContent-Length: 4\r\n\r\nnot\n", "403 Forbidden: not"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok", "cut off"),
            ("HTTP/1.1 200 OK\r\n\r\nok", "cut off"),
            ("hello", "no HTTP"),
            ("hello\r\n\r\n", "no HTTP"),
        ] {
            assert!(said(answer).unwrap_err().contains(part), "{answer}");
        }
        assert!(body(&[0xff, 0xfe]).is_err());
    }

    #[test]
    fn a_socket_where_nobody_is_says_which() {
        let error = get(Path::new("/nonexistent/admin.sock"), "/sessions").unwrap_err();
        assert!(error.to_string().contains("/nonexistent/admin.sock"), "{error}");
    }
}
