//! Graphs that are taken over, and what they compute.

use super::super::layout::OK;
use super::Own;
use super::runtime::{ADD, ARG_MAX, CONV_2D, FLOAT32, INT64, Runtime, SVDF, UINT8};

/// SAME padding, strides 1, no activation, no dilation.
const PLAIN_CONVOLUTION: &[i32] = &[1, 1, 1, 0, 1, 1];
const NO_ACTIVATION: &[i32] = &[0];
const RELU: &[i32] = &[1];

/// An image, times 2 plus 0.5 by a convolution, plus a constant, at least 0.
struct Sum {
    runtime: Box<Runtime>,
    image: i32,
    middle: i32,
    result: i32,
}

fn sum(size: i32, constant: f32) -> Sum {
    let mut runtime = Runtime::new();
    let image = runtime.computed(FLOAT32, &[1, size, 2, 1]);
    let filter = runtime.floats(&[1, 1, 1, 1], &[2.0]);
    let bias = runtime.floats(&[1], &[0.5]);
    let middle = runtime.computed(FLOAT32, &[1, size, 2, 1]);
    let constant = runtime.floats(&[1], &[constant]);
    let result = runtime.computed(FLOAT32, &[1, size, 2, 1]);
    runtime.node(CONV_2D, &[image, filter, bias], &[middle], PLAIN_CONVOLUTION);
    runtime.node(ADD, &[middle, constant], &[result], RELU);
    runtime.outputs(&[result]);
    Sum { runtime, image, middle, result }
}

#[test]
fn a_convolution_and_an_addition_are_one_partition_and_compute_what_they_should() {
    let own = Own::cpu();
    let Sum { mut runtime, image, middle, result } = sum(2, -3.0);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    assert_eq!((runtime.kernels(), runtime.left()), (1, vec![]));
    // What is inside of a partition needs no memory of the runtime.
    runtime.tensor(middle).data = std::ptr::null_mut();
    for (input, want) in [
        ([1.0, 2.0, 3.0, 4.0], [0.0, 1.5, 3.5, 5.5]),
        ([0.0, 9.0, -1.0, 2.0], [0.0, 15.5, 0.0, 1.5]),
    ] {
        runtime.write(image, &input);
        assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
        assert_eq!(runtime.read(result), want);
    }
    assert!(runtime.reported.is_empty());
}

#[test]
fn what_the_delegate_does_not_know_stays_between_two_partitions() {
    let own = Own::cpu();
    let mut runtime = Runtime::new();
    let [a, b, c, d] = [(); 4].map(|()| runtime.computed(FLOAT32, &[3]));
    let ten = runtime.floats(&[1], &[10.0]);
    runtime.node(ADD, &[a, ten], &[b], NO_ACTIVATION);
    runtime.increment(b, c);
    runtime.node(ADD, &[c, b], &[d], NO_ACTIVATION);
    runtime.outputs(&[d]);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    assert_eq!((runtime.kernels(), runtime.left()), (2, vec![1]));
    runtime.write(a, &[1.0, -2.0, 0.25]);
    assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.read(d), [23.0, 17.0, 21.5]);
}

#[test]
fn after_a_change_of_shapes_the_graph_is_taken_over_again() {
    let own = Own::cpu();
    let Sum { mut runtime, image, middle, result } = sum(1, 1.0);
    assert_eq!(runtime.apply(own.0), OK);
    for tensor in [image, middle, result] {
        runtime.resize(tensor, &[1, 3, 2, 1]);
    }
    // A kernel for the shapes before says so, and does not run.
    assert_ne!(runtime.prepare_kernels(), OK);
    assert_ne!(runtime.invoke(), OK);
    let want = format!("burst: tensor {image} has 24 bytes where the partition has 8");
    assert_eq!(runtime.reported, [want.clone(), want]);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    runtime.write(image, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(runtime.invoke(), OK);
    assert_eq!(runtime.read(result), [1.5, 3.5, 5.5, 7.5, 9.5, 11.5]);
}

#[test]
fn quantized_values_pass_as_they_are() {
    let own = Own::cpu();
    let mut runtime = Runtime::new();
    let [a, b, c] = [(); 3].map(|()| runtime.computed(UINT8, &[4]));
    for (tensor, scale, zero_point) in [(a, 0.5, 10), (b, 0.5, 20), (c, 1.0, 0)] {
        runtime.quantize(tensor, scale, zero_point);
    }
    runtime.node(ADD, &[a, b], &[c], NO_ACTIVATION);
    runtime.outputs(&[c]);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.kernels(), 1);
    runtime.write_bytes(a, &[10, 20, 30, 250]);
    runtime.write_bytes(b, &[20, 30, 40, 20]);
    assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.read_bytes(c), [0, 10, 20, 120]);
}

#[test]
fn indexes_become_64_bit_ones_again() {
    let own = Own::cpu();
    let mut runtime = Runtime::new();
    let rows = runtime.computed(FLOAT32, &[2, 3]);
    let axis = runtime.constant(2, &[1], 1_i32.to_ne_bytes().to_vec());
    let largest = runtime.computed(INT64, &[2]);
    runtime.node(ARG_MAX, &[rows, axis], &[largest], &[]);
    runtime.outputs(&[largest]);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.kernels(), 1);
    runtime.write(rows, &[1.0, 7.0, 3.0, 9.0, 2.0, 8.0]);
    assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
    let want: Vec<u8> = [1_i64, 0].iter().flat_map(|index| index.to_ne_bytes()).collect();
    assert_eq!(runtime.read_bytes(largest), want);
}

#[test]
fn a_state_is_the_runtimes_tensor_so_that_resetting_it_there_resets_it() {
    let own = Own::cpu();
    let mut runtime = Runtime::new();
    let sound = runtime.computed(FLOAT32, &[1, 1]);
    let feature = runtime.floats(&[1, 1], &[1.0]);
    let time = runtime.floats(&[1, 3], &[1.0, 10.0, 100.0]);
    let state = runtime.computed(FLOAT32, &[1, 3]);
    runtime.tensor(state).is_variable = 1;
    let result = runtime.computed(FLOAT32, &[1, 1]);
    // Rank 1, no activation.
    runtime.node(SVDF, &[sound, feature, time, -1, state], &[result], &[1, 0]);
    runtime.outputs(&[result]);
    assert_eq!(runtime.apply(own.0), OK, "{:?}", runtime.reported);
    assert_eq!(runtime.kernels(), 1);
    let run = |runtime: &mut Runtime, value| {
        runtime.write(sound, &[value]);
        assert_eq!(runtime.invoke(), OK, "{:?}", runtime.reported);
        runtime.read(result)[0]
    };
    assert_eq!(run(&mut runtime, 1.0), 100.0);
    assert_eq!(run(&mut runtime, 2.0), 210.0);
    assert_eq!(run(&mut runtime, 0.0), 21.0);
    runtime.write(state, &[0.0; 3]);
    assert_eq!(run(&mut runtime, 3.0), 300.0);
}
