//! Runs one operation on values written down in a unit test.

#![allow(clippy::unwrap_used, reason = "only compiled for tests")]

use burst_hal::{
    Dimensions, HalVersion, MemoryCharge, Operand, OperandLifeTime, OperandType, Operation,
};
use half::f16;

use crate::aligned::AlignedBytes;
use crate::kernels::Isa;
use crate::op::{Budget, Inferred, Kernel, OpDef, PrepareContext, Run, Signature, Stop};
use crate::scratch::Scratch;
use crate::tensor::{Arg, Args, Storage, TensorInfo, TensorMut, TensorRef, Value};
use crate::threads::{Parallelism, ThreadPool};
use crate::{OpError, SignatureError};

/// An operand with its value, or (as an output) only with its meaning.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) info: TensorInfo,
    pub(crate) dims: Dimensions,
    bytes: Option<AlignedBytes>,
}

impl Tensor {
    pub(crate) fn new<T: bytemuck::NoUninit>(ty: OperandType, dims: &[u32], values: &[T]) -> Self {
        let bytes = bytemuck::cast_slice(values);
        let tensor = Tensor::shaped(ty, dims);
        assert_eq!(tensor.info.byte_count(dims), Ok(bytes.len()), "values for {dims:?}");
        Tensor { bytes: Some(AlignedBytes::copy_of(bytes)), ..tensor }
    }

    pub(crate) fn f32(dims: &[u32], values: &[f32]) -> Self {
        Tensor::new(OperandType::TensorFloat32, dims, values)
    }

    pub(crate) fn f16(dims: &[u32], values: &[f32]) -> Self {
        let values: Vec<f16> = values.iter().map(|x| f16::from_f32(*x)).collect();
        Tensor::new(OperandType::TensorFloat16, dims, &values)
    }

    pub(crate) fn i32(dims: &[u32], values: &[i32]) -> Self {
        Tensor::new(OperandType::TensorInt32, dims, values)
    }

    pub(crate) fn bool8(dims: &[u32], values: &[u8]) -> Self {
        Tensor::new(OperandType::TensorBool8, dims, values)
    }

    pub(crate) fn u8(dims: &[u32], values: &[u8], scale: f32, zero_point: i32) -> Self {
        Tensor::new(OperandType::TensorQuant8Asymm, dims, values).quantized(scale, zero_point)
    }

    pub(crate) fn i8(dims: &[u32], values: &[i8], scale: f32, zero_point: i32) -> Self {
        Tensor::new(OperandType::TensorQuant8AsymmSigned, dims, values).quantized(scale, zero_point)
    }

    pub(crate) fn scalar_i32(value: i32) -> Self {
        Tensor::new(OperandType::Int32, &[], &[value])
    }

    pub(crate) fn scalar_f32(value: f32) -> Self {
        Tensor::new(OperandType::Float32, &[], &[value])
    }

    pub(crate) fn scalar_f16(value: f32) -> Self {
        Tensor::new(OperandType::Float16, &[], &[f16::from_f32(value)])
    }

    pub(crate) fn scalar_bool(value: bool) -> Self {
        Tensor::new(OperandType::Bool, &[], &[u8::from(value)])
    }

    /// An operand that was left out.
    pub(crate) fn omitted(ty: OperandType) -> Self {
        Tensor::shaped(ty, &[])
    }

    /// An output of this type; its shape is for the operation to say.
    pub(crate) fn output(ty: OperandType) -> Self {
        Tensor::shaped(ty, &[])
    }

    fn shaped(ty: OperandType, dims: &[u32]) -> Self {
        let info =
            TensorInfo { ty, scale: 0.0, zero_point: 0, channel_scales: None, extension: None };
        Tensor { info, dims: Dimensions::from_slice(dims), bytes: None }
    }

    pub(crate) fn quantized(mut self, scale: f32, zero_point: i32) -> Self {
        self.info.scale = scale;
        self.info.zero_point = zero_point;
        self
    }

    /// The elements; halves are widened by [`Tensor::halves`] instead.
    pub(crate) fn values<T: bytemuck::AnyBitPattern>(&self) -> Vec<T> {
        bytemuck::cast_slice(self.bytes.as_ref().unwrap().as_slice()).to_vec()
    }

    /// The elements of a FLOAT16 tensor.
    pub(crate) fn halves(&self) -> Vec<f32> {
        self.values::<f16>().into_iter().map(f16::to_f32).collect()
    }

    fn operand(&self) -> Operand {
        let mut operand = Operand::new(self.info.ty, OperandLifeTime::TemporaryVariable);
        operand.dimensions = self.dims.clone();
        operand.scale = self.info.scale;
        operand.zero_point = self.info.zero_point;
        operand
    }

    fn arg(&self) -> Arg<'_> {
        let value =
            self.bytes.as_ref().map_or(Value::Omitted, |bytes| Value::Bytes(bytes.as_slice()));
        Arg { info: &self.info, dims: Some(&self.dims), value }
    }

    pub(crate) fn as_ref(&self) -> TensorRef<'_> {
        let bytes = self.bytes.as_ref().map(AlignedBytes::as_slice);
        TensorRef { info: &self.info, dims: &self.dims, bytes }
    }
}

/// What the operation's `validate` says of these operands in this version.
pub(crate) fn validate(
    def: &OpDef,
    version: HalVersion,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> Result<(), SignatureError> {
    let operands: Vec<Operand> = inputs.iter().chain(outputs).map(Tensor::operand).collect();
    let count = u32::try_from(inputs.len()).unwrap();
    let all = u32::try_from(operands.len()).unwrap();
    let operation =
        Operation { ty: def.code, inputs: (0..count).collect(), outputs: (count..all).collect() };
    (def.validate)(&Signature::new(&operands, &operation, version))
}

/// What a function finds in these inputs, all of them known.
pub(crate) fn with_args<T>(inputs: &[Tensor], look: impl FnOnce(&Args<'_>) -> T) -> T {
    let inputs: Vec<Arg<'_>> = inputs.iter().map(Tensor::arg).collect();
    look(&Args { inputs: &inputs, outputs: &[] })
}

/// The shapes that the operation's `infer` finds for values that are all known.
pub(crate) fn infer(
    def: &OpDef,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> Result<Inferred, OpError> {
    let known: Vec<Arg<'_>> = inputs.iter().map(Tensor::arg).collect();
    // Before the first run less is known: that may give no answer, but must not give a wrong one.
    let outputs: Vec<_> = outputs.iter().map(|out| (&out.info, &*out.dims)).collect();
    for (with_dims, with_values) in [(false, false), (true, false), (false, true)] {
        let partly: Vec<Arg<'_>> = known
            .iter()
            .map(|arg| Arg {
                dims: arg.dims.filter(|_| with_dims),
                value: match arg.value {
                    Value::Bytes(_) if !with_values => Value::Unknown,
                    value => value,
                },
                ..*arg
            })
            .collect();
        let early = def.body.infer(&Args { inputs: &partly, outputs: &outputs });
        if let Ok(Inferred::Shapes(early)) = early {
            let late = def.body.infer(&Args { inputs: &known, outputs: &outputs });
            assert!(
                late.is_err() || late == Ok(Inferred::Shapes(early)),
                "{:?} inferred another shape when more was known",
                def.code
            );
        }
    }
    def.body.infer(&Args { inputs: &known, outputs: &outputs })
}

/// Validates (which must succeed), infers and executes the reference.
pub(crate) fn run(
    def: &OpDef,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> Result<Vec<Tensor>, OpError> {
    run_with(def, inputs, outputs, |run| def.body.execute(run))
}

/// As [`run`], by the fast kernel that the operation chooses when everything is known; `None` where
/// it chooses none.
pub(crate) fn run_fast(
    def: &OpDef,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> Result<Option<Vec<Tensor>>, OpError> {
    run_fast_on(Isa::detect(), def, inputs, outputs)
}

/// As [`run_fast`], with these instructions; one thread and several have to give the same bytes.
pub(crate) fn run_fast_on(
    isa: Isa,
    def: &OpDef,
    inputs: &[Tensor],
    outputs: &[Tensor],
) -> Result<Option<Vec<Tensor>>, OpError> {
    let context = PrepareContext { fast_kernels: true, isa, budget: &Budget::default() };
    let args: Vec<Arg<'_>> = inputs.iter().map(Tensor::arg).collect();
    let meanings: Vec<_> = outputs.iter().map(|out| (&out.info, &*out.dims)).collect();
    match def.body.prepare(&Args { inputs: &args, outputs: &meanings }, &context)? {
        None => Ok(None),
        Some(fast) => {
            let alone = run_with(def, inputs, outputs, |run| {
                fast.kernel.run(run)?;
                // Halves are widened beside what it says.
                let is_exact =
                    inputs.iter().all(|input| input.info.ty != OperandType::TensorFloat16);
                let said = fast.kernel.scratch_floats() * size_of::<f32>();
                if said > 0 && is_exact {
                    assert_eq!(run.scratch.held_bytes(), said, "{}", fast.kernel.name());
                }
                Ok(())
            })?;
            let shared = run_with(def, inputs, outputs, |run| shared(&*fast.kernel, run))?;
            for (alone, shared) in alone.iter().zip(shared) {
                assert_eq!(alone.values::<u8>(), shared.values::<u8>(), "{}", fast.kernel.name());
            }
            Ok(Some(alone))
        }
    }
}

/// Runs a kernel with three threads that share whatever can be shared.
fn shared(kernel: &dyn Kernel, run: &mut Run<'_, '_>) -> Result<(), OpError> {
    let pool = ThreadPool::new(3, 4);
    let scope = pool.begin(true);
    let parallelism = Parallelism::eager(&scope);
    let Run { inputs, outputs, scratch, stop, .. } = run;
    kernel.run(&mut Run { inputs, outputs, scratch, stop: *stop, parallelism })
}

fn run_with(
    def: &OpDef,
    inputs: &[Tensor],
    outputs: &[Tensor],
    execute: impl Fn(&mut Run<'_, '_>) -> Result<(), OpError>,
) -> Result<Vec<Tensor>, OpError> {
    assert_eq!(validate(def, HalVersion::LATEST, inputs, outputs), Ok(()), "{:?}", def.code);
    let inferred = infer(def, inputs, outputs)?;
    let mut results = outputs.to_vec();
    if let Inferred::Shapes(shapes) = inferred {
        assert_eq!(shapes.len(), outputs.len());
        for (result, shape) in results.iter_mut().zip(shapes) {
            let bytes = result.info.byte_count(&shape)?;
            result.bytes = Some(AlignedBytes::zeroed(bytes, MemoryCharge::default())?);
            result.dims = shape;
        }
    }
    let inputs: Vec<TensorRef<'_>> = inputs.iter().map(Tensor::as_ref).collect();
    let mut outputs: Vec<TensorMut<'_>> = results
        .iter_mut()
        .map(|result| TensorMut {
            info: &result.info,
            dims: &mut result.dims,
            storage: Storage::Dynamic(result.bytes.get_or_insert_default()),
        })
        .collect();
    let mut scratch = Scratch::default();
    let stop = Stop::default();
    let parallelism = crate::threads::Parallelism::ALONE;
    let scratch = &mut scratch;
    execute(&mut Run { inputs: &inputs, outputs: &mut outputs, scratch, stop, parallelism })?;
    drop(outputs);
    Ok(results)
}

/// As [`run`], for operations with one output of this meaning.
pub(crate) fn run_one(def: &OpDef, inputs: &[Tensor], output: Tensor) -> Result<Tensor, OpError> {
    run(def, inputs, &[output]).map(|mut results| results.remove(0))
}

/// Whether the operation has a form with these types; quantized operands get a scale of 0.5.
pub(crate) fn has_form(
    def: &OpDef,
    version: HalVersion,
    inputs: &[OperandType],
    outputs: &[OperandType],
) -> bool {
    let some = |types: &[OperandType]| -> Vec<Tensor> {
        types.iter().map(|ty| Tensor::output(*ty).quantized(0.5, 0)).collect()
    };
    validate(def, version, &some(inputs), &some(outputs)).is_ok()
}
