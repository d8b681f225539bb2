//! Fenced executions of the device, each with a thread that waits.

use std::io::{PipeWriter, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::{Arc, Mutex, OnceLock};

use burst_hal::{
    ErrorStatus, ExecutionInfo, ExecutionResult, Failure, Fence, FenceState, FencedExecution,
    FencedInfo, Timing,
};

use super::Fault;

type Run = Box<dyn FnOnce() -> ExecutionResult + Send>;

struct Info {
    fault: Fault,
    ended: OnceLock<ExecutionInfo>,
    /// What a device that signals too early has still to do.
    late: Mutex<Option<Run>>,
}

/// Runs once these fences are done.
pub(super) fn start(
    fault: Fault,
    wait_for: Vec<Fence>,
    measured: bool,
    run: impl FnOnce() -> ExecutionResult + Send + 'static,
) -> Result<FencedExecution, Failure> {
    let is_bad = |fence: &Fence| !is_pipe(fence) || fence.state() == FenceState::Failed;
    if fault != Fault::TakesAnyFence && wait_for.iter().any(is_bad) {
        return Err(ErrorStatus::InvalidArgument.into());
    }
    let (read, write) = std::io::pipe().unwrap();
    let info = Arc::new(Info { fault, ended: OnceLock::new(), late: Mutex::default() });
    let own = Arc::clone(&info);
    let wait = move || {
        wait_for.iter().for_each(|fence| assert_ne!(fence.wait(None), FenceState::Pending));
    };
    let end = move || own.end(write, measured, Box::new(run));
    if fault == Fault::IgnoresFences {
        end();
    } else {
        std::thread::spawn(move || {
            wait();
            end();
        });
    }
    Ok(FencedExecution { fence: Some(OwnedFd::from(read).into()), info })
}

fn is_pipe(fence: &Fence) -> bool {
    let file = std::fs::File::from(fence.as_fd().try_clone_to_owned().unwrap());
    file.metadata().unwrap().file_type().is_fifo()
}

impl Info {
    fn end(&self, mut fence: PipeWriter, measured: bool, run: Run) {
        let result = match self.fault {
            Fault::SignalsBeforeWriting => {
                *self.late.lock().unwrap() = Some(run);
                ExecutionResult::of(ErrorStatus::None)
            }
            Fault::FailsFenced | Fault::SignalsFailures => {
                ExecutionResult::of(ErrorStatus::GeneralFailure)
            }
            _ => run(),
        };
        let timing = match measured || self.fault == Fault::TimingUnasked {
            true => result.timing,
            false => Timing::UNAVAILABLE,
        };
        let status = result.status;
        let info = ExecutionInfo { status, timing_launched: timing, timing_fenced: timing };
        self.ended.set(info).unwrap();
        if status == ErrorStatus::None || self.fault == Fault::SignalsFailures {
            // Nobody may be there any more who reads it.
            let _ = fence.write_all(&[1]);
        }
    }
}

impl FencedInfo for Info {
    fn execution_info(&self) -> Result<ExecutionInfo, Failure> {
        let too_early = ExecutionInfo {
            status: ErrorStatus::None,
            timing_launched: Timing::UNAVAILABLE,
            timing_fenced: Timing::UNAVAILABLE,
        };
        match self.ended.get() {
            None if self.fault == Fault::InfoBeforeTheEnd => Ok(too_early),
            None => Err(Failure::general("it has not ended")),
            Some(info) => Ok(*info),
        }
    }
}

impl Drop for Info {
    fn drop(&mut self) {
        if let Some(run) = self.late.get_mut().unwrap().take() {
            run();
        }
    }
}
