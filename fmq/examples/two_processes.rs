//! Two processes, two queues: a client sends numbers, a server answers with their squares.
//!
//! ```sh
//! cargo run --release -p fmq --example two_processes
//! ```
//!
//! The descriptors travel as the server's standard input and output, which is the shortest way for
//! an example. A service passes them over a Unix socket (`SCM_RIGHTS`).

use std::error::Error;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fmq::{Consumer, Deadline, Descriptor, Grantor, Producer, QueueConfig, QueueError};

const GRANTORS: &str = "EXAMPLE_GRANTORS";
const ROUND_TRIPS: u64 = 100_000;
/// One number per item, up to 64 of them under way.
const CONFIG: QueueConfig = QueueConfig::new(8, 64);

fn main() -> Result<(), Box<dyn Error>> {
    match std::env::var(GRANTORS) {
        Ok(grantors) => serve(&grantors),
        Err(_) => ask(),
    }
}

/// The client makes both queues, starts the server and counts the time.
fn ask() -> Result<(), Box<dyn Error>> {
    fmq::warm_up();
    let mut requests = Producer::create(&CONFIG)?;
    let mut answers = Consumer::create(&CONFIG)?;
    let (to_server, to_client) = (requests.descriptor()?, answers.descriptor()?);
    let mut server = Command::new(std::env::current_exe()?)
        // Both queues are laid out alike, so one description does for both.
        .env(GRANTORS, describe(&to_server.grantors))
        .stdin(only_fd(to_server)?)
        .stdout(only_fd(to_client)?)
        .spawn()?;

    // Who watches the process closes the queue when it ends: no wait outlasts the peer.
    let closer = answers.closer();
    let watcher = std::thread::spawn(move || {
        let status = server.wait();
        closer.close();
        status
    });

    let start = Instant::now();
    for number in 0..ROUND_TRIPS {
        requests.write_blocking(&number.to_ne_bytes(), soon())?;
        let mut square = [0; 8];
        answers.read_blocking(&mut square, soon())?;
        assert_eq!(u64::from_ne_bytes(square), number * number);
    }
    let each = start.elapsed() / u32::try_from(ROUND_TRIPS)?;
    println!("{ROUND_TRIPS} round trips between two processes, {each:?} each");

    requests.closer().close(); // tells the server to go
    let status = watcher.join().map_err(|_| "the watcher panicked")??;
    println!("the server ended: {status}");
    Ok(())
}

/// The server attaches to both queues and answers until it is told to go.
fn serve(grantors: &str) -> Result<(), Box<dyn Error>> {
    let mut requests = Consumer::attach(attachable(grantors, std::io::stdin().as_fd())?)?;
    let mut answers = Producer::attach(attachable(grantors, std::io::stdout().as_fd())?)?;
    loop {
        match requests.wait(1, soon()) {
            Ok(_) => {}
            Err(QueueError::PeerDied) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
        let mut number = [0; 8];
        requests.read_deferred(&mut number)?;
        let number = u64::from_ne_bytes(number);
        answers.write_blocking(&(number * number).to_ne_bytes(), soon())?;
        requests.release()?; // late: the client's cache lines are touched after it has its answer
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(10))
}

fn only_fd(mut descriptor: Descriptor) -> Result<Stdio, &'static str> {
    descriptor.fds.pop().map(Stdio::from).ok_or("a queue has a memory")
}

fn describe(grantors: &[Grantor]) -> String {
    let each = |g: &Grantor| format!("{} {}", g.offset, g.extent);
    grantors.iter().map(each).collect::<Vec<_>>().join(",")
}

fn attachable(grantors: &str, fd: impl AsFd) -> Result<Descriptor, Box<dyn Error>> {
    let fd: OwnedFd = fd.as_fd().try_clone_to_owned()?;
    let grantor = |text: &str| -> Result<Grantor, Box<dyn Error>> {
        let (offset, extent) = text.split_once(' ').ok_or("two numbers")?;
        Ok(Grantor { flags: 0, fd_index: 0, offset: offset.parse()?, extent: extent.parse()? })
    };
    let grantors: Result<Vec<Grantor>, _> = grantors.split(',').map(grantor).collect();
    let quantum = u32::try_from(CONFIG.quantum)?;
    Ok(Descriptor { grantors: grantors?, fds: vec![fd], quantum, flags: fmq::SYNCHRONIZED })
}
