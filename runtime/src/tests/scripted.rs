//! Devices with the reference's kernels that do one thing wrong: in one call, of one step of a plan.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use burst_driver::CpuDevice;
use burst_hal::*;

use super::support::{capabilities_of, reference};
use crate::RuntimeDevice;

/// A call of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Query,
    Prepare,
    /// Whichever call executes, once it runs.
    Execute,
    OpenBurst,
    /// The call that starts an execution behind fences.
    LaunchFenced,
    Allocate,
}

/// What is wrong with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    Refuses(ErrorStatus),
    Panics,
    /// It answers for one operation too many; says one shape more than there are outputs.
    SaysMore,
    /// Another size than the model says.
    OtherSize,
    /// Another number of dimensions.
    OtherRank,
    /// Too little room, where there is enough.
    TooLittleRoom,
    /// Everything has room, and that is why it failed.
    NoReason,
    /// Times that nobody asked for.
    Times,
}

/// What goes wrong, and where. Steps have the numbers in which their models are prepared.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault {
    /// `None`: in all of them.
    pub(super) step: Option<usize>,
    pub(super) phase: Phase,
    pub(super) wrong: Wrong,
}

/// What all devices of a test share.
#[derive(Default)]
pub(super) struct Script {
    fault: Mutex<Option<Fault>>,
    prepared: AtomicUsize,
    /// Faults that came about.
    struck: AtomicUsize,
    seen: Mutex<Vec<Seen>>,
}

/// What a device was asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Seen {
    Prepare { step: usize, options: PrepareOptions },
    Execute { step: usize, options: ExecutionOptions },
}

impl Script {
    /// From now on this goes wrong; steps are counted anew.
    pub(super) fn set(&self, fault: Option<Fault>) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = fault;
        self.prepared.store(0, Ordering::SeqCst);
        self.struck.store(0, Ordering::SeqCst);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// The same, of steps that are prepared already.
    pub(super) fn strike(&self, fault: Fault) {
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
        self.struck.store(0, Ordering::SeqCst);
    }

    pub(super) fn struck(&self) -> usize {
        self.struck.load(Ordering::SeqCst)
    }

    /// Steps that were prepared.
    pub(super) fn steps(&self) -> usize {
        self.prepared.load(Ordering::SeqCst)
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn saw(&self, seen: Seen) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    }

    /// What goes wrong in this call.
    fn wrong(&self, step: Option<usize>, phase: Phase) -> Option<Wrong> {
        let fault = (*self.fault.lock().unwrap_or_else(PoisonError::into_inner))?;
        let is_meant = fault.step.is_none() || step.is_none() || fault.step == step;
        (is_meant && fault.phase == phase).then(|| {
            self.struck.fetch_add(1, Ordering::SeqCst);
            fault.wrong
        })
    }

    /// For a call that may only be refused.
    fn check(&self, step: Option<usize>, phase: Phase) -> Result<(), Failure> {
        match self.wrong(step, phase) {
            None => Ok(()),
            Some(Wrong::Refuses(status)) => Err(Failure::new(status, "as the test wants it")),
            Some(Wrong::Panics) => panic!("as the test wants it"),
            Some(other) => unreachable!("{other:?} in {phase:?}"),
        }
    }
}

/// Two devices, of the first and of all other operations of those that a fixture has, and the reference.
pub(super) struct Devices {
    pub(super) script: Arc<Script>,
    pub(super) named: Vec<Arc<RuntimeDevice>>,
    pub(super) all: Vec<Arc<RuntimeDevice>>,
}

/// `is_bare`: the devices execute behind fences themselves.
pub(super) fn devices(is_bare: bool) -> Devices {
    let script = Arc::new(Script::default());
    let device = |name, takes| {
        let device = Scripted::new(name, takes, &script);
        match is_bare {
            true => RuntimeDevice::bare(device).unwrap(),
            false => RuntimeDevice::local(device).unwrap(),
        }
    };
    let adder = device("adder", &[OperationType::Add, OperationType::Less]);
    let named = vec![adder, device("multiplier", &[OperationType::Mul])];
    let all = named.iter().cloned().chain([reference()]).collect();
    Devices { script, named, all }
}

/// One device that runs these operations.
pub(super) fn alone(
    name: &str,
    takes: &'static [OperationType],
    script: &Arc<Script>,
) -> Arc<RuntimeDevice> {
    RuntimeDevice::local(Scripted::new(name, takes, script)).unwrap()
}

struct Scripted {
    name: String,
    inner: Arc<dyn Device>,
    takes: &'static [OperationType],
    script: Arc<Script>,
}

impl Scripted {
    fn new(name: &str, takes: &'static [OperationType], script: &Arc<Script>) -> Arc<Self> {
        let (name, inner) = (name.to_owned(), Arc::new(CpuDevice::default()));
        Arc::new(Scripted { name, inner, takes, script: Arc::clone(script) })
    }
}

impl Device for Scripted {
    fn name(&self) -> &str {
        &self.name
    }

    fn version_string(&self) -> &str {
        "1"
    }

    fn capabilities(&self) -> Result<Capabilities, Failure> {
        Ok(capabilities_of(0.5))
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        let operations = model.main.operations.iter();
        let mut supported: Vec<bool> = operations.map(|one| self.takes.contains(&one.ty)).collect();
        match self.script.wrong(None, Phase::Query) {
            None => {}
            Some(Wrong::Refuses(status)) => return Err(Failure::new(status, "no answer")),
            Some(Wrong::SaysMore) => supported.push(true),
            Some(Wrong::Panics) => panic!("as the test wants it"),
            Some(other) => unreachable!("{other:?} in a query"),
        }
        Ok(supported)
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        let step = self.script.prepared.fetch_add(1, Ordering::SeqCst);
        self.script.saw(Seen::Prepare { step, options: *options });
        self.script.check(Some(step), Phase::Prepare)?;
        let model = self.inner.prepare_model(model, options)?;
        Ok(Arc::new(ScriptedModel { model, step, script: Arc::clone(&self.script) }))
    }

    fn allocate(
        &self,
        request: &BufferRequest,
        caller: &Caller,
    ) -> Result<Arc<dyn Buffer>, Failure> {
        self.script.check(None, Phase::Allocate)?;
        self.inner.allocate(request, caller)
    }
}

struct ScriptedModel {
    model: Arc<dyn PreparedModel>,
    step: usize,
    script: Arc<Script>,
}

impl PreparedModel for ScriptedModel {
    fn request_rules(&self) -> Option<&validate::RequestRules> {
        self.model.request_rules()
    }

    fn wrapped(&self) -> Option<&Arc<dyn PreparedModel>> {
        Some(&self.model)
    }

    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.script.saw(Seen::Execute { step: self.step, options: *options });
        let wrong = self.script.wrong(Some(self.step), Phase::Execute);
        match wrong {
            Some(Wrong::Panics) => panic!("as the test wants it"),
            // It has written something, too.
            Some(Wrong::Refuses(status)) => {
                scribble(request);
                return ExecutionResult::of(status);
            }
            _ => {}
        }
        let mut result = self.model.execute_synchronously(request, options);
        let shapes = |dimensions: &[u32], is_sufficient, count| {
            vec![OutputShape { dimensions: dimensions.into(), is_sufficient }; count]
        };
        let outputs = request.outputs.len();
        match wrong {
            Some(Wrong::SaysMore) => result.output_shapes = shapes(&[4], true, outputs + 1),
            Some(Wrong::OtherSize) => result.output_shapes = shapes(&[77], true, outputs),
            Some(Wrong::OtherRank) => result.output_shapes = shapes(&[1, 4], true, outputs),
            Some(Wrong::TooLittleRoom) => {
                result.status = ErrorStatus::OutputInsufficientSize;
                result.output_shapes = shapes(&[4], false, outputs);
            }
            Some(Wrong::NoReason) => {
                result.status = ErrorStatus::OutputInsufficientSize;
                result.output_shapes = shapes(&[4], true, outputs);
            }
            Some(Wrong::Times) => {
                result.timing = Timing { time_on_device_us: 1, time_in_driver_us: 2 };
            }
            _ => {}
        }
        result
    }

    fn open_burst(self: Arc<Self>) -> Result<Box<dyn Burst>, Failure> {
        self.script.check(Some(self.step), Phase::OpenBurst)?;
        Ok(Box::new(PlainBurst::new(self)))
    }

    /// Waits here: what it waits for in these tests is over, or will be soon.
    fn execute_fenced(
        self: Arc<Self>,
        request: Request,
        wait_for: Vec<Fence>,
        options: FencedOptions,
        _: Caller,
    ) -> Result<FencedExecution, Failure> {
        self.script.check(Some(self.step), Phase::LaunchFenced)?;
        let is_ready = wait_for.iter().all(|fence| fence.wait(None) == FenceState::Done);
        let status = match is_ready {
            true => self.execute_synchronously(&request, &options.execution).status,
            false => ErrorStatus::GeneralFailure,
        };
        let unknown = Timing::UNAVAILABLE;
        let info = ExecutionInfo { status, timing_launched: unknown, timing_fenced: unknown };
        let fence = (status != ErrorStatus::None).then(failed_fence);
        Ok(FencedExecution { fence, info: Arc::new(Told(info)) })
    }
}

/// A pipe that is hung up without a byte.
fn failed_fence() -> Fence {
    let (read, _) = std::io::pipe().unwrap();
    Fence::from(std::os::fd::OwnedFd::from(read))
}

struct Told(ExecutionInfo);

impl FencedInfo for Told {
    fn execution_info(&self) -> Result<ExecutionInfo, Failure> {
        Ok(self.0)
    }
}

/// Writes nonsense to all outputs.
fn scribble(request: &Request) {
    for output in request.outputs.iter().filter(|output| !output.has_no_value) {
        let pool = request.pools.get(output.location.pool_index as usize);
        if let Some(RequestPool::Memory(pool)) = pool {
            let nonsense = vec![0xA5; output.location.length as usize];
            pool.write(output.location.offset.into(), &nonsense).unwrap();
        }
    }
}
