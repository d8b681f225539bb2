//! Values of a graph's operands: what is read, refused, broadcast and written.

use super::*;
use crate::{DataLocation, HeapMemory, ModelBuilder, OperationType, OutputSpec};

/// `y = x + row`, where sizes of 0 are not known; operands 0, 1, 2 (the activation) and 3.
fn sum(x: &[u32], row: &[f32], y: &[u32]) -> GraphValues {
    let mut builder = ModelBuilder::new();
    let x = builder.input(OperandType::TensorFloat32, x);
    let count = u32::try_from(row.len()).unwrap();
    let row = builder.constant_f32(&[count], row);
    let none = builder.scalar_i32(0);
    let y = builder.result_of(OperationType::Add, &[x, row, none], OutputSpec::f32(y));
    builder.output(y);
    GraphValues::new(&builder.build().unwrap()).unwrap()
}

/// One input at the beginning of a pool and one output behind it, with these numbers of bytes.
fn request(input: &[f32], dimensions: &[u32], output: u32) -> (Request, Arc<HeapMemory>) {
    let length = u32::try_from(size_of_val(input)).unwrap();
    let bytes: Vec<u8> = cast_slice(input).to_vec();
    let memory = Arc::new(HeapMemory::new([bytes, vec![7; output as usize]].concat()));
    let argument = |offset, length, dimensions| RequestArgument {
        location: DataLocation { pool_index: 0, offset, length },
        dimensions: Dimensions::from_slice(dimensions),
        ..RequestArgument::default()
    };
    let request = Request {
        inputs: vec![argument(0, length, dimensions)],
        outputs: vec![argument(length, output, &[])],
        pools: vec![RequestPool::Memory(Arc::clone(&memory) as Pool)],
    };
    (request, memory)
}

fn status<T>(result: Result<T, Failure>) -> ErrorStatus {
    result.map_or_else(|failure| failure.status, |_| ErrorStatus::None)
}

/// The result of the sum.
fn add(values: &GraphValues, request: &Request) -> Result<ExecutionResult, Failure> {
    let mut values = values.clone();
    values.read_inputs(request)?;
    let (a, b) = (values.tensor::<f32>(0)?, values.tensor::<f32>(1)?);
    let (dimensions, pairs) = a.broadcast(&b)?;
    values.put(3, &dimensions, pairs.map(|(a, b)| a + b))?;
    values.write_outputs(request)
}

#[test]
fn unknown_sizes_are_those_of_the_request_and_the_result_says_what_came_out() {
    let values = sum(&[0, 2], &[10.0, 20.0], &[0, 0]);
    let (request, memory) = request(&[1.0, 2.0, 3.0, 4.0], &[2, 2], 16);
    let result = add(&values, &request).unwrap();
    assert_eq!(result.status, ErrorStatus::None);
    let shape = OutputShape { dimensions: Dimensions::from_slice(&[2, 2]), is_sufficient: true };
    assert_eq!(result.output_shapes, [shape]);
    assert_eq!(cast_slice::<u8, f32>(&memory.to_vec())[4..], [11.0, 22.0, 13.0, 24.0]);
}

#[test]
fn an_output_that_is_too_short_is_left_alone_and_its_shape_is_told() {
    let values = sum(&[2, 2], &[10.0, 20.0], &[0, 0]);
    let (request, memory) = request(&[1.0; 4], &[], 15);
    let result = add(&values, &request).unwrap();
    assert_eq!(result.status, ErrorStatus::OutputInsufficientSize);
    assert_eq!(&result.output_shapes[0].dimensions[..], [2, 2]);
    assert!(!result.output_shapes[0].is_sufficient);
    assert_eq!(memory.to_vec()[16..], [7; 15]);
}

#[test]
fn what_does_not_fit_the_graph_is_refused() {
    let invalid = ErrorStatus::InvalidArgument;
    let values = sum(&[0], &[10.0, 20.0], &[2]);
    let (right, _) = request(&[1.0, 2.0], &[2], 8);
    assert_eq!(status(add(&values, &right)), ErrorStatus::None);
    let (other, _) = request(&[1.0, 2.0, 3.0], &[3], 8);
    assert_eq!(status(add(&values, &other)), invalid, "3 and 2 do not broadcast");
    let (longer, _) = request(&[1.0, 2.0], &[1], 8);
    assert_eq!(status(add(&values, &longer)), invalid, "8 bytes for one element");
    let mut fewer = right.clone();
    fewer.inputs.clear();
    assert_eq!(status(add(&values, &fewer)), invalid);
    let mut omitted = right.clone();
    omitted.inputs[0] = RequestArgument { has_no_value: true, ..RequestArgument::default() };
    assert_eq!(status(add(&values, &omitted)), invalid);
    let token = Request { pools: vec![RequestPool::Token(1)], ..right.clone() };
    assert_eq!(status(add(&values, &token)), invalid);
    let mut outside = right;
    outside.outputs[0].location.offset = 1 << 20;
    assert_eq!(status(add(&values, &outside)), invalid);
}

#[test]
fn views_and_results_have_the_type_and_the_shape_that_the_model_declares() {
    let invalid = ErrorStatus::InvalidArgument;
    let mut values = sum(&[2], &[10.0, 20.0], &[2]);
    assert_eq!(values.scalar::<i32>(2).unwrap(), 0);
    assert_eq!(status(values.tensor::<i32>(1)), invalid, "floats");
    assert_eq!(status(values.scalar::<f32>(1)), invalid, "two elements");
    assert_eq!(status(values.tensor::<f32>(0)), invalid, "no value yet");
    assert_eq!(status(values.tensor::<f32>(4)), invalid, "no operand");
    assert_eq!(status(values.put(3, &[3], [0f32; 3])), invalid, "declared as [2]");
    assert_eq!(status(values.put(3, &[2], [0i32; 2])), invalid, "floats");
    for count in [0, 1, 3] {
        let few = std::iter::repeat_n(0f32, count);
        assert_eq!(status(values.put(3, &[2], few)), ErrorStatus::GeneralFailure, "{count} of 2");
    }
    assert_eq!(status(values.put(3, &[2], [0f32; 2])), ErrorStatus::None);
}

#[test]
fn a_broadcast_to_gigabytes_is_refused_before_it_is_made() {
    let values = sum(&[0, 1], &[1.0; 1 << 10], &[0, 0]);
    let rows = 1u32 << 19;
    let (request, _) = request(&vec![1.0; rows as usize], &[rows, 1], 4);
    assert_eq!(status(add(&values, &request)), ErrorStatus::ResourceExhaustedPersistent);
}

#[test]
fn shapes_broadcast_from_the_last_axis_on() {
    let shape = |a: &[u32], b: &[u32]| broadcast_shape(a, b).map(|shape| shape.to_vec());
    assert_eq!(shape(&[2, 3], &[3]), Some(vec![2, 3]));
    assert_eq!(shape(&[3], &[2, 1]), Some(vec![2, 3]));
    assert_eq!(shape(&[4, 1, 2], &[3, 1]), Some(vec![4, 3, 2]));
    assert_eq!(shape(&[2], &[]), Some(vec![2]));
    assert_eq!(shape(&[0], &[1]), Some(vec![0]));
    assert_eq!(shape(&[0], &[2]), None);
    assert_eq!(shape(&[2, 3], &[2]), None);
    let places = |to: &[u32], from: &[u32]| -> Vec<usize> {
        let count = to.iter().product::<u32>() as usize;
        (0..count).map(|at| place(at, to, from)).collect()
    };
    assert_eq!(places(&[2, 3], &[3]), [0, 1, 2, 0, 1, 2]);
    assert_eq!(places(&[2, 3], &[2, 1]), [0, 0, 0, 1, 1, 1]);
    assert_eq!(places(&[2, 2, 2], &[2, 1, 2]), [0, 1, 0, 1, 2, 3, 2, 3]);
}
