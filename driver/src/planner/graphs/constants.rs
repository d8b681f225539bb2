//! The constants of a graph while it is planned.
//!
//! A constant is looked at where it lies: in the model, or in memory that is sealed against every write.
//! It is copied where that cannot be, and where some step of the plan reads it as it is: the
//! plan outlives the model.

use burst_hal::{DataLocation, MemoryError, Model, Operand, OperandLifeTime, OperandType};

use crate::OpError;
use crate::aligned::{ALIGNMENT, AlignedBytes, MAX_ALLOCATION_BYTES};
use crate::error::DriverError;
use crate::kept::KeptValue;
use crate::op::Budget;

/// What the planner knows of an operand's value.
#[derive(Debug, Default)]
pub(super) enum Constant<'m> {
    /// Only an execution knows it.
    #[default]
    No,
    /// In the memory of the model.
    Borrowed(&'m [u8]),
    /// Folded, or copied.
    Owned(AlignedBytes),
    /// Folded by an earlier preparation.
    Kept(KeptValue),
    /// A constant that no operation needs any more.
    Released,
}

impl<'m> Constant<'m> {
    /// The value of an operand of the model; `index` is for errors.
    pub(super) fn of(
        model: &'m Model,
        index: usize,
        operand: &Operand,
        budget: &Budget<'_>,
    ) -> Result<Self, DriverError> {
        let in_model = match operand.lifetime {
            OperandLifeTime::ConstantCopy => Some(&*model.operand_values),
            OperandLifeTime::ConstantReference => pool(model, operand.location).as_bytes(),
            _ => return Ok(Constant::No),
        };
        let failed = |cause| DriverError::Memory { what: "constant operand", index, cause };
        let borrowed = in_model.map(|bytes| within(bytes, operand.location)).transpose();
        let borrowed = borrowed.map_err(failed)?;
        match borrowed.filter(|bytes| is_aligned(bytes, operand.ty)) {
            Some(bytes) => Ok(Constant::Borrowed(bytes)),
            None => copy(model, operand.location, borrowed, budget)
                .map(Constant::Owned)
                .map_err(|error| error.of_operand(index, operand.location)),
        }
    }

    /// Whether it is a constant.
    pub(super) fn is_known(&self) -> bool {
        !matches!(self, Constant::No)
    }

    /// The value, where it is known and still there.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self {
            Constant::No | Constant::Released => None,
            Constant::Borrowed(bytes) => Some(bytes),
            Constant::Owned(bytes) => Some(bytes.as_slice()),
            Constant::Kept(value) => Some(value.bytes()),
        }
    }

    /// The value as memory of the plan's own.
    pub(super) fn into_owned(self, budget: &Budget<'_>) -> Result<Option<AlignedBytes>, OpError> {
        match self {
            Constant::No | Constant::Released => Ok(None),
            Constant::Borrowed(bytes) => copy_of(bytes, budget).map(Some),
            Constant::Owned(bytes) => Ok(Some(bytes)),
            Constant::Kept(value) => copy_of(value.bytes(), budget).map(Some),
        }
    }
}

/// Why a constant was not copied.
enum CopyError {
    Read(MemoryError),
    Room(OpError),
}

impl From<OpError> for CopyError {
    fn from(cause: OpError) -> Self {
        CopyError::Room(cause)
    }
}

impl CopyError {
    fn of_operand(self, index: usize, location: DataLocation) -> DriverError {
        match self {
            CopyError::Read(cause) => {
                DriverError::Memory { what: "constant operand", index, cause }
            }
            CopyError::Room(cause) => {
                DriverError::given_up(&cause).unwrap_or(DriverError::TooLarge {
                    bytes: u64::from(location.length),
                    limit: MAX_ALLOCATION_BYTES as u64,
                })
            }
        }
    }
}

fn pool(model: &Model, location: DataLocation) -> &burst_hal::Pool {
    // A legal model names pools that it has.
    &model.pools[location.pool_index as usize]
}

fn within(bytes: &[u8], location: DataLocation) -> Result<&[u8], MemoryError> {
    let (offset, length) = (location.offset as usize, location.length as usize);
    let end = offset.checked_add(length);
    end.and_then(|end| bytes.get(offset..end)).ok_or(MemoryError::OutOfRange {
        offset: u64::from(location.offset),
        len: u64::from(location.length),
        size: bytes.len() as u64,
    })
}

/// Whether the bytes begin where an element of this type may. What an extension's elements consist of, only
/// the extension knows: they begin where any may.
fn is_aligned(bytes: &[u8], ty: OperandType) -> bool {
    let alignment = ty.element_bytes().unwrap_or(ALIGNMENT).max(1);
    bytes.as_ptr().addr().is_multiple_of(alignment)
}

/// Copies a constant from where it lies, or reads it where it cannot be borrowed.
fn copy(
    model: &Model,
    location: DataLocation,
    borrowed: Option<&[u8]>,
    budget: &Budget<'_>,
) -> Result<AlignedBytes, CopyError> {
    if let Some(bytes) = borrowed {
        return Ok(copy_of(bytes, budget)?);
    }
    let pool = pool(model, location);
    let (length, charge) = (location.length as usize, budget.same_account());
    AlignedBytes::copied(length, charge, budget.stop(), |at, part| {
        pool.read(u64::from(location.offset) + at as u64, part).map_err(CopyError::Read)
    })
}

/// A copy in memory that the budget's account pays for.
pub(super) fn copy_of(bytes: &[u8], budget: &Budget<'_>) -> Result<AlignedBytes, OpError> {
    AlignedBytes::copied(bytes.len(), budget.same_account(), budget.stop(), |at, part| {
        part.copy_from_slice(&bytes[at..][..part.len()]);
        Ok(())
    })
}
