//! A client that launches, by messages alone.

use std::collections::{HashMap, HashSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use burst_hal::{DataLocation, ErrorStatus, ExecutionInfo, Fence, RequestArgument, TimePoint};
use burst_launch::{CheckedFence, FenceState};
use burst_server::ServiceOptions;
use burst_shm::{Mapping, Memory};
use burst_wire::control::{
    Answer, Call, ClientMessage, Executed, FencedRequest, List, PoolSource, Refusal, ServerMessage,
    SynchronousRequest,
};
use std::sync::Arc;

use super::device::{Controls, Gated};
use crate::burst_support::raw::{RawClient, connect};
use crate::burst_support::{model, wait_until};
use crate::service_support::Shared;

/// A service of a gated device, and the way to its executions.
pub(super) fn service(
    device: Gated,
    set: impl FnOnce(&mut ServiceOptions),
) -> (Shared, Arc<Controls>) {
    let controls = Arc::clone(&device.controls);
    let mut options = ServiceOptions::default();
    set(&mut options);
    (Shared::start(Arc::new(device), options), controls)
}

/// What all clients have in use of something.
pub(super) fn in_use(service: &Shared, limit: &str) -> u64 {
    service.metric(&format!("burst_in_use{{limit=\"{limit}\"}}"))
}

/// What is charged to all users together.
pub(super) fn used(service: &Shared, resource: &str) -> u64 {
    service.metric(&format!("burst_service_used{{resource=\"{resource}\"}}"))
}

/// Waits until nothing is left of any client.
#[track_caller]
pub(super) fn wait_for_nothing(service: &Shared) {
    let counted = ["clients", "pending_executions", "memories"];
    let paid = ["threads", "descriptors", "memory_bytes", "address_space_bytes"];
    wait_until("nothing in use", || {
        counted.iter().all(|limit| in_use(service, limit) == 0)
            && paid.iter().all(|resource| used(service, resource) == 0)
    });
}

/// The memory of a request: an input of 16 bytes, all of this value, and an output of as many.
pub(super) fn memory(byte: u8) -> Memory {
    let memory = Memory::create("request", 32).unwrap();
    let mapping = Mapping::map(&memory).unwrap();
    mapping.region(0, 32).unwrap().copy_in(0, &[byte; 16]).unwrap();
    memory
}

/// The first byte of the output.
pub(super) fn output(memory: &Memory) -> u8 {
    let mut byte = [0];
    Mapping::map(memory).unwrap().region(0, 32).unwrap().copy_out(16, &mut byte).unwrap();
    byte[0]
}

/// How far a fence is.
pub(super) fn state(fence: &OwnedFd) -> FenceState {
    match CheckedFence::check_all(vec![Fence::from(fence.try_clone().unwrap())]) {
        Ok(checked) => checked[0].state(),
        Err(_) => FenceState::Failed,
    }
}

#[track_caller]
pub(super) fn wait_for(fence: &OwnedFd, want: FenceState) {
    wait_until("an end", || state(fence) != FenceState::Pending);
    assert_eq!(state(fence), want);
}

/// The first of the numbers that the service leaves to its clients.
pub(super) const OWN: u32 = 1 << 31;

/// A fenced execution that was started.
pub(super) struct Started {
    pub(super) number: u32,
    pub(super) fence: OwnedFd,
}

/// A client with a prepared model.
pub(super) struct Launching {
    pub(super) raw: RawClient,
    pub(super) model: u32,
    next: u64,
    /// Launched, and not told of.
    launched: HashSet<u32>,
    told: HashMap<u32, Executed>,
}

impl Launching {
    pub(super) fn connect(service: &Shared) -> Self {
        Self::over(connect(&service.path))
    }

    /// The client of a service at the other end of a socket.
    pub(super) fn over(socket: OwnedFd) -> Self {
        let mut raw = RawClient::greet(socket);
        let model = raw.prepare(&model());
        let (launched, told) = (HashSet::new(), HashMap::new());
        Launching { raw, model, next: 1000, launched, told }
    }

    pub(super) fn call(&mut self, call: Call, fds: &[BorrowedFd<'_>]) -> Result<Answer, Refusal> {
        self.call_for(call, fds).0
    }

    /// Makes a call, and gives what came with its reply; executions may end meanwhile.
    fn call_for(
        &mut self,
        call: Call,
        fds: &[BorrowedFd<'_>],
    ) -> (Result<Answer, Refusal>, Vec<OwnedFd>) {
        let id = self.next;
        self.next += 1;
        self.raw.send(&ClientMessage::Call { id, call }, fds);
        loop {
            match self.raw.receive() {
                (ServerMessage::Reply(reply), descriptors) => {
                    assert_eq!(reply.id, id);
                    return (reply.outcome, descriptors);
                }
                (message, _) => self.note(message),
            }
        }
    }

    /// Each end is told once, and after the reply to the launch.
    fn note(&mut self, message: ServerMessage) {
        let ServerMessage::Executed { execution, executed } = message else {
            panic!("neither a reply nor an end: {message:?}")
        };
        assert!(self.launched.remove(&execution), "{execution} was not launched, or told already");
        self.told.insert(execution, executed);
    }

    pub(super) fn request(&self) -> SynchronousRequest {
        let argument = |offset| RequestArgument {
            location: DataLocation { pool_index: 0, offset, length: 16 },
            ..RequestArgument::default()
        };
        SynchronousRequest {
            model: self.model,
            inputs: List(vec![(&argument(0)).into()]),
            outputs: List(vec![(&argument(16)).into()]),
            pools: List(vec![PoolSource::Descriptor { length: 32 }]),
            measure_timing: false,
            deadline: None,
            loop_timeout: None,
        }
    }

    /// Launches an asynchronous execution.
    pub(super) fn launch(&mut self, execution: u32, memory: &Memory) -> Result<(), Refusal> {
        self.launch_by(execution, memory, None)
    }

    pub(super) fn launch_by(
        &mut self,
        execution: u32,
        memory: &Memory,
        deadline: Option<TimePoint>,
    ) -> Result<(), Refusal> {
        let deadline = deadline.map(|at| at.nanos);
        let request = SynchronousRequest { deadline, ..self.request() };
        let call = Call::ExecuteAsynchronously { execution, request };
        match self.call(call, &[memory.as_fd()]) {
            Ok(Answer::Done) => {
                assert!(self.launched.insert(execution));
                Ok(())
            }
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal),
        }
    }

    /// Waits for the end of an asynchronous execution; gives its status.
    #[track_caller]
    pub(super) fn executed(&mut self, execution: u32) -> ErrorStatus {
        while !self.told.contains_key(&execution) {
            let (message, _) = self.raw.receive();
            self.note(message);
        }
        self.told.remove(&execution).unwrap().to_result().status
    }

    /// The number of the next execution whose end is told.
    pub(super) fn next_executed(&mut self) -> u32 {
        while self.told.is_empty() {
            let (message, _) = self.raw.receive();
            self.note(message);
        }
        let execution = *self.told.keys().next().unwrap();
        self.told.remove(&execution);
        execution
    }

    /// Launches a fenced execution.
    pub(super) fn fenced(
        &mut self,
        memory: &Memory,
        fences: &[BorrowedFd<'_>],
    ) -> Result<Started, Refusal> {
        self.fenced_with(memory, fences, |_| ())
    }

    pub(super) fn fenced_with(
        &mut self,
        memory: &Memory,
        fences: &[BorrowedFd<'_>],
        set: impl FnOnce(&mut FencedRequest),
    ) -> Result<Started, Refusal> {
        let count = u32::try_from(fences.len()).unwrap();
        let mut fenced = FencedRequest { request: self.request(), fences: count, duration: None };
        set(&mut fenced);
        let mut fds = vec![memory.as_fd()];
        fds.extend(fences);
        match self.call_for(Call::ExecuteFenced(fenced), &fds) {
            (Ok(Answer::Fenced { execution }), mut descriptors) => {
                let fence = descriptors.pop().expect("a fence");
                assert!(descriptors.is_empty());
                Ok(Started { number: execution, fence })
            }
            (Ok(other), _) => panic!("{other:?}"),
            (Err(refusal), descriptors) => {
                assert!(descriptors.is_empty());
                Err(refusal)
            }
        }
    }

    pub(super) fn info(&mut self, execution: u32) -> Result<ExecutionInfo, ErrorStatus> {
        match self.call(Call::ExecutionInfo { execution }, &[]) {
            Ok(Answer::ExecutionInfo(info)) => Ok((&info).into()),
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => Err(refusal.status()),
        }
    }

    pub(super) fn cancel(&mut self, execution: u32) {
        assert_eq!(self.call(Call::CancelExecution { execution }, &[]), Ok(Answer::Done));
    }

    pub(super) fn release(&mut self, execution: u32) -> Result<(), ErrorStatus> {
        let released = self.call(Call::ReleaseExecution { execution }, &[]);
        released.map(drop).map_err(|refusal| refusal.status())
    }
}

/// A fence of the test's own: the end that signals it, and the one that is waited for.
pub(super) fn pipe() -> (OwnedFd, OwnedFd) {
    // Not for processes that another test starts meanwhile: with them it would never be hung up.
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    (write, read)
}

/// Signals it.
pub(super) fn signal(write: &OwnedFd) {
    rustix::io::write(write, &[1]).unwrap();
}
