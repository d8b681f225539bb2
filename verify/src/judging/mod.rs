//! Devices judged by another one, over models that nobody wrote.
//!
//! The judge is a device that computes plainly: the interpreter `nnapi-reference`, or any other that is known
//! to be right. [`run_random`] makes models from seeds ([`random`](crate::random)), has the judge compute all of
//! their values, and asks three things of the device under judgement:
//!
//! - Each operation by itself: given the inputs that it had on the device, its integers, truth values and
//!   quantized values are the judge's bits, and its floats come as close as its [`Accuracy`] asks. For that the model
//!   is run once more with all of its values as outputs.
//! - The outputs of the model as it is: the same, with the accuracy of a graph of its size. Values behind
//!   something that jumped, such as the place of the largest of two nearly equal floats, may be any: they are
//!   skipped, and counted.
//! - Infinity and NaN stand where the judge has them, and shapes are those of the judge and of the generator's
//!   own table of operations.
//!
//! The first [`Lane`] is judged like that; every other one, another number of threads, another route to the
//! same device, the model taken from files, has to give the first one's bits. A lane of other
//! instructions may add up floats in another order: where its bits differ, it is judged like the first.
//!
//! A model that fails is made small as long as it fails, and written as a vector file.

mod accuracy;
mod compare;
mod form;
mod judge;
mod lane;
mod one;
mod record;
mod report;
mod run;
mod shrink;
mod surgery;
mod tensors;

pub use accuracy::{Accuracy, Criterion};
pub use compare::Compared;
pub use form::{FormCounts, Forms, Variants};
pub use judge::Judge;
pub use lane::{Lane, Way};
pub use report::{ClassCounts, MIN_OCCURRENCES, RandomFinding, RandomReport};
pub use run::{RandomPlan, run_random, run_random_into};

/// Compares the bytes of a value with those expected: floats may differ as `accuracy` allows, in 16 bits where
/// they are relaxed; everything else has to be the same.
///
/// # Errors
/// The first element that is wrong, or means that are, in words.
pub fn compare_values(
    ty: burst_hal::OperandType,
    accuracy: Accuracy,
    is_relaxed: bool,
    got: &[u8],
    want: &[u8],
) -> Result<Compared, String> {
    let is_half = ty == burst_hal::OperandType::TensorFloat16;
    let allowed = compare::Allowed::new(ty, accuracy.floats(is_half || is_relaxed), is_half);
    compare::compare(allowed, got, want)
}
