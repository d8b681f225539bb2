//! The devices of an engine: one that runs everything, and others that run a part of it, for trying how
//! models are divided among devices.
//!
//! Four of the parts are those of the sample drivers that come with NNAPI, with their figures, which are made up:
//! they say who is to be chosen, not what this machine does.

use burst_hal::{Capabilities, Operand, OperandType, OperationType, PerformanceInfo};

use crate::figures::{Figures, table};
use crate::offer::Candidate;

/// Which part of what an engine can compute a device offers, and under which name.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// The name that clients choose it by.
    pub name: &'static str,
    pub(crate) takes: fn(&Candidate<'_>) -> bool,
    /// `None`: those of the engine.
    made_up: Option<MadeUp>,
    /// Whether it has what extensions bring.
    pub(crate) has_extensions: bool,
}

/// Figures that nobody measured.
#[derive(Debug, Clone, Copy)]
struct MadeUp {
    float32: PerformanceInfo,
    relaxed: PerformanceInfo,
    others: PerformanceInfo,
}

const fn info(exec_time: f32, power_usage: f32) -> PerformanceInfo {
    PerformanceInfo { exec_time, power_usage }
}

const ONE: PerformanceInfo = info(1.0, 1.0);

impl Variant {
    /// Everything.
    pub const CPU: Variant =
        Variant { name: "cpu", takes: |_| true, made_up: None, has_extensions: true };

    /// Operations that begin with floats; says that it is fast.
    pub const FLOAT_FAST: Variant = Variant::sample(
        "cpu-float-fast",
        begins_with_floats,
        MadeUp { float32: info(0.8, 1.2), relaxed: info(0.7, 1.1), others: ONE },
    );

    /// Operations that begin with floats; says that it is slow and economical.
    pub const FLOAT_SLOW: Variant = Variant::sample(
        "cpu-float-slow",
        begins_with_floats,
        MadeUp { float32: info(1.3, 0.7), relaxed: info(1.2, 0.6), others: ONE },
    );

    /// Operations on quantized bytes.
    pub const QUANT: Variant = Variant::sample(
        "cpu-quant",
        is_of_bytes,
        MadeUp { float32: info(50.0, 1.0), relaxed: info(50.0, 1.0), others: info(50.0, 1.0) },
    );

    /// ADD, CONCATENATION and CONV_2D of floats.
    pub const MINIMAL: Variant = Variant::sample(
        "cpu-minimal",
        is_minimal,
        MadeUp { float32: info(0.4, 0.5), relaxed: info(0.4, 0.5), others: ONE },
    );

    /// ADD, SUB, MUL and DIV of any numbers; says that it is the fastest at them.
    pub const ARITHMETIC: Variant = Variant::sample(
        "cpu-arithmetic",
        is_arithmetic,
        MadeUp { float32: info(0.01, 0.01), relaxed: info(0.01, 0.01), others: info(0.01, 0.01) },
    );

    /// Everything but convolutions whose kernels are higher or wider than 5: it refuses by parameter.
    pub const SMALL_KERNELS: Variant = Variant {
        name: "cpu-small-kernels",
        takes: has_small_kernel,
        made_up: None,
        has_extensions: true,
    };

    /// All of them.
    pub const ALL: [&'static Variant; 7] = [
        &Variant::CPU,
        &Variant::FLOAT_FAST,
        &Variant::FLOAT_SLOW,
        &Variant::QUANT,
        &Variant::MINIMAL,
        &Variant::ARITHMETIC,
        &Variant::SMALL_KERNELS,
    ];

    /// The one with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Variant> {
        Variant::ALL.into_iter().find(|variant| variant.name == name)
    }

    const fn sample(
        name: &'static str,
        takes: fn(&Candidate<'_>) -> bool,
        made_up: MadeUp,
    ) -> Variant {
        Variant { name, takes, made_up: Some(made_up), has_extensions: false }
    }

    /// What a device of this kind reports, on an engine with these figures.
    pub(crate) fn capabilities(&self, figures: &Figures) -> Capabilities {
        let Some(MadeUp { float32, relaxed, others }) = self.made_up else {
            return figures.capabilities();
        };
        let performance = |ty| match ty {
            OperandType::Float32 | OperandType::TensorFloat32 => float32,
            _ => others,
        };
        Capabilities {
            relaxed_float32_to_float16_scalar: relaxed,
            relaxed_float32_to_float16_tensor: relaxed,
            operand_performance: table(performance),
            if_performance: others,
            while_performance: others,
        }
    }
}

/// An input of the operation.
fn input<'m>(candidate: &Candidate<'m>, position: usize) -> Option<&'m Operand> {
    let index = candidate.operation.inputs.get(position)?;
    candidate.graph.operands.get(*index as usize)
}

/// Whether the operation, one of the base range, begins with this type. Those that run graphs begin with a
/// condition or a graph, and are not taken.
fn begins_with(candidate: &Candidate<'_>, is_meant: fn(OperandType) -> bool) -> bool {
    !matches!(candidate.operation.ty, OperationType::Extension(_))
        && input(candidate, 0).is_some_and(|operand| is_meant(operand.ty))
}

fn is_float(ty: OperandType) -> bool {
    ty == OperandType::TensorFloat32
}

fn is_byte(ty: OperandType) -> bool {
    matches!(ty, OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned)
}

fn begins_with_floats(candidate: &Candidate<'_>) -> bool {
    begins_with(candidate, is_float)
}

fn is_of_bytes(candidate: &Candidate<'_>) -> bool {
    match candidate.operation.ty {
        // It begins with what selects.
        OperationType::Select => input(candidate, 1).is_some_and(|operand| is_byte(operand.ty)),
        _ => begins_with(candidate, is_byte),
    }
}

fn is_minimal(candidate: &Candidate<'_>) -> bool {
    let is_listed = matches!(
        candidate.operation.ty,
        OperationType::Add | OperationType::Concatenation | OperationType::Conv2d
    );
    is_listed && begins_with(candidate, is_float)
}

fn is_arithmetic(candidate: &Candidate<'_>) -> bool {
    use OperationType::{Add, Div, Mul, Sub};
    matches!(candidate.operation.ty, Add | Div | Mul | Sub)
}

/// The highest and the widest kernel of [`Variant::SMALL_KERNELS`].
const SMALL_KERNEL: u32 = 5;

/// Whether it is no convolution, or one whose kernel is known to be small.
fn has_small_kernel(candidate: &Candidate<'_>) -> bool {
    // Kernels are [depth out, height, width, depth in], depthwise ones [1, height, width, depth].
    let is_convolution = matches!(
        candidate.operation.ty,
        OperationType::Conv2d
            | OperationType::DepthwiseConv2d
            | OperationType::GroupedConv2d
            | OperationType::TransposeConv2d
    );
    if !is_convolution {
        return true;
    }
    let sizes = input(candidate, 1).and_then(|kernel| kernel.dimensions.get(1..3));
    sizes.is_some_and(|sizes| sizes.iter().all(|size| (1..=SMALL_KERNEL).contains(size)))
}
