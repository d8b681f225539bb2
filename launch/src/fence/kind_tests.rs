use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Mutex;

use burst_shm::{ShmError, SyncFileStatus};
use rustix::event::epoll;
use rustix::fs::{MemfdFlags, Mode, memfd_create, open};
use rustix::net::{AddressFamily, SocketType, socketpair};

use super::*;

fn kind(fd: impl Into<OwnedFd>) -> Result<FenceKind, LaunchError> {
    let checked = CheckedFence::check_all(vec![Fence::from(fd.into())])?;
    Ok(checked[0].kind())
}

#[test]
fn pipes_and_eventfds_are_fences() {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
    assert_eq!(kind(read), Ok(FenceKind::Pipe));
    let found = "a pipe that is open for writing";
    assert_eq!(kind(write), Err(LaunchError::NotAFence { index: 0, found }));
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    assert_eq!(kind(event), Ok(FenceKind::EventFd));
}

#[test]
fn everything_else_is_refused_and_said_by_name() {
    let path = |path: &str, flags| open(path, flags, Mode::empty()).unwrap();
    let folder = std::env::temp_dir();
    let folder = folder.to_str().unwrap();
    let (socket, _other) = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    for (fd, want) in [
        (memfd_create("file", MemfdFlags::CLOEXEC).unwrap(), "a file"),
        (path("/proc/self/status", OFlags::RDONLY), "a file"),
        (path(folder, OFlags::RDONLY), "a folder"),
        (path(folder, OFlags::PATH), "a path"),
        (path("/dev/null", OFlags::RDONLY), "a device"),
        (socket, "a socket"),
        (poll, "an object of the kernel that is none"),
    ] {
        // Behind one that is fine: the refusal says which it is.
        let fences = [event.try_clone().unwrap(), fd].map(Fence::from).to_vec();
        let refused = CheckedFence::check_all(fences).unwrap_err();
        assert_eq!(refused, LaunchError::NotAFence { index: 1, found: want });
        assert_eq!(refused.status(), burst_hal::ErrorStatus::InvalidArgument);
        assert!(refused.to_string().contains(want), "{refused}");
    }
}

#[test]
fn a_pipe_with_a_name_is_none() {
    let folder = std::env::temp_dir().join(format!("burst-fence-{}", std::process::id()));
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &folder, FileType::Fifo, mode, 0).unwrap();
    let read = open(&folder, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
    std::fs::remove_file(&folder).unwrap();
    let found = "a pipe with a name";
    assert_eq!(kind(read), Err(LaunchError::NotAFence { index: 0, found }));
}

#[test]
fn looking_at_a_fence_consumes_nothing() {
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let fence = Fence::from(event.try_clone().unwrap());
    let [seen] = &CheckedFence::check_all(vec![fence]).unwrap()[..] else { panic!() };
    assert_eq!(seen.state(), FenceState::Pending);
    rustix::io::write(&event, &3_u64.to_ne_bytes()).unwrap();
    assert_eq!([seen.state(), seen.state()], [FenceState::Done; 2]);
    let mut count = [0; 8];
    rustix::io::read(&event, &mut count).unwrap();
    assert_eq!(u64::from_ne_bytes(count), 3, "also not by finding out its kind");
}

/// What stands in for the kernel's answer about a `sync_file`.
static ANSWERS: Mutex<Option<HashMap<RawFd, SyncFileStatus>>> = Mutex::new(None);

fn stand_in(fd: BorrowedFd<'_>) -> Result<SyncFileStatus, ShmError> {
    let answers = ANSWERS.lock().unwrap();
    let answer = answers.as_ref().and_then(|answers| answers.get(&fd.as_raw_fd()));
    answer.copied().ok_or(ShmError::System { call: "ioctl", errno: Errno::NOTTY })
}

fn answer(fd: RawFd, status: SyncFileStatus) {
    ANSWERS.lock().unwrap().get_or_insert_default().insert(fd, status);
}

#[test]
fn a_sync_file_is_asked_for_its_status() {
    let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
    let fence = Fence::from(event.try_clone().unwrap());
    let number = fence.as_fd().as_raw_fd();
    answer(number, SyncFileStatus::Active);
    let [seen] = &CheckedFence::check_with(vec![fence.clone()], stand_in).unwrap()[..] else {
        panic!()
    };
    assert_eq!((seen.kind(), seen.state()), (FenceKind::SyncFile, FenceState::Pending));
    rustix::io::write(&event, &1_u64.to_ne_bytes()).unwrap();
    answer(number, SyncFileStatus::Signaled);
    assert_eq!(seen.state(), FenceState::Done);
    answer(number, SyncFileStatus::Failed);
    assert_eq!(seen.state(), FenceState::Failed);
    let refused = CheckedFence::check_with(vec![fence], stand_in).unwrap_err();
    assert_eq!(refused, LaunchError::FailedFence { index: 0 });
}
