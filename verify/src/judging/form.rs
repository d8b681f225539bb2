//! Forms of operations: how often each occurred, and how much of what it computed was compared.

use std::collections::BTreeMap;

use burst_hal::{OperandLifeTime, OperandType, Operation, OperationType, Subgraph, forms};
use serde::Serialize;

use super::compare::Compared;
use crate::random::RandomModel;

/// What became of one form of an operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FormCounts {
    /// Operations that had it.
    pub occurrences: u64,
    /// Elements that they computed, those at the end of graphs counted once more.
    pub elements: u64,
    /// Of those, elements that were not compared.
    pub skipped: u64,
}

impl FormCounts {
    pub(super) fn add(&mut self, compared: Compared) {
        self.elements += compared.elements;
        self.skipped += compared.skipped;
    }

    /// Whether more was skipped than may be: one element in twenty.
    #[must_use]
    pub fn skips_too_many(&self) -> bool {
        self.skipped * 20 > self.elements
    }
}

/// Counts by form.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Forms(BTreeMap<String, FormCounts>);

impl Forms {
    /// Every form of every operation of the base range, with nothing counted.
    #[must_use]
    pub fn all() -> Self {
        let names = OperationType::ALL.iter().flat_map(|op| names(*op));
        Forms(names.map(|name| (name, FormCounts::default())).collect())
    }

    /// The counts of an operation's form.
    pub(super) fn of(&mut self, graph: &Subgraph, operation: &Operation) -> &mut FormCounts {
        self.0.entry(name(graph, operation)).or_default()
    }

    /// Adds what was counted elsewhere.
    pub fn merge(&mut self, other: &Forms) {
        for (name, counts) in &other.0 {
            let own = self.0.entry(name.clone()).or_default();
            own.occurrences += counts.occurrences;
            own.elements += counts.elements;
            own.skipped += counts.skipped;
        }
    }

    /// Each form with its counts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &FormCounts)> {
        self.0.iter().map(|(name, counts)| (name.as_str(), counts))
    }
}

/// What of an operation its form leaves open, by name, and how often it occurred: the rank of its first tensor,
/// and each operand that was left out.
pub type Variants = BTreeMap<String, u64>;

/// Counts an operation's variants.
pub(super) fn count_variants(one: &RandomModel, operation: &Operation, variants: &mut Variants) {
    let graph = &one.model.main;
    let name = operation.ty.name();
    let mut count = |variant: String| *variants.entry(variant).or_default() += 1;
    let shape = operation.inputs.iter().find_map(|operand| one.shape(*operand));
    if let Some(shape) = shape {
        count(format!("{name} of rank {}", shape.dims.len()));
        if shape.dims.contains(&0) {
            count(format!("{name} of nothing"));
        }
    }
    for (position, operand) in operation.inputs.iter().enumerate() {
        if graph.operands[*operand as usize].lifetime == OperandLifeTime::NoValue {
            count(format!("{name} without operand {position}"));
        }
    }
}

/// The form of an operation: its name, the types of its tensors, and how many inputs and outputs it has.
fn name(graph: &Subgraph, operation: &Operation) -> String {
    let types = |list: &[u32]| -> Vec<OperandType> {
        list.iter().map(|operand| graph.operands[*operand as usize].ty).collect()
    };
    let (inputs, outputs) = (types(&operation.inputs), types(&operation.outputs));
    named(operation.ty, &inputs, &outputs)
}

/// The names of all forms of an operation.
fn names(op: OperationType) -> Vec<String> {
    let mut names = Vec::new();
    for signature in forms::signatures(op) {
        for inputs in combinations(&signature.inputs) {
            for outputs in combinations(&signature.outputs) {
                names.push(named(op, &inputs, &outputs));
            }
        }
    }
    names
}

/// Every list with one of the types that each place may have. Where that is any, a float stands for it.
fn combinations(choices: &[forms::TypeChoice]) -> Vec<Vec<OperandType>> {
    let mut lists = vec![Vec::new()];
    for choice in choices {
        let any = [OperandType::TensorFloat32];
        let types = if choice.is_empty() { &any[..] } else { choice };
        let longer = |list: &Vec<OperandType>| -> Vec<Vec<OperandType>> {
            types.iter().map(|ty| list.iter().copied().chain([*ty]).collect()).collect()
        };
        lists = lists.iter().flat_map(longer).collect();
    }
    lists
}

fn named(op: OperationType, inputs: &[OperandType], outputs: &[OperandType]) -> String {
    // What passes through control flow may be anything, and any number of it.
    if matches!(op, OperationType::If | OperationType::While) {
        return op.name().to_owned();
    }
    let many = matches!(op, OperationType::Concatenation | OperationType::Split);
    let mut text = op.name().to_owned();
    let mut last = None;
    for ty in inputs.iter().chain(outputs).filter(|ty| ty.is_tensor()) {
        // Weights are many, and of one type.
        if last != Some(*ty) {
            text.push(' ');
            text.push_str(short(*ty));
            last = Some(*ty);
        }
    }
    if !many {
        text.push_str(&format!(" {}/{}", inputs.len(), outputs.len()));
    }
    text
}

/// A type's name as tables have it.
fn short(ty: OperandType) -> &'static str {
    match ty {
        OperandType::TensorFloat32 => "f32",
        OperandType::TensorFloat16 => "f16",
        OperandType::TensorInt32 => "i32",
        OperandType::TensorBool8 => "bool8",
        OperandType::TensorQuant8Asymm => "q8",
        OperandType::TensorQuant8AsymmSigned => "q8s",
        OperandType::TensorQuant8Symm => "q8symm",
        OperandType::TensorQuant8SymmPerChannel => "q8channel",
        OperandType::TensorQuant16Asymm => "q16",
        OperandType::TensorQuant16Symm => "q16symm",
        other => other.name(),
    }
}
