//! The driver's operations and the contract's forms against the specification's list: all of them, in
//! order, and each takes exactly the operand types of each version.
//!
//! Every form of the list (main type, variant, number of inputs and outputs) has to be accepted
//! from its version on; then one operand after the other gets every other type, and whether that
//! is accepted has to be what the list says.

use std::collections::BTreeMap;
use std::path::Path;

use burst_driver::op::Signature;
use burst_driver::{Registry, ops};
use burst_hal::{
    Dimensions, ExtraParams, HalVersion, Model, Operand, OperandLifeTime, OperandType, Operation,
    OperationType, Subgraph, forms,
};
use burst_testing::shared;
use serde::Deserialize;

burst_testing::tests![
    the_table_has_every_operation_once_in_order(),
    inputs_that_may_be_left_out_are_those_of_the_contract(),
    the_table_and_the_list_name_the_same_operations(&shared(LIST)?),
    every_type_of_the_list_is_accepted_from_its_version_on_and_no_other(&shared(LIST)?),
    scales_are_asked_after_where_the_list_says_so_and_nowhere_else(&shared(LIST)?),
];

/// The list, in the shared data.
const LIST: &str = "spec/operations.json";

/// An operation of the list.
#[derive(Debug, Deserialize)]
struct Row {
    code: i32,
    name: String,
    since: String,
    inputs: Vec<Slot>,
    outputs: Vec<Slot>,
    input_counts: BTreeMap<String, String>,
    output_counts: BTreeMap<String, String>,
    signatures: Vec<Types>,
    #[serde(default)]
    variants: Vec<Variant>,
}

/// An input or output.
#[derive(Debug, Clone, Deserialize)]
struct Slot {
    name: String,
    /// Types by the version that brought them.
    types: BTreeMap<String, Vec<String>>,
}

/// Types for one main type, alternatives separated by bars.
#[derive(Debug, Deserialize)]
struct Types {
    since: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
}

/// A form with other inputs.
#[derive(Debug, Deserialize)]
struct Variant {
    since: String,
    input_counts: BTreeMap<String, String>,
    inputs: Vec<Slot>,
}

/// Types that an operand may have, each from a version on.
type Choice = Vec<(OperandType, HalVersion)>;

/// One form of an operation for one main type, the lists at full length.
#[derive(Debug, Clone)]
struct Form {
    since: HalVersion,
    inputs: Vec<Choice>,
    outputs: Vec<Choice>,
    input_counts: Vec<(usize, HalVersion)>,
    output_counts: Vec<(usize, HalVersion)>,
}

/// The types of an operation's operands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Operands {
    inputs: Vec<OperandType>,
    outputs: Vec<OperandType>,
}

const VERSIONS: [HalVersion; 4] =
    [HalVersion::V1_0, HalVersion::V1_1, HalVersion::V1_2, HalVersion::V1_3];

/// How often an operand that may be repeated is repeated here.
const REPEATS: [usize; 3] = [1, 2, 5];

fn version(text: &str) -> HalVersion {
    match text {
        "1.0" => HalVersion::V1_0,
        "1.1" => HalVersion::V1_1,
        "1.2" => HalVersion::V1_2,
        "1.3" => HalVersion::V1_3,
        other => panic!("version {other}"),
    }
}

fn types() -> impl Iterator<Item = OperandType> {
    OperandType::ALL.iter().copied().filter(|ty| !ty.is_oem())
}

impl Slot {
    fn since(&self, ty: OperandType) -> Option<HalVersion> {
        let named = |types: &Vec<String>| types.iter().any(|name| name == ty.name());
        self.types.iter().find(|(_, types)| named(types)).map(|(since, _)| version(since))
    }

    /// The alternatives of a signature that this slot has.
    fn choice(&self, alternatives: &str) -> Choice {
        let types = alternatives.split('|').filter_map(OperandType::from_name);
        types.filter_map(|ty| Some((ty, self.since(ty)?))).collect()
    }
}

impl Row {
    fn ty(&self) -> OperationType {
        OperationType::from_code(self.code)
    }

    /// Every form, for every main type.
    fn forms(&self) -> Vec<Form> {
        self.signatures.iter().flat_map(|types| self.forms_of(types)).collect()
    }

    fn forms_of(&self, types: &Types) -> Vec<Form> {
        let outputs = choices(&self.outputs, &types.outputs);
        if self.variants.is_empty() {
            let inputs = choices(&self.inputs, &types.inputs);
            return self.repeated(types, inputs, outputs);
        }
        let form = |variant: &Variant| Form {
            since: version(&types.since).max(version(&variant.since)),
            inputs: variant.inputs.iter().map(|slot| self.by_name(slot, types)).collect(),
            outputs: outputs.clone(),
            input_counts: counts(&variant.input_counts),
            output_counts: counts(&self.output_counts),
        };
        self.variants.iter().map(form).collect()
    }

    /// A variant's input has the types of the explicit form's input of the same name, as far as
    /// the variant allows them; those it has alone have one type.
    fn by_name(&self, slot: &Slot, types: &Types) -> Choice {
        match self.inputs.iter().position(|input| input.name == slot.name) {
            Some(index) => slot.choice(&types.inputs[index]),
            None => {
                let names: Vec<String> = slot.types.values().flatten().cloned().collect();
                slot.choice(&names.join("|"))
            }
        }
    }

    /// Lists with no fixed length as several of fixed length.
    fn repeated(&self, types: &Types, inputs: Vec<Choice>, outputs: Vec<Choice>) -> Vec<Form> {
        let (input, output) = match self.ty() {
            OperationType::Concatenation => (Some(0), None),
            OperationType::Split => (None, Some(0)),
            OperationType::If => (Some(3), Some(0)),
            OperationType::While => (Some(2), Some(0)),
            _ => (None, None),
        };
        let since = version(&types.since);
        if input.is_none() && output.is_none() {
            let input_counts = counts(&self.input_counts);
            let output_counts = counts(&self.output_counts);
            return vec![Form { since, inputs, outputs, input_counts, output_counts }];
        }
        let form = |times: usize| {
            let (inputs, outputs) =
                (repeat(&inputs, input, times), repeat(&outputs, output, times));
            let input_counts = vec![(inputs.len(), since)];
            let output_counts = vec![(outputs.len(), since)];
            Form { since, inputs, outputs, input_counts, output_counts }
        };
        REPEATS.into_iter().map(form).collect()
    }
}

fn choices(slots: &[Slot], types: &[String]) -> Vec<Choice> {
    assert_eq!(slots.len(), types.len(), "a signature has the lists at full length");
    slots
        .iter()
        .zip(types)
        .map(|(slot, types)| match types.as_str() {
            // Whatever the subgraphs take; a tensor will do.
            "any" => vec![(OperandType::TensorFloat32, HalVersion::V1_0)],
            types => slot.choice(types),
        })
        .collect()
}

fn counts(counts: &BTreeMap<String, String>) -> Vec<(usize, HalVersion)> {
    counts.iter().map(|(count, since)| (count.parse().expect("a number"), version(since))).collect()
}

fn repeat(choices: &[Choice], index: Option<usize>, times: usize) -> Vec<Choice> {
    let Some(index) = index else { return choices.to_vec() };
    let (before, rest) = choices.split_at(index);
    let repeated = std::iter::repeat_n(&rest[0], times);
    before.iter().chain(repeated).chain(&rest[1..]).cloned().collect()
}

impl Form {
    /// Whether the list says that this form is these operands at this version.
    fn takes(&self, operands: &Operands, at: HalVersion) -> bool {
        let counted = |counts: &[(usize, HalVersion)], count: usize| {
            counts.iter().any(|(allowed, since)| *allowed == count && *since <= at)
        };
        let fit = |choices: &[Choice], types: &[OperandType]| {
            choices.iter().zip(types).all(|(choice, ty)| {
                choice.iter().any(|(allowed, since)| allowed == ty && *since <= at)
            })
        };
        self.since <= at
            && counted(&self.input_counts, operands.inputs.len())
            && counted(&self.output_counts, operands.outputs.len())
            && fit(&self.inputs, &operands.inputs)
            && fit(&self.outputs, &operands.outputs)
    }

    /// Operands of this form: one for every number of inputs and outputs it may have.
    fn operands(&self) -> Vec<Operands> {
        let first = |choices: &[Choice], count: usize| -> Vec<OperandType> {
            choices.iter().take(count).filter_map(|choice| Some(choice.first()?.0)).collect()
        };
        let pairs = self.input_counts.iter().flat_map(|(inputs, _)| {
            self.output_counts.iter().map(move |(outputs, _)| (*inputs, *outputs))
        });
        pairs
            .map(|(inputs, outputs)| Operands {
                inputs: first(&self.inputs, inputs),
                outputs: first(&self.outputs, outputs),
            })
            .collect()
    }
}

impl Operands {
    /// These with each of the first so many inputs and outputs in turn given every other type.
    fn neighbours(&self, inputs: usize, outputs: usize) -> Vec<Operands> {
        let mut neighbours = Vec::new();
        for index in 0..self.inputs.len().min(inputs) {
            neighbours.extend(types().map(|ty| {
                let mut other = self.clone();
                other.inputs[index] = ty;
                other
            }));
        }
        for index in 0..self.outputs.len().min(outputs) {
            neighbours.extend(types().map(|ty| {
                let mut other = self.clone();
                other.outputs[index] = ty;
                other
            }));
        }
        neighbours
    }
}

/// What the stored values of operands mean: a scale for each, and where real 0 lies.
#[derive(Debug, Clone, Copy)]
struct Meaning<'a> {
    /// Of inputs 0, 1 and so on; the last one is for the rest of them.
    inputs: &'a [f32],
    output: f32,
    zero_point: i32,
}

impl Meaning<'_> {
    /// Less than 1: before 1.2 an output's scale had to be above the product of the inputs'.
    const USUAL: Meaning<'static> = Meaning { inputs: &[0.5], output: 0.5, zero_point: 0 };

    fn input(&self, position: usize) -> f32 {
        self.inputs[position.min(self.inputs.len() - 1)]
    }

    /// Whether the list asks for other scales or another zero point where an operation has operands of these types:
    /// what it says in its notes, in words.
    fn is_refused(&self, code: OperationType, operands: &Operands, at: HalVersion) -> bool {
        let is_byte = |ty: &OperandType| *ty == OperandType::TensorQuant8Asymm;
        let bytes = operands.inputs.first().is_some_and(is_byte);
        let filter = operands.inputs.get(1).is_some_and(is_byte);
        let is_old = at < HalVersion::V1_2;
        let grows = self.output <= self.input(0) * self.input(1);
        match code {
            OperationType::Mul => bytes && grows,
            OperationType::FullyConnected => is_old && filter && grows,
            OperationType::Conv2d | OperationType::DepthwiseConv2d => {
                is_old && filter && self.input(1) >= 1.0
            }
            OperationType::Concatenation => {
                let tensors = 0..operands.inputs.len() - 1;
                is_old && bytes && tensors.into_iter().any(|at| self.input(at) != self.output)
            }
            OperationType::Pad | OperationType::SpaceToBatchNd => {
                is_old && bytes && self.zero_point != 0
            }
            _ => false,
        }
    }
}

/// Whether the driver takes these operands at this version, and whether the contract says that it has
/// such a form.
fn is_accepted(
    code: OperationType,
    operands: &Operands,
    at: HalVersion,
    meaning: Meaning<'_>,
) -> (bool, bool) {
    let mut all: Vec<Operand> = Vec::new();
    let mut add = |types: &[OperandType], lifetime: OperandLifeTime| -> Vec<u32> {
        let mut scales = (0..).map(|position| match lifetime {
            OperandLifeTime::SubgraphOutput => meaning.output,
            _ => meaning.input(position),
        });
        let add_operand = |ty: &OperandType| {
            let scale = scales.next().expect("as many as there are");
            all.push(operand(code, *ty, lifetime, (scale, meaning.zero_point)));
            u32::try_from(all.len() - 1).expect("a short list")
        };
        types.iter().map(add_operand).collect()
    };
    let operation = Operation {
        ty: code,
        inputs: add(&operands.inputs, OperandLifeTime::SubgraphInput),
        outputs: add(&operands.outputs, OperandLifeTime::SubgraphOutput),
    };
    let model =
        Model { main: Subgraph { operands: all, ..Subgraph::default() }, ..Model::default() };
    let has_form = forms::since(&model, &model.main, &operation).is_some_and(|since| since <= at);
    let all = model.main.operands;
    let Some(def) = Registry::default().find(code) else { return (false, has_form) };
    let known = code.since().is_some_and(|since| since <= at)
        && all.iter().all(|operand| operand.ty.since().is_some_and(|since| since <= at));
    (known && (def.validate)(&Signature::new(&all, &operation, at)).is_ok(), has_form)
}

/// An operand with what its type and this operation need beside the type itself.
fn operand(
    code: OperationType,
    ty: OperandType,
    lifetime: OperandLifeTime,
    (scale, zero_point): (f32, i32),
) -> Operand {
    let mut operand = Operand::new(ty, lifetime);
    operand.dimensions = match code {
        _ if !ty.is_tensor() => Dimensions::new(),
        // Before 1.2 these wanted four dimensions.
        OperationType::Softmax
        | OperationType::L2Normalization
        | OperationType::LocalResponseNormalization => Dimensions::from_slice(&[1, 1, 1, 1]),
        // The condition has one element.
        OperationType::If => Dimensions::from_slice(&[1]),
        _ => Dimensions::new(),
    };
    if ty.is_quantized() {
        operand.scale = scale;
    }
    if matches!(ty, OperandType::TensorQuant8Asymm | OperandType::TensorQuant8AsymmSigned) {
        operand.zero_point = zero_point;
    }
    if ty == OperandType::TensorQuant8SymmPerChannel {
        let channel_dim = if code == OperationType::DepthwiseConv2d { 3 } else { 0 };
        operand.extra_params = ExtraParams::ChannelQuant { scales: [0.5].into(), channel_dim };
    }
    operand
}

fn rows(list: &Path) -> Vec<Row> {
    let text = std::fs::read(list).expect("a readable list");
    serde_json::from_slice(&text).expect("the list of operations")
}

fn the_table_has_every_operation_once_in_order() {
    let codes: Vec<i32> = OperationType::ALL.iter().map(|op| op.code()).collect();
    assert_eq!(codes, (0..102).collect::<Vec<i32>>(), "sorted, no gaps");
    let registry = Registry::default();
    let missing: Vec<&str> = OperationType::ALL
        .iter()
        .filter(|op| registry.find(**op).is_none_or(|def| def.code != **op))
        .map(|op| op.name())
        .collect();
    assert!(missing.is_empty(), "operations without a row: {missing:?}");
    assert_eq!(ops::all().count(), 102, "an operation stands in two rows");
}

/// Control flow hands on what may be left out: its boundary sees to that, and not the table.
fn inputs_that_may_be_left_out_are_those_of_the_contract() {
    let registry = Registry::default();
    let mut seen = 0;
    for op in OperationType::ALL {
        if matches!(op, OperationType::If | OperationType::While) {
            continue;
        }
        let def = registry.find(*op).expect("a row");
        for input in 0..64 {
            let found = def.traits.allows_omitting(input);
            assert_eq!(found, forms::may_omit(*op, input), "{op}, input {input}");
            seen += usize::from(found);
        }
    }
    assert!(seen > 50, "{seen} inputs may be left out");
}

fn the_table_and_the_list_name_the_same_operations(list: &Path) {
    let rows = rows(list);
    assert_eq!(rows.len(), OperationType::ALL.len());
    for (row, op) in rows.iter().zip(OperationType::ALL) {
        assert_eq!((row.code, row.name.as_str()), (op.code(), op.name()));
        assert_eq!(Some(version(&row.since)), op.since(), "{}", row.name);
    }
}

fn every_type_of_the_list_is_accepted_from_its_version_on_and_no_other(list: &Path) {
    let rows = rows(list);
    let (mut asked, mut wrong) = (0, Vec::new());
    for row in &rows {
        let forms = row.forms();
        // Of control flow only the condition and the subgraphs have types of their own.
        let (inputs, outputs) = match row.ty() {
            OperationType::If => (3, 0),
            OperationType::While => (2, 0),
            _ => (usize::MAX, usize::MAX),
        };
        let before = wrong.len();
        for operands in forms.iter().flat_map(Form::operands) {
            let neighbours = operands.neighbours(inputs, outputs);
            for operands in neighbours.iter().chain([&operands]) {
                for at in VERSIONS {
                    asked += 1;
                    let expected = forms.iter().any(|form| form.takes(operands, at));
                    let found = is_accepted(row.ty(), operands, at, Meaning::USUAL);
                    if found != (expected, expected) {
                        let name = &row.name;
                        wrong.push(format!("{name} {at}: {operands:?}: {found:?}, not {expected}"));
                    }
                }
            }
        }
        for what in wrong[before..].iter().take(3) {
            println!("{what}");
        }
        if wrong.len() > before {
            println!("{}: {} wrong", row.name, wrong.len() - before);
        }
    }
    println!("{asked} signatures of {} operations", rows.len());
    assert!(asked > 100_000, "only {asked} signatures");
    assert!(wrong.is_empty(), "{} of {asked} signatures are wrong", wrong.len());
}

/// With one scale for all, nothing shows of the rules on scales, and nothing of a driver that asks for more of them.
fn scales_are_asked_after_where_the_list_says_so_and_nowhere_else(list: &Path) {
    let scales: [(&[f32], f32); 9] = [
        (&[0.5], 0.5),
        (&[0.5], 0.25),
        (&[0.5], 0.25f32.next_up()),
        (&[0.5], 8.0),
        (&[0.5, 0.25, 0.125], 0.01),
        (&[0.125, 0.25, 0.5], 0.5),
        (&[0.001, 2.0, 0.002], 0.5),
        (&[0.5, 1.0, 0.5], 1e-6),
        (&[0.5, 0.999, 0.5], 0.5f32.next_up()),
    ];
    let (mut asked, mut refused, mut wrong) = (0, 0, Vec::new());
    for row in &rows(list) {
        let forms = row.forms();
        for operands in forms.iter().flat_map(Form::operands) {
            let wholes =
                VERSIONS.iter().filter(|at| forms.iter().any(|f| f.takes(&operands, **at)));
            for at in wholes {
                for (inputs, output) in scales {
                    for zero_point in [0, 3] {
                        let meaning = Meaning { inputs, output, zero_point };
                        let expected = !meaning.is_refused(row.ty(), &operands, *at);
                        let found = is_accepted(row.ty(), &operands, *at, meaning);
                        (asked, refused) = (asked + 1, refused + usize::from(!expected));
                        if found != (expected, expected) {
                            let name = &row.name;
                            wrong
                                .push(format!("{name} {at}: {meaning:?}: {found:?}: {operands:?}"));
                        }
                    }
                }
            }
        }
    }
    println!("{asked} signatures, {refused} refused for their scales");
    assert!(asked > 10_000 && refused > 100, "only {asked} signatures, {refused} refused");
    assert!(
        wrong.is_empty(),
        "{} of {asked} are wrong: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );
}
