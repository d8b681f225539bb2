//! Places at a socket, held by somebody who is not let in.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::net::{RecvFlags, SocketFlags, recv};

use super::super::child::say;
use super::super::connection::dial;
use super::{Outcome, UNDER_WAY};

/// More connections than a service takes.
const CONNECTIONS: usize = 300;
/// More scrapes than one thread would have patience for.
const SCRAPES: usize = 64;
/// Between two looks at all connections.
const PAUSE: Duration = Duration::from_millis(2);

/// Whether the other end has hung up.
fn is_hung_up(socket: &OwnedFd) -> bool {
    let mut byte = [0; 1];
    !matches!(recv(socket, &mut byte, RecvFlags::DONTWAIT), Err(rustix::io::Errno::AGAIN))
}

/// Keeps so many connections; for each that ends another one is made.
fn hold<C>(most: usize, open: impl Fn() -> Option<C>, is_over: impl Fn(&mut C) -> bool) -> Outcome {
    let mut held: Vec<C> = Vec::new();
    let mut opened = 0;
    let mut is_told = false;
    loop {
        held.retain_mut(|connection| !is_over(connection));
        while held.len() < most {
            let Some(connection) = open() else { break };
            held.push(connection);
            opened += 1;
        }
        if opened >= most && !std::mem::replace(&mut is_told, true) {
            say(UNDER_WAY);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Connects and says nothing.
pub(super) fn silent_clients(socket: &Path) -> Outcome {
    hold(CONNECTIONS, || dial(socket, SocketFlags::NONBLOCK).ok(), |socket| is_hung_up(socket))
}

/// Connects to the admin socket and says nothing.
pub(super) fn silent_scrapers(admin: &Path) -> Outcome {
    let open = || {
        let connection = UnixStream::connect(admin).ok()?;
        connection.set_nonblocking(true).ok()?;
        Some(connection)
    };
    let is_over = |connection: &mut UnixStream| match connection.read(&mut [0; 64]) {
        Ok(_) => true,
        Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
    };
    hold(SCRAPES, open, is_over)
}
