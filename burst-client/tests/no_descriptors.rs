//! A client that has no descriptor left when a reply brings one. A process of its own: it lowers its limit.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::fs::File;
use std::os::fd::OwnedFd;

use burst_client::{BurstOptions, ClientError};
use burst_hal::ErrorStatus;
use burst_wire::WireError;
use burst_wire::control::{Answer, Call};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[path = "scripted/fake.rs"]
#[allow(dead_code, reason = "the other tests of a service like this need more of it")]
mod fake;

use fake::{Said, Scripted};

/// Does this while the process may open nothing more.
fn without_descriptors<T>(work: impl FnOnce() -> T) -> T {
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.unwrap().file_name().to_str().unwrap().parse::<u64>().unwrap()
    };
    let highest = std::fs::read_dir("/proc/self/fd").unwrap().map(number).max().unwrap();
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(highest), ..limit }).unwrap();
    let holes: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let done = work();
    drop(holes);
    setrlimit(Resource::Nofile, limit).unwrap();
    done
}

#[test]
fn a_reply_whose_descriptors_find_no_room_fails_its_call_and_nothing_else() {
    let made: OwnedFd = burst_shm::Memory::create("made", 4096).unwrap().into();
    let mut twice = vec![made.try_clone().unwrap(), made];
    let scripted = Scripted::start(move |call| match call {
        Call::AllocateMemory { .. } => Some(Said::With(Answer::Done, vec![twice.pop().unwrap()])),
        _ => None,
    });
    let prepared = scripted.prepared();
    let burst = prepared.configure_burst(&BurstOptions::default()).unwrap();
    let error = without_descriptors(|| prepared.allocate_outputs(4096)).unwrap_err();
    assert!(matches!(error, ClientError::Wire(WireError::DescriptorsLost)), "{error}");
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedTransient);
    scripted.is_made_and_forgotten();
    assert!(scripted.client.is_alive() && burst.is_alive());
    assert_eq!(prepared.allocate_outputs(4096).unwrap().len(), 4096);
}
