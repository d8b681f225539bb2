//! Kernels with tables worked out beforehand give what the reference gives, for every stored value.

use burst_hal::OperandType;

use super::*;
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

#[test]
fn floats_need_no_table() {
    let inputs = [Tensor::f32(&[1, 2], &[0.0, 1.0]), Tensor::scalar_f32(1.0)];
    let out = [Tensor::output(OperandType::TensorFloat32)];
    assert!(run_fast(&softmax::DEF, &inputs, &out).unwrap().is_none());
}

#[test]
fn kernels_of_floats_give_the_references_bits() {
    let values: Vec<f32> = (0..2500u16).map(|x| f32::from(x) * 0.09 - 110.0).collect();
    let inputs = [Tensor::f32(&[2500], &values)];
    for def in [&logistic::DEF, &tanh::DEF] {
        let out = Tensor::output(OperandType::TensorFloat32);
        let plain = run_one(def, &inputs, out.clone()).unwrap();
        let fast = run_fast(def, &inputs, &[out]).unwrap().expect("a kernel");
        assert_eq!(fast[0].values::<u32>(), plain.values::<u32>(), "{:?}", def.code);
    }
}
