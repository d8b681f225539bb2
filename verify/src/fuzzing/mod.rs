//! Any bytes against any device: models and requests that nobody wrote by hand, for fuzzers.
//!
//! [`judge_device`] makes a model of the bytes, one in its forms more often than not, or has the generator of
//! [`random`](crate::random) models make one, which is legal unless it is broken somewhere. It shows the model to the
//! device, has it prepared, and executes requests in every way. It knows no right values; it knows what the
//! contract promises of any model:
//!
//! - nothing panics, and what was started ends;
//! - models and requests that are not legal are refused with INVALID_ARGUMENT, and legal ones are not by the
//!   one call and taken by the other; what is supported can be prepared, what is not cannot;
//! - there is an answer for each operation, the same one each time;
//! - results have shapes that go with their status, the model and the memory, and times where they were
//!   asked for;
//! - every byte of every output is written, and no byte around them;
//! - the same request ends alike in every way to execute it;
//! - what was charged to the caller's account is given back.
//!
//! Executions that fail for want of memory, or of time, are as good as any. Operations whose results are up to
//! the device may differ in values, but not in shapes.
//!
//! A fuzz target of one's own, for libFuzzer or `cargo test` with a fixed set of inputs:
//!
//! ```
//! use burst_hal::*;
//! use burst_verify::fuzzing::judge_device;
//!
//! // A device that supports nothing.
//! struct Nothing;
//!
//! impl Device for Nothing {
//!     fn name(&self) -> &str { "nothing" }
//!     fn version_string(&self) -> &str { "1" }
//!     fn supported_operations(&self, model: &Model) -> Result<Vec<bool>, Failure> {
//!         validate::validate_model(model, HalVersion::LATEST)?;
//!         Ok(vec![false; model.main.operations.len()])
//!     }
//!     fn prepare_model(&self, model: &Model, _: &PrepareOptions) -> PrepareResult {
//!         validate::validate_model(model, HalVersion::LATEST)?;
//!         Err(Failure::general("it runs nothing"))
//!     }
//! }
//!
//! // `libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz(bytes));`
//! fn fuzz(bytes: &[u8]) {
//!     if let Err(finding) = judge_device(&Nothing, bytes) {
//!         panic!("{finding}");
//!     }
//! }
//!
//! for seed in 0..=255_u8 {
//!     fuzz(&[seed; 64]);
//! }
//! ```
//!
//! [`judge_model`] does the same with a model of any other origin, and [`judge_made`] with one of an input that was
//! changed since. [`model_of`] gives the model of an input, to look at, and to drive with a debugger.

mod broken;
mod bytes;
mod control;
mod execute;
mod finding;
mod grown;
mod model;
mod purse;
mod request;
mod sizes;
mod values;

use std::sync::Arc;
use std::time::Duration;

use burst_hal::validate::{
    RequestRules, validate_capabilities, validate_extension_name, validate_model,
};
use burst_hal::{
    CACHE_FILES_MAX, Caller, CompilationCache, Device, ErrorStatus, Failure, HalVersion, Model,
    OperationType, PrepareOptions, PreparedModel, TimePoint,
};

use self::bytes::Bytes;
use self::execute::{Judged, TIME_MAX};
pub use self::finding::Finding;
use self::finding::caught;
pub use self::grown::Suited;
use self::purse::Purse;
use self::request::Draft;
use self::sizes::Sizes;

/// How long a device may take over what it was told to do in the background, before that is a hang.
const PATIENCE: Duration = Duration::from_secs(60);
/// Requests for each model.
const REQUESTS: usize = 2;

/// What is wrong with who does not refuse a model that is not legal.
const TAKEN: &str = "it takes a model that is not legal";

/// What of an input came how far, where nothing was wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The operations of the model's main graph.
    pub operations: Vec<OperationType>,
    /// Whether the model is legal, by what holds for any operation.
    pub is_legal: bool,
    /// Whether the device prepared it.
    pub is_prepared: bool,
    /// Executions, in all ways.
    pub executions: u32,
    /// Those that ended with NONE.
    pub succeeded: u32,
}

impl Seen {
    /// Nothing yet, of this model.
    fn of(model: &Model) -> Self {
        Seen {
            operations: model.main.operations.iter().map(|operation| operation.ty).collect(),
            is_legal: validate_model(model, HalVersion::LATEST).is_ok(),
            ..Seen::default()
        }
    }
}

/// A model made of bytes, which need not be legal, and may be changed.
#[derive(Debug, Clone, Default)]
pub struct Made {
    /// The model.
    pub model: Model,
    /// How it is to be prepared.
    pub options: PrepareOptions,
    /// Values that suit it as it was made.
    pub suited: Suited,
}

/// Judges a device by the model and the requests that these bytes stand for.
///
/// # Errors
/// The first thing that it did and must not do.
pub fn judge_device(device: &dyn Device, bytes: &[u8]) -> Result<Seen, Finding> {
    judge_patiently(device, bytes, PATIENCE)
}

/// As [`judge_device`], where what the device does in the background may take so long before it is a hang.
///
/// # Errors
/// As [`judge_device`].
pub fn judge_patiently(
    device: &dyn Device,
    bytes: &[u8],
    patience: Duration,
) -> Result<Seen, Finding> {
    let mut bytes = Bytes::new(bytes);
    let Made { model, options, suited } = &model::made(&mut bytes);
    judge(device, (model, options, suited), &mut bytes, patience)
}

/// Judges a device by a model of any origin, which need not be legal: that of a file, or one that was changed.
/// Requests for it are made of `choices`.
///
/// It may ask for far more than a model of [`judge_device`] does. So the device has a deadline for preparing
/// it, and one for each execution: work that is given up then is as good as any.
///
/// # Errors
/// As [`judge_device`].
pub fn judge_model(
    device: &dyn Device,
    model: &Model,
    options: &PrepareOptions,
    choices: &[u8],
) -> Result<Seen, Finding> {
    let options = in_time(options);
    judge(device, (model, &options, &Suited::default()), &mut Bytes::new(choices), PATIENCE)
}

/// As [`judge_model`], with a model that was made of bytes and may have been changed since: most inputs of its requests
/// are those that suited it as it was made.
///
/// # Errors
/// As [`judge_device`].
pub fn judge_made(device: &dyn Device, made: &Made, choices: &[u8]) -> Result<Seen, Finding> {
    let Made { model, options, suited } = made;
    judge(device, (model, &in_time(options), suited), &mut Bytes::new(choices), PATIENCE)
}

/// The same, with a deadline where there is none.
fn in_time(options: &PrepareOptions) -> PrepareOptions {
    let deadline = options.deadline.or(Some(TimePoint::after(TIME_MAX)));
    PrepareOptions { deadline, ..*options }
}

/// Judges what a device makes of files that a compilation of a model was kept in, and that were changed since:
/// it refuses them, or prepares a model of which holds what holds of any. What was kept of the model may differ
/// in values alone.
///
/// # Errors
/// As [`judge_device`].
pub fn judge_restored(
    device: &dyn Device,
    files: &CompilationCache,
    Made { model, suited, .. }: &Made,
    choices: &[u8],
) -> Result<Seen, Finding> {
    const CALL: &str = "prepare_model_from_cache";
    let purse = Arc::new(Purse::default());
    let caller = Caller::default().with_account(Arc::clone(&purse) as _);
    let mut seen = Seen::of(model);
    let deadline = Some(TimePoint::after(TIME_MAX));
    let prepared = caught(CALL, || device.prepare_model_from_cache(files, deadline, &caller))?;
    if let Ok(prepared) = prepared {
        seen.is_prepared = true;
        let sizes = &Sizes::of(device, model);
        let patience = PATIENCE;
        let to = Executor { prepared: &prepared, caller: &caller, patience, sizes, suited };
        judge_executions(model, &to, &mut Bytes::new(choices), &mut seen)?;
        caught("drop of the prepared model", || drop(prepared))?;
    }
    drop(caller);
    purse.is_settled(PATIENCE).map_err(|what| Finding::new("Caller", what))?;
    Ok(seen)
}

fn judge(
    device: &dyn Device,
    (model, options, suited): (&Model, &PrepareOptions, &Suited),
    bytes: &mut Bytes<'_>,
    patience: Duration,
) -> Result<Seen, Finding> {
    judge_answers(device)?;
    let purse = Arc::new(Purse::default());
    let caller = Caller::default().with_account(Arc::clone(&purse) as _);
    let mut seen = Seen::of(model);
    let survey = survey(device, model, &caller, seen.is_legal)?;
    let prepared = prepare(device, (model, options), &caller, &survey)?;
    if !seen.is_legal && prepared.is_some() {
        return Err(Finding::new("prepare_model_for", TAKEN));
    }
    if let Some(prepared) = prepared {
        seen.is_prepared = true;
        let sizes = &Sizes::of(device, model);
        let to = Executor { prepared: &prepared, caller: &caller, patience, sizes, suited };
        judge_executions(model, &to, bytes, &mut seen)?;
        caught("drop of the prepared model", || drop(prepared))?;
    }
    drop(caller);
    purse.is_settled(patience).map_err(|what| Finding::new("Caller", what))?;
    Ok(seen)
}

/// The model that these bytes stand for, which need not be legal.
#[must_use]
pub fn model_of(bytes: &[u8]) -> Model {
    made_of(bytes).model
}

/// The same with how it is to be prepared, and the values that suit it.
#[must_use]
pub fn made_of(bytes: &[u8]) -> Made {
    model::made(&mut Bytes::new(bytes))
}

/// What a device says of itself is legal, and the same each time.
fn judge_answers(device: &dyn Device) -> Result<(), Finding> {
    let text = |call, text: fn(&dyn Device) -> &str| match caught(call, || text(device))? {
        "" => Err(Finding::new(call, "it is empty")),
        _ => Ok(()),
    };
    text("name", |device| device.name())?;
    text("version_string", |device| device.version_string())?;
    let ask = || caught("capabilities", || device.capabilities());
    if let (Ok(one), Ok(other)) = (ask()?, ask()?) {
        let legal = validate_capabilities(&one, HalVersion::LATEST);
        legal.map_err(|fault| Finding::new("capabilities", fault))?;
        if one != other {
            return Err(Finding::new("capabilities", "they are others when asked again"));
        }
    }
    let files = caught("cache_files_needed", || device.cache_files_needed())?;
    if files.model.max(files.data) > CACHE_FILES_MAX {
        let what = format!("{files:?}, and at most {CACHE_FILES_MAX} of each kind are allowed");
        return Err(Finding::new("cache_files_needed", what));
    }
    let extensions = caught("supported_extensions", || device.supported_extensions())?;
    match extensions.iter().find(|extension| !validate_extension_name(&extension.name)) {
        Some(extension) => {
            Err(Finding::new("supported_extensions", format!("the name {:?}", extension.name)))
        }
        None => Ok(()),
    }
}

/// Which operations it runs: an answer for each, twice the same; a model that is not legal is refused.
fn survey(
    device: &dyn Device,
    model: &Model,
    caller: &Caller,
    is_legal: bool,
) -> Result<Result<Vec<bool>, ErrorStatus>, Finding> {
    const CALL: &str = "supported_operations_for";
    let ask = || caught(CALL, || device.supported_operations_for(model, caller));
    let answer = ask()?;
    if !is_legal {
        refused(CALL, &answer)?;
    }
    if let Ok(supported) = &answer {
        let (answers, operations) = (supported.len(), model.main.operations.len());
        if answers != operations {
            return Err(Finding::new(
                CALL,
                format!("{answers} answers for {operations} operations"),
            ));
        }
        if let Ok(again) = ask()?
            && again != *supported
        {
            return Err(Finding::new(CALL, "the answer is another one when asked again"));
        }
    }
    Ok(answer.map_err(|failure| failure.status))
}

/// Prepares the model, where what was said of it holds.
fn prepare(
    device: &dyn Device,
    (model, options): (&Model, &PrepareOptions),
    caller: &Caller,
    survey: &Result<Vec<bool>, ErrorStatus>,
) -> Result<Option<Arc<dyn PreparedModel>>, Finding> {
    const CALL: &str = "prepare_model_for";
    let prepared = caught(CALL, || device.prepare_model_for(model, options, caller))?;
    let runs_all = survey.as_ref().map(|supported| supported.iter().all(|one| *one));
    match (prepared, runs_all) {
        (Err(failure), _) if for_want(failure.status) => Ok(None),
        (prepared, Err(ErrorStatus::InvalidArgument)) => refused(CALL, &prepared).map(|()| None),
        (Err(failure), Ok(_)) if failure.status == ErrorStatus::InvalidArgument => {
            Err(Finding::new(CALL, format!("{failure}; supported_operations takes the model")))
        }
        (Err(failure), Ok(true)) => {
            Err(Finding::new(CALL, format!("{failure}; every operation is said to be supported")))
        }
        (Ok(_), Ok(false)) => Err(Finding::new(
            CALL,
            "it is prepared, and not every operation is said to be supported",
        )),
        (prepared, _) => Ok(prepared.ok()),
    }
}

/// What executes, and for whom.
struct Executor<'a> {
    prepared: &'a Arc<dyn PreparedModel>,
    caller: &'a Caller,
    patience: Duration,
    sizes: &'a Sizes,
    suited: &'a Suited,
}

fn judge_executions(
    model: &Model,
    to: &Executor<'_>,
    bytes: &mut Bytes<'_>,
    seen: &mut Seen,
) -> Result<(), Finding> {
    let Executor { prepared, caller, patience, sizes, suited } = *to;
    let rules = match caught("request_rules", || prepared.request_rules().cloned())? {
        Some(rules) => rules,
        None => RequestRules::new(model).map_err(|error| {
            Finding::new("prepare_model_for", format!("it took a model: {error}"))
        })?,
    };
    for _ in 0..REQUESTS {
        let measured = bytes.rarely(2);
        let draft = Draft::new(model, (sizes, suited), bytes);
        let judged = Judged { model, prepared, rules: &rules, caller, patience, measured };
        let executed = judged.judge(&draft)?;
        seen.executions += executed.executions;
        seen.succeeded += executed.succeeded;
    }
    Ok(())
}

/// Whether a failure is for want of something that may be there another time.
fn for_want(status: ErrorStatus) -> bool {
    use ErrorStatus::{
        DeviceUnavailable, MissedDeadlinePersistent, MissedDeadlineTransient,
        ResourceExhaustedPersistent, ResourceExhaustedTransient,
    };
    matches!(
        status,
        DeviceUnavailable
            | MissedDeadlinePersistent
            | MissedDeadlineTransient
            | ResourceExhaustedPersistent
            | ResourceExhaustedTransient
    )
}

/// A model that is not legal must be refused as such.
fn refused<T>(call: &'static str, answer: &Result<T, Failure>) -> Result<(), Finding> {
    let what = match answer {
        Err(failure) if failure.status == ErrorStatus::InvalidArgument => return Ok(()),
        Err(failure) if for_want(failure.status) => return Ok(()),
        Err(failure) => format!("{failure}; the model is not legal: INVALID_ARGUMENT is due"),
        Ok(_) => TAKEN.to_owned(),
    };
    Err(Finding::new(call, what))
}
