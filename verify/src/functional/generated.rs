//! Executions of small models over every route: `GeneratedTest`, `DynamicOutputShapeTest`,
//! `FencedComputeTest`, `QuantizationCouplingTest`, `InfiniteLoopTimeoutTest`.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use burst_hal::{
    Device, ErrorStatus, ExecutionOptions, ExecutionResult, FenceState, PrepareOptions,
    PreparedModel, Route, Timing,
};

use super::samples::{Laid, Sample, all_supported, supported};
use super::{Check, Checked, Verdict, refused};
use crate::checks::is_missed_deadline;
use crate::ways::{Ran, Way, check_timing, ended, gate};

use Route::{Asynchronous, Burst, Fenced, Synchronous};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "GeneratedTest/Sync", run: |device| general(device, Synchronous) },
    Check { name: "GeneratedTest/Async", run: |device| general(device, Asynchronous) },
    Check { name: "GeneratedTest/Burst", run: |device| general(device, Burst) },
    Check {
        name: "DynamicOutputShapeTest/UnspecifiedSync",
        run: |device| open(device, Synchronous),
    },
    Check {
        name: "DynamicOutputShapeTest/UnspecifiedAsync",
        run: |device| open(device, Asynchronous),
    },
    Check { name: "DynamicOutputShapeTest/UnspecifiedBurst", run: |device| open(device, Burst) },
    Check {
        name: "DynamicOutputShapeTest/InsufficientSync",
        run: |device| short(device, Synchronous),
    },
    Check {
        name: "DynamicOutputShapeTest/InsufficientAsync",
        run: |device| short(device, Asynchronous),
    },
    Check { name: "DynamicOutputShapeTest/InsufficientBurst", run: |device| short(device, Burst) },
    Check { name: "DynamicOutputShapeTest/Fenced", run: open_fenced },
    Check { name: "ZeroSizedOutput/Sync", run: |device| empty(device, Synchronous) },
    Check { name: "ZeroSizedOutput/Async", run: |device| empty(device, Asynchronous) },
    Check { name: "ZeroSizedOutput/Burst", run: |device| empty(device, Burst) },
    Check { name: "ZeroSizedOutput/Fenced", run: empty_fenced },
    Check { name: "FencedComputeTest/Fenced", run: |device| general(device, Fenced) },
    Check { name: "FencedComputeTest/InfoBeforeAndAfter", run: info_before_and_after },
    Check { name: "FencedComputeTest/Chain", run: chain },
    Check { name: "QuantizationCouplingTest/Sync", run: |device| coupling(device, Synchronous) },
    Check { name: "QuantizationCouplingTest/Async", run: |device| coupling(device, Asynchronous) },
    Check { name: "QuantizationCouplingTest/Burst", run: |device| coupling(device, Burst) },
    Check { name: "QuantizationCouplingTest/Fenced", run: |device| coupling(device, Fenced) },
    Check { name: "InfiniteLoopTimeoutTest/Sync", run: |device| endless(device, Synchronous) },
    Check { name: "InfiniteLoopTimeoutTest/Async", run: |device| endless(device, Asynchronous) },
    Check { name: "InfiniteLoopTimeoutTest/Fenced", run: |device| endless(device, Fenced) },
];

/// The time-out of a loop that never ends, as the original suite gives it.
const LOOP_TIMEOUT: Duration = Duration::from_millis(1);

/// A way over a route; `None` where the device has no fenced executions, which it may say by
/// GENERAL_FAILURE.
pub(super) fn open_way(
    model: &Arc<dyn PreparedModel>,
    route: Route,
    legal: &Laid,
) -> Result<Option<Way>, String> {
    let mut way = Way::open(model, route)?;
    if route == Fenced {
        let ran = way.execute(&legal.request, &ExecutionOptions::default())?;
        if ran.refused == Some(ErrorStatus::GeneralFailure) {
            return Ok(None);
        }
    }
    Ok(Some(way))
}

/// What is said where there is no such way.
pub(super) fn no_fences() -> Checked {
    Ok(Verdict::DoesNotApply("the device has no fenced executions".to_owned()))
}

/// Goes on with a way over a route, or ends the check.
macro_rules! way {
    ($model:expr, $route:expr, $sample:expr) => {
        match $crate::functional::generated::open_way($model, $route, &$sample.laid(0))? {
            Some(way) => way,
            None => return $crate::functional::generated::no_fences(),
        }
    };
}
pub(super) use way;

/// Options with this choice and nothing else.
pub(super) fn measuring(measure_timing: bool) -> ExecutionOptions {
    ExecutionOptions { measure_timing, ..ExecutionOptions::default() }
}

/// Asserts that an execution ended well, with all its shapes or none, times only where they were asked for,
/// and the right values.
pub(super) fn expect_right(
    sample: &Sample,
    laid: &Laid,
    ran: &Ran,
    measured: bool,
) -> Result<(), String> {
    let ExecutionResult { status, output_shapes, timing } = &ran.result;
    let name = sample.name;
    if *status != ErrorStatus::None {
        return Err(format!("{name}: {status}"));
    }
    check_timing(*timing, measured)?;
    let shapes =
        output_shapes.iter().map(|shape| (shape.dimensions.as_slice(), shape.is_sufficient));
    if !output_shapes.is_empty() && !shapes.eq(sample.shapes().map(|shape| (shape, true))) {
        return Err(format!("{name}: the shapes {output_shapes:?}"));
    }
    sample.check_values(laid)
}

/// Asserts that an execution has failed with such a status, said nothing else and written nothing.
pub(super) fn expect_failed(
    sample: &Sample,
    laid: &Laid,
    ran: &Ran,
    is_due: impl Fn(ErrorStatus) -> bool,
) -> Result<(), String> {
    expect_failure_without_more(sample, ran, is_due)?;
    sample.check_untouched(laid)
}

/// The same, whatever was written.
pub(super) fn expect_failure_without_more(
    sample: &Sample,
    ran: &Ran,
    is_due: impl Fn(ErrorStatus) -> bool,
) -> Result<(), String> {
    let (name, result) = (sample.name, &ran.result);
    if !is_due(result.status) {
        return Err(format!("{name}: {}", result.status));
    }
    if !result.output_shapes.is_empty() || result.timing != Timing::UNAVAILABLE {
        return Err(format!("{name}: a failure with shapes or times: {result:?}"));
    }
    Ok(())
}

fn general(device: &dyn Device, route: Route) -> Checked {
    for sample in all_supported!(device) {
        let model = sample.prepare(device)?;
        let mut way = way!(&model, route, sample);
        for measured in [false, true] {
            let laid = sample.laid(0);
            let ran = way.execute(&laid.request, &measuring(measured))?;
            expect_right(&sample, &laid, &ran, measured)?;
        }
    }
    Ok(Verdict::Passed)
}

/// Outputs whose size the model leaves open: their shapes have to be told.
fn open(device: &dyn Device, route: Route) -> Checked {
    for sample in all_supported!(device).into_iter().map(Sample::with_unknown_outputs) {
        let model = sample.prepare(device)?;
        let mut way = Way::open(&model, route)?;
        for measured in [false, true] {
            let laid = sample.laid(0);
            let ran = way.execute(&laid.request, &measuring(measured))?;
            if ran.result.output_shapes.is_empty() {
                return Err(format!("{}: no shapes", sample.name));
            }
            expect_right(&sample, &laid, &ran, measured)?;
        }
    }
    Ok(Verdict::Passed)
}

/// The first output has a byte too few: it alone is insufficient, and every shape is right.
fn short(device: &dyn Device, route: Route) -> Checked {
    for sample in all_supported!(device).into_iter().map(Sample::with_unknown_outputs) {
        let model = sample.prepare(device)?;
        let mut way = Way::open(&model, route)?;
        for measured in [false, true] {
            let laid = sample.laid(1);
            let result = way.execute(&laid.request, &measuring(measured))?.result;
            let shapes = result.output_shapes.iter();
            let shapes = shapes.map(|shape| (shape.dimensions.as_slice(), shape.is_sufficient));
            let want = sample.shapes().enumerate().map(|(index, shape)| (shape, index != 0));
            let is_right = result.status == ErrorStatus::OutputInsufficientSize
                && result.timing == Timing::UNAVAILABLE
                && shapes.eq(want);
            if !is_right {
                return Err(format!("{}: {result:?}", sample.name));
            }
        }
    }
    Ok(Verdict::Passed)
}

/// Behind a fence nobody hears of a shape: what has none is refused, whatever its room.
fn open_fenced(device: &dyn Device) -> Checked {
    for sample in all_supported!(device) {
        let _has_fences = way!(&sample.prepare(device)?, Fenced, sample);
        refused_when_fenced(&sample.with_unknown_outputs(), device, &[0, 1])?;
    }
    Ok(Verdict::Passed)
}

fn refused_when_fenced(
    sample: &Sample,
    device: &dyn Device,
    rooms: &[usize],
) -> Result<(), String> {
    let mut way = Way::open(&sample.prepare(device)?, Fenced)?;
    for short in rooms {
        let laid = sample.laid(*short);
        let ran = way.execute(&laid.request, &measuring(true))?;
        let invalid = ErrorStatus::InvalidArgument;
        expect_failed(sample, &laid, &ran, |status| status == invalid)?;
        if ran.refused != Some(invalid) {
            return Err(format!("{}: the launch takes it", sample.name));
        }
    }
    Ok(())
}

fn empty(device: &dyn Device, route: Route) -> Checked {
    let sample = supported!(device, Sample::empty());
    let model = sample.prepare(device)?;
    let mut way = Way::open(&model, route)?;
    let laid = sample.laid(0);
    let ran = way.execute(&laid.request, &measuring(true))?;
    expect_right(&sample, &laid, &ran, true)?;
    sample.check_untouched(&laid)?;
    Ok(Verdict::Passed)
}

fn empty_fenced(device: &dyn Device) -> Checked {
    let legal = supported!(device, Sample::chain());
    let _has_fences = way!(&legal.prepare(device)?, Fenced, legal);
    refused_when_fenced(&supported!(device, Sample::empty()), device, &[0])?;
    Ok(Verdict::Passed)
}

/// Nobody is told how it ended before it has; afterwards the same is said as often as somebody asks.
fn info_before_and_after(device: &dyn Device) -> Checked {
    for (sample, measured) in all_supported!(device).into_iter().zip([true, false, true]) {
        let model = sample.prepare(device)?;
        let way = way!(&model, Fenced, sample);
        let (fence, mut opener) = gate()?;
        let laid = sample.laid(0);
        let options = measuring(measured);
        let started = way.start_fenced(&laid.request, vec![fence], &options);
        let started = started.map_err(refused("behind a fence"))?;
        let early = started.info.execution_info();
        super::expect_failure("the info before the end", ErrorStatus::GeneralFailure, early)?;
        sample.check_untouched(&laid)?;
        opener.write_all(&[1]).map_err(|error| error.to_string())?;
        let info = ended(&started, &options)?;
        if info.status != ErrorStatus::None {
            return Err(format!("{}: {}", sample.name, info.status));
        }
        sample.check_values(&laid)?;
        if started.info.execution_info().map_err(refused("the info after the end"))? != info {
            return Err("another answer the second time".to_owned());
        }
    }
    Ok(Verdict::Passed)
}

/// Executions in a chain run when the first fence is done; where it fails, so does every one of them.
fn chain(device: &dyn Device) -> Checked {
    let sample = supported!(device, Sample::chain());
    let model = sample.prepare(device)?;
    let way = way!(&model, Fenced, sample);
    let options = ExecutionOptions::default();
    for is_done in [true, false] {
        let (first, mut opener) = gate()?;
        let mut fence = first;
        let mut links = Vec::new();
        for link in 0..3 {
            let laid = sample.laid(0);
            let started = way.start_fenced(&laid.request, vec![fence], &options);
            let started = started.map_err(refused("a link of a chain"))?;
            fence = started.fence.clone().ok_or_else(|| format!("link {link} has ended"))?;
            links.push((started, laid));
        }
        if fence.state() != FenceState::Pending {
            return Err("the end of a chain is there before its beginning".to_owned());
        }
        if is_done {
            opener.write_all(&[1]).map_err(|error| error.to_string())?;
        }
        drop(opener);
        for (started, laid) in &links {
            let info = ended(started, &options)?;
            match is_done {
                true if info.status == ErrorStatus::None => sample.check_values(laid)?,
                false if info.status != ErrorStatus::None => sample.check_untouched(laid)?,
                _ => return Err(format!("the first fence was done: {is_done}; {}", info.status)),
            }
        }
    }
    Ok(Verdict::Passed)
}

/// The signed form of a model is supported where the other one is, and computes the same.
fn coupling(device: &dyn Device, route: Route) -> Checked {
    let forms = [Sample::quantized()?, Sample::quantized_signed()?];
    let supported = forms.each_ref().map(|form| device.supported_operations(&form.model));
    let [Ok(unsigned), Ok(signed)] = &supported else {
        return Err(format!("supported_operations: {supported:?}"));
    };
    if unsigned != signed {
        return Err(format!("supported are {unsigned:?}, and of the signed form {signed:?}"));
    }
    if unsigned.contains(&false) {
        let what = "the device does not run sums of bytes".to_owned();
        let prepared = forms
            .iter()
            .any(|form| device.prepare_model(&form.model, &PrepareOptions::default()).is_ok());
        return if prepared { Err(what) } else { Ok(Verdict::DoesNotApply(what)) };
    }
    for form in &forms {
        let model = form.prepare(device)?;
        let mut way = way!(&model, route, form);
        let laid = form.laid(0);
        let ran = way.execute(&laid.request, &measuring(true))?;
        expect_right(form, &laid, &ran, true)?;
    }
    Ok(Verdict::Passed)
}

fn endless(device: &dyn Device, route: Route) -> Checked {
    let legal = supported!(device, Sample::chain());
    let _has_route = way!(&legal.prepare(device)?, route, legal);
    let sample = supported!(device, Sample::endless());
    let mut way = Way::open(&sample.prepare(device)?, route)?;
    for measure_timing in [false, true] {
        let laid = sample.laid(0);
        let loop_timeout = Some(LOOP_TIMEOUT);
        let options = ExecutionOptions { measure_timing, deadline: None, loop_timeout };
        let ran = way.execute(&laid.request, &options)?;
        expect_failed(&sample, &laid, &ran, is_missed_deadline)?;
    }
    Ok(Verdict::Passed)
}
