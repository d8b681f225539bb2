//! A graph while it grows: the values that there are, and how operations find and make them.

mod constants;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use burst_hal::{ModelBuilder, Operand, OperandLifeTime, OperandType, OperationType, OutputSpec};
use half::f16;

use self::constants::Pooled;
use super::Shape;
use super::rng::Rng;
use super::style::Style;
use super::value::{
    BOOL8, F16, F32, FLOATS, I32, Q16, Q16S, TQ8, TQ8S, Value, bound_of, rounds_nothing,
    stored_range,
};

/// Inputs of a model.
const MAX_INPUTS: usize = 12;
/// Beyond this a value is brought back to at most 1 before anything that makes it larger: nothing becomes infinite,
/// also in 16 bits.
const TAME: f32 = 64.0;
/// How often bits decide that differ from device to device, where that can be chosen: what is behind them is compared
/// operation by operation alone.
const ANY_BITS: f32 = 0.05;

/// A graph that grows.
pub(super) struct Grower<'b> {
    pub(super) b: &'b mut ModelBuilder,
    pub(super) rng: Rng,
    /// How many graphs are around this one.
    pub(super) depth: usize,
    pub(super) style: Style,
    /// Bytes of the model's inputs; `None` in a graph that is none of the model's main one.
    inputs: Option<Vec<Vec<u8>>>,
    values: Vec<Value>,
    /// By position in `values`.
    is_read: Vec<bool>,
    /// By position in `values`: whether an operation made it.
    is_made: Vec<bool>,
    pools: usize,
    /// Random constants in pools.
    pooled: Vec<Pooled>,
    operations: usize,
}

/// Where the values of a leaf lie.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Within(pub(super) f32, pub(super) f32);

impl Within {
    /// Small numbers of either sign.
    pub(super) const USUAL: Within = Within(-2.0, 2.0);
}

impl<'b> Grower<'b> {
    /// The main graph of a model.
    pub(super) fn main(b: &'b mut ModelBuilder, rng: Rng, style: Style) -> Self {
        Grower::new(b, rng, (0, style), Some(Vec::new()))
    }

    /// A graph that an operation of another one runs.
    pub(super) fn inner(b: &'b mut ModelBuilder, rng: Rng, at: (usize, Style)) -> Self {
        Grower::new(b, rng, at, None)
    }

    fn new(
        b: &'b mut ModelBuilder,
        rng: Rng,
        (depth, style): (usize, Style),
        inputs: Option<Vec<Vec<u8>>>,
    ) -> Self {
        Grower {
            b,
            rng,
            depth,
            style,
            inputs,
            values: Vec::new(),
            is_read: Vec::new(),
            is_made: Vec::new(),
            pools: 0,
            pooled: Vec::new(),
            operations: 0,
        }
    }

    /// How many operations there are.
    pub(super) fn operations(&self) -> usize {
        self.operations
    }

    /// The bytes of the inputs, and what is known of the shapes; every value that nothing reads becomes an
    /// output, and some others.
    pub(super) fn finish(mut self) -> (Vec<Vec<u8>>, BTreeMap<u32, Shape>) {
        if self.inputs.as_ref().is_some_and(Vec::is_empty) {
            // Everything came from constants, but a model has inputs.
            let x = self.leaf(F32, &[2]);
            self.apply(OperationType::Floor, &[x.operand], x.spec(), x.bound);
        }
        for index in 0..self.values.len() {
            let is_end = !self.is_read[index];
            let may_be_read = self.values[index].may_be_read;
            if self.is_made[index] && may_be_read && (is_end || self.rng.chance(0.1)) {
                self.b.output(self.values[index].operand);
            }
        }
        let shape = |value: &Value| Shape { dims: value.dims.clone(), is_bound: value.is_bound };
        let tensors = self.values.iter().filter(|value| value.ty.is_tensor());
        let shapes = tensors.map(|value| (value.operand, shape(value))).collect();
        (self.inputs.unwrap_or_default(), shapes)
    }

    /// An input of a graph that is run from another one.
    pub(super) fn parameter(&mut self, like: &Value) -> Value {
        let operand = self.b.input_of(like.spec());
        // What comes in with the next round of a loop is computed.
        self.add(Value { operand, is_exact: false, ..like.clone() }, false)
    }

    /// One of the values there are that is as wanted, the later ones more often.
    pub(super) fn pick(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        // Whole numbers with a scale are biases, and nothing else.
        let is_bias = |value: &Value| value.ty == I32 && value.scale > 0.0;
        let most = self.style.max_elements;
        let fits = |value: &&Value| {
            value.may_be_read
                && !value.is_bound
                && (1..=most).contains(&value.elements())
                && !is_bias(value)
                && is_wanted(value)
        };
        let found: Vec<&Value> = self.values.iter().filter(fits).collect();
        let first = if self.rng.chance(0.6) { found.len().saturating_sub(4) } else { 0 };
        let choices = found.get(first..)?;
        choices.get(self.rng.below(choices.len())).map(|value| (*value).clone())
    }

    /// A tensor of one of these types and ranks: mostly one that is there.
    pub(super) fn tensor(&mut self, types: &[OperandType], ranks: RangeInclusive<usize>) -> Value {
        if self.rng.chance(0.9) {
            let fits = |value: &Value| types.contains(&value.ty) && ranks.contains(&value.rank());
            if let Some(value) = self.pick(fits) {
                return value;
            }
        }
        let (ty, dims) = (self.rng.one_of(types), self.dims(ranks));
        self.leaf(ty, &dims)
    }

    /// The same, of which every device has the same bits: for what makes something else of each last one. Now and
    /// then of any bits.
    pub(super) fn exact_tensor(
        &mut self,
        types: &[OperandType],
        ranks: RangeInclusive<usize>,
    ) -> Value {
        if self.rng.chance(ANY_BITS) {
            return self.tensor(types, ranks);
        }
        if self.rng.chance(0.7) {
            let fits = |value: &Value| {
                value.is_exact && types.contains(&value.ty) && ranks.contains(&value.rank())
            };
            if let Some(value) = self.pick(fits) {
                return value;
            }
        }
        let (ty, dims) = (self.rng.one_of(types), self.dims(ranks));
        self.leaf(ty, &dims)
    }

    /// Pictures: four dimensions with rows and columns in the middle.
    pub(super) fn pictures(&mut self, types: &[OperandType]) -> Value {
        if self.rng.chance(0.8) {
            let is_large = |value: &Value| value.dims.iter().skip(1).all(|size| *size >= 2);
            let fits =
                |value: &Value| types.contains(&value.ty) && value.rank() == 4 && is_large(value);
            if let Some(value) = self.pick(fits) {
                return value;
            }
        }
        let ty = self.rng.one_of(types);
        let [n, mut h, mut w, mut c] =
            [self.rng.size(1, 2), self.rng.size(3, 7), self.rng.size(3, 7), self.rng.size(2, 5)];
        if self.style.is_long && self.rng.chance(if self.style.is_heavy { 0.9 } else { 0.3 }) {
            let long = self.long().min(self.style.max_leaf_elements / (n * 49)).max(2);
            match self.rng.below(3) {
                0 => h = long,
                1 => w = long,
                _ => c = long,
            }
        }
        let dims = [n, h, w, c].map(|size| size.min(self.style.largest.max(2)));
        self.leaf(ty, &dims)
    }

    /// A value like this one: of the same type, shape and meaning.
    pub(super) fn another(&mut self, like: &Value) -> Value {
        if self.rng.chance(0.7)
            && let Some(value) = self.pick(|value| value.is_alike(like))
        {
            return value;
        }
        self.leaf_of(like.spec(), Within::USUAL)
    }

    /// Dimensions of a value that comes from outside.
    pub(super) fn dims(&mut self, ranks: RangeInclusive<usize>) -> Vec<u32> {
        let rank = ranks.start() + self.rng.below(ranks.end() - ranks.start() + 1);
        let mut left = self.style.max_leaf_elements;
        let mut dims = Vec::with_capacity(rank);
        for _ in 0..rank {
            let often = if self.style.is_heavy { 0.6 } else { 0.3 };
            let size = if self.style.is_long && self.rng.chance(often) {
                self.long().min(left)
            } else {
                let most = if self.style.is_open { 10 } else { 7 };
                self.rng.size(1, left.min(most))
            };
            let size = size.min(self.style.largest);
            left /= size;
            dims.push(size);
        }
        dims
    }

    /// A size up to a thousand, small ones as often as large ones but where there is to be much to do.
    fn long(&mut self) -> u32 {
        if self.style.is_heavy {
            return self.rng.size(100, 1000);
        }
        let bits = self.rng.size(2, 9);
        self.rng.size(1 << bits, (2 << bits).min(1000))
    }

    /// A value from outside: an input, or a constant.
    pub(super) fn leaf(&mut self, ty: OperandType, dims: &[u32]) -> Value {
        let spec = self.spec(ty, dims);
        self.leaf_of(spec, Within::USUAL)
    }

    /// Type and shape, with a scale and zero point where the type has them.
    pub(super) fn spec(&mut self, ty: OperandType, dims: &[u32]) -> OutputSpec {
        let spec = OutputSpec::new(ty, dims);
        if !ty.is_quantized() {
            return spec;
        }
        let scale = self.rng.one_of(&[0.007_812_5, 0.02, 0.05, 0.1]);
        let zero_point = self.zero_point(ty);
        spec.quantized(scale, zero_point)
    }

    pub(super) fn zero_point(&mut self, ty: OperandType) -> i32 {
        match ty {
            TQ8 => self.rng.int(64, 192),
            TQ8S => self.rng.int(-64, 64),
            _ => 0,
        }
    }

    /// What values up to this far from 0 fit into.
    pub(super) fn spec_for(&mut self, ty: OperandType, dims: &[u32], bound: f32) -> OutputSpec {
        let zero_point = self.zero_point(ty);
        let scale = if ty.is_quantized() { bound.max(0.01) / 100.0 } else { 0.0 };
        OutputSpec::new(ty, dims).quantized(scale, zero_point)
    }

    pub(super) fn leaf_of(&mut self, spec: OutputSpec, within: Within) -> Value {
        if !self.is_input_next() {
            return self.random_constant(spec, within);
        }
        let bytes = self.bytes(&spec, within);
        self.input(spec, bytes, within)
    }

    /// A value from outside that is neither infinite nor NaN anywhere.
    pub(super) fn finite_leaf(&mut self, spec: OutputSpec, within: Within) -> Value {
        let style = self.style;
        self.style.has_specials = false;
        let value = self.leaf_of(spec, within);
        self.style = style;
        value
    }

    /// A value from outside with these bytes.
    pub(super) fn given(&mut self, spec: OutputSpec, bytes: Vec<u8>, within: Within) -> Value {
        match self.is_input_next() {
            true => self.input(spec, bytes, within),
            false => self.constant(spec, &bytes, within),
        }
    }

    /// Whether what comes next from outside is an input, and not a constant.
    fn is_input_next(&mut self) -> bool {
        let Some(inputs) = &self.inputs else { return false };
        inputs.is_empty() || inputs.len() < MAX_INPUTS && self.rng.chance(0.7)
    }

    fn input(&mut self, spec: OutputSpec, bytes: Vec<u8>, within: Within) -> Value {
        let value = value(self.b.input_of(spec.clone()), &spec, within);
        self.inputs.get_or_insert_default().push(bytes);
        self.add(value, false)
    }

    /// A list of whole numbers.
    pub(super) fn list(&mut self, dims: &[u32], values: &[i32]) -> u32 {
        self.b.constant_i32(dims, values)
    }

    /// A place of this type that is left out. Of a quantized type it has a scale all the same.
    pub(super) fn left_out(&mut self, spec: &OutputSpec) -> u32 {
        let operand = Operand::new(spec.ty, OperandLifeTime::NoValue);
        self.b.operand(Operand { scale: spec.scale, zero_point: spec.zero_point, ..operand })
    }

    /// The float scalar that goes with a type.
    pub(super) fn real(&mut self, ty: OperandType, value: f32) -> u32 {
        match ty {
            F16 => self.b.scalar_f16_bits(f16::from_f32(value).to_bits()),
            _ => self.b.scalar_f32(value),
        }
    }

    /// An activation; none for whole numbers.
    pub(super) fn activation(&mut self, ty: OperandType) -> u32 {
        let code = if ty == I32 || self.rng.chance(0.5) { 0 } else { self.rng.int(0, 3) };
        self.b.scalar_i32(code)
    }

    fn bytes(&mut self, spec: &OutputSpec, within: Within) -> Vec<u8> {
        let elements: u32 = spec.dimensions.iter().product();
        let mut bytes = Vec::new();
        for _ in 0..elements {
            match spec.ty {
                F32 => bytes.extend(self.float(within).to_le_bytes()),
                F16 => bytes.extend(f16::from_f32(self.float(within)).to_le_bytes()),
                I32 => bytes.extend(self.whole(spec.scale == 0.0).to_le_bytes()),
                BOOL8 => bytes.push(u8::from(self.rng.chance(0.5))),
                Q16 | Q16S => bytes.extend(self.wide(spec.ty).to_le_bytes()),
                _ => bytes.push(self.rng.next().to_le_bytes()[0]),
            }
        }
        bytes
    }

    fn float(&mut self, Within(low, high): Within) -> f32 {
        if self.style.has_specials && self.rng.chance(0.02) {
            return self.rng.one_of(&[f32::INFINITY, f32::NEG_INFINITY, f32::NAN]);
        }
        if self.style.has_extremes && self.rng.chance(0.02) {
            return self.rng.one_of(&[f32::MAX, f32::MIN, 1e30, -1e30]);
        }
        if self.style.has_edges && self.rng.chance(0.05) {
            // Nothing at all, too small for full precision, and the ends.
            let edges = [0.0, -0.0, 1e-40, -1e-40, 1e-7, low, high];
            let edge = self.rng.one_of(&edges);
            return if edge >= low && edge <= high { edge } else { low };
        }
        self.rng.real(low, high)
    }

    fn whole(&mut self, may_be_any: bool) -> i32 {
        if may_be_any && self.style.has_edges && self.rng.chance(0.05) {
            return self.rng.one_of(&[i32::MIN, i32::MAX, 0, -1]);
        }
        self.rng.int(-20, 20)
    }

    /// The bits of a quantized value of 16 bits.
    fn wide(&mut self, ty: OperandType) -> u16 {
        let bits = self.rng.next().to_le_bytes();
        let bits = u16::from_le_bytes([bits[0], bits[1]]);
        // Those with a sign have no lowest one.
        if ty == Q16S && bits == 0x8000 { 0 } else { bits }
    }

    /// Brings a value back to small numbers where it may be large.
    pub(super) fn tame(&mut self, value: Value) -> Value {
        self.tame_to(value, TAME)
    }

    /// Brings a value that may be farther from 0 than `limit` back to -1 to 1.
    pub(super) fn tame_to(&mut self, value: Value, limit: f32) -> Value {
        if value.bound <= limit || value.ty == I32 || value.ty == BOOL8 {
            return value;
        }
        if self.rng.chance(0.5) { self.tanh(&value) } else { self.logistic(&value) }
    }

    /// TANH, whose results lie between -1 and 1.
    pub(super) fn tanh(&mut self, value: &Value) -> Value {
        let (low, high) = stored_range(value.ty);
        let middle = (low + high + 1) / 2;
        self.fixed(OperationType::Tanh, value, (1.0 / 128.0, middle))
    }

    /// LOGISTIC, whose results lie between 0 and 1.
    pub(super) fn logistic(&mut self, value: &Value) -> Value {
        let (low, _) = stored_range(value.ty);
        self.fixed(OperationType::Logistic, value, (1.0 / 256.0, low))
    }

    /// A function of one value with at most 1 as its result, in this quantization.
    pub(super) fn fixed(
        &mut self,
        ty: OperationType,
        value: &Value,
        (scale, zero_point): (f32, i32),
    ) -> Value {
        let mut spec = OutputSpec::new(value.ty, &value.dims);
        if value.is_quantized() {
            spec = spec.quantized(scale, zero_point);
        }
        self.apply(ty, &[value.operand], spec, 1.0)
    }

    /// Floats between 0.5 and 1.5 that depend on these.
    pub(super) fn positive(&mut self, value: &Value) -> Value {
        let between = self.logistic(value);
        let half = self.random_constant(OutputSpec::new(value.ty, &[1]), Within(0.5, 0.5));
        let none = self.b.scalar_i32(0);
        let spec = between.spec();
        self.apply(OperationType::Add, &[between.operand, half.operand, none], spec, 1.5)
    }

    /// Adds an operation with one result, which is at most `bound` from 0.
    pub(super) fn apply(
        &mut self,
        ty: OperationType,
        inputs: &[u32],
        output: OutputSpec,
        bound: f32,
    ) -> Value {
        let mut results = self.apply_many(ty, inputs, &[(output, bound)]);
        results.swap_remove(0)
    }

    /// Adds an operation with several results.
    pub(super) fn apply_many(
        &mut self,
        ty: OperationType,
        inputs: &[u32],
        outputs: &[(OutputSpec, f32)],
    ) -> Vec<Value> {
        self.operations += 1;
        let mut reads = self.values.iter().filter(|value| inputs.contains(&value.operand));
        let from_exact = reads.all(|value| value.is_exact);
        for (value, is_read) in self.values.iter().zip(&mut self.is_read) {
            *is_read |= inputs.contains(&value.operand);
        }
        let specs: Vec<OutputSpec> = outputs.iter().map(|(spec, _)| spec.clone()).collect();
        let operands = self.b.operation(ty, inputs, &specs);
        let results = operands.into_iter().zip(outputs);
        let made: Vec<Value> = results
            .map(|(operand, (spec, bound))| value(operand, spec, Within(-bound, *bound)))
            .collect();
        let keeps_bits = |value: &Value| !FLOATS.contains(&value.ty) || rounds_nothing(ty);
        made.into_iter()
            .map(|value| {
                let is_exact = from_exact && keeps_bits(&value);
                self.add(Value { is_exact, ..value }, true)
            })
            .collect()
    }

    /// Notes something of a value that was not known when it was made.
    pub(super) fn change(&mut self, value: &Value, change: impl FnOnce(&mut Value)) {
        if let Some(value) = self.values.iter_mut().find(|known| known.operand == value.operand) {
            change(value);
        }
    }

    fn add(&mut self, value: Value, is_made: bool) -> Value {
        self.values.push(value.clone());
        self.is_read.push(false);
        self.is_made.push(is_made);
        value
    }
}

fn value(operand: u32, spec: &OutputSpec, Within(low, high): Within) -> Value {
    let bound = match spec.ty {
        F32 | F16 => low.abs().max(high.abs()),
        I32 => 20.0_f32.max(high),
        BOOL8 => 1.0,
        ty => bound_of(ty, spec.scale, spec.zero_point),
    };
    Value {
        operand,
        ty: spec.ty,
        dims: spec.dimensions.to_vec(),
        scale: spec.scale,
        zero_point: spec.zero_point,
        bound,
        is_bound: false,
        may_be_read: true,
        is_exact: true,
    }
}
