//! The other process in tests of two processes: a service or a client that can be killed.
//!
//! `serve-stuck` serves the socket on its standard input with a device that never finishes, and
//! says `begun` when it has an execution. `serve-private` serves it as it should be. `stream PATH`
//! connects to a service and runs frames for ever, and says `running` after the first.

#[path = "../../tests/burst_support/mod.rs"]
mod burst_support;

use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;

use burst_client::{Client, StreamOptions};
use burst_server::{Service, ServiceOptions};
use burst_support::{Controls, FakeDevice, long, model};

fn main() {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("serve-stuck"), None) => {
            let controls = Arc::new(Controls::default());
            controls.close_gate();
            let begun = Arc::clone(&controls);
            std::thread::spawn(move || {
                begun.wait_begun(1);
                say("begun");
            });
            serve_stdin(controls);
        }
        (Some("serve-private"), None) => serve_stdin(Arc::new(Controls::default())),
        (Some("stream"), Some(path)) => stream(&path),
        other => panic!("unknown role {other:?}"),
    }
}

fn say(word: &str) {
    println!("{word}");
    std::io::stdout().flush().expect("the test reads this");
}

fn serve_stdin(controls: Arc<Controls>) {
    let socket = std::io::stdin().as_fd().try_clone_to_owned().expect("a socket");
    let service = Service::new(vec![Arc::new(FakeDevice(controls))], ServiceOptions::default());
    say("ready");
    service.serve_socket(socket).expect("the client speaks the protocol");
}

fn stream(path: &str) {
    let client = Client::connect(path).expect("a service");
    let device = client.device("fake").expect("the fake device");
    let mut stream = device.stream(&model(), &StreamOptions::default()).expect("a stream");
    stream.run(long()).expect("a result");
    say("running");
    loop {
        stream.run(long()).expect("a result");
    }
}
