//! One execution, in each way that the trait has.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use burst_hal::{
    Caller, ErrorStatus, ExecutionOptions, FencedOptions, OutputShape, PreparedModel, Request,
    Timing,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Turns a hang into a failure.
const PATIENCE: Duration = Duration::from_secs(60);

/// A way to execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Synchronous,
    Asynchronous,
    Fenced,
}

/// What came of an execution, in any way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) status: ErrorStatus,
    shapes: Vec<OutputShape>,
    timings: Vec<Timing>,
}

impl Way {
    pub(super) const ALL: [Way; 3] = [Way::Synchronous, Way::Asynchronous, Way::Fenced];

    /// The ways that a device has: `legal` must succeed in any of them.
    pub(super) fn of(model: &Arc<dyn PreparedModel>, legal: &Request) -> Result<Vec<Way>, String> {
        let mut ways = Vec::new();
        for way in Way::ALL {
            match way.execute(model, legal)?.status {
                ErrorStatus::None => ways.push(way),
                // What the trait says where a driver has none.
                ErrorStatus::GeneralFailure if way == Way::Fenced => {}
                status => return Err(format!("a legal request, {way:?}: {status}")),
            }
        }
        Ok(ways)
    }

    /// Executes, measures, and waits for the end.
    pub(super) fn execute(
        self,
        model: &Arc<dyn PreparedModel>,
        request: &Request,
    ) -> Result<Ended, String> {
        let options = ExecutionOptions { measure_timing: true, ..ExecutionOptions::default() };
        match self {
            Way::Synchronous => {
                let result = model.execute_synchronously(request, &options);
                Ok(Ended {
                    status: result.status,
                    shapes: result.output_shapes,
                    timings: vec![result.timing],
                })
            }
            Way::Asynchronous => asynchronously(model, request, options),
            Way::Fenced => fenced(model, request, options),
        }
    }

    /// Executes what must end with this status, and without shapes and times where that is an error.
    pub(super) fn expect(
        self,
        what: &str,
        want: ErrorStatus,
        model: &Arc<dyn PreparedModel>,
        request: &Request,
    ) -> Result<(), String> {
        let ended = self.execute(model, request).map_err(|cause| format!("{what}: {cause}"))?;
        if ended.status != want {
            return Err(format!("{what}, {self:?}: {want} is due, and it is {}", ended.status));
        }
        let has_times = ended.timings.iter().any(|timing| *timing != Timing::UNAVAILABLE);
        if want != ErrorStatus::None && (has_times || !ended.shapes.is_empty()) {
            return Err(format!("{what}, {self:?}: a failure with shapes or times: {ended:?}"));
        }
        Ok(())
    }
}

fn asynchronously(
    model: &Arc<dyn PreparedModel>,
    request: &Request,
    options: ExecutionOptions,
) -> Result<Ended, String> {
    let (told, results) = mpsc::channel();
    let callback = Box::new(move |result| {
        let _ = told.send(result); // whoever waited may have given up
    });
    let launched = Arc::clone(model).execute_asynchronously(
        request.clone(),
        options,
        Caller::default(),
        callback,
    );
    let result = results.recv_timeout(PATIENCE).map_err(|_| "the callback was not called")?;
    match launched {
        Err(failure) if failure.status != result.status => {
            return Err(format!("launched with {failure}, and told {}", result.status));
        }
        _ => {}
    }
    Ok(Ended { status: result.status, shapes: result.output_shapes, timings: vec![result.timing] })
}

fn fenced(
    model: &Arc<dyn PreparedModel>,
    request: &Request,
    execution: ExecutionOptions,
) -> Result<Ended, String> {
    let options = FencedOptions { execution, duration: None };
    let started =
        Arc::clone(model).execute_fenced(request.clone(), Vec::new(), options, Caller::default());
    let started = match started {
        Ok(started) => started,
        Err(failure) => {
            return Ok(Ended { status: failure.status, shapes: Vec::new(), timings: Vec::new() });
        }
    };
    if let Some(fence) = &started.fence {
        let patience = Timespec::try_from(PATIENCE).map_err(|error| error.to_string())?;
        let mut ends = [PollFd::new(fence, PollFlags::IN)];
        let ready = poll(&mut ends, Some(&patience)).map_err(|errno| errno.to_string())?;
        if ready == 0 {
            return Err("the fence was never done".to_owned());
        }
    }
    let info = started.info.execution_info().map_err(super::refused("execution_info"))?;
    Ok(Ended {
        status: info.status,
        shapes: Vec::new(),
        timings: vec![info.timing_launched, info.timing_fenced],
    })
}
