//! Fences that are none, and launches of clients that mean harm.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_hal::ErrorStatus;
use burst_launch::FenceState;
use burst_wire::control::{Answer, Call, FENCES_MAX};
use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::fs::{MemfdFlags, Mode, OFlags, memfd_create, open};

use super::client::{Launching, OWN, memory, pipe, service, signal, wait_for, wait_for_nothing};
use super::device::{Gated, QUICK};

#[test]
fn a_descriptor_that_is_no_fence_is_refused_and_named() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let own_socket = client.raw.socket.try_clone().unwrap();
    let (socket, _other) = burst_wire::socket::pair().unwrap();
    let folder = std::env::temp_dir();
    let folder = folder.to_str().unwrap();
    let path = |path: &str, flags| open(path, flags, Mode::empty()).unwrap();
    let (write, _read) = pipe();
    let (hung_up, failed) = pipe();
    drop(hung_up);
    let fine = eventfd(1, EventfdFlags::CLOEXEC).unwrap();
    for (fd, want) in [
        (memfd_create("fence", MemfdFlags::CLOEXEC).unwrap(), "fence 1 is a file;"),
        (path("/proc/self/status", OFlags::RDONLY), "fence 1 is a file;"),
        (path(folder, OFlags::RDONLY), "fence 1 is a folder;"),
        (path("/dev/null", OFlags::RDONLY), "fence 1 is a device;"),
        (socket, "fence 1 is a socket;"),
        (own_socket, "fence 1 is a socket;"),
        (epoll::create(epoll::CreateFlags::CLOEXEC).unwrap(), "fence 1 is an object"),
        (write, "fence 1 is a pipe that is open for writing;"),
        (failed, "fence 1 has failed already"),
    ] {
        let refused = client.fenced(&memory(1), &[fine.as_fd(), fd.as_fd()]).map(drop);
        let refused = refused.unwrap_err();
        assert_eq!(refused.status(), ErrorStatus::InvalidArgument, "{want}");
        assert!(refused.detail.as_str().starts_with(want), "{}", refused.detail.as_str());
    }
    assert!(device.begun().is_empty());
    drop(client);
    wait_for_nothing(&service);
}

#[test]
fn an_execution_waits_for_as_many_fences_as_may_be_and_for_no_more() {
    let (service, _device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let pipes: Vec<(OwnedFd, OwnedFd)> = (0..=FENCES_MAX).map(|_| pipe()).collect();
    let fences: Vec<BorrowedFd<'_>> = pipes.iter().map(|(_, read)| read.as_fd()).collect();
    let refused = client.fenced(&memory(QUICK), &fences).map(drop).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::ResourceExhaustedPersistent);
    assert_eq!(refused.detail.as_str(), "65 fences of one execution are over the limit of 64");
    let execution = client.fenced(&memory(QUICK), &fences[1..]).unwrap();
    for (write, _) in pipes[1..].iter().rev() {
        assert_eq!(super::client::state(&execution.fence), FenceState::Pending);
        signal(write);
    }
    wait_for(&execution.fence, FenceState::Done);
    // As many as there are said to be, and not one fewer.
    let call = |client: &Launching, fences| {
        let request = client.request();
        Call::ExecuteFenced(burst_wire::control::FencedRequest { request, fences, duration: None })
    };
    let memory = memory(QUICK);
    let few = client.call(call(&client, 3), &[memory.as_fd(), fences[0]]).unwrap_err();
    assert_eq!(few.status(), ErrorStatus::InvalidArgument);
    assert_eq!(few.detail.as_str(), "the call needs 4 descriptors and came with 2");
}

#[test]
fn a_client_that_dies_while_its_executions_wait_leaves_nothing_and_fails_its_fences() {
    let (service, device) = service(Gated::default(), |_| ());
    let (mut dies, mut lives) = (Launching::connect(&service), Launching::connect(&service));
    let (_never, read) = pipe();
    let waiting: Vec<_> =
        (0..20).map(|_| dies.fenced(&memory(1), &[read.as_fd()]).unwrap()).collect();
    let running = dies.fenced(&memory(2), &[]).unwrap();
    dies.launch(OWN, &memory(3)).unwrap();
    device.wait_begun(2);
    // Another client's execution is the end of a chain that begins with the first one's.
    let chained = lives.fenced(&memory(4), &[waiting[0].fence.as_fd()]).unwrap();
    drop(dies);
    for execution in waiting.iter().chain([&running]) {
        wait_for(&execution.fence, FenceState::Failed);
    }
    device.wait_cancelled(2);
    wait_for(&chained.fence, FenceState::Failed);
    assert_eq!(lives.info(chained.number).unwrap().status, ErrorStatus::GeneralFailure);
    // The other one is served as before.
    lives.launch(1, &memory(QUICK)).unwrap();
    assert_eq!(lives.executed(1), ErrorStatus::None);
    drop(lives);
    wait_for_nothing(&service);
}

#[test]
fn a_number_of_a_fenced_execution_is_no_asynchronous_one() {
    let (service, device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let fenced = client.fenced(&memory(1), &[]).unwrap();
    let refused = client.launch(fenced.number, &memory(2)).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    // The service chooses none that its client uses.
    for number in fenced.number + 1..fenced.number + 4 {
        client.launch(number, &memory(2)).unwrap();
    }
    let next = client.fenced(&memory(1), &[]).unwrap();
    assert!(!(fenced.number..fenced.number + 4).contains(&next.number), "{}", next.number);
    assert_eq!(client.release(fenced.number + 1), Err(ErrorStatus::InvalidArgument));
    assert_eq!(client.info(fenced.number + 1), Err(ErrorStatus::InvalidArgument));
    device.release_all();
    for number in fenced.number + 1..fenced.number + 4 {
        assert_eq!(client.executed(number), ErrorStatus::None);
    }
}

#[test]
fn an_output_of_unknown_size_and_a_buffer_are_refused() {
    let (service, _device) = service(Gated::default(), |_| ());
    let mut client = Launching::connect(&service);
    let refused = client.fenced_with(&memory(1), &[], |fenced| {
        fenced.request.outputs.0.clear();
    });
    assert_eq!(refused.map(drop).unwrap_err().status(), ErrorStatus::InvalidArgument);
    let request = client.request();
    let token = burst_wire::control::PoolSource::Token { token: 1 };
    let request = burst_wire::control::SynchronousRequest {
        pools: burst_wire::control::List(vec![token]),
        ..request
    };
    let call = Call::ExecuteAsynchronously { execution: 1, request };
    let refused = client.call(call, &[]).unwrap_err();
    assert_eq!(refused.status(), ErrorStatus::InvalidArgument);
    assert!(matches!(client.call(Call::ListDevices, &[]), Ok(Answer::Devices(_))));
}
