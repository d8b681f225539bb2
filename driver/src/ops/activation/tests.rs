//! Kernels give what the reference gives: with tables worked out beforehand for every stored value, of floats to the bit.

use burst_hal::OperandType;

use super::*;
use crate::ops::elementwise::exp;
use crate::ops::testing::{Tensor, run, run_fast, run_one};

const UNSIGNED: OperandType = OperandType::TensorQuant8Asymm;
const SIGNED: OperandType = OperandType::TensorQuant8AsymmSigned;

/// All 256 stored values of a type, as rows of 16.
fn every_value(ty: OperandType, scale: f32, zero_point: i32) -> Tensor {
    let bytes: Vec<u8> = (0..=u8::MAX).collect();
    Tensor::new(ty, &[16, 16], &bytes).quantized(scale, zero_point)
}

#[test]
fn tables_equal_the_reference() {
    for ty in [UNSIGNED, SIGNED] {
        let middle = if ty == SIGNED { 0 } else { 128 };
        for (def, scale, zero_point, beta) in [
            (&logistic::DEF, 1.0 / 256.0, middle - 128, None),
            (&tanh::DEF, 1.0 / 128.0, middle, None),
            (&hard_swish::DEF, 0.03, middle - 20, None),
            (&relu::DEF, 0.04, middle - 100, None),
            (&relu1::DEF, 0.04, middle + 7, None),
            (&relu6::DEF, 0.04, middle - 100, None),
            (&softmax::DEF, 1.0 / 256.0, middle - 128, Some(0.8)),
        ] {
            let mut inputs = vec![every_value(ty, 0.05, middle + 3)];
            inputs.extend(beta.map(Tensor::scalar_f32));
            let out = [Tensor::output(ty).quantized(scale, zero_point)];
            let plain = run(def, &inputs, &out).unwrap();
            let fast = run_fast(def, &inputs, &out).unwrap().unwrap();
            assert_eq!(fast[0].values::<u8>(), plain[0].values::<u8>(), "{:?} of {ty}", def.code);
            let mut values = plain[0].values::<u8>();
            values.dedup();
            assert!(values.len() > 16, "{:?} of {ty} computes something", def.code);
        }
    }
}

#[test]
fn clamping_without_rescaling_needs_no_table() {
    for def in [&relu::DEF, &relu1::DEF, &relu6::DEF] {
        let inputs = [every_value(UNSIGNED, 0.05, 9)];
        let out = [Tensor::output(UNSIGNED).quantized(0.05, 9)];
        assert!(run_fast(def, &inputs, &out).unwrap().is_none(), "{:?}", def.code);
    }
}

/// Numbers around the ends of what exponentials represent, as such a tensor.
fn floats(ty: OperandType, dims: &[u32], count: u16) -> Tensor {
    let values: Vec<f32> = (0..count).map(|x| f32::from(x) * 0.09 - 110.0).collect();
    if ty == OperandType::TensorFloat16 {
        Tensor::f16(dims, &values)
    } else {
        Tensor::f32(dims, &values)
    }
}

#[test]
fn kernels_of_floats_give_the_references_bits() {
    let inputs = [floats(OperandType::TensorFloat32, &[2500], 2500)];
    for def in [&logistic::DEF, &tanh::DEF, &exp::DEF] {
        let out = Tensor::output(OperandType::TensorFloat32);
        let plain = run_one(def, &inputs, out.clone()).unwrap();
        let fast = run_fast(def, &inputs, &[out]).unwrap().expect("a kernel");
        assert_eq!(fast[0].values::<u32>(), plain.values::<u32>(), "{:?}", def.code);
    }
}

#[test]
fn kernels_of_lanes_of_floats_give_the_references_bits() {
    for (axis, ty) in [0, 1, 2].into_iter().flat_map(|axis| {
        [OperandType::TensorFloat32, OperandType::TensorFloat16].map(|ty| (axis, ty))
    }) {
        let beta = if ty == OperandType::TensorFloat16 {
            Tensor::scalar_f16(0.1)
        } else {
            Tensor::scalar_f32(0.1)
        };
        let inputs = [floats(ty, &[5, 19, 25], 5 * 19 * 25), beta, Tensor::scalar_i32(axis)];
        for def in [&softmax::DEF, &log_softmax::DEF] {
            let out = Tensor::output(ty);
            let plain = run_one(def, &inputs, out.clone()).unwrap();
            let fast = run_fast(def, &inputs, &[out]).unwrap().expect("a kernel");
            assert_eq!(fast[0].values::<u8>(), plain.values::<u8>(), "{:?}, axis {axis}", def.code);
        }
    }
}
