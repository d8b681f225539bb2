//! Descriptors that come before their client was let in: closing one may take as long as its owner likes, and the
//! thread that would close it serves everybody. So nobody can send any, where the kernel knows how to refuse them.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use burst_server::{Listener, Service, ServiceOptions, Stop};
use burst_shm::allow_descriptors;
use burst_testing::Missing;
use burst_wire::control::ClientGreeting;
use burst_wire::{Features, WireError, socket};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen};

use crate::burst_support::raw::{self, RawClient};
use crate::burst_support::{FakeDevice, model};

burst_testing::tests![
    a_connection_that_nobody_has_let_in_takes_no_descriptors(refusing_kernel()?),
    nobody_hands_descriptors_to_the_admin_socket(refusing_kernel()?),
    a_listening_socket_goes_back_to_its_supervisor_as_it_came(refusing_kernel()?),
];

/// A kernel that keeps descriptors from a socket which takes none.
struct RefusingKernel(());

fn refusing_kernel() -> Result<RefusingKernel, Missing> {
    let (socket, _other) = socket::pair().unwrap();
    if allow_descriptors(&socket, false).unwrap() {
        Ok(RefusingKernel(()))
    } else {
        Err(Missing::new("a kernel that can keep descriptors from a socket (Linux 6.16)"))
    }
}

/// Sends a greeting that brings a descriptor.
fn greet_with_descriptor(client: impl AsFd) -> Result<(), WireError> {
    let (_read, write) = rustix::pipe::pipe().unwrap();
    let greeting = ClientGreeting::new(Features::ALL, "at the door");
    socket::send(client, &greeting.encode().unwrap(), &[write.as_fd()])
}

/// What a client is told that sends descriptors too early.
#[track_caller]
fn is_told_so(sent: &Result<(), WireError>) {
    assert!(matches!(sent, Err(WireError::Socket(Errno::PERM))), "{sent:?}");
}

fn a_connection_that_nobody_has_let_in_takes_no_descriptors(_: RefusingKernel) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let listener = Listener::bind(&path).unwrap();
    // Before anybody accepts it: with a connection that is refused goes what lies in it.
    let early = raw::connect(&path);
    is_told_so(&greet_with_descriptor(&early));
    let service = Service::new(vec![Arc::new(FakeDevice::default())], ServiceOptions::default());
    let (stopper, stop) = Stop::new().unwrap();
    let thread = std::thread::spawn(move || service.run(&listener, &stop).unwrap());
    // What was refused did not come: this greeting is the first one. From its answer on descriptors do, as of a model.
    let mut client = RawClient::greet(early);
    client.prepare(&model());
    is_told_so(&greet_with_descriptor(raw::connect(&path)));
    drop((client, stopper));
    thread.join().unwrap();
}

fn nobody_hands_descriptors_to_the_admin_socket(_: RefusingKernel) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    let _listener = Listener::bind_admin(&path, 0o600).unwrap();
    is_told_so(&greet_with_descriptor(UnixStream::connect(&path).unwrap()));
}

fn a_listening_socket_goes_back_to_its_supervisor_as_it_came(_: RefusingKernel) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("burst.sock");
    let (unix, packets) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let flags = SocketFlags::CLOEXEC;
    let supervisors: OwnedFd = rustix::net::socket_with(unix, packets, flags, None).unwrap();
    bind(&supervisors, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    listen(&supervisors, 8).unwrap();
    let listener = Listener::from_socket(supervisors.try_clone().unwrap()).unwrap();
    is_told_so(&greet_with_descriptor(raw::connect(&path)));
    let service = Service::new(vec![Arc::new(FakeDevice::default())], ServiceOptions::default());
    let (stopper, stop) = Stop::new().unwrap();
    let thread = std::thread::spawn(move || service.run(&listener, &stop).unwrap());
    // Another service had it, too, and gave it back: this one notices with the next connection.
    allow_descriptors(&supervisors, true).unwrap();
    let client = RawClient::greet(raw::connect(&path));
    is_told_so(&greet_with_descriptor(raw::connect(&path)));
    drop((client, stopper));
    thread.join().unwrap();
    greet_with_descriptor(raw::connect(&path)).unwrap();
}
