//! Memory that was made for certain inputs and outputs: whether it has a value, and of which dimensions.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use burst_hal::validate::{BufferOperand, Direction, combine_dimensions};
use burst_hal::{Buffer, Dimensions, Pool, ResultCode};

use crate::error::{Error, Result};
use crate::event::Event;

/// An input or output of a compilation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Role {
    /// The compilation's number, which no other has.
    pub(crate) compilation: u64,
    pub(crate) direction: Direction,
    pub(crate) position: u32,
}

/// Where the bytes are.
#[derive(Clone)]
pub(crate) enum Store {
    /// In shared memory.
    Shared(Pool),
    /// In the device that has all the roles.
    Buffer(Arc<dyn Buffer>),
}

/// Memory for roles.
#[derive(Debug)]
pub(crate) struct RoledMemory {
    roles: Vec<Role>,
    operand: BufferOperand,
    store: Store,
    value: Mutex<Value>,
}

#[derive(Debug, Default)]
struct Value {
    is_there: bool,
    /// As far as known; those that the memory was made with where there is no value.
    dimensions: Dimensions,
    /// An execution behind fences that will have written it, unless it fails.
    writer: Option<Arc<Event>>,
}

impl RoledMemory {
    pub(crate) fn new(roles: Vec<Role>, operand: BufferOperand, store: Store) -> Self {
        let dimensions = operand.dimensions.clone();
        let value = Value { dimensions, ..Value::default() };
        RoledMemory { roles, operand, store, value: Mutex::new(value) }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn operand(&self) -> &BufferOperand {
        &self.operand
    }

    pub(crate) fn has_role(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// The dimensions of its value. What an execution behind fences will write counts as there as long as it
    /// has not failed: whatever depends on it is started before.
    ///
    /// # Errors
    /// OP_FAILED where it has none.
    pub(crate) fn value_dimensions(&self) -> Result<Dimensions> {
        let mut value = self.value.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(code) = value.writer.as_ref().and_then(|writer| writer.ended()) {
            value.writer = None;
            if code != ResultCode::NoError {
                value.is_there = false;
                value.dimensions = self.operand.dimensions.clone();
            }
        }
        match value.is_there {
            true => Ok(value.dimensions.clone()),
            false => Err(Error::op_failed("the memory has no value: nobody has written it yet")),
        }
    }

    /// Whether a value of these dimensions and, where known, of so many bytes can lie in it: its dimensions
    /// then.
    ///
    /// # Errors
    /// BAD_DATA where it cannot.
    pub(crate) fn takes(&self, dimensions: &[u32], bytes: Option<u64>) -> Result<Dimensions> {
        let combined = combine_dimensions(&self.operand.dimensions, dimensions);
        let combined = combined.map_err(Error::bad_data)?;
        let own = match self.operand.is_specified(&combined) {
            true => self.operand.ty.byte_length(&combined),
            false => None,
        };
        match bytes {
            Some(bytes) if own != Some(bytes) => {
                let own = own.map_or("an unknown number of".to_owned(), |own| own.to_string());
                Err(Error::bad_data(format!("{bytes} bytes for a memory of {own} bytes")))
            }
            _ => Ok(combined),
        }
    }

    /// From now on it has a value of these dimensions.
    pub(crate) fn is_written(&self, dimensions: Dimensions) {
        self.set(Value { is_there: true, dimensions, writer: None });
    }

    /// An execution behind fences will write a value of these dimensions.
    pub(crate) fn will_be_written(&self, dimensions: Dimensions, writer: &Arc<Event>) {
        self.set(Value { is_there: true, dimensions, writer: Some(Arc::clone(writer)) });
    }

    /// From now on it has none.
    pub(crate) fn is_lost(&self) {
        self.set(Value { dimensions: self.operand.dimensions.clone(), ..Value::default() });
    }

    fn set(&self, value: Value) {
        *self.value.lock().unwrap_or_else(PoisonError::into_inner) = value;
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Store::Shared(pool) => write!(f, "Shared({} bytes)", pool.len()),
            Store::Buffer(buffer) => write!(f, "Buffer(token {})", buffer.token()),
        }
    }
}
