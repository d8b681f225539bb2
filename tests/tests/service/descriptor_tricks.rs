//! What a client can do with descriptors that it has handed over, and descriptors of the wrong kind:
//! an error for the one request or call, never a signal, and the burst beside it goes on.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_hal::ErrorStatus;
use burst_server::ServiceOptions;
use burst_shm::{Mapping, Memory};
use burst_wire::DATUM_BYTES;
use burst_wire::control::{Answer, Call, PoolSource};
use fmq::{Consumer, Descriptor, Producer, QueueConfig};
use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;

use crate::burst_support::raw::{
    INPUT_SLOT, OUTPUT_SLOT, POOL_BYTES, RawBurst, RawClient, configure_call, request,
};
use crate::burst_support::{Private, model};

const SEALABLE: MemfdFlags = MemfdFlags::CLOEXEC.union(MemfdFlags::ALLOW_SEALING);
/// Such a memfd carries `F_SEAL_SEAL` from the start: nobody can seal it against shrinking.
const UNSEALABLE: MemfdFlags = MemfdFlags::CLOEXEC;

fn memfd(flags: MemfdFlags, bytes: u64) -> OwnedFd {
    let fd = memfd_create("trick", flags).unwrap();
    ftruncate(&fd, bytes).unwrap();
    fd
}

fn file(bytes: u64) -> OwnedFd {
    let file = tempfile::tempfile().unwrap();
    file.set_len(bytes).unwrap();
    file.into()
}

fn start() -> (Private, RawBurst) {
    let (service, socket) = Private::start(ServiceOptions::default());
    (service, RawBurst::start_without_memories(socket, &model(), 64))
}

fn push(burst: &mut RawBurst, slot: i32, fd: BorrowedFd<'_>, length: u64) -> ErrorStatus {
    let source = PoolSource::Descriptor { length };
    match burst.client.call(Call::PushMemory { burst: burst.number, slot, source }, &[fd]) {
        Ok(answer) => {
            assert_eq!(answer, Answer::Done);
            ErrorStatus::None
        }
        Err(refusal) => refusal.status(),
    }
}

/// A burst on these two memories.
fn burst_on(input: BorrowedFd<'_>, output: BorrowedFd<'_>) -> (Private, RawBurst) {
    let (service, mut burst) = start();
    for (slot, fd) in [(INPUT_SLOT, input), (OUTPUT_SLOT, output)] {
        assert_eq!(push(&mut burst, slot, fd, POOL_BYTES as u64), ErrorStatus::None);
    }
    (service, burst)
}

fn run(burst: &mut RawBurst) -> ErrorStatus {
    burst.run(&request(1, true), 1).status
}

#[test]
fn a_pool_that_is_cut_off_or_grown_under_the_service_is_an_error_and_no_signal() {
    let bytes = POOL_BYTES as u64;
    for (what, fd, can_shrink) in [
        ("a memfd", memfd(SEALABLE, bytes), false),
        ("a memfd with its seals sealed", memfd(UNSEALABLE, bytes), true),
        ("a file", file(bytes), true),
    ] {
        let output = Memory::create("output", POOL_BYTES).unwrap();
        let (_service, mut burst) = burst_on(fd.as_fd(), output.as_fd());
        assert_eq!(run(&mut burst), ErrorStatus::None, "{what}");
        ftruncate(&fd, 1 << 20).unwrap();
        assert_eq!(run(&mut burst), ErrorStatus::None, "{what}, grown");
        for left in [0, 8] {
            let cut = ftruncate(&fd, left);
            assert_eq!(cut, if can_shrink { Ok(()) } else { Err(Errno::PERM) }, "{what}");
            let want = if can_shrink { ErrorStatus::GeneralFailure } else { ErrorStatus::None };
            assert_eq!(run(&mut burst), want, "{what}, {left} bytes left");
        }
        ftruncate(&fd, bytes).ok();
        assert_eq!(run(&mut burst), ErrorStatus::None, "{what}, as it was");
    }
}

#[test]
fn only_the_bytes_that_were_said_are_reached_however_long_the_object_is() {
    let output = Memory::create("output", POOL_BYTES).unwrap();
    let (_service, mut burst) = start();
    let long = memfd(SEALABLE, 1 << 20);
    // The request reads 16 bytes.
    for (slot, length) in [(INPUT_SLOT, 15), (INPUT_SLOT + 1, 16)] {
        assert_eq!(push(&mut burst, slot, long.as_fd(), length), ErrorStatus::None);
    }
    assert_eq!(push(&mut burst, OUTPUT_SLOT, output.as_fd(), 4096), ErrorStatus::None);
    assert_eq!(run(&mut burst), ErrorStatus::InvalidArgument);
    let free = Call::FreeMemory { burst: burst.number, slot: INPUT_SLOT };
    assert_eq!(burst.client.call(free, &[]), Ok(Answer::Done));
    assert_eq!(push(&mut burst, INPUT_SLOT, long.as_fd(), 16), ErrorStatus::None);
    assert_eq!(run(&mut burst), ErrorStatus::None);
}

#[test]
fn a_file_that_is_replaced_is_still_the_one_that_was_handed_over() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("pool"), folder.path().join("other"));
    File::create(&path).unwrap().write_all(&[7; POOL_BYTES]).unwrap();
    File::create(&other).unwrap();
    let mut fd = OwnedFd::from(File::options().read(true).write(true).open(&path).unwrap());
    let output = Memory::create("output", POOL_BYTES).unwrap();
    let (_service, mut burst) = burst_on(fd.as_fd(), output.as_fd());
    // Another file of this name, and another object behind this number.
    std::fs::rename(&other, &path).unwrap();
    rustix::io::dup2(File::open(&path).unwrap(), &mut fd).unwrap();
    assert_eq!(run(&mut burst), ErrorStatus::None);
    let mut written = [0; 16];
    rustix::io::pread(&output, &mut written, 0).unwrap();
    assert_eq!(written, [8; 16]);
}

/// Descriptors that are no memory for any call.
fn no_memory() -> Vec<(&'static str, OwnedFd)> {
    let open = |path: &str, flags: OFlags| {
        rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()).unwrap()
    };
    let (read, write) = rustix::pipe::pipe().unwrap();
    let (socket, _) = burst_wire::socket::pair().unwrap();
    let event = rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).unwrap();
    let program = std::env::current_exe().unwrap();
    vec![
        ("a pipe to read", read),
        ("a pipe to write", write),
        ("a socket", socket),
        ("an eventfd", event),
        ("a directory", open("/", OFlags::RDONLY)),
        ("a device", open("/dev/zero", OFlags::RDWR)),
        ("a path", open(program.to_str().unwrap(), OFlags::PATH)),
        ("an empty memfd", memfd(SEALABLE, 0)),
        ("an empty file", file(0)),
    ]
}

#[test]
fn what_is_no_memory_is_refused_as_a_pool_and_the_slot_stays_free() {
    let (_service, mut burst) = start();
    let mut all = no_memory();
    let folder = tempfile::tempdir().unwrap();
    let write_only = File::create(folder.path().join("pool")).unwrap();
    write_only.set_len(POOL_BYTES as u64).unwrap();
    all.push(("a file to write", write_only.into()));
    all.push(("a memfd shorter than said", memfd(SEALABLE, POOL_BYTES as u64 - 1)));
    all.push(("a file shorter than said", file(POOL_BYTES as u64 - 1)));
    for (what, fd) in &all {
        let status = push(&mut burst, INPUT_SLOT, fd.as_fd(), POOL_BYTES as u64);
        assert_eq!(status, ErrorStatus::InvalidArgument, "{what}");
    }
    let memory = memfd(SEALABLE, POOL_BYTES as u64);
    for slot in [INPUT_SLOT, OUTPUT_SLOT] {
        let status = push(&mut burst, slot, memory.as_fd(), POOL_BYTES as u64);
        assert_eq!(status, ErrorStatus::None);
    }
    assert_eq!(run(&mut burst), ErrorStatus::None);
}

#[test]
fn seals_that_a_client_adds_later_take_nothing_from_the_service() {
    let (input, output) = (memfd(SEALABLE, 4096), memfd(SEALABLE, 4096));
    let (_service, mut burst) = burst_on(input.as_fd(), output.as_fd());
    // The service has both mapped for writing: the kernel does not take that away.
    assert_eq!(fcntl_add_seals(&output, SealFlags::WRITE), Err(Errno::BUSY));
    fcntl_add_seals(&output, SealFlags::FUTURE_WRITE | SealFlags::SEAL).unwrap();
    assert_eq!(run(&mut burst), ErrorStatus::None);
    // Handed over like that, it is for reading alone.
    let free = Call::FreeMemory { burst: burst.number, slot: OUTPUT_SLOT };
    assert_eq!(burst.client.call(free, &[]), Ok(Answer::Done));
    assert_eq!(push(&mut burst, OUTPUT_SLOT, output.as_fd(), 4096), ErrorStatus::None);
    assert_eq!(run(&mut burst), ErrorStatus::GeneralFailure);
}

/// Both queues of a burst, as their maker describes them.
fn queues() -> [Descriptor; 2] {
    let config = QueueConfig::new(DATUM_BYTES, 64);
    [
        Producer::create(&config).unwrap().descriptor().unwrap(),
        Consumer::create(&config).unwrap().descriptor().unwrap(),
    ]
}

/// The same queue in another memory.
fn moved(queue: &Descriptor, to: OwnedFd) -> Descriptor {
    let Descriptor { grantors, quantum, flags, .. } = queue;
    Descriptor { grantors: grantors.clone(), fds: vec![to], quantum: *quantum, flags: *flags }
}

fn bytes_of(queue: &Descriptor) -> u64 {
    Memory::from_fd(queue.fds[0].try_clone().unwrap()).unwrap().len()
}

#[test]
fn what_is_no_memory_is_refused_as_a_queue() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut client = RawClient::greet(socket);
    let model = client.prepare(&model());
    let good = queues();
    let bytes = bytes_of(&good[0]);
    let mut all = no_memory();
    all.push(("a file", file(bytes)));
    all.push(("a memfd that cannot be sealed", memfd(UNSEALABLE, bytes)));
    all.push(("a memfd of half the size", memfd(SEALABLE, bytes / 2)));
    all.push(("a memfd of one byte", memfd(SEALABLE, 1)));
    for (what, fd) in all {
        for index in 0..2 {
            let mut both = queues();
            both[index] = moved(&good[index], fd.try_clone().unwrap());
            let (call, fds) = configure_call(model, &both[0], &both[1]);
            let refusal = client.call(call, &fds).expect_err(what);
            assert_eq!(refusal.status(), ErrorStatus::GeneralFailure, "{what}, queue {index}");
        }
    }
    let (call, fds) = configure_call(model, &good[0], &good[1]);
    assert!(matches!(client.call(call, &fds), Ok(Answer::Burst { .. })));
}

#[test]
fn a_queue_cannot_be_cut_off_once_the_service_has_it_and_growing_changes_nothing() {
    let (_service, socket) = Private::start(ServiceOptions::default());
    let mut client = RawClient::greet(socket);
    let model = client.prepare(&model());
    let made = queues();
    // The client's own memory, without any seal, with the queues as they begin.
    let moved: Vec<(OwnedFd, Descriptor)> = made
        .iter()
        .map(|queue| {
            let from = Memory::from_fd(queue.fds[0].try_clone().unwrap()).unwrap();
            let mut content = vec![0; usize::try_from(from.len()).unwrap()];
            let mapping = Mapping::map(&from).unwrap();
            mapping.region(0, content.len()).unwrap().copy_out(0, &mut content).unwrap();
            let fd = memfd(SEALABLE, from.len());
            rustix::io::pwrite(&fd, &content, 0).unwrap();
            (fd.try_clone().unwrap(), moved(queue, fd))
        })
        .collect();
    let (call, fds) = configure_call(model, &moved[0].1, &moved[1].1);
    let Ok(Answer::Burst { burst: number }) = client.call(call, &fds) else { panic!("refused") };
    for (fd, _) in &moved {
        assert_eq!(ftruncate(fd, 0), Err(Errno::PERM), "the service has sealed it");
        ftruncate(fd, 1 << 20).unwrap();
    }
    let [(_, requests), (_, results)]: [_; 2] = moved.try_into().unwrap();
    let memory = || Memory::create("pool", POOL_BYTES).unwrap();
    let mut burst = RawBurst {
        client,
        number,
        requests: Producer::attach(requests).unwrap(),
        results: Consumer::attach(results).unwrap(),
        input: memory(),
        output: memory(),
    };
    let memories = [(INPUT_SLOT, burst.input.try_clone()), (OUTPUT_SLOT, burst.output.try_clone())];
    for (slot, memory) in memories {
        let status = push(&mut burst, slot, memory.unwrap().as_fd(), POOL_BYTES as u64);
        assert_eq!(status, ErrorStatus::None);
    }
    assert_eq!(run(&mut burst), ErrorStatus::None);
}
