//! Rules for a request: counts, pools, and for each argument location, dimensions and length.
//!
//! Runs once per execution, so what a model says about its arguments is worked out beforehand,
//! and neither a legal nor an illegal request costs an allocation, but for those of very many arguments
//! ([`overlap`](super::overlap)).

use super::error::{ArgumentFault as Fault, Direction, InterfaceFault, ValidationError};
use super::limits::{Limit, MAX_RANK};
use super::{GraphId, overlap, saturate, within};
use crate::operand_type::length_of;
use crate::{
    Dimensions, ExtensionOperandType, ExtraParams, Model, Operand, OperandType, Request,
    RequestArgument, RequestPool, Subgraph,
};

/// Whether an execution may find out dimensions of its outputs itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnspecifiedOutputs {
    /// It may: every execution since HAL 1.2 that is not fenced.
    Allowed,
    /// All must be known beforehand: fenced executions, and models of HAL 1.0 and 1.1.
    Refused,
}

/// Checks one request against a model that is legal. A service keeps [`RequestRules`] instead.
///
/// # Errors
/// The first thing that is wrong; for its status see [`ValidationError::status`].
pub fn validate_request(
    request: &Request,
    model: &Model,
    unspecified: UnspecifiedOutputs,
) -> Result<(), ValidationError> {
    RequestRules::new(model)?.check(request, unspecified)
}

/// What a model asks of each argument of a request.
#[derive(Debug, Clone)]
pub struct RequestRules {
    inputs: Box<[Rule]>,
    outputs: Box<[Rule]>,
}

/// An input or output of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ArgumentOperand<'r> {
    /// Its type.
    pub ty: OperandType,
    /// Sizes along each axis as far as the model knows them.
    pub dimensions: &'r [u32],
    /// Real value of one step of a quantized type.
    pub scale: f32,
    /// Stored value that stands for real 0.
    pub zero_point: i32,
    /// Per-channel scales or extension bytes.
    pub extra_params: &'r ExtraParams,
}

impl RequestRules {
    /// The rules of a model.
    ///
    /// # Errors
    /// Inputs or outputs that the main graph does not have; a legal model has all of its own.
    pub fn new(model: &Model) -> Result<Self, ValidationError> {
        let graph = &model.main;
        Ok(RequestRules {
            inputs: rules(graph, &graph.input_indexes, Direction::Input)?,
            outputs: rules(graph, &graph.output_indexes, Direction::Output)?,
        })
    }

    /// Bytes that these rules take, for who charges them to somebody.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let lists = size_of_val(&*self.inputs) + size_of_val(&*self.outputs);
        let rules = self.inputs.iter().chain(&self.outputs);
        size_of::<Self>() + lists + rules.map(Rule::shared_bytes).sum::<usize>()
    }

    /// How many inputs, or outputs, the model has.
    #[must_use]
    pub fn count(&self, direction: Direction) -> usize {
        self.list(direction).len()
    }

    /// What the model says of an input or output; `None` where it has no such one.
    #[must_use]
    pub fn operand(&self, direction: Direction, position: usize) -> Option<ArgumentOperand<'_>> {
        self.list(direction).get(position).map(Rule::operand)
    }

    fn list(&self, direction: Direction) -> &[Rule] {
        match direction {
            Direction::Input => &self.inputs,
            Direction::Output => &self.outputs,
        }
    }

    /// Bytes from the beginning of a whole pool that a value there is sure to take: one where its length is not
    /// known yet.
    pub(super) fn taken(
        &self,
        direction: Direction,
        position: usize,
        argument: &RequestArgument,
    ) -> u64 {
        let rule = self.list(direction).get(position);
        let known = rule.filter(|rule| rule.is_specified(argument));
        known.and_then(|rule| rule.needed(argument).ok().flatten()).unwrap_or(1)
    }

    /// How many inputs a request has, and how many outputs.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.inputs.len(), self.outputs.len())
    }

    /// How many dimensions the model gives each input and then each output: none for a scalar, and where
    /// it leaves the rank open.
    pub fn ranks(&self) -> impl Iterator<Item = usize> {
        self.inputs.iter().chain(&self.outputs).map(|rule| rule.dimensions.len())
    }

    /// From now on refuses requests that leave this argument out.
    ///
    /// Only a driver knows, from its operations, which ones can do without; until it says so,
    /// every argument may be left out.
    pub fn require(&mut self, direction: Direction, position: usize) {
        let rules = match direction {
            Direction::Input => &mut self.inputs,
            Direction::Output => &mut self.outputs,
        };
        if let Some(rule) = rules.get_mut(position) {
            rule.is_optional = false;
        }
    }

    /// From now on knows what this argument's type is, which an extension brought and only a driver
    /// knows: its values then have as many bytes as their dimensions say.
    pub fn describe(&mut self, direction: Direction, position: usize, ty: &ExtensionOperandType) {
        let rules = match direction {
            Direction::Input => &mut self.inputs,
            Direction::Output => &mut self.outputs,
        };
        if let Some(rule) = rules.get_mut(position) {
            rule.describe(ty);
        }
    }

    /// Checks one request.
    ///
    /// An output may be shorter than its dimensions need, and a buffer of the driver may be one
    /// that this model cannot use: both show only during the execution.
    ///
    /// # Errors
    /// The first thing that is wrong; for its status see [`ValidationError::status`].
    pub fn check(
        &self,
        request: &Request,
        unspecified: UnspecifiedOutputs,
    ) -> Result<(), ValidationError> {
        same_count(&self.inputs, &request.inputs, Direction::Input)?;
        same_count(&self.outputs, &request.outputs, Direction::Output)?;
        check_pools(&request.pools)?;
        for (position, (rule, argument)) in (0..).zip(self.inputs.iter().zip(&request.inputs)) {
            check_input(rule, argument, &request.pools).map_err(|fault| {
                ValidationError::Argument { direction: Direction::Input, position, fault }
            })?;
        }
        for (position, (rule, argument)) in (0..).zip(self.outputs.iter().zip(&request.outputs)) {
            check_output(rule, argument, &request.pools, unspecified).map_err(|fault| {
                ValidationError::Argument { direction: Direction::Output, position, fault }
            })?;
        }
        overlap::check(
            &|direction, position, argument| self.taken(direction, position, argument),
            request,
        )
    }
}

/// What the model says about one argument.
#[derive(Debug, Clone)]
struct Rule {
    ty: OperandType,
    dimensions: Dimensions,
    /// Whether a value without dimensions is a scalar rather than a tensor of unknown rank.
    is_scalar: bool,
    /// Whether it is known to be a tensor, so that one without dimensions has an unknown rank.
    is_tensor: bool,
    /// Bytes of an element; `None` where only its device knows.
    element_bytes: Option<u64>,
    /// Length of the value, where the model knows all dimensions.
    bytes: Option<u64>,
    is_optional: bool,
    scale: f32,
    zero_point: i32,
    extra_params: ExtraParams,
}

impl Rule {
    fn of(operand: &Operand) -> Self {
        let ty = operand.ty;
        let element = ty.element_bytes().filter(|_| !ty.is_oem()).map(|bytes| bytes as u64);
        let mut rule = Rule {
            ty,
            dimensions: operand.dimensions.clone(),
            is_scalar: ty.is_scalar() || ty == OperandType::Oem,
            is_tensor: ty.is_tensor(),
            element_bytes: element,
            bytes: None,
            is_optional: true,
            scale: operand.scale,
            zero_point: operand.zero_point,
            extra_params: operand.extra_params.clone(),
        };
        rule.bytes = rule.known_bytes();
        rule
    }

    fn operand(&self) -> ArgumentOperand<'_> {
        let Rule { ty, ref dimensions, scale, zero_point, ref extra_params, .. } = *self;
        ArgumentOperand { ty, dimensions, scale, zero_point, extra_params }
    }

    /// Bytes that are shared with the model, and kept here once it is gone.
    fn shared_bytes(&self) -> usize {
        match &self.extra_params {
            ExtraParams::None => 0,
            ExtraParams::ChannelQuant { scales, .. } => size_of_val(&**scales),
            ExtraParams::Extension(bytes) => bytes.len(),
        }
    }

    fn describe(&mut self, ty: &ExtensionOperandType) {
        self.is_scalar = !ty.is_tensor;
        self.is_tensor = ty.is_tensor;
        self.element_bytes = Some(ty.byte_size.into());
        self.bytes = self.known_bytes();
    }

    /// Length of the value, where the model knows all dimensions.
    fn known_bytes(&self) -> Option<u64> {
        let is_known = self.is_scalar || !self.dimensions.is_empty();
        let is_specified = is_known && !self.dimensions.contains(&0);
        self.element_bytes
            .filter(|_| is_specified)
            .and_then(|element| length_of(element, &self.dimensions))
    }

    /// Dimensions of this execution: the argument's where it has any, else the model's. Only
    /// meaningful once the argument's were found to agree with the model's.
    fn merged<'a>(&'a self, argument: &'a RequestArgument) -> &'a [u32] {
        match argument.dimensions.is_empty() {
            true => &self.dimensions,
            false => &argument.dimensions,
        }
    }

    /// Whether rank and every size are known. An extension's value without dimensions may be a
    /// scalar, so it counts as known.
    fn is_specified(&self, argument: &RequestArgument) -> bool {
        let dimensions = self.merged(argument);
        let has_rank = !dimensions.is_empty() || !self.is_tensor;
        has_rank && !dimensions.contains(&0)
    }

    /// Bytes that a fully specified value needs; `None` where only its device knows.
    fn needed(&self, argument: &RequestArgument) -> Result<Option<u64>, Fault> {
        match (self.bytes, self.element_bytes) {
            (Some(bytes), _) => Ok(Some(bytes)),
            (None, None) => Ok(None),
            (None, Some(element)) => {
                let bytes = length_of(element, self.merged(argument));
                bytes.map(Some).ok_or(Fault::SizeOverflow)
            }
        }
    }
}

fn rules(
    graph: &Subgraph,
    indexes: &[u32],
    direction: Direction,
) -> Result<Box<[Rule]>, ValidationError> {
    let rule = |(position, operand): (u32, &u32)| {
        let found = usize::try_from(*operand).ok().and_then(|index| graph.operands.get(index));
        found.map(Rule::of).ok_or_else(|| {
            let operands = saturate(graph.operands.len());
            let fault = InterfaceFault::UnknownOperand { operand: *operand, operands };
            ValidationError::Interface { graph: GraphId::Main, direction, position, fault }
        })
    };
    (0..).zip(indexes).map(rule).collect()
}

fn same_count(
    rules: &[Rule],
    arguments: &[RequestArgument],
    direction: Direction,
) -> Result<(), ValidationError> {
    match rules.len() == arguments.len() {
        true => Ok(()),
        false => Err(ValidationError::ArgumentCount {
            direction,
            expected: saturate(rules.len()),
            found: saturate(arguments.len()),
        }),
    }
}

fn check_pools(pools: &[RequestPool]) -> Result<(), ValidationError> {
    within(pools.len(), Limit::RequestPools)?;
    match pools.iter().position(|pool| matches!(pool, RequestPool::Token(0))) {
        Some(pool) => Err(ValidationError::TokenZero { pool: saturate(pool) }),
        None => Ok(()),
    }
}

/// What an argument names, and how many bytes that has.
#[derive(Clone, Copy)]
enum Extent {
    /// Nothing: it is left out.
    Nothing,
    /// A part of a pool.
    Part(u64),
    /// A whole pool, which may be longer than the value in it.
    Whole(u64),
    /// A buffer that the driver manages and knows the size of.
    Buffer,
}

fn check_input(
    rule: &Rule,
    argument: &RequestArgument,
    pools: &[RequestPool],
) -> Result<(), Fault> {
    let extent = check_location(rule, argument, pools)?;
    if matches!(extent, Extent::Nothing) {
        return Ok(());
    }
    check_dimensions(rule, argument)?;
    // A buffer of the driver remembers the dimensions of what was written into it.
    if !matches!(extent, Extent::Buffer) && !rule.is_specified(argument) {
        return Err(Fault::Unspecified);
    }
    let (found, fits): (u64, fn(&u64, &u64) -> bool) = match extent {
        Extent::Nothing | Extent::Buffer => return Ok(()),
        Extent::Part(found) => (found, u64::eq),
        Extent::Whole(found) => (found, u64::ge),
    };
    match rule.needed(argument)? {
        Some(expected) if !fits(&found, &expected) => Err(Fault::Length { expected, found }),
        _ => Ok(()),
    }
}

fn check_output(
    rule: &Rule,
    argument: &RequestArgument,
    pools: &[RequestPool],
    unspecified: UnspecifiedOutputs,
) -> Result<(), Fault> {
    if matches!(check_location(rule, argument, pools)?, Extent::Nothing) {
        return Ok(());
    }
    check_dimensions(rule, argument)?;
    if unspecified == UnspecifiedOutputs::Refused && !rule.is_specified(argument) {
        return Err(Fault::Unspecified);
    }
    Ok(())
}

/// Checks where an argument lies, or that it says nothing more when it is left out.
fn check_location(
    rule: &Rule,
    argument: &RequestArgument,
    pools: &[RequestPool],
) -> Result<Extent, Fault> {
    let location = argument.location;
    if argument.has_no_value {
        let is_bare = location == crate::DataLocation::default() && argument.dimensions.is_empty();
        return match (is_bare, rule.is_optional) {
            (false, _) => Err(Fault::ValueLeftOut),
            (true, false) => Err(Fault::NotOptional),
            (true, true) => Ok(Extent::Nothing),
        };
    }
    let pool = usize::try_from(location.pool_index).ok().and_then(|index| pools.get(index));
    match pool {
        None => Err(Fault::UnknownPool { pool: location.pool_index, pools: saturate(pools.len()) }),
        Some(RequestPool::Token(_)) if location.is_whole_pool() => Ok(Extent::Buffer),
        Some(RequestPool::Token(_)) => Err(Fault::PartOfBuffer),
        Some(RequestPool::Memory(memory)) => {
            let size = memory.len();
            let crate::DataLocation { offset, length, .. } = location;
            match location.range_in(size) {
                None => Err(Fault::OutOfPool { offset, length, size }),
                Some(_) if location.is_whole_pool() => Ok(Extent::Whole(size)),
                Some(_) => Ok(Extent::Part(u64::from(length))),
            }
        }
    }
}

/// An argument's dimensions are empty or refine the model's.
fn check_dimensions(rule: &Rule, argument: &RequestArgument) -> Result<(), Fault> {
    let (model, argument) = (&rule.dimensions, &argument.dimensions);
    if argument.is_empty() {
        return Ok(());
    }
    if model.is_empty() && !rule.is_scalar {
        return match argument.len() > MAX_RANK {
            true => Err(Fault::RankTooLarge { rank: saturate(argument.len()) }),
            false => Ok(()),
        };
    }
    if argument.len() != model.len() {
        return Err(Fault::Rank {
            expected: saturate(model.len()),
            found: saturate(argument.len()),
        });
    }
    for (axis, (expected, found)) in (0..).zip(model.iter().zip(argument)) {
        if *expected != 0 && expected != found {
            return Err(Fault::Dimension { axis, expected: *expected, found: *found });
        }
    }
    Ok(())
}
