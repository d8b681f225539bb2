//! What a run token costs. A service has no switch for them; but a driver that serves its bursts itself takes
//! them itself, and so can leave them out: here one does, every second time.

use std::hint::black_box;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use burst_client::BurstOptions;
use burst_driver::CpuDevice;
use burst_hal::{ExecutionOptions, Failure, Model, PrepareOptions, Request};
use burst_harness::HarnessError;
use burst_server::{BurstContext, BurstContexts, BurstSetup, ServiceOptions};

use super::Row;
use super::authors::Thread;
use super::pairs::{Effort, Measured, Side, compare};
use super::service::{Connected, check};

/// What the context of the burst is to do, once.
#[derive(Debug)]
struct Plan {
    request: Request,
    effort: Effort,
    tell: Sender<Result<[Measured; 2], HarnessError>>,
}

/// Executions with a token beside executions without, and a token by itself beside a look at the clock.
/// `request` lies in memory of this process.
pub(super) fn measure(
    name: &str,
    model: &Model,
    request: Request,
    effort: Effort,
) -> Result<[Row; 2], HarnessError> {
    let (tell, told) = channel();
    let contexts = Contexts(Mutex::new(Some(Plan { request, effort, tell })));
    let mut options = ServiceOptions::default();
    options.contexts.insert("cpu".to_owned(), Arc::new(contexts));
    let connected = Connected::start(Arc::new(CpuDevice::default()), options)?;
    let measured = {
        let device = connected.client.device("cpu").map_err(HarnessError::peer)?;
        let prepared = device.prepare(model, &PrepareOptions::default());
        let prepared = prepared.map_err(HarnessError::peer)?;
        let burst = prepared.configure_burst(&BurstOptions::default());
        let _burst = burst.map_err(HarnessError::peer)?;
        told.recv().map_err(|_| HarnessError::peer("the context ended without a word"))?
    };
    connected.end()?;
    let [execution, token] = measured?;
    Ok([
        Row::new(
            name,
            ["execution with a run token", "without"],
            "in a context of a driver's own, which alone can leave the token out; nobody else computes",
            execution,
        ),
        Row::new(
            name,
            ["a run token taken and given back", "a look at the clock"],
            "nobody waits for it; BurstTurns::begin, which also notes the thread",
            token,
        ),
    ])
}

/// Makes the one context.
#[derive(Debug)]
struct Contexts(Mutex<Option<Plan>>);

impl BurstContexts for Contexts {
    fn configure(&self, setup: BurstSetup) -> Result<Box<dyn BurstContext>, Failure> {
        let plan = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let plan = plan.ok_or_else(|| Failure::general("there is one burst"))?;
        let run = move || {
            let measured = run(setup, &plan);
            // Who does not wait any more has an error of its own.
            let _ = plan.tell.send(measured);
        };
        Ok(Box::new(Thread(Some(std::thread::spawn(run)))))
    }
}

fn run(mut setup: BurstSetup, plan: &Plan) -> Result<[Measured; 2], HarnessError> {
    let model = setup.model();
    let no_token = |status: burst_hal::ErrorStatus| HarnessError::peer(status.name());
    let execution = compare(plan.effort, |side| {
        let _turn = match side {
            Side::First => Some(setup.turns.begin(None).map_err(no_token)?),
            Side::Second => None,
        };
        let options = ExecutionOptions::default();
        check(model.execute_for(&plan.request, &options, &setup.caller).status)
    })?;
    let token = compare(plan.effort, |side| {
        match side {
            Side::First => drop(black_box(setup.turns.begin(None).map_err(no_token)?)),
            Side::Second => drop(black_box(Instant::now())),
        }
        Ok(())
    })?;
    Ok([execution, token])
}
