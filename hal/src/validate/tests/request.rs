//! One mutation per rule of request validation.

use super::*;
use crate::{ErrorStatus, ExtensionOperandType, Memory, Request, RequestArgument, RequestPool};

use UnspecifiedOutputs::{Allowed, Refused};

/// Inputs: a fixed tensor, one of unknown size, one of unknown rank, a scalar. Outputs: fixed,
/// of unknown size, of unknown rank. What computes them does not matter here.
fn model() -> Model {
    let mut b = ModelBuilder::new();
    let inputs = [
        b.input(OperandType::TensorFloat32, &[2, 3]),
        b.input(OperandType::TensorFloat32, &[0, 3]),
        b.input(OperandType::TensorInt32, &[]),
        b.input(OperandType::Int32, &[]),
    ];
    let shapes: [&[u32]; 3] = [&[2, 3], &[0, 3], &[]];
    for dimensions in shapes {
        let spec = OutputSpec::f32(dimensions);
        let output = b.result_of(OperationType::Add, &inputs, spec);
        b.output(output);
    }
    b.build().expect("the model is legal")
}

fn at(offset: u32, length: u32, dimensions: &[u32]) -> RequestArgument {
    RequestArgument {
        has_no_value: false,
        location: DataLocation { pool_index: 0, offset, length },
        dimensions: Dimensions::from_slice(dimensions),
    }
}

fn omitted() -> RequestArgument {
    RequestArgument { has_no_value: true, ..RequestArgument::default() }
}

/// A request that [`model`] takes; pool 0 has memory, pool 1 is a buffer of the driver.
fn request() -> Request {
    let memory = Arc::new(HeapMemory::new(vec![0; 256]));
    Request {
        inputs: vec![at(0, 24, &[]), at(24, 12, &[1, 3]), at(36, 8, &[2, 1]), at(44, 4, &[])],
        outputs: vec![at(48, 24, &[]), at(72, 12, &[]), at(84, 1, &[])],
        pools: vec![RequestPool::Memory(memory), RequestPool::Token(5)],
    }
}

type Mutation = fn(&mut Request);
type Case<'a> = (&'a str, Mutation, Result<(), ValidationError>);

fn run(unspecified: UnspecifiedOutputs, table: &[Case<'_>]) {
    let model = model();
    let rules = RequestRules::new(&model).unwrap();
    for (name, mutate, want) in table {
        let mut request = request();
        mutate(&mut request);
        assert_eq!(rules.check(&request, unspecified), *want, "{name}");
        assert_eq!(validate_request(&request, &model, unspecified), *want, "{name}");
    }
}

fn input(position: u32, fault: ArgumentFault) -> Result<(), ValidationError> {
    Err(ValidationError::Argument { direction: Direction::Input, position, fault })
}

fn output(position: u32, fault: ArgumentFault) -> Result<(), ValidationError> {
    Err(ValidationError::Argument { direction: Direction::Output, position, fault })
}

fn count(direction: Direction, expected: u32, found: u32) -> Result<(), ValidationError> {
    Err(ValidationError::ArgumentCount { direction, expected, found })
}

#[test]
fn arguments_are_as_many_as_the_model_has() {
    run(
        Allowed,
        &[
            ("unchanged", |_| {}, Ok(())),
            ("input removed", |r| drop(r.inputs.remove(0)), count(Direction::Input, 4, 3)),
            ("input added", |r| r.inputs.push(omitted()), count(Direction::Input, 4, 5)),
            ("output removed", |r| drop(r.outputs.remove(1)), count(Direction::Output, 3, 2)),
            ("nothing at all", |r| *r = Request::default(), count(Direction::Input, 4, 0)),
        ],
    );
}

#[test]
fn what_is_left_out_says_nothing_more() {
    run(
        Allowed,
        &[
            ("input", |r| r.inputs[0] = omitted(), Ok(())),
            ("output", |r| r.outputs[0] = omitted(), Ok(())),
            (
                "with a length",
                |r| r.inputs[0].has_no_value = true,
                input(0, ArgumentFault::ValueLeftOut),
            ),
            (
                "with a pool",
                |r| {
                    r.outputs[1] = omitted();
                    r.outputs[1].location.pool_index = 1;
                },
                output(1, ArgumentFault::ValueLeftOut),
            ),
            (
                "with dimensions",
                |r| {
                    r.inputs[3] = omitted();
                    r.inputs[3].dimensions.push(1);
                },
                input(3, ArgumentFault::ValueLeftOut),
            ),
        ],
    );
}

#[test]
fn a_driver_can_require_arguments() {
    let mut rules = RequestRules::new(&model()).unwrap();
    rules.require(Direction::Input, 1);
    rules.require(Direction::Output, 2);
    rules.require(Direction::Output, 99);
    let mut first = request();
    first.inputs[0] = omitted();
    assert_eq!(rules.check(&first, Allowed), Ok(()));
    first.inputs[1] = omitted();
    assert_eq!(rules.check(&first, Allowed), input(1, ArgumentFault::NotOptional));
    let mut second = request();
    second.outputs[2] = omitted();
    assert_eq!(rules.check(&second, Allowed), output(2, ArgumentFault::NotOptional));
}

#[test]
fn arguments_lie_in_their_pools() {
    let out_of_pool = |offset, length| ArgumentFault::OutOfPool { offset, length, size: 256 };
    run(
        Allowed,
        &[
            (
                "pool behind the last",
                |r| r.inputs[0].location.pool_index = 2,
                input(0, ArgumentFault::UnknownPool { pool: 2, pools: 2 }),
            ),
            (
                "output pool behind the last",
                |r| r.outputs[2].location.pool_index = u32::MAX,
                output(2, ArgumentFault::UnknownPool { pool: u32::MAX, pools: 2 }),
            ),
            ("up to the pool's end", |r| r.inputs[0].location.offset = 232, Ok(())),
            (
                "one byte behind",
                |r| r.inputs[0].location.offset = 233,
                input(0, out_of_pool(233, 24)),
            ),
            (
                "where 32 bits wrap",
                |r| r.outputs[0].location.offset = u32::MAX,
                output(0, out_of_pool(u32::MAX, 24)),
            ),
            (
                "an output of no bytes behind the pool",
                |r| r.outputs[0] = at(257, 0, &[]),
                output(0, out_of_pool(257, 0)),
            ),
        ],
    );
}

#[test]
fn pools_have_a_limit_and_tokens_start_at_1() {
    run(
        Allowed,
        &[
            (
                "token 0, though nobody uses it",
                |r| r.pools[1] = RequestPool::Token(0),
                Err(ValidationError::TokenZero { pool: 1 }),
            ),
            (
                "too many",
                |r| r.pools.resize(MAX_REQUEST_POOLS + 1, RequestPool::Token(1)),
                Err(ValidationError::LimitExceeded {
                    limit: Limit::RequestPools,
                    found: MAX_REQUEST_POOLS as u64 + 1,
                }),
            ),
        ],
    );
}

#[test]
fn a_buffer_of_the_driver_is_used_as_a_whole() {
    let part = ArgumentFault::PartOfBuffer;
    run(
        Allowed,
        &[
            ("whole, fixed input", |r| r.inputs[0].location = buffer(0, 0), Ok(())),
            (
                "whole, its own dimensions hold",
                |r| {
                    r.inputs[1] = at(0, 0, &[]);
                    r.inputs[1].location = buffer(0, 0);
                },
                Ok(()),
            ),
            ("whole, output", |r| r.outputs[1].location = buffer(0, 0), Ok(())),
            ("from the middle", |r| r.inputs[0].location = buffer(4, 0), input(0, part)),
            ("with a length", |r| r.outputs[0].location = buffer(0, 24), output(0, part)),
            (
                "with dimensions that do not fit",
                |r| {
                    r.inputs[0] = at(0, 0, &[2, 4]);
                    r.inputs[0].location = buffer(0, 0);
                },
                input(0, ArgumentFault::Dimension { axis: 1, expected: 3, found: 4 }),
            ),
        ],
    );
}

fn buffer(offset: u32, length: u32) -> DataLocation {
    DataLocation { pool_index: 1, offset, length }
}

#[test]
fn dimensions_refine_those_of_the_model() {
    run(
        Allowed,
        &[
            ("the same", |r| r.inputs[0] = at(0, 24, &[2, 3]), Ok(())),
            (
                "another rank",
                |r| r.inputs[0] = at(0, 24, &[6]),
                input(0, ArgumentFault::Rank { expected: 2, found: 1 }),
            ),
            (
                "another size",
                |r| r.inputs[0] = at(0, 24, &[3, 2]),
                input(0, ArgumentFault::Dimension { axis: 0, expected: 2, found: 3 }),
            ),
            (
                "unknown where the model knows",
                |r| r.outputs[0] = at(0, 24, &[0, 3]),
                output(0, ArgumentFault::Dimension { axis: 0, expected: 2, found: 0 }),
            ),
            (
                "of a scalar",
                |r| r.inputs[3] = at(44, 4, &[1]),
                input(3, ArgumentFault::Rank { expected: 0, found: 1 }),
            ),
            ("any rank", |r| r.inputs[2] = at(0, 16, &[1, 2, 1, 2, 1]), Ok(())),
            (
                "too high a rank",
                |r| r.inputs[2] = at(0, 4, &[1; MAX_RANK + 1]),
                input(2, ArgumentFault::RankTooLarge { rank: 9 }),
            ),
            ("an output of any rank", |r| r.outputs[2] = at(84, 1, &[0, 7]), Ok(())),
        ],
    );
}

#[test]
fn inputs_are_known_completely() {
    let unspecified = ArgumentFault::Unspecified;
    run(
        Allowed,
        &[
            ("size not given", |r| r.inputs[1].dimensions.clear(), input(1, unspecified)),
            ("size given as 0", |r| r.inputs[1].dimensions[0] = 0, input(1, unspecified)),
            ("rank not given", |r| r.inputs[2].dimensions.clear(), input(2, unspecified)),
            (
                "size of unknown rank given as 0",
                |r| r.inputs[2].dimensions[0] = 0,
                input(2, unspecified),
            ),
        ],
    );
}

#[test]
fn inputs_are_exactly_as_long_as_they_have_to_be() {
    let length = |expected, found| ArgumentFault::Length { expected, found };
    run(
        Allowed,
        &[
            ("too short", |r| r.inputs[0].location.length = 23, input(0, length(24, 23))),
            ("too long", |r| r.inputs[0].location.length = 25, input(0, length(24, 25))),
            ("dimensions given", |r| r.inputs[1].dimensions[0] = 2, input(1, length(24, 12))),
            ("rank given", |r| r.inputs[2].dimensions[0] = 3, input(2, length(12, 8))),
            ("scalar", |r| r.inputs[3].location.length = 1, input(3, length(4, 1))),
            ("empty in the middle", |r| r.inputs[0] = at(8, 0, &[]), input(0, length(24, 0))),
            ("a whole pool that is long enough", |r| r.inputs[0] = at(0, 0, &[]), Ok(())),
            (
                "a whole pool that is too short",
                |r| r.inputs[1] = at(0, 0, &[100, 3]),
                input(1, length(1200, 256)),
            ),
            (
                "more bytes than 64 bits count",
                |r| r.inputs[2] = at(0, 8, &[u32::MAX; 3]),
                input(2, ArgumentFault::SizeOverflow),
            ),
            (
                "as many bytes as wrap to the right number",
                |r| r.inputs[2] = at(0, 8, &[1 << 31, 1 << 31, 4]),
                input(2, ArgumentFault::SizeOverflow),
            ),
        ],
    );
}

#[test]
fn an_output_may_be_short() {
    run(
        Allowed,
        &[
            ("one byte", |r| r.outputs[0].location.length = 1, Ok(())),
            ("long", |r| r.outputs[2].location.length = 172, Ok(())),
            (
                "whole pool",
                |r| {
                    r.pools.push(RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; 9]))));
                    r.outputs[0].location = DataLocation { pool_index: 2, offset: 0, length: 0 };
                },
                Ok(()),
            ),
        ],
    );
}

#[test]
fn an_output_shares_no_bytes_with_another_argument() {
    let overlap =
        |output, direction, position| Err(ValidationError::Overlap { output, direction, position });
    run(
        Allowed,
        &[
            (
                "with an output",
                |r| r.outputs[0].location.length = 25,
                overlap(1, Direction::Output, 0),
            ),
            (
                "with the first byte of an output",
                |r| r.outputs[2] = at(0, 49, &[]),
                overlap(2, Direction::Output, 0),
            ),
            ("with an input", |r| r.outputs[1] = at(44, 4, &[]), overlap(1, Direction::Input, 3)),
            ("inputs with each other", |r| r.inputs[3].location.offset = 0, Ok(())),
        ],
    );
    let error = ValidationError::Overlap { output: 1, direction: Direction::Input, position: 3 };
    let text = "output 1 and input 3 of the request lie in the same bytes";
    assert_eq!((error.to_string().as_str(), error.status()), (text, ErrorStatus::InvalidArgument));
}

#[test]
fn a_rank_that_nothing_here_takes_is_no_mistake_of_the_caller() {
    let fault = ArgumentFault::RankTooLarge { rank: 9 };
    let error = input(2, fault).unwrap_err();
    assert_eq!(error.status(), ErrorStatus::ResourceExhaustedPersistent);
    let another = |found| ArgumentFault::Rank { expected: 2, found };
    run(
        Allowed,
        &[("of a model with two axes", |r| r.inputs[0] = at(0, 24, &[1; 9]), input(0, another(9)))],
    );
}

#[test]
fn a_fenced_execution_knows_its_outputs() {
    let unspecified = ArgumentFault::Unspecified;
    run(
        Refused,
        &[
            ("size not given", |_| {}, output(1, unspecified)),
            ("size given as 0", |r| r.outputs[1] = at(72, 12, &[0, 3]), output(1, unspecified)),
            ("rank not given", |r| r.outputs[1] = at(72, 12, &[1, 3]), output(2, unspecified)),
            (
                "all given",
                |r| {
                    r.outputs[1] = at(72, 12, &[1, 3]);
                    r.outputs[2] = at(84, 4, &[1]);
                },
                Ok(()),
            ),
        ],
    );
}

#[test]
fn lengths_of_oem_and_extension_values_are_not_known() {
    let mut b = ModelBuilder::new();
    b.extension("a.b", 1);
    let inputs = [
        b.input(OperandType::Oem, &[]),
        b.input(OperandType::TensorOemByte, &[4]),
        b.input(OperandType::from_code(0x1_0000), &[]),
        b.input(OperandType::from_code(0x1_0000), &[0]),
    ];
    let y = b.result_of(OperationType::OemOperation, &inputs, OutputSpec::f32(&[1]));
    b.output(y);
    let rules = RequestRules::new(&b.build().unwrap()).unwrap();
    let mut request = Request {
        inputs: vec![at(0, 7, &[]), at(0, 9, &[]), at(0, 3, &[]), at(0, 3, &[2])],
        outputs: vec![at(12, 4, &[])],
        pools: vec![RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; 16])))],
    };
    assert_eq!(rules.check(&request, Refused), Ok(()));
    request.inputs[3].dimensions.clear();
    assert_eq!(rules.check(&request, Refused), input(3, ArgumentFault::Unspecified));
    request.inputs[3] = at(0, 17, &[2]);
    let fault = ArgumentFault::OutOfPool { offset: 0, length: 17, size: 16 };
    assert_eq!(rules.check(&request, Refused), input(3, fault));
}

#[test]
fn a_device_that_knows_an_extensions_types_has_lengths_checked() {
    let ty = OperandType::from_code(0x1_0000);
    let mut b = ModelBuilder::new();
    b.extension("a.b", 1);
    let inputs = [b.input(ty, &[]), b.input(ty, &[2]), b.input(ty, &[0]), b.input(ty, &[])];
    let y = b.result_of(OperationType::OemOperation, &inputs, OutputSpec::f32(&[1]));
    b.output(y);
    let mut rules = RequestRules::new(&b.build().unwrap()).unwrap();
    let known = |is_tensor| ExtensionOperandType { ty: 0, is_tensor, byte_size: 3 };
    for (position, is_tensor) in [false, true, true, true].into_iter().enumerate() {
        rules.describe(Direction::Input, position, &known(is_tensor));
    }
    rules.describe(Direction::Output, 9, &known(true)); // not there: nothing happens
    let good = || Request {
        inputs: vec![at(0, 3, &[]), at(0, 6, &[]), at(0, 9, &[3]), at(0, 3, &[1, 1])],
        outputs: vec![at(12, 4, &[])],
        pools: vec![RequestPool::Memory(Arc::new(HeapMemory::new(vec![0; 16])))],
    };
    assert_eq!(rules.check(&good(), Refused), Ok(()));
    let length = |expected, found| ArgumentFault::Length { expected, found };
    for (position, argument, fault) in [
        (0, at(0, 4, &[]), length(3, 4)),
        (1, at(0, 5, &[]), length(6, 5)),
        (2, at(0, 9, &[4]), length(12, 9)),
        (2, at(0, 9, &[]), ArgumentFault::Unspecified),
        (3, at(0, 3, &[]), ArgumentFault::Unspecified),
        (3, at(0, 3, &[u32::MAX, u32::MAX, u32::MAX]), ArgumentFault::SizeOverflow),
    ] {
        let mut bad = good();
        bad.inputs[position] = argument;
        let position = u32::try_from(position).unwrap();
        assert_eq!(rules.check(&bad, Refused), input(position, fault));
    }
}

#[test]
fn rules_of_a_broken_model_are_refused_without_a_panic() {
    let mut model = model();
    model.main.input_indexes[1] = 99;
    let fault = InterfaceFault::UnknownOperand { operand: 99, operands: 7 };
    let want = interface(Direction::Input, 1, fault);
    assert_eq!(RequestRules::new(&model).map(drop), Err(want));
}

#[test]
fn an_error_names_the_argument_and_the_numbers() {
    let error = input(1, ArgumentFault::Length { expected: 24, found: 12 }).unwrap_err();
    let text = "input 1 of the request: 12 bytes, where its dimensions need 24";
    assert_eq!(error.to_string(), text);
    let failure = crate::Failure::from(error);
    assert_eq!(failure.status, crate::ErrorStatus::InvalidArgument);
}

/// A pool longer than any offset reaches.
#[derive(Debug, Default)]
struct Endless;

impl Memory for Endless {
    fn len(&self) -> u64 {
        u64::MAX
    }
    fn read(&self, _: u64, _: &mut [u8]) -> Result<(), crate::MemoryError> {
        Ok(())
    }
    fn write(&self, _: u64, _: &[u8]) -> Result<(), crate::MemoryError> {
        Ok(())
    }
}

#[test]
fn a_pool_of_any_length_is_taken() {
    let mut request = request();
    request.pools[0] = RequestPool::Memory(Arc::new(Endless));
    request.outputs[0].location.offset = u32::MAX;
    assert_eq!(validate_request(&request, &model(), Allowed), Ok(()));
}
