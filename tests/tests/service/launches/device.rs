//! A device whose executions go on when the test lets them, each by the first byte of its input.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use burst_hal::{
    Caller, Device, DeviceType, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model,
    PrepareOptions, PrepareResult, PreparedModel, Request,
};

use crate::burst_support::{LONG, wait_until};

/// An input of this byte is executed at once.
pub(super) const QUICK: u8 = 0;
/// An input of this byte makes the driver panic.
pub(super) const PANIC: u8 = 255;

/// Adds one to each byte of the input.
#[derive(Clone, Default)]
pub(super) struct Gated {
    pub(super) controls: Arc<Controls>,
    /// Whether it computes on this machine's cores, and so with run tokens.
    pub(super) on_cores: bool,
    /// Whether it keeps its token to the end of the execution.
    pub(super) is_stubborn: bool,
}

#[derive(Default)]
pub(super) struct Controls(Mutex<State>);

#[derive(Default)]
struct State {
    /// In the order in which they began.
    begun: Vec<u8>,
    released: BTreeSet<u8>,
    all_released: bool,
    /// Executions that gave up.
    cancelled: Vec<u8>,
}

impl Controls {
    /// What has begun, in order.
    pub(super) fn begun(&self) -> Vec<u8> {
        self.0.lock().unwrap().begun.clone()
    }

    #[track_caller]
    pub(super) fn wait_begun(&self, byte: u8) {
        wait_until(&format!("the beginning of {byte}"), || self.begun().contains(&byte));
    }

    #[track_caller]
    pub(super) fn wait_cancelled(&self, byte: u8) {
        let is_cancelled = || self.0.lock().unwrap().cancelled.contains(&byte);
        wait_until(&format!("the driver giving {byte} up"), is_cancelled);
    }

    pub(super) fn release(&self, byte: u8) {
        self.0.lock().unwrap().released.insert(byte);
    }

    pub(super) fn release_all(&self) {
        self.0.lock().unwrap().all_released = true;
    }

    fn may_go_on(&self, byte: u8) -> bool {
        let state = self.0.lock().unwrap();
        state.all_released || state.released.contains(&byte)
    }
}

impl Device for Gated {
    fn name(&self) -> &str {
        "gated"
    }

    fn version_string(&self) -> &str {
        "gated-1"
    }

    fn device_type(&self) -> DeviceType {
        if self.on_cores { DeviceType::Cpu } else { DeviceType::Accelerator }
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        Ok(vec![true; model.main.operations.len()])
    }

    fn prepare_model(&self, _: &Model, _: &PrepareOptions) -> PrepareResult {
        Ok(Arc::new(self.clone()))
    }
}

impl PreparedModel for Gated {
    fn execute_synchronously(&self, _: &Request, _: &ExecutionOptions) -> ExecutionResult {
        unreachable!("the service names its client")
    }

    fn execute_for(
        &self,
        request: &Request,
        _: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        let mut bytes = Vec::new();
        request.read_input(0, &mut bytes).unwrap();
        let byte = bytes[0];
        assert!(byte != PANIC, "a panic that is wanted here");
        self.controls.0.lock().unwrap().begun.push(byte);
        let until = Instant::now() + LONG;
        while byte != QUICK && !self.controls.may_go_on(byte) {
            if caller.is_cancelled() {
                self.controls.0.lock().unwrap().cancelled.push(byte);
                return ExecutionResult::of(ErrorStatus::GeneralFailure);
            }
            assert!(Instant::now() < until, "neither released nor cancelled");
            if !self.is_stubborn {
                caller.give_way();
            }
            std::thread::yield_now();
        }
        bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(1));
        request.write_output(0, &bytes).unwrap();
        ExecutionResult::of(ErrorStatus::None)
    }
}
