//! Completion as a file descriptor: readable exactly while there is something to take.
#![allow(clippy::unwrap_used, reason = "tests stop at what they did not expect")]

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use burst_client::{Burst, BurstOptions, ClientError, Deadline, ShmMemory};
use burst_hal::{ErrorStatus, ExecutionOptions, Pool, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::burst_support::{
    LONG, Private, long, model, request_in, threads_named, wait_for_no_thread_named, wait_until,
};

burst_testing::tests![
    the_descriptor_is_readable_while_a_result_is_there_and_costs_a_thread_only_when_asked_for(),
    the_end_of_a_burst_is_readable_too(),
];

const PLAIN: ExecutionOptions =
    ExecutionOptions { measure_timing: false, deadline: None, loop_timeout: None };

fn setup(depth: u16) -> (Private, Burst, Pool, Request) {
    let (service, client) = Private::connect();
    let device = client.device("fake").unwrap();
    let prepared = device.prepare(&model(), &Default::default()).unwrap();
    let burst = prepared.configure_burst(&BurstOptions::default().with_depth(depth)).unwrap();
    let memory: Pool = Arc::new(ShmMemory::create(32).unwrap());
    let request = request_in(&memory);
    (service, burst, memory, request)
}

fn readable(fd: BorrowedFd<'_>, patience: Option<Timespec>) -> bool {
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    poll(&mut fds, patience.as_ref()).unwrap();
    fds[0].revents().contains(PollFlags::IN)
}

fn is_readable_now(burst: &mut Burst) -> bool {
    readable(burst.completion_fd().unwrap(), Some(Timespec { tv_sec: 0, tv_nsec: 0 }))
}

fn wait_readable(burst: &mut Burst) {
    let seconds = i64::try_from(LONG.as_secs()).unwrap();
    let patience = Timespec { tv_sec: seconds, tv_nsec: 0 };
    assert!(readable(burst.completion_fd().unwrap(), Some(patience)), "never readable");
}

fn the_descriptor_is_readable_while_a_result_is_there_and_costs_a_thread_only_when_asked_for() {
    for depth in [1, 4] {
        let (service, mut burst, memory, request) = setup(depth);
        burst.execute(&request, &PLAIN, long()).unwrap();
        assert_eq!(threads_named("burst-answers"), 0, "nobody asked");
        assert!(!is_readable_now(&mut burst));
        // A thread gives itself its name, a moment after it was started.
        wait_until("its thread", || threads_named("burst-answers") == 1);
        for round in 0..50_u8 {
            memory.write(0, &[round; 16]).unwrap();
            service.controls.close_gate();
            let tickets: Vec<_> =
                (0..depth).map(|_| burst.submit(&request, &PLAIN, long()).unwrap()).collect();
            assert!(!is_readable_now(&mut burst), "nothing was executed yet");
            service.controls.open_gate();
            for ticket in &tickets {
                let status = loop {
                    if let Some(result) = burst.try_wait(ticket).unwrap() {
                        break result.status;
                    }
                    wait_readable(&mut burst);
                };
                assert_eq!(status, ErrorStatus::None);
            }
            assert!(!is_readable_now(&mut burst), "all were taken");
            let mut output = [0; 16];
            memory.read(16, &mut output).unwrap();
            assert_eq!(output, [round + 1; 16]);
            // Waiting the ordinary way still works, with a deadline too.
            burst.execute(&request, &PLAIN, long()).unwrap();
        }
        service.controls.close_gate();
        let soon = Deadline::after(std::time::Duration::from_millis(2));
        let missed = burst.execute(&request, &PLAIN, soon).map(|_| ());
        assert!(matches!(missed, Err(ClientError::Timeout)));
        service.controls.open_gate();
        drop(burst);
        wait_for_no_thread_named("burst-answers");
        service.join();
    }
}

fn the_end_of_a_burst_is_readable_too() {
    let (service, mut burst, _memory, request) = setup(2);
    burst.completion_fd().unwrap();
    service.controls.panic.store(true, std::sync::atomic::Ordering::SeqCst);
    let first = burst.submit(&request, &PLAIN, long()).unwrap();
    let second = burst.submit(&request, &PLAIN, long()).unwrap();
    let failed = burst.wait(&first, long()).unwrap().status;
    assert_eq!(failed, ErrorStatus::GeneralFailure);
    wait_readable(&mut burst);
    let error = loop {
        match burst.try_wait(&second) {
            Ok(None) => wait_readable(&mut burst),
            Ok(Some(result)) => panic!("{result:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, ClientError::BurstEnded { .. }), "{error}");
    assert!(is_readable_now(&mut burst), "and stays so");
}
