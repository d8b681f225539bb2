//! What a process does that runs as another user: each role says one line when it is done, keeps what
//! it has, and says a second one when its standard input ends.

use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use burst_wire::control::{Answer, Call, ServerGreeting, Welcome};
use burst_wire::socket::{self, Inbox};

use super::burst_support::raw::{self, RawClient};
use super::say;

/// Bytes that `fill` asks for at once.
const PART: u64 = 1 << 20;

/// Waits until the test has looked.
fn wait_for_the_test() {
    let mut nothing = Vec::new();
    std::io::stdin().read_to_end(&mut nothing).expect("the test ends it");
}

/// Makes so many connections that say nothing; then says how many of them were told which refusal.
pub(super) fn knock(path: &str, count: usize) {
    let sockets: Vec<OwnedFd> = (0..count).map(|_| raw::connect(Path::new(path))).collect();
    say("connected");
    wait_for_the_test();
    let mut told = [0; 2];
    for socket in &sockets {
        // Nothing comes to those that are let in and have not greeted.
        socket::set_receive_timeout(socket, Some(Duration::from_millis(1))).expect("an option");
        let mut inbox = Inbox::default();
        if socket::receive(socket, &mut inbox).is_err() {
            continue;
        }
        match ServerGreeting::decode(inbox.message()).expect("a greeting").welcome {
            Welcome::NotPermitted => told[0] += 1,
            Welcome::TooManyClients => told[1] += 1,
            other => panic!("nobody greeted, and yet: {other:?}"),
        }
    }
    say(&format!("not permitted {}, too many {}", told[0], told[1]));
}

/// Has the service allocate memory over so many connections until each is refused; then says how much
/// it got, and what the last one was told.
pub(super) fn fill(path: &str, connections: usize) {
    let mut clients = Vec::new();
    let (mut got, mut refusal) = (0, String::new());
    for _ in 0..connections {
        let mut client = RawClient::greet(raw::connect(Path::new(path)));
        for memory in 0.. {
            match client.call(Call::AllocateMemory { memory, length: PART }, &[]) {
                Ok(Answer::Done) => got += PART,
                Ok(other) => panic!("{other:?}"),
                Err(refused) => {
                    refusal = refused.detail.as_str().to_owned();
                    break;
                }
            }
        }
        clients.push(client);
    }
    say(&format!("{got} {refusal}"));
    wait_for_the_test();
    drop(clients);
    say("done");
}

/// Makes so many connections to an admin socket that say nothing, and says what the last one is told.
pub(super) fn stand_at_the_desk(path: &str, count: usize) {
    let mut sockets: Vec<UnixStream> =
        (0..count).map(|_| UnixStream::connect(path).expect("a socket")).collect();
    let mut answer = String::new();
    let last = sockets.last_mut().expect("one at least");
    // What it has not read is no reason to keep the answer back.
    let _ = last.read_to_string(&mut answer);
    say(answer.lines().next().unwrap_or("nothing"));
    wait_for_the_test();
    drop(sockets);
}

/// Reads the metrics as a collector does, and says them.
pub(super) fn scrape(path: &str) {
    use std::io::Write;
    let mut socket = UnixStream::connect(path).expect("a socket");
    socket.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("room");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    say(&answer);
}
