//! Requests made of any bytes, and the memory around their arguments, which is watched.

use std::ops::Range;
use std::sync::Arc;

use burst_hal::{
    DataLocation, Dimensions, HeapMemory, Model, Operand, Pool, Request, RequestArgument,
    RequestPool,
};

use super::Suited;
use super::bytes::Bytes;
use super::sizes::Sizes;
use super::values::value;

/// Bytes around arguments that nobody may write.
const GAP: usize = 16;
/// The byte in them.
const GAP_BYTE: u8 = 0xC3;
/// Room for an output whose size nobody knows.
const ROOM: usize = 4096;
/// Of so many requests one is broken somewhere.
const BROKEN_ONE_IN: usize = 8;
/// Of so many inputs for which a value is known that suits them, one is of any other.
const ODD_ONE_IN: usize = 8;

/// The pool with the inputs, and the one with the outputs.
const INPUTS: u32 = 0;
const OUTPUTS: u32 = 1;

/// A request without its memory: it is made anew for each execution.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    inputs: Vec<RequestArgument>,
    pub(super) outputs: Vec<RequestArgument>,
    input_bytes: Vec<u8>,
    output_bytes: usize,
    /// A token in place of the outputs' memory.
    has_token: bool,
}

/// A request, with its memory as it was before.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) request: Request,
    inputs: Arc<HeapMemory>,
    outputs: Arc<HeapMemory>,
    before: Vec<u8>,
}

impl Draft {
    /// The request that these bytes stand for. The model need not be legal, but what its lists name is
    /// there.
    pub(super) fn new(
        model: &Model,
        (sizes, suited): (&Sizes, &Suited),
        bytes: &mut Bytes<'_>,
    ) -> Self {
        let graph = &model.main;
        let operands = |list: &[u32]| -> Vec<(u32, &Operand)> {
            let operand = |index: &u32| Some((*index, graph.operands.get(*index as usize)?));
            list.iter().filter_map(operand).collect()
        };
        let mut draft = Draft {
            inputs: Vec::new(),
            outputs: Vec::new(),
            input_bytes: vec![GAP_BYTE; GAP],
            output_bytes: GAP,
            has_token: false,
        };
        for (index, operand) in operands(&graph.input_indexes) {
            draft.add_input(operand, sizes, suited.input(index), bytes);
        }
        for (index, operand) in operands(&graph.output_indexes) {
            draft.add_output(operand, suited.output(index), bytes);
        }
        if bytes.rarely(BROKEN_ONE_IN) {
            draft.break_somewhere(bytes);
        }
        draft
    }

    fn add_input(
        &mut self,
        operand: &Operand,
        sizes: &Sizes,
        suited: Option<(&Dimensions, &[u8])>,
        bytes: &mut Bytes<'_>,
    ) {
        if bytes.rarely(24) {
            let omitted = RequestArgument { has_no_value: true, ..RequestArgument::default() };
            return self.inputs.push(omitted);
        }
        let (dimensions, value) = match suited.filter(|_| !bytes.rarely(ODD_ONE_IN)) {
            Some((shape, stored)) => (said(operand, shape, bytes), stored.to_vec()),
            None => {
                let shape = shape(operand, bytes);
                let dimensions = said(operand, &shape, bytes);
                let value = match sizes.byte_length(operand.ty, &shape) {
                    Some(length) => (0..length).map(|_| bytes.byte()).collect(),
                    None => value(bytes, operand.ty, &shape),
                };
                (dimensions, value)
            }
        };
        let location = location(INPUTS, self.input_bytes.len(), value.len());
        self.input_bytes.extend(value);
        let end = self.input_bytes.len().next_multiple_of(4) + GAP;
        self.input_bytes.resize(end, GAP_BYTE);
        self.inputs.push(RequestArgument { location, dimensions, ..RequestArgument::default() });
    }

    fn add_output(&mut self, operand: &Operand, suited: Option<usize>, bytes: &mut Bytes<'_>) {
        let is_known = !operand.ty.is_tensor()
            || !(operand.dimensions.is_empty() || operand.dimensions.contains(&0));
        let known = operand.ty.byte_length(&operand.dimensions).filter(|_| is_known);
        let known =
            known.and_then(|length| usize::try_from(length).ok()).filter(|len| *len <= ROOM);
        let known = suited.or(known);
        let room = match (known, bytes.below(12)) {
            (Some(length), 10) => length.saturating_sub(1),
            (Some(length), 11) => length + 3,
            (Some(length), _) => length,
            (None, 11) => 4,
            (None, _) => ROOM,
        };
        let location = location(OUTPUTS, self.output_bytes, room);
        self.output_bytes = (self.output_bytes + room).next_multiple_of(4) + GAP;
        self.outputs.push(RequestArgument { location, ..RequestArgument::default() });
    }

    /// Changes one thing.
    fn break_somewhere(&mut self, bytes: &mut Bytes<'_>) {
        let is_output = bytes.below(2) == 1;
        let list = if is_output { &mut self.outputs } else { &mut self.inputs };
        let index = bytes.below(list.len());
        let Some(argument) = list.get_mut(index) else { return };
        let number = bytes.pick([u32::MAX, 0, 1, 3, 1 << 30]);
        match bytes.below(9) {
            0 => drop(list.remove(index)),
            1 => list.push(RequestArgument::default()),
            2 => argument.has_no_value = true,
            // Never the other one of the two: inputs and outputs that overlap are the caller's own fault.
            3 => argument.location.pool_index = number.max(2),
            4 => argument.location.offset = number,
            5 => argument.location.length = number,
            6 => argument.dimensions.push(number),
            7 => argument.dimensions.iter_mut().take(1).for_each(|size| *size = number),
            _ => self.has_token = true,
        }
    }

    /// The request in new memory, the outputs' filled with this byte.
    pub(super) fn ask(&self, fill: u8) -> Asked {
        let mut before = vec![GAP_BYTE; self.output_bytes];
        for range in self.outputs.iter().filter_map(|output| range(output, self.output_bytes)) {
            before[range].fill(fill);
        }
        let inputs = Arc::new(HeapMemory::new(self.input_bytes.clone()));
        let outputs = Arc::new(HeapMemory::new(before.clone()));
        let pool = |memory: &Arc<HeapMemory>| RequestPool::Memory(Arc::clone(memory) as Pool);
        let last = if self.has_token { RequestPool::Token(4711) } else { pool(&outputs) };
        let request = Request {
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            pools: vec![pool(&inputs), last],
        };
        Asked { request, inputs, outputs, before }
    }

    /// The bytes of an output's argument, in what [`Asked::outputs`] gives.
    pub(super) fn range(&self, output: usize) -> Option<Range<usize>> {
        range(self.outputs.get(output)?, self.output_bytes)
    }

    /// Fails where an execution wrote what is none of its outputs.
    pub(super) fn check_untouched(&self, asked: &Asked) -> Result<(), String> {
        if asked.inputs.to_vec() != self.input_bytes {
            return Err("the memory of the inputs was written".to_owned());
        }
        let mut may_change = vec![false; self.output_bytes];
        for range in self.outputs.iter().filter_map(|output| range(output, self.output_bytes)) {
            may_change[range].fill(true);
        }
        let after = asked.outputs();
        let bytes = after.iter().zip(&asked.before).zip(&may_change);
        match bytes.into_iter().position(|((after, before), may)| after != before && !may) {
            Some(at) => {
                Err(format!("byte {at} of the outputs' memory, which is no output's, was written"))
            }
            None => Ok(()),
        }
    }
}

impl Asked {
    /// The memory of the outputs as it is now.
    pub(super) fn outputs(&self) -> Vec<u8> {
        self.outputs.to_vec()
    }
}

/// The shape of an execution's value.
fn shape(operand: &Operand, bytes: &mut Bytes<'_>) -> Dimensions {
    let mut shape = operand.dimensions.clone();
    if shape.is_empty() && operand.ty.is_tensor() {
        shape = super::values::shape(bytes);
    }
    for size in shape.iter_mut().filter(|size| **size == 0) {
        *size = 1 + u32::from(bytes.byte() % 3);
    }
    shape
}

/// What the request says of it.
fn said(operand: &Operand, shape: &Dimensions, bytes: &mut Bytes<'_>) -> Dimensions {
    let says = *shape != operand.dimensions || bytes.rarely(4);
    if says { shape.clone() } else { Dimensions::new() }
}

fn location(pool_index: u32, offset: usize, length: usize) -> DataLocation {
    // A few thousand at most.
    let number = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    DataLocation { pool_index, offset: number(offset), length: number(length) }
}

/// Where an argument of the outputs' pool lies.
fn range(argument: &RequestArgument, size: usize) -> Option<Range<usize>> {
    if argument.has_no_value || argument.location.pool_index != OUTPUTS {
        return None;
    }
    let range = argument.location.range_in(size as u64)?;
    Some(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)
}
