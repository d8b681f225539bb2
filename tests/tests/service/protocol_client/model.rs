//! A model as section 6 of the page has it: the sum of two tensors of two floats each.

use std::os::fd::OwnedFd;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};

use super::bytes::Writer;

const FLOAT32_TENSOR: i32 = 3;
const INT32: i32 = 1;
const ADD: i32 = 0;

/// An operand's type, dimensions, consumers, lifetime and length.
struct Operand(i32, &'static [u32], u32, i32, u32);

/// Two inputs, the activation (a constant 0: none), the output.
const OPERANDS: [Operand; 4] = [
    Operand(FLOAT32_TENSOR, &[2], 1, 1, 0),
    Operand(FLOAT32_TENSOR, &[2], 1, 1, 0),
    Operand(INT32, &[], 1, 3, 4),
    Operand(FLOAT32_TENSOR, &[2], 0, 2, 0),
];

/// The structure of the model.
fn structure(operation: i32) -> Vec<u8> {
    let operand = |to: Writer, Operand(ty, dimensions, consumers, lifetime, length): &Operand| {
        let to = to.i32(*ty).indexes(dimensions).u32(*consumers).f32(0.0).i32(0).i32(*lifetime);
        to.u32(0).u32(0).u32(*length).u32(0)
    };
    let to = Writer::default().list(&OPERANDS, operand);
    let to = to.list(&[operation], |to, ty| to.i32(*ty).indexes(&[0, 1, 2]).indexes(&[3]));
    let to = to.indexes(&[0, 1]).indexes(&[3]);
    let no_graphs: [(); 0] = [];
    let to = to.list(&no_graphs, |to, ()| to).bool(false);
    to.list(&no_graphs, |to, ()| to).0
}

/// A model in memory, and what a message says of it.
pub struct Body {
    pub memory: OwnedFd,
    pub fields: Writer,
}

/// ADD, in memory that nobody can write any more; unsealed for those who want to be refused.
pub fn body(sealed: bool) -> Body {
    body_of(ADD, sealed)
}

/// The same with another operation.
pub fn body_of(operation: i32, sealed: bool) -> Body {
    let structure = structure(operation);
    let values = 0_i32.to_le_bytes();
    let (structure_bytes, values_bytes) = (structure.len() as u64, values.len() as u64);
    let mut bytes = structure;
    bytes.resize(bytes.len().next_multiple_of(64), 0);
    bytes.extend_from_slice(&values);
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let memory = memfd_create("model", flags).expect("a memfd");
    assert_eq!(rustix::io::write(&memory, &bytes), Ok(bytes.len()));
    if sealed {
        let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW;
        fcntl_add_seals(&memory, seals).expect("seals");
    }
    let pools: [u64; 0] = [];
    let fields = Writer::default().u64(structure_bytes).u64(values_bytes);
    Body { memory, fields: fields.list(&pools, |to, length| to.u64(*length)) }
}
