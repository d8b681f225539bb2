//! A launch that is never sent, as the service reads nothing and the socket is full: nothing of it stays in use.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use burst_client::{Client, ClientError, ShmMemory};
use burst_hal::{Caller, ErrorStatus, ExecutionOptions, FencedOptions, Pool, PrepareOptions};
use burst_server::ServiceOptions;
use burst_wire::control::{ClientMessage, encode};
use burst_wire::socket::{self, Inbox};

use crate::burst_support::{LONG, Private, model, request_in};

/// Carries what one end says to the other: before each message it passes the gate, and says so where it finds it shut.
fn carry(from: &OwnedFd, to: &OwnedFd, gate: &Mutex<()>, shut: &Sender<()>) {
    let mut inbox = Inbox::default();
    while socket::receive(from, &mut inbox).is_ok() {
        if gate.try_lock().is_err() {
            let _ = shut.send(());
            drop(gate.lock().unwrap());
        }
        let descriptors = inbox.take_descriptors();
        let borrowed: Vec<_> = descriptors.iter().map(AsFd::as_fd).collect();
        if socket::send(to, inbox.message(), &borrowed).is_err() {
            break;
        }
    }
    let _ = rustix::net::shutdown(to, rustix::net::Shutdown::Both);
}

/// A service behind a relay with a gate.
struct Gated {
    service: Private,
    gate: Arc<Mutex<()>>,
    shut: Receiver<()>,
    /// The client's own end.
    socket: OwnedFd,
    relay: [JoinHandle<()>; 2],
}

impl Gated {
    fn connect() -> (Gated, Client) {
        let (service, to_service) = Private::start(ServiceOptions::default());
        let (ours, to_client) = socket::pair().unwrap();
        let (near, far) = (Arc::new(to_client), Arc::new(to_service));
        let gate = Arc::new(Mutex::new(()));
        let (tell, shut) = channel();
        let there = {
            let (near, far, gate) = (Arc::clone(&near), Arc::clone(&far), Arc::clone(&gate));
            std::thread::spawn(move || carry(&near, &far, &gate, &tell))
        };
        let back = std::thread::spawn(move || carry(&far, &near, &Mutex::new(()), &channel().0));
        let socket = ours.try_clone().unwrap();
        let client = Client::from_socket(ours).unwrap();
        (Gated { service, gate, shut, socket, relay: [there, back] }, client)
    }

    /// Does this while nobody reads what the client says, and no room is left for it.
    fn while_full(&self, work: impl FnOnce()) {
        // A kind of message that a service ignores.
        let filler = encode(&ClientMessage::Unknown { kind: 99 }).unwrap();
        let shut = self.gate.lock().unwrap();
        socket::send(&self.socket, &filler, &[]).unwrap();
        self.shut.recv_timeout(LONG).unwrap();
        while socket::send_now(&self.socket, &filler, &[]).is_ok() {}
        // That there is no room is to be seen at once.
        socket::set_send_timeout(&self.socket, Some(Duration::from_millis(1))).unwrap();
        work();
        socket::set_send_timeout(&self.socket, Some(LONG)).unwrap();
        drop(shut);
    }

    fn join(self) {
        drop(self.socket);
        self.service.join();
        self.relay.into_iter().for_each(|thread| thread.join().unwrap());
    }
}

#[test]
fn a_launch_that_was_never_sent_is_told_once_and_keeps_nothing() {
    let (gated, client) = Gated::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &PrepareOptions::default()).unwrap();
    let memory: Pool = Arc::new(ShmMemory::create(32).unwrap());
    let request = request_in(&memory);
    let (options, caller) = (ExecutionOptions::default(), Caller::default());
    let (tell, told) = channel();
    let launch = || {
        let tell = tell.clone();
        let callback = move |outcome| tell.send(outcome).unwrap();
        prepared.start_with(request.clone(), &options, &caller, callback)
    };
    // The service has the memory from here on.
    launch().unwrap();
    assert_eq!(told.recv_timeout(LONG).unwrap().unwrap().result.status, ErrorStatus::None);
    let (of_memory, of_model) = (Arc::strong_count(&memory), Arc::strong_count(&prepared));
    gated.while_full(|| {
        let error = launch().unwrap_err();
        assert!(matches!(error, ClientError::Timeout), "{error}");
        let error = told.recv_timeout(LONG).unwrap().unwrap_err();
        assert!(matches!(error, ClientError::Timeout), "{error}");
        // What it used is given back now, and not when the connection ends.
        assert_eq!(Arc::strong_count(&memory), of_memory);
        let fenced = FencedOptions::default();
        let error = prepared.start_fenced(request.clone(), &[], &fenced, &caller).unwrap_err();
        assert!(matches!(error, ClientError::Timeout), "{error}");
        assert_eq!(Arc::strong_count(&memory), of_memory);
        assert_eq!(Arc::strong_count(&prepared), of_model);
    });
    launch().unwrap();
    assert_eq!(told.recv_timeout(LONG).unwrap().unwrap().result.status, ErrorStatus::None);
    assert!(told.try_recv().is_err(), "it was told twice");
    drop((prepared, device, client));
    gated.join();
}
