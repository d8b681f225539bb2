//! A service whose socket somebody else made: it lives while it serves, whatever becomes of whoever
//! listened, and its death is its own.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use burst_client::{Client, ClientError, Route, StreamOptions};
use rustix::process::{Pid, Signal, kill_process};

use crate::burst_support::{long, model, wait_until};

burst_testing::tests![a_service_outlives_the_supervisor_that_listened_for_it(),];

/// Calls whose replies the client's watcher reads one by one, and after each of which it would see
/// that a process it watches has ended.
const CALLS: usize = 200;

/// A supervisor and the service that it started; neither outlives the test.
struct Supervised {
    supervisor: Child,
    _output: BufReader<ChildStdout>,
    service: Pid,
}

impl Supervised {
    fn start(path: &Path) -> Supervised {
        let mut supervisor = Command::new(env!("CARGO_BIN_EXE_burst_peer"))
            .arg("listen-and-hand-over")
            .arg(path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(supervisor.stdout.take().unwrap());
        let (mut pid, mut ready) = (String::new(), String::new());
        output.read_line(&mut pid).unwrap();
        output.read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n");
        let service = Pid::from_raw(pid.trim_end().parse().unwrap()).unwrap();
        Supervised { supervisor, _output: output, service }
    }

    fn end_supervisor(&mut self) {
        drop(self.supervisor.stdin.take());
        assert!(self.supervisor.wait().unwrap().success());
    }

    fn kill_service(&self) {
        // It may be dead already, and is not reused: nobody waits for it before the test has ended.
        let _ = kill_process(self.service, Signal::KILL);
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.kill_service();
        let _ = self.supervisor.kill();
        let _ = self.supervisor.wait();
    }
}

fn a_service_outlives_the_supervisor_that_listened_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let mut supervised = Supervised::start(&path);
    let client = Client::connect(&path).unwrap();
    let serving = u32::try_from(supervised.service.as_raw_nonzero().get()).unwrap();
    assert_eq!(client.driver_pid(), serving, "the process that answers, not the one that listened");
    let device = client.device("fake").unwrap();
    let mut streams = Route::ALL.map(|route| {
        let mut options = StreamOptions::default();
        options.route = route;
        device.stream(&model(), &options).unwrap()
    });

    supervised.end_supervisor();
    for call in 0..CALLS {
        client.device_names().unwrap_or_else(|error| panic!("call {call}: {error}"));
    }
    for stream in &mut streams {
        stream.input(0).fill(6);
        stream.run(long()).unwrap();
        assert_eq!(stream.output(0).unwrap(), [7; 16]);
    }
    assert!(client.is_alive());
    drop(Client::connect(&path).unwrap());

    supervised.kill_service();
    wait_until("the news of the death", || !client.is_alive());
    for stream in &mut streams {
        let error = stream.run(long()).unwrap_err();
        assert!(matches!(error, ClientError::PeerDied { pid } if pid == serving), "{error}");
    }
}
