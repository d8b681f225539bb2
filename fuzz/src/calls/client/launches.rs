//! Executions that nobody waits for: told of later, or with fences.

use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_hal::ErrorStatus;
use burst_wire::control::{Answer, Call, FencedRequest, SynchronousRequest};

use super::{Client, Kind, Must, chosen, found};
use crate::Input;

impl Client {
    /// An execution that nobody waits for: told later, or with fences.
    pub(super) fn start(&mut self, input: &mut Input<'_>) {
        if self.started.len() + self.fenced.len() >= 16 {
            return;
        }
        let (request, must) = self.request(input);
        let pool = self.pool.as_fd().try_clone_to_owned().unwrap();
        let mut descriptors: Vec<OwnedFd> = Self::with_pool(&request, &self.pool)
            .iter()
            .map(|_| pool.try_clone().unwrap())
            .collect();
        let choice = input.u8();
        if choice > 3 {
            return self.start_asynchronously(request, must, &descriptors, choice);
        }
        let mut ends = Vec::new();
        for _ in 0..choice {
            let (read, write) = std::io::pipe().unwrap();
            // There is always a reader: writing where there is none ends a process that is not Rust's from its
            // beginning, as libFuzzer's is.
            ends.push((write, read.try_clone().unwrap()));
            descriptors.push(read.into());
        }
        let fds: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        let call = FencedRequest { request, fences: choice.into(), duration: None };
        let Some((outcome, fence)) = self.talk.call(Call::ExecuteFenced(call), &fds) else {
            self.is_connected = false;
            return;
        };
        match (must, outcome) {
            (Must::Succeed | Must::End, Ok(Answer::Fenced { execution })) => {
                assert!(self.fenced.iter().all(|(live, _)| *live != execution), "given twice");
                assert!(fence.len() <= 1, "a fence or none");
                self.fenced.push((execution, fence.into_iter().next()));
                self.unsignalled.extend(ends);
            }
            (Must::Fail, Err(refusal)) => {
                assert_eq!(refusal.status(), ErrorStatus::InvalidArgument, "{refusal:?}");
            }
            (Must::End, Err(_)) => {}
            (must, outcome) => panic!("a fenced execution must {must:?}: {outcome:?}"),
        }
    }

    fn start_asynchronously(
        &mut self,
        request: SynchronousRequest,
        must: Must,
        descriptors: &[OwnedFd],
        number: u8,
    ) {
        // Those of the client lie above those that the service gives.
        let execution = (1 << 31) + u32::from(number);
        let fds: Vec<BorrowedFd<'_>> = descriptors.iter().map(AsFd::as_fd).collect();
        // Its end is told behind the reply, and may be there with it.
        let was_started = self.started.contains(&execution);
        let call = Call::ExecuteAsynchronously { execution, request };
        let Some(outcome) = self.call(call, &fds) else { return };
        match outcome {
            Ok(_) => {
                assert_ne!(must, Must::Fail, "an execution of what is not there");
                self.started.push(execution);
            }
            Err(refusal) => {
                assert!(was_started || must != Must::Succeed, "{refusal:?}");
                let is_right = refusal.status() == ErrorStatus::InvalidArgument;
                assert!(is_right || must == Must::End, "{refusal:?}");
            }
        }
    }

    /// A fence becomes done, or fails.
    pub(super) fn signal(&mut self, input: &mut Input<'_>) {
        let (choice, is_done) = (usize::from(input.u8()), input.flag());
        if choice >= self.unsignalled.len() {
            return;
        }
        let (mut end, _reader) = self.unsignalled.swap_remove(choice);
        if is_done {
            // Where nobody waits for it any more, nobody reads it.
            let _ = end.write_all(&[1]);
        }
    }

    fn fenced(&self, choice: u8) -> Option<u32> {
        let numbers: Vec<u32> = self.fenced.iter().map(|(number, _)| *number).collect();
        chosen(&numbers, choice)
    }

    pub(super) fn info(&mut self, input: &mut Input<'_>) {
        let execution = self.fenced(input.u8());
        let call = Call::ExecutionInfo {
            execution: execution.unwrap_or_else(|| self.nothing(Kind::Execution)),
        };
        let Some(outcome) = self.call(call, &[]) else { return };
        // One that has not ended has no information yet.
        assert!(outcome.is_err() || execution.is_some(), "{outcome:?}");
    }

    pub(super) fn release_execution(&mut self, input: &mut Input<'_>) {
        let execution = self.fenced(input.u8());
        let call = Call::ReleaseExecution {
            execution: execution.unwrap_or_else(|| self.nothing(Kind::Execution)),
        };
        self.expect(call, &[], found(execution));
        self.fenced.retain(|(live, _)| Some(*live) != execution);
    }

    pub(super) fn cancel(&mut self, input: &mut Input<'_>) {
        let choice = input.u8();
        let execution = self.fenced(choice).or_else(|| chosen(&self.started, choice));
        let execution = execution.unwrap_or_else(|| self.nothing(Kind::Execution));
        self.expect(Call::CancelExecution { execution }, &[], Must::Succeed);
    }
}
