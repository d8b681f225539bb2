//! An extension of the CPU driver from a crate of its own: complex numbers in fixed point.
//!
//! A value is two 16-bit integers, the real part and the imaginary part, each in steps of 2^-15.
//!
//! | number | operand type | |
//! |---|---|---|
//! | [`TENSOR_COMPLEX_Q15`] | tensor | elements of 4 bytes |
//! | [`COMPLEX_Q15`] | scalar | 4 bytes |
//!
//! | number | operation | inputs | output |
//! |---|---|---|---|
//! | [`MULTIPLY`] | product, rounded to nearest, clamped | a tensor; a tensor of the same shape, or a scalar | a tensor of that shape |
//! | [`MAGNITUDE`] | distance from 0 | a tensor | TENSOR_FLOAT32 of that shape |
//!
//! `src/bin/extension_driver.rs` serves a device that has it:
//!
//! ```sh
//! cargo run --release -p example-extension --bin extension_driver /tmp/example.sock
//! ```
#![forbid(unsafe_code)]

use std::sync::Arc;

use burst_driver::op::{OpTraits, TypeDef};
use burst_driver::{
    CpuDevice, DeviceOptions, Engine, ExtensionDef, ExtensionOp, Registry, RegistryError, Variant,
};

mod magnitude;
mod multiply;

/// Name of the extension.
pub const NAME: &str = "org.example.complex";

/// Number of the tensor type.
pub const TENSOR_COMPLEX_Q15: u16 = 0;

/// Number of the scalar type.
pub const COMPLEX_Q15: u16 = 1;

/// Number of the product.
pub const MULTIPLY: u16 = 0;

/// Number of the magnitude.
pub const MAGNITUDE: u16 = 1;

/// Bits behind the point of a part.
const FRACTION_BITS: u32 = 15;

/// The extension, for a [`Registry`].
pub static EXTENSION: ExtensionDef = ExtensionDef {
    name: NAME,
    types: &[
        TypeDef { number: TENSOR_COMPLEX_Q15, is_tensor: true, byte_size: 4 },
        TypeDef { number: COMPLEX_Q15, is_tensor: false, byte_size: 4 },
    ],
    operations: &[
        ExtensionOp {
            number: MULTIPLY,
            validate: multiply::validate,
            body: &multiply::BODY,
            traits: OpTraits::PLAIN,
        },
        ExtensionOp {
            number: MAGNITUDE,
            validate: magnitude::validate,
            body: &magnitude::BODY,
            traits: OpTraits::PLAIN,
        },
    ],
};

/// A CPU device that has the extension.
///
/// # Errors
/// None, as long as the tables above name everything once.
pub fn device(options: DeviceOptions) -> Result<CpuDevice, RegistryError> {
    let registry = Registry::default().with_extension(&EXTENSION)?;
    let engine = Arc::new(Engine::new(options).with_registry(registry));
    Ok(CpuDevice::of(&engine, &Variant::CPU))
}
