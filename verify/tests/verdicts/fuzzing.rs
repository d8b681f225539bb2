//! Any bytes against a device: a right one passes, and each fault is named.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on")]

mod relu;

use std::collections::BTreeSet;
use std::time::Duration;

use burst_hal::OperationType;
use burst_verify::fuzzing::{Finding, Seen, judge_device, judge_patiently, model_of};

use self::relu::{Fault, Relu};

/// How long a callback may take that never comes.
const IMPATIENCE: Duration = Duration::from_millis(20);

/// Pseudo-random inputs, the same each time: any model, and those of one RELU.
fn inputs() -> impl Iterator<Item = Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    let relu = OperationType::ALL.iter().position(|ty| *ty == OperationType::Relu).unwrap();
    (0..600).map(move |number| {
        let mut bytes: Vec<u8> = (0..192).map(|_| next()).collect();
        if number % 4 != 0 {
            // One operation; behind preference and priority which one, and in which form.
            bytes[1] = 0;
            bytes[4] = u8::try_from(relu).unwrap();
            bytes[5] = 0;
        }
        bytes
    })
}

fn first_finding(fault: Fault) -> Option<Finding> {
    let device = Relu::new(fault);
    inputs().find_map(|bytes| judge_patiently(&device, &bytes, IMPATIENCE).err())
}

#[test]
fn a_right_device_passes_and_inputs_reach_everything() {
    let device = Relu::new(Fault::None);
    let seen: Vec<Seen> = inputs()
        .map(|bytes| judge_device(&device, &bytes).unwrap_or_else(|e| panic!("{e}")))
        .collect();
    let count = |which: fn(&Seen) -> bool| seen.iter().filter(|seen| which(seen)).count();
    let (legal, prepared) = (count(|seen| seen.is_legal), count(|seen| seen.is_prepared));
    let ran = count(|seen| seen.succeeded > 0);
    println!("{} inputs, {legal} legal, {prepared} prepared, {ran} ran", seen.len());
    assert!(legal > 300 && seen.len() - legal > 50, "{legal} legal");
    assert!(prepared > 100 && ran > 100, "{prepared} prepared, {ran} ran");
    let types: BTreeSet<i32> =
        seen.iter().flat_map(|seen| &seen.operations).map(|ty| ty.code()).collect();
    assert!(types.len() > 90, "{} operations", types.len());
}

#[test]
fn every_fault_is_found_and_named() {
    for (fault, call, what) in [
        (Fault::PanicsWhenAsked, "supported_operations_for", "panicked: as it was told to"),
        (Fault::FewAnswers, "supported_operations_for", " answers for "),
        (Fault::AnswersOtherwise, "supported_operations_for", "another one when asked again"),
        (Fault::TakesIllegal, "supported_operations_for", "a model that is not legal"),
        (Fault::RefusesOtherwise, "supported_operations_for", "INVALID_ARGUMENT is due"),
        (Fault::NoFigures, "capabilities", "the figures for FLOAT32 are 0 and 1"),
        (Fault::HasButRefuses, "prepare_model_for", "every operation is said to be supported"),
        (Fault::LacksButPrepares, "prepare_model_for", "not every operation is said to be"),
        (Fault::PanicsOnNan, "execute_for", "panicked: not a number"),
        (Fault::LeavesAByte, "execute_for", "of output 0 is not written"),
        (Fault::WritesBehind, "execute_for", "which is no output's, was written"),
        (Fault::WritesInputs, "execute_for", "the memory of the inputs was written"),
        (Fault::WrongShape, "execute_for", "output 0 "),
        (Fault::IgnoresRoom, "execute_for", "and is sufficient"),
        (Fault::NoShapes, "execute_for", "0 shapes for 1 outputs"),
        (Fault::TimesUnasked, "execute_for", "times that were not asked for"),
        (Fault::TakesAnyRequest, "execute_for", "for a request of which"),
        (Fault::DiffersInBursts, "execute", "an execution of a burst gives "),
        (Fault::DropsCallback, "execute_asynchronously", "the callback was not called"),
        (Fault::LaunchSaysOtherwise, "execute_asynchronously", "the launch says GENERAL_FAILURE"),
        (Fault::FenceOfNothing, "execute_fenced", ", and there is no result"),
        (Fault::KeepsCharge, "Caller", "7 bytes are still charged"),
    ] {
        let finding = first_finding(fault).unwrap_or_else(|| panic!("{fault:?} is not found"));
        assert_eq!(finding.call, call, "{fault:?}: {finding}");
        assert!(finding.to_string().contains(what), "{fault:?} should be {what:?}: {finding}");
    }
}

#[test]
fn an_input_stands_for_one_model() {
    for bytes in inputs().take(50) {
        let (one, other) = (model_of(&bytes), model_of(&bytes));
        assert_eq!(format!("{:?}", one.main), format!("{:?}", other.main));
    }
    assert!(!model_of(&[]).main.operations.is_empty(), "no bytes are an input, too");
}
