//! What an operation is to the driver: its rules and its code, in an [`OpDef`] or, for one of an extension, in
//! an [`ExtensionOp`](crate::ExtensionOp).
//!
//! In the order in which the driver asks: `validate` looks at the declared operands of a model (a
//! [`Signature`]); the [`Body`] parses attributes once, infers the outputs' shapes, may choose a [`Kernel`] and
//! pack constants for it, and executes. [`Plain`] and [`WithAttributes`] make a body out of functions. All that
//! a body reads and writes are the [`TensorRef`]s and [`TensorMut`]s of a [`Run`].
//!
//! An extension with one operand type and one operation, from a crate of its own; `examples/extension/` is a
//! larger one, served to clients:
//!
//! ```
//! use std::sync::Arc;
//!
//! use burst_driver::op::*;
//! use burst_driver::*;
//! use burst_hal::{Device, ExtensionCode, ModelBuilder, OutputSpec};
//!
//! const NAME: &str = "org.example.triple";
//!
//! /// Elements of three bytes; the operation turns each around.
//! static TRIPLES: ExtensionDef = ExtensionDef {
//!     name: NAME,
//!     types: &[TypeDef { number: 0, is_tensor: true, byte_size: 3 }],
//!     operations: &[ExtensionOp {
//!         number: 5,
//!         validate,
//!         body: &Plain { infer, prepare: None, execute },
//!         traits: OpTraits::PLAIN,
//!     }],
//! };
//!
//! fn validate(signature: &Signature<'_>) -> Result<(), SignatureError> {
//!     let operands = signature.inputs().chain(signature.outputs());
//!     let are_triples = operands.into_iter().all(|operand| signature.is_type(operand, NAME, 0));
//!     let one_each = signature.inputs().len() == 1 && signature.outputs().len() == 1;
//!     if are_triples && one_each { Ok(()) } else { Err(signature.no_form()) }
//! }
//!
//! fn infer(args: &Args<'_>) -> Result<Inferred, OpError> {
//!     Ok(Inferred::one(args.dims(0)?))
//! }
//!
//! fn execute(run: &mut Run<'_, '_>) -> Result<(), OpError> {
//!     let from = run.input(0)?.u8()?;
//!     let to = run.output(0)?.u8_mut()?;
//!     for (to, from) in to.chunks_exact_mut(3).zip(from.chunks_exact(3)) {
//!         to.copy_from_slice(&[from[2], from[1], from[0]]);
//!     }
//!     Ok(())
//! }
//!
//! let registry = Registry::default().with_extension(&TRIPLES)?;
//! let engine = Engine::new(DeviceOptions::default()).with_registry(registry);
//! let device = CpuDevice::of(&Arc::new(engine), &Variant::CPU);
//!
//! // A model says which prefix stands for the extension in its type codes.
//! let mut builder = ModelBuilder::new();
//! builder.extension(NAME, 9);
//! let ty = ExtensionCode { prefix: 9, number: 0 }.operand_type();
//! let input = builder.input(ty, &[4]);
//! let turn = ExtensionCode { prefix: 9, number: 5 }.operation_type();
//! let output = builder.result_of(turn, &[input], OutputSpec::new(ty, &[4]));
//! builder.output(output);
//! let model = builder.build()?;
//! assert_eq!(device.supported_operations(&model)?, [true]);
//! assert_eq!(CpuDevice::default().supported_operations(&model)?, [false]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use burst_hal::{
    Dimensions, ExtensionCode, HalVersion, Operand, OperandLifeTime, OperandType, Operation,
    OperationType,
};
use smallvec::SmallVec;

pub use crate::budget::Budget;
pub use crate::extension_type::{ExtensionType, TypeDef};
pub use crate::scratch::Scratch;
pub use crate::stop::{Checkpoints, Stop};
pub use crate::tensor::{Arg, Args, TensorInfo, TensorMut, TensorRef, Value};
pub use crate::threads::{Parallelism, TileRunner, Tiling};
use crate::{OpError, SignatureError};

mod body;
mod operands;
mod taking_over;

pub use body::{Body, Parsed, Plain, PrepareWith, Stages, WithAttributes};
pub use operands::Operands;
pub use taking_over::{Behind, ByChannels, CHANNEL_STEP, FloatSum};

/// Everything the driver knows of one operation of the base range. Each stands in one file, and in one
/// entry of the table of its family.
#[derive(Debug)]
pub struct OpDef {
    /// Which operation.
    pub code: OperationType,
    /// Checks types, counts and whatever else can be said from the operands' declarations alone.
    pub validate: fn(&Signature<'_>) -> Result<(), SignatureError>,
    /// How it infers shapes, chooses kernels, and computes.
    pub body: &'static dyn Body,
    /// What else the plan has to know.
    pub traits: OpTraits,
}

impl OpDef {
    pub(crate) fn rules(&self) -> Rules {
        let OpDef { validate, body, traits, .. } = *self;
        Rules { validate, body, traits }
    }
}

/// What the planner and executions need of an operation, whoever brought it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    pub(crate) validate: fn(&Signature<'_>) -> Result<(), SignatureError>,
    pub(crate) body: &'static dyn Body,
    pub(crate) traits: OpTraits,
}

/// Chooses a kernel for these operands; `None`: the reference serves.
pub type Prepare = fn(&Args<'_>, &PrepareContext<'_>) -> Result<Option<Prepared>, OpError>;

/// Properties that the planner needs to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpTraits {
    /// Inputs that may be left out, one bit each.
    pub may_omit: u64,
    /// Whether an input may have no elements.
    pub zero_sized_inputs: bool,
    /// Whether equal inputs always give equal outputs, so that constants can be folded.
    pub pure: bool,
}

impl OpTraits {
    /// Pure, nothing may be omitted, inputs may be empty.
    pub const PLAIN: OpTraits = OpTraits { may_omit: 0, zero_sized_inputs: true, pure: true };

    /// With these inputs allowed to be omitted.
    #[must_use]
    pub const fn omit(mut self, inputs: &[u32]) -> Self {
        let mut i = 0;
        while i < inputs.len() {
            self.may_omit |= 1 << inputs[i];
            i += 1;
        }
        self
    }

    /// Whether this input may be left out.
    #[must_use]
    pub const fn allows_omitting(self, input: usize) -> bool {
        input < u64::BITS as usize && self.may_omit >> input & 1 == 1
    }

    /// With inputs that must have elements.
    #[must_use]
    pub const fn no_zero_sized(mut self) -> Self {
        self.zero_sized_inputs = false;
        self
    }

    /// With results that are not a function of the inputs alone.
    #[must_use]
    pub const fn impure(mut self) -> Self {
        self.pure = false;
        self
    }
}

/// What shape inference found.
#[derive(Debug, Clone, PartialEq)]
pub enum Inferred {
    /// One shape per output.
    Shapes(SmallVec<[Dimensions; 2]>),
    /// The shapes depend on what the kernel computes; it sets them by `TensorMut::resize`.
    DataDependent,
}

impl Inferred {
    /// The shape of the only output.
    #[must_use]
    pub fn one(dims: impl Into<Dimensions>) -> Self {
        Inferred::Shapes(SmallVec::from_iter([dims.into()]))
    }

    /// Shapes of several outputs.
    pub fn many(shapes: impl IntoIterator<Item = Dimensions>) -> Self {
        Inferred::Shapes(shapes.into_iter().collect())
    }
}

/// What a fast kernel may depend on, and what making it may take.
#[derive(Debug, Clone, Copy)]
pub struct PrepareContext<'b> {
    /// Whether kernels may be chosen beyond the reference. Off in tests that compare the two.
    pub fast_kernels: bool,
    /// Which instruction sets kernels may use.
    pub isa: crate::kernels::Isa,
    /// Who pays for packed constants, and how long packing may take.
    pub budget: &'b Budget<'b>,
}

/// A kernel with its constants packed.
#[derive(Debug)]
pub struct Prepared {
    /// The kernel.
    pub kernel: Box<dyn Kernel>,
    /// Inputs it holds a packed copy of: their plain bytes are no longer needed.
    pub packed_inputs: SmallVec<[usize; 4]>,
}

/// A kernel chosen at prepare time.
pub trait Kernel: Send + Sync + std::fmt::Debug {
    /// Computes the outputs.
    ///
    /// # Errors
    /// What the operation's [`Stages::execute`] would answer for the same inputs.
    fn run(&self, run: &mut Run<'_, '_>) -> Result<(), OpError>;

    /// Bytes of packed constants it holds.
    fn held_bytes(&self) -> usize {
        0
    }

    /// Floats of [`Scratch`] that it is going to take, as far as that is known before: the first execution finds them
    /// there.
    fn scratch_floats(&self) -> usize {
        0
    }

    /// A short name for profiles: which algorithm, which instruction set.
    fn name(&self) -> &'static str;

    /// The sum that it computes, where it computes nothing else: a kernel before it may [take it over](Kernel::take_over).
    fn as_sum(&self) -> Option<FloatSum> {
        None
    }

    /// Takes over an ADD of its only output and another tensor of the same shape: from now on that tensor comes last
    /// among the inputs, and the output is the ADD's. `false`: it stays as it is, and the ADD an operation of its own.
    fn take_over(&mut self, _sum: FloatSum) -> bool {
        false
    }

    /// The same kernel, where it computes channel by channel: a kernel before it may [take it](Kernel::take_behind).
    fn by_channels(&self) -> Option<&dyn ByChannels> {
        None
    }

    /// Takes the kernel of an operation that reads its only output: from now on it computes that operation's output.
    ///
    /// # Errors
    /// The kernel, where it is not taken.
    fn take_behind(&mut self, behind: Behind) -> Result<(), Behind> {
        Err(behind)
    }

    /// Multiply-accumulates of an execution, where the operands of its operation do not say it.
    fn products(&self) -> Option<u64> {
        None
    }
}

/// One operation being executed.
#[derive(Debug)]
pub struct Run<'r, 't> {
    /// What it reads.
    pub inputs: &'r [TensorRef<'t>],
    /// What it writes.
    pub outputs: &'r mut [TensorMut<'t>],
    /// Working memory.
    pub scratch: &'r mut Scratch,
    /// When to give up.
    pub stop: Stop<'r>,
    /// The threads that may compute.
    pub parallelism: Parallelism<'r>,
}

impl<'t> Run<'_, 't> {
    /// Input `index`, present or omitted.
    ///
    /// # Errors
    /// [`OpError::Arity`] when there are not that many.
    pub fn input(&self, index: usize) -> Result<TensorRef<'t>, OpError> {
        self.inputs
            .get(index)
            .copied()
            .ok_or(OpError::Arity { want: index + 1, got: self.inputs.len() })
    }

    /// Input `index` when it is in the list and has a value.
    #[must_use]
    pub fn optional(&self, index: usize) -> Option<TensorRef<'t>> {
        self.inputs.get(index).copied().filter(TensorRef::is_present)
    }

    /// Output `index`.
    ///
    /// # Errors
    /// [`OpError::Arity`] when there are not that many.
    pub fn output(&mut self, index: usize) -> Result<&mut TensorMut<'t>, OpError> {
        let got = self.outputs.len();
        self.outputs.get_mut(index).ok_or(OpError::Arity { want: index + 1, got })
    }

    /// The first output, and what it is computed with where threads share it.
    ///
    /// # Errors
    /// [`OpError::Arity`] when there is no output.
    pub fn output_and_runner(&mut self) -> Result<(&mut TensorMut<'t>, TileRunner<'_>), OpError> {
        let output = self.outputs.first_mut().ok_or(OpError::Arity { want: 1, got: 0 })?;
        let runner = TileRunner {
            parallelism: self.parallelism,
            scratch: &mut *self.scratch,
            stop: self.stop,
        };
        Ok((output, runner))
    }
}

/// A set of operand types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TypeSet(u32);

impl TypeSet {
    /// The set of this type alone. Only types of the base range can be in a set.
    #[must_use]
    pub const fn of(ty: OperandType) -> Self {
        let code = ty.code();
        assert!(code >= 0 && code < 32);
        TypeSet(1 << code)
    }

    /// This set and the other.
    #[must_use]
    pub const fn or(self, other: TypeSet) -> Self {
        TypeSet(self.0 | other.0)
    }

    /// Whether the type is in the set.
    #[must_use]
    pub const fn has(self, ty: OperandType) -> bool {
        let code = ty.code();
        code >= 0 && code < 32 && self.0 >> code & 1 == 1
    }
}

/// Short names of type sets, for the forms of signatures.
pub mod types {
    use super::{OperandType, TypeSet};
    /// TENSOR_FLOAT32.
    pub const TF32: TypeSet = TypeSet::of(OperandType::TensorFloat32);
    /// TENSOR_FLOAT16.
    pub const TF16: TypeSet = TypeSet::of(OperandType::TensorFloat16);
    /// TENSOR_INT32.
    pub const TI32: TypeSet = TypeSet::of(OperandType::TensorInt32);
    /// TENSOR_QUANT8_ASYMM.
    pub const TQ8: TypeSet = TypeSet::of(OperandType::TensorQuant8Asymm);
    /// TENSOR_QUANT8_ASYMM_SIGNED.
    pub const TQ8S: TypeSet = TypeSet::of(OperandType::TensorQuant8AsymmSigned);
    /// TENSOR_QUANT8_SYMM.
    pub const TQ8SYMM: TypeSet = TypeSet::of(OperandType::TensorQuant8Symm);
    /// TENSOR_QUANT8_SYMM_PER_CHANNEL.
    pub const TQ8PC: TypeSet = TypeSet::of(OperandType::TensorQuant8SymmPerChannel);
    /// TENSOR_QUANT16_SYMM.
    pub const TQ16S: TypeSet = TypeSet::of(OperandType::TensorQuant16Symm);
    /// TENSOR_QUANT16_ASYMM.
    pub const TQ16A: TypeSet = TypeSet::of(OperandType::TensorQuant16Asymm);
    /// TENSOR_BOOL8.
    pub const TB8: TypeSet = TypeSet::of(OperandType::TensorBool8);
    /// INT32.
    pub const I32: TypeSet = TypeSet::of(OperandType::Int32);
    /// UINT32.
    pub const U32: TypeSet = TypeSet::of(OperandType::Uint32);
    /// FLOAT32.
    pub const F32: TypeSet = TypeSet::of(OperandType::Float32);
    /// FLOAT16.
    pub const F16: TypeSet = TypeSet::of(OperandType::Float16);
    /// BOOL.
    pub const BOOL: TypeSet = TypeSet::of(OperandType::Bool);
    /// SUBGRAPH.
    pub const GRAPH: TypeSet = TypeSet::of(OperandType::Subgraph);
}

/// One legal form of an operation's operand types.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// First HAL version with this form.
    pub since: HalVersion,
    /// Types of the inputs, the list at its longest.
    pub inputs: &'static [TypeSet],
    /// Lengths that the list of inputs may have, each with its first version; empty: only the
    /// full length.
    pub counts: &'static [(usize, HalVersion)],
    /// Types of the outputs.
    pub outputs: &'static [TypeSet],
}

impl Form {
    /// A form whose inputs must all be given.
    #[must_use]
    pub const fn new(
        since: HalVersion,
        inputs: &'static [TypeSet],
        outputs: &'static [TypeSet],
    ) -> Self {
        Form { since, inputs, counts: &[], outputs }
    }

    /// This form with trailing inputs that may be cut off.
    #[must_use]
    pub const fn counts(mut self, counts: &'static [(usize, HalVersion)]) -> Self {
        self.counts = counts;
        self
    }

    fn allows_count(&self, count: usize, version: HalVersion) -> bool {
        if self.counts.is_empty() {
            return count == self.inputs.len();
        }
        self.counts.iter().any(|(allowed, since)| *allowed == count && *since <= version)
    }

    fn matches(&self, signature: &Signature<'_>) -> bool {
        self.since <= signature.version
            && self.allows_count(signature.inputs.len(), signature.version)
            && self.outputs.len() == signature.outputs.len()
            && self.inputs.iter().zip(signature.inputs()).all(|(set, o)| set.has(o.ty))
            && self.outputs.iter().zip(signature.outputs()).all(|(set, o)| set.has(o.ty))
    }
}

/// The declared operands of one operation of a model.
#[derive(Debug, Clone, Copy)]
pub struct Signature<'a> {
    operands: &'a [Operand],
    inputs: &'a [u32],
    outputs: &'a [u32],
    /// Names of the model's extensions, with their prefixes.
    extensions: &'a [(String, u16)],
    /// The HAL version whose rules hold.
    pub version: HalVersion,
}

impl<'a> Signature<'a> {
    /// The signature of `operation`, whose indexes must lie in `operands`.
    #[must_use]
    pub fn new(operands: &'a [Operand], operation: &'a Operation, version: HalVersion) -> Self {
        let Operation { inputs, outputs, .. } = operation;
        Signature { operands, inputs, outputs, extensions: &[], version }
    }

    /// The same in a model that names these extensions, with their prefixes.
    #[must_use]
    pub fn with_extensions(self, extensions: &'a [(String, u16)]) -> Self {
        Signature { extensions, ..self }
    }

    /// Whether an operand has type `number` of this extension.
    #[must_use]
    pub fn is_type(&self, operand: &Operand, extension: &str, number: u16) -> bool {
        ExtensionCode::of_operand(operand.ty).is_some_and(|code| {
            let mut named = self.extensions.iter().filter(|(_, prefix)| *prefix == code.prefix);
            code.number == number && named.any(|(name, _)| name == extension)
        })
    }

    /// The input operands in order.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = &'a Operand> + use<'a> {
        let operands = self.operands;
        self.inputs.iter().map(move |index| &operands[*index as usize])
    }

    /// The output operands in order.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = &'a Operand> + use<'a> {
        let operands = self.operands;
        self.outputs.iter().map(move |index| &operands[*index as usize])
    }

    /// Input `index`, where there is one.
    #[must_use]
    pub fn input(&self, index: usize) -> Option<&'a Operand> {
        self.inputs.get(index).map(|index| &self.operands[*index as usize])
    }

    /// Output `index`, where there is one.
    #[must_use]
    pub fn output(&self, index: usize) -> Option<&'a Operand> {
        self.outputs.get(index).map(|index| &self.operands[*index as usize])
    }

    /// Accepts exactly the forms in `forms`.
    ///
    /// # Errors
    /// [`SignatureError::Types`] when none fits.
    pub fn expect_forms(&self, forms: &[Form]) -> Result<(), SignatureError> {
        if forms.iter().any(|form| form.matches(self)) {
            return Ok(());
        }
        Err(self.no_form())
    }

    /// The error that says that no form of the operation has these types.
    #[must_use]
    pub fn no_form(&self) -> SignatureError {
        SignatureError::Types {
            inputs: names(self.inputs()),
            outputs: names(self.outputs()),
            version: self.version,
        }
    }

    /// Fails with `what` unless `holds`.
    ///
    /// # Errors
    /// [`SignatureError::Rule`].
    pub fn rule(&self, holds: bool, what: &'static str) -> Result<(), SignatureError> {
        if holds { Ok(()) } else { Err(SignatureError::Rule { what }) }
    }

    /// Inputs given as NO_VALUE must be among those the operation allows to be omitted.
    pub(crate) fn check_omitted(&self, traits: OpTraits) -> Result<(), SignatureError> {
        let illegal = self.inputs().enumerate().any(|(index, operand)| {
            operand.lifetime == OperandLifeTime::NoValue && !traits.allows_omitting(index)
        });
        self.rule(!illegal, "an input that must be given has no value")
    }
}

fn names<'a>(operands: impl Iterator<Item = &'a Operand>) -> String {
    let mut text = String::new();
    for operand in operands {
        if !text.is_empty() {
            text.push_str(", ");
        }
        text.push_str(operand.ty.name());
    }
    text
}
