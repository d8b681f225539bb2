//! What a viewer asks for: the head of an HTTP request, and nothing of what could stand behind it.

use std::time::Instant;

/// Longest head of a request in bytes; browsers send about 1 KiB.
pub(super) const MAX_HEAD_BYTES: usize = 8 << 10;

/// Why a request is not answered as it wishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Nobody is there any more, or nothing was asked.
    Gone,
    /// It took too long.
    Slow,
    /// It is too long.
    Long,
    /// It is no request.
    Malformed,
    /// It wants something else than to read.
    Method,
    /// It is not known here; so is everything without the token.
    Unknown,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Page,
    Script,
    Style,
    /// The newest frame behind this one.
    Frame {
        after: u64,
    },
}

/// Something to read from, each time until a moment at most.
pub(super) trait ReadUntil {
    fn read_until(&mut self, end: Instant, into: &mut [u8]) -> std::io::Result<usize>;
}

/// Reads a request's head until its empty line. What stands behind it in the same bytes stays in `left`, for the next one.
pub(super) fn read_head(
    from: &mut impl ReadUntil,
    left: &mut Vec<u8>,
    end: Instant,
) -> Result<String, Fault> {
    loop {
        if let Some(at) = left.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = left.split_off(at + 4);
            let head = std::mem::replace(left, rest);
            return String::from_utf8(head).map_err(|_| Fault::Malformed);
        }
        if left.len() >= MAX_HEAD_BYTES {
            return Err(Fault::Long);
        }
        let mut some = [0; 1024];
        let room = some.len().min(MAX_HEAD_BYTES - left.len());
        match from.read_until(end, &mut some[..room]) {
            Ok(0) => return Err(Fault::Gone),
            Ok(read) => left.extend_from_slice(&some[..read]),
            Err(error) => {
                return Err(match error.kind() {
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => Fault::Slow,
                    _ => Fault::Gone,
                });
            }
        }
    }
}

/// What a head asks for, of who knows the token and calls this server by its own name: a page of somebody else
/// may have given that server's name this address.
pub(super) fn wanted(head: &str, token: &str, port: u16) -> Result<Wanted, Fault> {
    let mut lines = head.split("\r\n");
    let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
    let [method, target, version] = first[..] else { return Err(Fault::Malformed) };
    if !version.starts_with("HTTP/1.") || !target.starts_with('/') {
        return Err(Fault::Malformed);
    }
    let hosts: Vec<&str> = lines
        .filter_map(|line| line.split_once(':'))
        .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim())
        .collect();
    let is_here = matches!(hosts[..], [host] if [format!("127.0.0.1:{port}"), format!("localhost:{port}")]
        .iter()
        .any(|own| own == host));
    let path = target[1..].split_once('/');
    let Some((_, path)) = path.filter(|(given, _)| is_same(given, token)) else {
        return Err(Fault::Unknown);
    };
    if !is_here {
        return Err(Fault::Unknown);
    }
    if method != "GET" {
        return Err(Fault::Method);
    }
    match path.split_once('?').unwrap_or((path, "")) {
        ("", "") => Ok(Wanted::Page),
        ("page.js", "") => Ok(Wanted::Script),
        ("page.css", "") => Ok(Wanted::Style),
        ("frame", query) => {
            let after = query.strip_prefix("after=").and_then(|after| after.parse().ok());
            after.map(|after| Wanted::Frame { after }).ok_or(Fault::Unknown)
        }
        _ => Err(Fault::Unknown),
    }
}

/// Whether two texts are the same, in a time that does not say how far they are.
fn is_same(one: &str, other: &str) -> bool {
    let differences = one.bytes().zip(other.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differences == 0
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    impl ReadUntil for &[u8] {
        fn read_until(&mut self, _: Instant, into: &mut [u8]) -> std::io::Result<usize> {
            self.read(into)
        }
    }

    fn of(line: &str, host: &str) -> Result<Wanted, Fault> {
        wanted(&format!("{line}\r\nAccept: x\r\nHost: {host}\r\n\r\n"), "secret", 80)
    }

    #[test]
    fn only_who_knows_the_token_and_the_name_is_answered() {
        let here = "127.0.0.1:80";
        for (target, want) in [
            ("/secret/", Ok(Wanted::Page)),
            ("/secret/page.js", Ok(Wanted::Script)),
            ("/secret/page.css", Ok(Wanted::Style)),
            ("/secret/frame?after=7", Ok(Wanted::Frame { after: 7 })),
            ("/secret/frame", Err(Fault::Unknown)),
            ("/secret/frame?after=-1", Err(Fault::Unknown)),
            ("/secret/../page.js", Err(Fault::Unknown)),
            ("/secret", Err(Fault::Unknown)),
            ("/", Err(Fault::Unknown)),
            ("/secre/", Err(Fault::Unknown)),
            ("/secretx/", Err(Fault::Unknown)),
            ("/Secret/", Err(Fault::Unknown)),
            ("//secret/", Err(Fault::Unknown)),
        ] {
            assert_eq!(of(&format!("GET {target} HTTP/1.1"), here), want, "{target}");
        }
        let page = "GET /secret/ HTTP/1.1";
        assert_eq!(of(page, "localhost:80"), Ok(Wanted::Page));
        for host in ["evil.example", "127.0.0.1", "127.0.0.1:81", "", "127.0.0.1:80\r\nHost: x"] {
            assert_eq!(of(page, host), Err(Fault::Unknown), "{host}");
        }
        assert_eq!(of("POST /secret/ HTTP/1.1", here), Err(Fault::Method));
        assert_eq!(of("POST / HTTP/1.1", here), Err(Fault::Unknown), "no word without the token");
        for line in ["", "GET", "GET /secret/", "GET /secret/ SPDY/3", "GET secret/ HTTP/1.1"] {
            assert_eq!(of(line, here), Err(Fault::Malformed), "{line}");
        }
    }

    #[test]
    fn a_head_ends_with_an_empty_line_and_before_its_limit() {
        let end = Instant::now();
        let mut left = Vec::new();
        let mut from: &[u8] = b"GET / HTTP/1.1\r\n\r\nGET /2";
        let head = read_head(&mut from, &mut left, end).unwrap();
        assert_eq!((head.as_str(), &left[..]), ("GET / HTTP/1.1\r\n\r\n", &b"GET /2"[..]));
        assert_eq!(read_head(&mut from, &mut left, end), Err(Fault::Gone), "cut off");
        let long = vec![b'x'; 2 * MAX_HEAD_BYTES];
        assert_eq!(read_head(&mut &long[..], &mut Vec::new(), end), Err(Fault::Long));
        assert_eq!(
            read_head(&mut &b"\xFF\r\n\r\n"[..], &mut Vec::new(), end),
            Err(Fault::Malformed)
        );
    }
}
