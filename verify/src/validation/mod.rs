//! Broken models and requests, each of which a driver has to refuse with INVALID_ARGUMENT.
//!
//! Every mutation makes one thing wrong in a legal model's main graph and leaves the rest
//! consistent, so that only the check for that one thing can refuse it. Where the original suite
//! is content with a model that is wrong in two ways at once, this one makes it wrong in one
//! (and says so there).
//!
//! Not here: preferences and priorities out of range, which the types of the contract cannot
//! express; over a socket their numbers are refused where messages are decoded. Freeing memories
//! of a burst and malformed packets are a transport's to test.

mod exceptions;
pub(crate) mod lifetimes;
pub(crate) mod operands;
pub(crate) mod operations;

use burst_hal::{Device, ErrorStatus, Failure, Model, PrepareOptions};

use crate::case::Case;
use crate::interface::Interface;
use crate::model::{Built, OutputShapes, build};
use crate::outcome::{Done, LeftOut, Outcome};
use crate::vectors::{Test, Vectors};

/// Broken models that were not refused as they are described in a report; the others are counted.
const MAX_DESCRIBED: usize = 3;

/// Breaks the model of a test in every way; each broken model must be refused both by
/// `supported_operations` and by `prepare_model`. Returns how many there were.
///
/// A test that has to fail is not broken further.
///
/// # Errors
/// The first few models that were not refused.
pub fn wrong_models(device: &dyn Device, vectors: &Vectors, test: &Test) -> Outcome {
    wrong_models_through(Interface::Hal, device, vectors, test)
}

/// The same through an interface: what is wrong and cannot be said there is left out.
pub(crate) fn wrong_models_through(
    interface: Interface,
    device: &dyn Device,
    vectors: &Vectors,
    test: &Test,
) -> Outcome {
    if test.expect_failure {
        return Ok(Done::default());
    }
    let model = build(vectors, test, OutputShapes::Declared)?.model;
    let mut breaker = Breaker { interface, ..Breaker::new(device, &model) };
    break_model(&mut breaker);
    let left_out = std::mem::take(&mut breaker.left_out);
    Ok(Done { count: breaker.verdict()?, left_out })
}

fn break_model(breaker: &mut Breaker<'_>) {
    operations::execution_order(breaker);
    operands::unknown_types(breaker);
    operands::ranks(breaker);
    operands::scales(breaker);
    operands::zero_points(breaker);
    lifetimes::lifetimes(breaker);
    lifetimes::interfaces(breaker);
    operands::consumers(breaker);
    operations::second_writers(breaker);
    operands::other_types(breaker);
    operations::unknown_types(breaker);
    operations::unknown_inputs(breaker);
    operations::unknown_outputs(breaker);
    operations::missing_writers(breaker);
    operands::removed(breaker);
    operations::removed(breaker);
    operations::removed_inputs(breaker);
    operations::removed_outputs(breaker);
    operations::added_inputs(breaker);
    operations::added_outputs(breaker);
}

/// Sends requests with one argument too few; each must be refused. Returns how many there were.
pub(crate) fn wrong_requests(case: &mut Case<'_>, built: &Built) -> Result<Done, String> {
    let (inputs, outputs) = (built.inputs.len(), built.outputs.len());
    for index in 0..inputs {
        case.wrong_request(|request| drop(request.inputs.remove(index)))
            .map_err(|what| format!("request without input {index}: {what}"))?;
    }
    for index in 0..outputs {
        case.wrong_request(|request| drop(request.outputs.remove(index)))
            .map_err(|what| format!("request without output {index}: {what}"))?;
    }
    Ok(Done::of((inputs + outputs) as u64))
}

/// One way to break a model, wherever it can be broken so.
pub(crate) type Mutation = fn(&mut Breaker<'_>);

/// Shows broken copies of a model to a device and keeps count of those it does not refuse.
pub(crate) struct Breaker<'a> {
    device: &'a dyn Device,
    model: &'a Model,
    interface: Interface,
    left_out: Vec<LeftOut>,
    tried: u64,
    missed: u64,
    described: Vec<String>,
}

impl<'a> Breaker<'a> {
    pub(crate) fn new(device: &'a dyn Device, model: &'a Model) -> Self {
        Breaker {
            device,
            model,
            interface: Interface::Hal,
            left_out: Vec::new(),
            tried: 0,
            missed: 0,
            described: Vec::new(),
        }
    }

    /// The model as it was.
    pub(crate) fn model(&self) -> &'a Model {
        self.model
    }

    /// Shows the device a copy with one thing wrong; `what` says which, when it is not refused.
    pub(crate) fn refuses(
        &mut self,
        what: impl FnOnce() -> String,
        break_it: impl FnOnce(&mut Model),
    ) {
        let mut broken = self.model.clone();
        break_it(&mut broken);
        if let Some(rule) = self.interface.cannot_say(self.model, &broken) {
            self.left_out.push(rule);
            return;
        }
        self.tried += 1;
        if let Err(how) = self.show(&broken) {
            self.missed += 1;
            if self.described.len() < MAX_DESCRIBED {
                self.described.push(format!("{}: {how}", what()));
            }
        }
    }

    fn show(&self, broken: &Model) -> Result<(), String> {
        invalid("supported_operations", self.device.supported_operations(broken))?;
        invalid("prepare_model", self.device.prepare_model(broken, &PrepareOptions::default()))
    }

    /// How many models were broken, where every one was refused; otherwise the first few that were not.
    pub(crate) fn verdict(self) -> Result<u64, String> {
        if self.missed == 0 {
            return Ok(self.tried);
        }
        let more = self.missed - self.described.len() as u64;
        let mut text = self.described.join("; ");
        if more > 0 {
            text.push_str(&format!("; and {more} more"));
        }
        Err(format!("{} of {} broken models are not refused: {text}", self.missed, self.tried))
    }
}

fn invalid<T>(call: &str, answer: Result<T, Failure>) -> Result<(), String> {
    match answer {
        Err(failure) if failure.status == ErrorStatus::InvalidArgument => Ok(()),
        Err(failure) => Err(format!("{call}: {failure}, expected INVALID_ARGUMENT")),
        Ok(_) => Err(format!("{call} takes it")),
    }
}

/// All indexes of a list, as models have them.
fn indexes<T>(list: &[T]) -> impl Iterator<Item = (u32, &T)> {
    (0..).zip(list)
}
