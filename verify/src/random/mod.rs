//! Random legal models with inputs, from a seed: for tests, for fuzzing, for judging one device by another.
//!
//! A seed gives the same model, the same constants and the same inputs on every machine, so a seed is all
//! that a finding has to name. All 102 operations are made, each in every form of its table; shapes are
//! this generator's own, written from the rules of the operations, and not those of any driver.
//!
//! | made by | shapes | values |
//! |---|---|---|
//! | [`operation`], [`graph`] | all known from the model | small numbers: no infinity, no NaN |
//! | [`Sample`] | some only at execution, some with no elements | also the edges of types, infinity and NaN |
//!
//! Models of one operation have with it what it needs to get values that it can compute with. Those of several have
//! any data flow, and IF and WHILE with graphs of their own. Types: floats of 32 and 16 bits, quantized values
//! of 8 and 16 bits, whole numbers, truth values; weights also with scales per channel. Constants lie with
//! the model or in pools of their own.
//!
//! ```
//! use burst_verify::random;
//!
//! let one = random::graph(7, 20);
//! assert!(one.model.main.operations.len() >= 20);
//! let again = random::graph(7, 20);
//! assert_eq!((one.model.main, one.inputs), (again.model.main, again.inputs));
//! ```
//!
//! # The table of operations, for authors of drivers
//!
//! What the generator knows of the operations is there for anybody: their forms are [`burst_hal::forms::signatures`]; of
//! each operand of a model [`RandomModel::shape`] says what the rules of shapes make of it, [`RandomModel::output_lengths`]
//! how much room the outputs need; and inputs and constants keep to the rules of values, so that a driver has to compute
//! the model: indexes name something, windows touch their pictures, loops end. A driver that infers shapes of its own
//! is held against it like this:
//!
//! ```
//! use burst_hal::{Dimensions, Model, Operation, OperationType, forms};
//! use burst_verify::random::{Class, Sample, operations};
//!
//! /// Part of a driver: the shape of a result, as far as it is known from the model.
//! fn inferred(model: &Model, operation: &Operation) -> Option<Dimensions> {
//!     let shape = |operand: u32| &model.main.operands[operand as usize].dimensions;
//!     match operation.ty {
//!         OperationType::Relu | OperationType::Neg => Some(shape(operation.inputs[0]).clone()),
//!         _ => None,
//!     }
//! }
//!
//! let mut compared = 0;
//! for ty in operations() {
//!     assert!(!forms::signatures(ty).is_empty());
//!     for seed in 0..4 {
//!         let sample = Sample { only: Some(ty), largest: 8, ..Sample::new(Class::Single, seed) };
//!         let one = sample.model();
//!         for operation in one.model.main.operations.iter().filter(|operation| operation.ty == ty) {
//!             // Where the model leaves a size open, a request will tell it, and the table knows it.
//!             let Some(own) = inferred(&one.model, operation) else { continue };
//!             let shape = one.shape(operation.outputs[0]).expect("the table knows every tensor");
//!             let is_known = !own.is_empty() && !own.contains(&0);
//!             assert!(!is_known || shape.covers(&own), "{ty:?} of {seed}: {own:?}, not {shape:?}");
//!             compared += usize::from(is_known);
//!         }
//!     }
//! }
//! assert!(compared > 0);
//! ```

mod class;
mod control;
mod detection;
mod elementwise;
mod grower;
mod lookup;
mod products;
mod recurrent;
mod reduce;
mod regions;
mod rng;
mod run;
mod sample;
mod shape;
mod style;
#[cfg(test)]
mod tests;
mod value;
mod window;
mod zero;

use std::collections::BTreeMap;

use burst_hal::{Model, ModelBuilder, OperationType};

use self::grower::Grower;
use self::style::Style;

pub use self::class::Class;
pub use self::rng::Rng;
pub use self::sample::Sample;

/// Adds an operation to a graph, and whatever it needs; at least one operation.
type Make = fn(&mut Grower<'_>);

/// How each operation is made, by family.
type Family = &'static [(OperationType, Make)];

/// All 102 operations.
const FAMILIES: [Family; 9] = [
    elementwise::RECIPES,
    shape::RECIPES,
    window::RECIPES,
    reduce::RECIPES,
    lookup::RECIPES,
    recurrent::RECIPES,
    regions::RECIPES,
    detection::RECIPES,
    control::RECIPES,
];

/// A model with inputs.
#[derive(Debug, Clone)]
pub struct RandomModel {
    /// What made it.
    pub seed: u64,
    /// The model: legal.
    pub model: Model,
    /// The bytes of each of its inputs.
    pub inputs: Vec<Vec<u8>>,
    /// What the table of operations says of the operands of its main graph.
    pub(crate) shapes: BTreeMap<u32, Shape>,
}

impl RandomModel {
    /// A model that comes from elsewhere, whose shapes the table has not been asked for.
    #[must_use]
    pub fn of(model: Model, inputs: Vec<Vec<u8>>) -> Self {
        RandomModel { seed: 0, model, inputs, shapes: BTreeMap::new() }
    }

    /// What the generator's table of operations says of the shape of an operand of the main graph; `None` for
    /// a scalar, and for what operations only configure themselves with.
    #[must_use]
    pub fn shape(&self, operand: u32) -> Option<&Shape> {
        self.shapes.get(&operand)
    }
}

/// What the generator's table of operations says of a value's shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// Its sizes.
    pub dims: Vec<u32>,
    /// Whether the first size is only the largest that it can be: values decide.
    pub is_bound: bool,
}

impl Shape {
    /// Whether a value of these sizes is as the table says.
    #[must_use]
    pub fn covers(&self, dims: &[u32]) -> bool {
        let (Some((own, own_rest)), Some((first, rest))) =
            (self.dims.split_first(), dims.split_first())
        else {
            return self.dims.is_empty() && dims.is_empty();
        };
        own_rest == rest && if self.is_bound { first <= own } else { first == own }
    }
}

/// Every operation, in the order of the families that make them.
pub fn operations() -> impl Iterator<Item = OperationType> {
    FAMILIES.into_iter().flatten().map(|(ty, _)| *ty)
}

/// A model around one operation, all shapes known, but those that values decide, and all values small.
#[must_use]
pub fn operation(ty: OperationType, seed: u64) -> RandomModel {
    // Every operation has a recipe.
    model(seed, |g| sample::recipe(ty).unwrap_or(elementwise::RECIPES[0]).1(g))
}

/// A model of at least so many operations, all shapes known and all values small; operations in the graphs of
/// control flow are not counted. Operations whose shapes values decide are not among them.
#[must_use]
pub fn graph(seed: u64, operations: usize) -> RandomModel {
    model(seed, |g| grow(g, operations))
}

/// Adds operations until there are so many more.
fn grow(g: &mut Grower<'_>, operations: usize) {
    let wanted = g.operations() + operations;
    while g.operations() < wanted {
        if !g.style.is_calm() {
            sample::drawn(&mut g.rng).1(g);
            continue;
        }
        let family = match g.rng.below(40) {
            0..14 => elementwise::RECIPES,
            14..21 => shape::RECIPES,
            21..28 => window::RECIPES,
            28..32 => reduce::RECIPES,
            32..34 => lookup::RECIPES,
            34 => recurrent::RECIPES,
            35 => regions::RECIPES,
            _ => control::RECIPES,
        };
        let (_, make) = g.rng.one_of(family);
        make(g);
    }
}

fn model(seed: u64, fill: impl FnOnce(&mut Grower<'_>)) -> RandomModel {
    let mut rng = Rng::new(seed);
    let mut builder = ModelBuilder::new();
    let mut grower = Grower::main(&mut builder, rng.fork(), Style::CALM);
    fill(&mut grower);
    let (inputs, shapes) = grower.finish();
    builder.relaxed(rng.chance(0.2));
    // Constants are far below the limit of a model's bytes.
    let model = builder.build_unvalidated().unwrap_or_default();
    RandomModel { seed, model, inputs, shapes }
}
