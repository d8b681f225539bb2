//! A driver service that is as good as any other until it has computed a while, and then goes wrong as
//! `BURST_FAULT` says: for tests of `burst stress`, which has to notice. Where that names several faults with commas,
//! each start of it has the next one; how often it was started is the length of the file `BURST_STARTS`.
//!
//! Called as a service of `burst stress --service`: `faulty_driver serve --socket PATH`.

use std::io::{Read, Write};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::{
    Caller, Device, DeviceType, ErrorStatus, ExecutionOptions, ExecutionResult, Failure, Model,
    PrepareOptions, PrepareResult, PreparedModel, Request,
};
use burst_server::{Listener, Service, ServiceOptions, Stop};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

/// Executions that go well.
const GOOD: u64 = 20;
/// Longer than any deadline of a test that may be kept.
const LATE: Duration = Duration::from_millis(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// It never answers again.
    Hang,
    /// It dies.
    Crash,
    /// It says that all is well, and what it computed is not.
    Wrong,
    /// It takes no models, which it says it would.
    Refuse,
    /// It says that it is short of something, always.
    Short,
    /// It takes longer than the deadlines of the tests that are kept elsewhere.
    Late,
    /// It ends one of its clients.
    Client,
    /// It dies, and a process that it has started goes on in its place: no client notices.
    Unseen,
    /// It is the process that goes on.
    Successor,
    /// It does nothing wrong, and knows of no signals.
    Nothing,
    /// It does nothing wrong, and ends when it is told to.
    Good,
}

impl Fault {
    /// The one of this start.
    fn of_this_start() -> Result<Fault, Box<dyn std::error::Error>> {
        let words = std::env::var("BURST_FAULT")?;
        let mut words = words.split(',').peekable();
        let mut starts = 0;
        if let Ok(path) = std::env::var("BURST_STARTS") {
            let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
            starts = file.metadata()?.len();
            file.write_all(b".")?;
        }
        let last = words.clone().next_back();
        match words.nth(usize::try_from(starts)?).or(last) {
            Some("hang") => Ok(Fault::Hang),
            Some("crash") => Ok(Fault::Crash),
            Some("wrong") => Ok(Fault::Wrong),
            Some("refuse") => Ok(Fault::Refuse),
            Some("short") => Ok(Fault::Short),
            Some("late") => Ok(Fault::Late),
            Some("client") => Ok(Fault::Client),
            Some("unseen") => Ok(Fault::Unseen),
            Some("successor") => Ok(Fault::Successor),
            Some("nothing") => Ok(Fault::Nothing),
            Some("good") => Ok(Fault::Good),
            other => Err(format!("BURST_FAULT has {other:?}").into()),
        }
    }
}

struct Faulty {
    cpu: CpuDevice,
    fault: Fault,
    executions: Arc<AtomicU64>,
}

struct FaultyModel {
    model: Arc<dyn PreparedModel>,
    fault: Fault,
    executions: Arc<AtomicU64>,
}

impl Device for Faulty {
    fn name(&self) -> &str {
        "cpu"
    }

    fn version_string(&self) -> &str {
        "faulty"
    }

    fn device_type(&self) -> DeviceType {
        DeviceType::Cpu
    }

    fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
        self.cpu.supported_operations(model)
    }

    fn prepare_model(&self, model: &Model, options: &PrepareOptions) -> PrepareResult {
        match self.fault {
            Fault::Refuse => return Err(Failure::general("not today")),
            Fault::Short => return Err(ErrorStatus::ResourceExhaustedTransient.into()),
            _ => {}
        }
        let model = self.cpu.prepare_model(model, options)?;
        let executions = Arc::clone(&self.executions);
        Ok(Arc::new(FaultyModel { model, fault: self.fault, executions }))
    }
}

impl PreparedModel for FaultyModel {
    fn execute_synchronously(
        &self,
        request: &Request,
        options: &ExecutionOptions,
    ) -> ExecutionResult {
        self.execute_for(request, options, &Caller::default())
    }

    fn execute_for(
        &self,
        request: &Request,
        options: &ExecutionOptions,
        caller: &Caller,
    ) -> ExecutionResult {
        let before = self.executions.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::Hang if before >= GOOD => loop {
                thread::park();
            },
            Fault::Crash if before >= GOOD => std::process::abort(),
            Fault::Late => thread::sleep(LATE),
            Fault::Client if before == GOOD => end_a_client(),
            Fault::Successor if before == GOOD => {
                end(std::os::unix::process::parent_id(), Signal::SIGKILL);
            }
            _ => {}
        }
        let result = self.model.execute_for(request, options, caller);
        if self.fault == Fault::Wrong && before >= GOOD {
            // All is said to be well.
            request.outputs.iter().for_each(|output| spoil(request, output));
        }
        result
    }
}

fn end(pid: u32, signal: Signal) {
    if let Ok(pid) = i32::try_from(pid) {
        // It may have ended by itself.
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// As if it had come to an instruction that its processor does not have. Its clients are what the process that started it has started
/// too, with a role.
fn end_a_client() {
    let parent = std::os::unix::process::parent_id();
    let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let children = tasks.flat_map(|task| std::fs::read_to_string(task.path().join("children")));
    let children = children.collect::<Vec<_>>().join(" ");
    let is_client = |pid: &u32| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        command.split(|byte| *byte == 0).any(|word| word == b"--role")
    };
    let client = children.split_whitespace().flat_map(str::parse).find(is_client);
    if let Some(client) = client {
        end(client, Signal::SIGILL);
    }
}

/// Turns the first byte of an output round.
fn spoil(request: &Request, output: &burst_hal::RequestArgument) {
    let pool = usize::try_from(output.location.pool_index).unwrap_or(0);
    let Some(burst_hal::RequestPool::Memory(memory)) = request.pools.get(pool) else { return };
    let offset = u64::from(output.location.offset);
    let mut first = [0];
    if memory.read(offset, &mut first).is_ok() {
        // A memory that cannot be written was not written before either.
        let _ = memory.write(offset, &[!first[0]]);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [serve_word, option, socket] = &words[..] else {
        return Err("expected: serve --socket PATH".into());
    };
    if serve_word != "serve" || option != "--socket" {
        return Err("expected: serve --socket PATH".into());
    }
    let fault = Fault::of_this_start()?;
    if fault == Fault::Unseen {
        let mut successor = Command::new(std::env::current_exe()?);
        successor.args(&words).env("BURST_FAULT", "successor");
        successor.spawn()?.wait()?;
        return Err("the successor has ended".into());
    }
    let (stopper, stop) = Stop::new()?;
    if fault == Fault::Good {
        let signals = SigSet::from(Signal::SIGTERM);
        // Threads that start from now on do not hear of it either.
        signals.thread_block()?;
        thread::spawn(move || {
            let _ = signals.wait();
            drop(stopper);
        });
    } else {
        if fault == Fault::Successor {
            thread::spawn(|| {
                // Who started what it succeeds is gone then, and so is the test.
                let _ = std::io::stdin().read_to_end(&mut Vec::new());
                std::process::exit(0);
            });
        }
        std::mem::forget(stopper);
    }
    let cpu = CpuDevice::new(DeviceOptions { threads: 1, ..DeviceOptions::default() });
    let listener = Listener::bind(socket)?;
    println!("listening on {socket}");
    let device: Arc<dyn Device> = Arc::new(Faulty { cpu, fault, executions: Arc::default() });
    Service::new(vec![device], ServiceOptions::default()).run(&listener, &stop)?;
    Ok(())
}
