//! Running one operation of this family by itself.

use burst_hal::{
    Dimensions, HalVersion, MemoryCharge, Operand, OperandLifeTime, OperandType, Operation,
};
use std::sync::Arc;

use crate::OpError;
use crate::aligned::AlignedBytes;
use crate::kernels::Isa;
use crate::op::{Budget, Inferred, OpDef, PrepareContext, Run, Signature, Stop};
use crate::ops::conv::dynamic_weights::LEAST_ROWS;
use crate::scratch::Scratch;
use crate::tensor::{Arg, Args, Storage, TensorInfo, TensorMut, TensorRef, Value};
use crate::threads::{Parallelism, ThreadPool};

/// An operand with its value.
#[derive(Debug, Clone)]
pub(super) struct Tensor {
    pub(super) info: TensorInfo,
    pub(super) dims: Vec<u32>,
    bytes: AlignedBytes,
}

impl Tensor {
    pub(super) fn of<T: bytemuck::Pod>(ty: OperandType, dims: &[u32], values: &[T]) -> Self {
        let bytes = AlignedBytes::copy_of(bytemuck::cast_slice(values));
        let info =
            TensorInfo { ty, scale: 0.0, zero_point: 0, channel_scales: None, extension: None };
        Tensor { info, dims: dims.to_vec(), bytes }
    }

    pub(super) fn f32(dims: &[u32], values: &[f32]) -> Self {
        Tensor::of(OperandType::TensorFloat32, dims, values)
    }

    pub(super) fn i32(dims: &[u32], values: &[i32]) -> Self {
        Tensor::of(OperandType::TensorInt32, dims, values)
    }

    pub(super) fn u8(dims: &[u32], values: &[u8]) -> Self {
        Tensor::of(OperandType::TensorQuant8Asymm, dims, values)
    }

    pub(super) fn i8(dims: &[u32], values: &[i8]) -> Self {
        Tensor::of(OperandType::TensorQuant8AsymmSigned, dims, values)
    }

    pub(super) fn int(value: i32) -> Self {
        Tensor::of(OperandType::Int32, &[], &[value])
    }

    pub(super) fn uint(value: u32) -> Self {
        Tensor::int(i32::try_from(value).unwrap())
    }

    pub(super) fn flag(value: bool) -> Self {
        Tensor::of(OperandType::Bool, &[], &[u8::from(value)])
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.as_slice()
    }

    pub(super) fn set_bytes(&mut self, bytes: &[u8]) {
        self.bytes = AlignedBytes::copy_of(bytes);
    }

    pub(super) fn quantized(mut self, scale: f32, zero_point: i32) -> Self {
        self.info.scale = scale;
        self.info.zero_point = zero_point;
        self
    }

    pub(super) fn per_channel(mut self, scales: &[f32], dimension: usize) -> Self {
        self.info.ty = OperandType::TensorQuant8SymmPerChannel;
        self.info.channel_scales = Some((Arc::from(scales), dimension));
        self
    }
}

/// One operation with all its operands.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) def: &'static OpDef,
    pub(super) inputs: Vec<Tensor>,
    pub(super) output: TensorInfo,
}

/// A shape and its bytes.
pub(super) type Computed = (Vec<u32>, Vec<u8>);

impl Case {
    /// The output is real numbers.
    pub(super) fn float(def: &'static OpDef, inputs: Vec<Tensor>) -> Self {
        let output = inputs[0].info.clone();
        Case { def, inputs, output }
    }

    /// The output is of the first input's type, with this scale and zero point.
    pub(super) fn quantized(
        def: &'static OpDef,
        inputs: Vec<Tensor>,
        scale: f32,
        zero_point: i32,
    ) -> Self {
        let output = TensorInfo { scale, zero_point, ..inputs[0].info.clone() };
        Case { def, inputs, output }
    }

    /// What inference says. Where a value is not `known`, it is as while preparing.
    pub(super) fn infer(&self, known: impl Fn(usize) -> bool) -> Result<Dimensions, OpError> {
        self.with_args(known, |args| match self.def.body.infer(args)? {
            Inferred::Shapes(shapes) => Ok(shapes[0].clone()),
            Inferred::DataDependent => Err(OpError::NotYet),
        })
    }

    fn with_args<T>(&self, known: impl Fn(usize) -> bool, then: impl FnOnce(&Args<'_>) -> T) -> T {
        let inputs: Vec<Arg<'_>> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(index, tensor)| Arg {
                info: &tensor.info,
                dims: Some(&tensor.dims),
                value: if known(index) {
                    Value::Bytes(tensor.bytes.as_slice())
                } else {
                    Value::Unknown
                },
            })
            .collect();
        then(&Args { inputs: &inputs, outputs: &[(&self.output, &[])] })
    }

    /// What the reference computes.
    pub(super) fn reference(&self) -> Result<Computed, OpError> {
        self.run(&[], Parallelism::ALONE, |run| self.def.body.execute(run))
    }

    /// What the reference computes on three threads, and whether they shared the work.
    pub(super) fn reference_of_three(&self) -> Result<(Computed, bool), OpError> {
        let pool = ThreadPool::new(3, 4);
        let scope = pool.begin(true);
        let parallelism = Parallelism::eager(&scope);
        let computed = self.run(&[], parallelism, |run| self.def.body.execute(run))?;
        Ok((computed, scope.has_shared_work()))
    }

    /// What the fast kernel for constants computes, on one thread and, bit for bit, on three; `None`
    /// where there is none.
    pub(super) fn fast(&self, isa: Isa) -> Result<Option<Computed>, OpError> {
        self.fast_where(isa, |index| index > 0)
    }

    /// What the fast kernel computes where filter and bias are no constants, or one of them.
    pub(super) fn fast_without(
        &self,
        isa: Isa,
        unknown: &[usize],
    ) -> Result<Option<Computed>, OpError> {
        self.fast_where(isa, |index| index > 0 && !unknown.contains(&index))
    }

    /// What the fast kernel computes that is made with these values known.
    fn fast_where(
        &self,
        isa: Isa,
        known: impl Fn(usize) -> bool,
    ) -> Result<Option<Computed>, OpError> {
        let context = PrepareContext { fast_kernels: true, isa, budget: &Budget::default() };
        let Some(prepared) = self.with_args(known, |args| self.def.body.prepare(args, &context))?
        else {
            return Ok(None);
        };
        // Shapes are inferred again where they change from run to run, and then without the values
        // that only the kernel still has.
        self.infer(|index| !prepared.packed_inputs.contains(&index))?;
        let alone =
            self.run(&prepared.packed_inputs, Parallelism::ALONE, |run| prepared.kernel.run(run))?;
        let pool = ThreadPool::new(3, 4);
        let scope = pool.begin(true);
        let shared = self.run(&prepared.packed_inputs, Parallelism::eager(&scope), |run| {
            prepared.kernel.run(run)
        })?;
        assert!(alone == shared, "three threads compute something else: {:?}", self.inputs[0].dims);
        Ok(Some(alone))
    }

    fn run(
        &self,
        hidden: &[usize],
        parallelism: Parallelism<'_>,
        body: impl FnOnce(&mut Run<'_, '_>) -> Result<(), OpError>,
    ) -> Result<Computed, OpError> {
        let mut dims = self.infer(|_| true)?;
        let mut bytes =
            AlignedBytes::zeroed(self.output.byte_count(&dims)?, MemoryCharge::default())?;
        let inputs: Vec<TensorRef<'_>> = self
            .inputs
            .iter()
            .enumerate()
            .map(|(index, tensor)| TensorRef {
                info: &tensor.info,
                dims: &tensor.dims,
                bytes: (!hidden.contains(&index)).then(|| tensor.bytes.as_slice()),
            })
            .collect();
        let mut outputs = [TensorMut {
            info: &self.output,
            dims: &mut dims,
            storage: Storage::Fixed(bytes.as_mut_slice()),
        }];
        let mut scratch = Scratch::default();
        body(&mut Run {
            inputs: &inputs,
            outputs: &mut outputs,
            scratch: &mut scratch,
            stop: Stop::default(),
            parallelism,
        })?;
        Ok((dims.to_vec(), bytes.as_slice().to_vec()))
    }

    /// The reference's shape and values.
    pub(super) fn values<T: bytemuck::AnyBitPattern>(&self) -> (Vec<u32>, Vec<T>) {
        let (dims, bytes) = self.reference().unwrap();
        (dims, bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect())
    }

    /// Whether the operation accepts these operand types in this version.
    pub(super) fn is_valid(&self, version: HalVersion) -> bool {
        let mut operands: Vec<Operand> = Vec::new();
        for tensor in &self.inputs {
            operands.push(operand(&tensor.info, &tensor.dims));
        }
        operands.push(operand(&self.output, &[]));
        let count = u32::try_from(self.inputs.len()).unwrap();
        let operation = Operation {
            ty: self.def.code,
            inputs: (0..count).collect(),
            outputs: [count].into_iter().collect(),
        };
        (self.def.validate)(&Signature::new(&operands, &operation, version)).is_ok()
    }
}

fn operand(info: &TensorInfo, dims: &[u32]) -> Operand {
    Operand {
        ty: info.ty,
        dimensions: Dimensions::from_slice(dims),
        number_of_consumers: 1,
        scale: info.scale,
        zero_point: info.zero_point,
        lifetime: OperandLifeTime::SubgraphInput,
        location: burst_hal::DataLocation::default(),
        extra_params: match &info.channel_scales {
            Some((scales, dimension)) => burst_hal::ExtraParams::ChannelQuant {
                scales: Arc::clone(scales),
                channel_dim: u32::try_from(*dimension).unwrap(),
            },
            None => burst_hal::ExtraParams::None,
        },
    }
}

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    /// A number in `0..below`.
    pub(super) fn below(&mut self, below: u32) -> u32 {
        u32::try_from(self.next() % u64::from(below)).unwrap()
    }

    /// One of these.
    pub(super) fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::try_from(self.next()).unwrap() % choices.len()]
    }

    pub(super) fn bytes(&mut self, count: u32) -> Vec<u8> {
        (0..count).map(|_| self.below(256).try_into().unwrap()).collect()
    }

    pub(super) fn signed(&mut self, count: u32) -> Vec<i8> {
        self.bytes(count).into_iter().map(u8::cast_signed).collect()
    }

    /// Numbers in -1..1.
    pub(super) fn floats(&mut self, count: u32) -> Vec<f32> {
        (0..count)
            .map(|_| f32::from(u16::try_from(self.below(2001)).unwrap()) / 1000.0 - 1.0)
            .collect()
    }
}

/// Checks a fast kernel's result: the same bits for quantized types, nearly the same for floats.
pub(super) fn assert_close(case: &Case, got: &Computed, want: &Computed, what: &str) {
    assert_eq!(got.0, want.0, "shape, {what}");
    if case.output.ty != OperandType::TensorFloat32 {
        assert_eq!(got.1, want.1, "{what}");
        return;
    }
    let floats = |computed: &Computed| -> Vec<f32> {
        computed.1.chunks_exact(4).map(bytemuck::pod_read_unaligned).collect()
    };
    for (index, (got, want)) in floats(got).into_iter().zip(floats(want)).enumerate() {
        // Sums of up to a few hundred products of numbers below 1, in another order.
        assert!((got - want).abs() <= 1e-4, "{got} for {want} at {index}, {what}");
    }
}

/// Checks that filters and biases that are no constants give the bits of those that are, or, where packing is
/// not worth it, those of the reference.
pub(super) fn assert_same_without_constants(
    case: &Case,
    isa: Isa,
    constant: &Computed,
    what: &str,
) {
    let units = case.inputs[2].dims[0];
    let rows = constant.0.iter().product::<u32>() as usize / units as usize;
    let want = if rows < LEAST_ROWS { &case.reference().unwrap() } else { constant };
    for unknown in [&[1, 2][..], &[1], &[2]] {
        let got = case.fast_without(isa, unknown).unwrap().expect("a kernel that packs");
        assert!(got == *want, "inputs {unknown:?} of {rows} rows, {what}");
    }
}

/// Random operands of every combination of types that has a fast kernel.
pub(super) mod kinds {
    use super::{Case, Numbers, Tensor};
    use crate::op::OpDef;

    /// How many there are.
    pub(in crate::ops::conv) const COUNT: usize = 5;

    /// Those without scales per channel.
    pub(in crate::ops::conv) const WITHOUT_CHANNELS: [usize; 3] = [0, 1, 2];

    /// Floats; unsigned; signed; unsigned with scales per channel; signed with scales per channel.
    /// `filter` is its shape, the output channels, and the dimension that channel scales run along.
    pub(in crate::ops::conv) fn case(
        def: &'static OpDef,
        numbers: &mut Numbers,
        kind: usize,
        images: &[u32],
        (filter, channels, dimension): (&[u32], u32, usize),
        rest: Vec<Tensor>,
    ) -> Case {
        let (values, weights) = (images.iter().product(), filter.iter().product());
        let operands = |first: [Tensor; 3]| [first.to_vec(), rest.clone()].concat();
        if kind == 0 {
            return Case::float(
                def,
                operands([
                    Tensor::f32(images, &numbers.floats(values)),
                    Tensor::f32(filter, &numbers.floats(weights)),
                    Tensor::f32(&[channels], &numbers.floats(channels)),
                ]),
            );
        }
        let is_signed = kind == 2 || kind == 4;
        let moved = if is_signed { -128 } else { 0 };
        let zero_point = |numbers: &mut Numbers| moved + numbers.of(&[0, 1, 100, 128, 200, 255]);
        let images = if is_signed {
            Tensor::i8(images, &numbers.signed(values))
        } else {
            Tensor::u8(images, &numbers.bytes(values))
        };
        let images = images.quantized(0.5, zero_point(numbers));
        let bias: Vec<i32> =
            (0..channels).map(|_| i32::try_from(numbers.below(20_000)).unwrap() - 10_000).collect();
        let bias = Tensor::i32(&[channels], &bias);
        let (filter, bias) = if kind >= 3 {
            let scales: Vec<f32> =
                (0..channels).map(|_| numbers.of(&[0.3, 0.07, 1.9, 0.011])).collect();
            let filter = Tensor::i8(filter, &numbers.signed(weights));
            (filter.per_channel(&scales, dimension), bias)
        } else {
            let filter = if is_signed {
                Tensor::i8(filter, &numbers.signed(weights))
            } else {
                Tensor::u8(filter, &numbers.bytes(weights))
            };
            (filter.quantized(0.25, zero_point(numbers)), bias.quantized(0.125, 0))
        };
        let out_scale = numbers.of(&[0.05, 3.0, 40.0, 77.7, 1000.0]);
        let out_zero = zero_point(numbers);
        Case::quantized(def, operands([images, filter, bias]), out_scale, out_zero)
    }
}
