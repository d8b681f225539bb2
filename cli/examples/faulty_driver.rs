//! A driver service that is as good as any other until it has computed a while, and then goes wrong as
//! `BURST_FAULT` says: it hangs, it crashes, it computes something else, it takes no models, or nothing of the kind. For tests of
//! `burst stress`, which has to notice.
//!
//! Called as a service of `burst stress --service`: `faulty_driver serve --socket PATH`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use burst_driver::{CpuDevice, DeviceOptions};
use burst_hal::{
    Caller, Device, DeviceType, ExecutionOptions, ExecutionResult, Failure, Model, PrepareOptions,
    PrepareResult, PreparedModel, Request,
};
use burst_server::{Listener, serve};

/// Executions that go well.
const GOOD: u64 = 20;

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
    /// It stays as good as any other, and knows of no signals.
    Nothing,
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
        if self.fault == Fault::Refuse {
            return Err(Failure::general("not today"));
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
        if self.executions.fetch_add(1, Ordering::Relaxed) < GOOD || self.fault == Fault::Nothing {
            return self.model.execute_for(request, options, caller);
        }
        match self.fault {
            Fault::Hang => loop {
                std::thread::park();
            },
            Fault::Crash => std::process::abort(),
            // All is said to be well.
            Fault::Wrong | Fault::Refuse | Fault::Nothing => {
                let result = self.model.execute_for(request, options, caller);
                request.outputs.iter().for_each(|output| spoil(request, output));
                result
            }
        }
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
    let fault = match std::env::var("BURST_FAULT").as_deref() {
        Ok("hang") => Fault::Hang,
        Ok("crash") => Fault::Crash,
        Ok("wrong") => Fault::Wrong,
        Ok("refuse") => Fault::Refuse,
        Ok("nothing") => Fault::Nothing,
        other => return Err(format!("BURST_FAULT is {other:?}").into()),
    };
    let cpu = CpuDevice::new(DeviceOptions { threads: 1, ..DeviceOptions::default() });
    let listener = Listener::bind(socket)?;
    println!("listening on {socket}");
    serve(Arc::new(Faulty { cpu, fault, executions: Arc::default() }), &listener)?;
    Ok(())
}
