//! What is no legal model gets INVALID_ARGUMENT from both calls that take one. What is legal, but
//! nothing this device runs, is "not supported" to the one and GENERAL_FAILURE to the other. The same
//! over Android's fuzz corpus: `tests/tests/driver/fuzz_corpus.rs`.

#![allow(clippy::unwrap_used, reason = "a test panics")]

use burst_driver::CpuDevice;
use burst_hal::{
    Device, ErrorStatus, Model, ModelBuilder, Operand, OperandLifeTime, OperandType, OperationType,
    OutputSpec, PrepareOptions,
};

const F32: OperandType = OperandType::TensorFloat32;
const I32: OperandType = OperandType::TensorInt32;
const BOOL8: OperandType = OperandType::TensorBool8;

/// What a device says of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Runs,
    NotSupported,
    Illegal,
}

/// Asks both calls, whose answers must go together.
fn verdict(model: &Model) -> Verdict {
    let device = CpuDevice::default();
    let status = |failure: burst_hal::Failure| failure.status;
    let prepared = device.prepare_model(model, &PrepareOptions::default()).map_err(status);
    let prepared = prepared.map(|_| ());
    match device.supported_operations(model).map_err(status) {
        Err(status) => {
            assert_eq!((status, prepared), (ErrorStatus::InvalidArgument, Err(status)));
            Verdict::Illegal
        }
        Ok(supported) if supported.contains(&false) => {
            assert_eq!(prepared, Err(ErrorStatus::GeneralFailure));
            Verdict::NotSupported
        }
        Ok(_) => {
            assert_eq!(prepared, Ok(()));
            Verdict::Runs
        }
    }
}

/// A model with one output, which `fill` makes.
fn model(fill: impl FnOnce(&mut ModelBuilder) -> u32) -> Model {
    let mut b = ModelBuilder::new();
    let output = fill(&mut b);
    b.output(output);
    b.build_unvalidated().unwrap()
}

fn floats(dims: &[u32]) -> OutputSpec {
    OutputSpec::new(F32, dims)
}

/// `x + y` with shapes of their own.
fn sum(b: &mut ModelBuilder, x: u32, y: u32, output: &[u32]) -> u32 {
    let none = b.scalar_i32(0);
    b.result_of(OperationType::Add, &[x, y, none], floats(output))
}

/// ADD without its activation, in no form of any version.
fn wrong(b: &mut ModelBuilder, x: u32) -> u32 {
    b.result_of(OperationType::Add, &[x, x], floats(&[2]))
}

/// `beta` is a softmax's.
fn softmax(b: &mut ModelBuilder, x: u32, beta: f32) -> u32 {
    let beta = b.scalar_f32(beta);
    b.result_of(OperationType::Softmax, &[x, beta], floats(&[2]))
}

/// A referenced graph `x -> fill(x)`.
fn graph(b: &mut ModelBuilder, fill: impl FnOnce(&mut ModelBuilder, u32) -> u32) -> u32 {
    b.referenced(|b| {
        let x = b.input(F32, &[2]);
        let y = fill(b, x);
        b.output(y);
    })
}

/// An IF between two graphs, on a condition that the client gives.
fn choose(b: &mut ModelBuilder, graphs: [u32; 2], x: u32) -> u32 {
    let condition = b.input(BOOL8, &[1]);
    let [then, otherwise] = graphs.map(|graph| b.subgraph(graph));
    b.result_of(OperationType::If, &[condition, then, otherwise, x], floats(&[2]))
}

#[test]
fn what_breaks_a_rule_of_the_contract_is_illegal_to_both() {
    let consumers = {
        let mut model = model(|b| {
            let x = b.input(F32, &[2]);
            sum(b, x, x, &[2])
        });
        model.main.operands[0].number_of_consumers += 1;
        model
    };
    let unwritten = model(|b| {
        let [x, never] = [b.input(F32, &[2]), b.temporary(floats(&[2]))];
        sum(b, x, never, &[2])
    });
    let types = model(|b| {
        let [x, y] = [b.input(F32, &[2]), b.input(I32, &[2])];
        sum(b, x, y, &[2])
    });
    let count = model(|b| {
        let x = b.input(F32, &[2]);
        wrong(b, x)
    });
    let omitted = model(|b| {
        let [x, y] = [b.input(F32, &[2]), b.omitted(F32)];
        sum(b, x, y, &[2])
    });
    let size = model(|b| {
        let x = b.input(F32, &[1 << 30, 1 << 30]);
        sum(b, x, x, &[])
    });
    for (name, model) in [
        ("size", size),
        ("consumers", consumers),
        ("unwritten", unwritten),
        ("types", types),
        ("count", count),
        ("omitted", omitted),
    ] {
        assert_eq!(verdict(&model), Verdict::Illegal, "{name}");
    }
}

#[test]
fn an_illegal_operation_is_found_wherever_it_stands() {
    let behind_what_is_not_supported = model(|b| {
        let x = b.input(F32, &[2]);
        let x = softmax(b, x, f32::NAN);
        wrong(b, x)
    });
    let behind_what_is_not_there = model(|b| {
        let x = b.input(F32, &[2]);
        let x = b.result_of(OperationType::OemOperation, &[x], floats(&[2]));
        wrong(b, x)
    });
    let in_the_second_branch = model(|b| {
        let unsupported = graph(b, |b, x| softmax(b, x, f32::NAN));
        let illegal = graph(b, wrong);
        let x = b.input(F32, &[2]);
        choose(b, [unsupported, illegal], x)
    });
    let in_a_graph_that_nothing_runs = model(|b| {
        graph(b, wrong);
        let x = b.input(F32, &[2]);
        softmax(b, x, 1.0)
    });
    let where_a_graph_begins = model(|b| {
        let one = graph(b, |b, x| softmax(b, x, 1.0));
        let x = b.input(F32, &[3]);
        choose(b, [one, one], x)
    });
    for (name, model) in [
        ("behind what is not supported", behind_what_is_not_supported),
        ("behind what is not there", behind_what_is_not_there),
        ("in the second branch", in_the_second_branch),
        ("in a graph that nothing runs", in_a_graph_that_nothing_runs),
        ("where a graph begins", where_a_graph_begins),
    ] {
        assert_eq!(verdict(&model), Verdict::Illegal, "{name}");
    }
}

#[test]
fn what_no_execution_could_compute_is_legal_and_not_supported() {
    let shapes = model(|b| {
        let [x, y] = [b.input(F32, &[2]), b.input(F32, &[3])];
        sum(b, x, y, &[3])
    });
    let declared = model(|b| {
        let x = b.input(F32, &[2]);
        sum(b, x, x, &[2, 1])
    });
    let rank = model(|b| {
        let x = b.input(F32, &[1, 1, 1, 1, 2]);
        sum(b, x, x, &[])
    });
    let range = model(|b| {
        let x = b.input(F32, &[2]);
        softmax(b, x, f32::NAN)
    });
    let value = model(|b| {
        let [x, axis, parts] = [b.input(F32, &[2]), b.scalar_i32(7), b.scalar_i32(1)];
        b.result_of(OperationType::Split, &[x, axis, parts], floats(&[2]))
    });
    let left_out = model(|b| {
        let one = graph(b, |b, x| softmax(b, x, 1.0));
        let mut x = Operand::new(F32, OperandLifeTime::NoValue);
        x.dimensions = [2].as_slice().into();
        let x = b.operand(x);
        choose(b, [one, one], x)
    });
    let foreign = model(|b| {
        let x = b.input(F32, &[2]);
        b.result_of(OperationType::OemOperation, &[x], floats(&[2]))
    });
    let inside = model(|b| {
        let [bad, good] = [f32::NAN, 1.0].map(|beta| graph(b, |b, x| softmax(b, x, beta)));
        let x = b.input(F32, &[2]);
        choose(b, [good, bad], x)
    });
    let never_chosen = model(|b| {
        let [bad, good] = [f32::NAN, 1.0].map(|beta| graph(b, |b, x| softmax(b, x, beta)));
        let (x, condition) = (b.input(F32, &[2]), b.constant_bool(&[1], &[true]));
        let [then, otherwise] = [good, bad].map(|graph| b.subgraph(graph));
        b.result_of(OperationType::If, &[condition, then, otherwise, x], floats(&[2]))
    });
    for (name, model) in [
        ("never chosen", never_chosen),
        ("shapes", shapes),
        ("declared", declared),
        ("rank", rank),
        ("range", range),
        ("value", value),
        ("left out", left_out),
        ("foreign", foreign),
        ("inside", inside),
    ] {
        assert_eq!(verdict(&model), Verdict::NotSupported, "{name}");
    }
}

#[test]
fn what_runs_is_supported_and_prepared() {
    let one = model(|b| {
        let good = graph(b, |b, x| softmax(b, x, 1.0));
        // Not supported, but nothing runs it.
        graph(b, |b, x| softmax(b, x, f32::NAN));
        let x = b.input(F32, &[2]);
        let y = choose(b, [good, good], x);
        sum(b, x, y, &[2])
    });
    assert_eq!(verdict(&one), Verdict::Runs);
}
