//! The constants of a graph while it is planned.
//!
//! A constant is looked at where it lies: in the model, or in memory that is sealed against every write.
//! It is copied where that cannot be, and where some step of the plan reads it as it is: the
//! plan outlives the model.

use burst_hal::{DataLocation, MemoryError, Model, Operand, OperandLifeTime, OperandType};
use smallvec::SmallVec;

use crate::OpError;
use crate::aligned::{ALIGNMENT, AlignedBytes, MAX_ALLOCATION_BYTES};
use crate::error::DriverError;
use crate::kept::KeptValue;
use crate::op::Budget;
use crate::plan::ConstantBytes;

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

    /// The value where it lies in the memory of a file that the model was taken from.
    fn in_file(&self, budget: &Budget<'_>) -> Option<KeptValue> {
        match self {
            Constant::No | Constant::Released | Constant::Owned(_) => None,
            Constant::Borrowed(bytes) => budget.kept().constant(bytes),
            Constant::Kept(value) => Some(value.clone()),
        }
    }

    /// The value for a plan that outlives the model.
    pub(super) fn into_plan(
        self,
        files: &KeptFiles,
        budget: &Budget<'_>,
    ) -> Result<Option<ConstantBytes>, OpError> {
        if let Some(value) = self.in_file(budget).filter(|value| files.is_worth_keeping(value)) {
            return Ok(Some(ConstantBytes::Kept(value)));
        }
        let own = match self {
            Constant::No | Constant::Released => return Ok(None),
            Constant::Owned(bytes) => bytes,
            Constant::Borrowed(bytes) => copy_of(bytes, budget)?,
            Constant::Kept(value) => copy_of(value.bytes(), budget)?,
        };
        Ok(Some(ConstantBytes::Own(own)))
    }
}

/// The memory of files, and how many bytes of it steps read as they are. A constant that stays there keeps all
/// of that memory: it is copied where most of the file is of no more use.
#[derive(Debug, Default)]
pub(super) struct KeptFiles(SmallVec<[((usize, usize), usize); 2]>);

impl KeptFiles {
    /// What these constants, all that are needed, use of the files they lie in.
    pub(super) fn used_by<'c, 'm: 'c>(
        constants: impl Iterator<Item = &'c Constant<'m>>,
        budget: &Budget<'_>,
    ) -> Self {
        let mut files = KeptFiles::default();
        for value in constants.filter_map(|constant| constant.in_file(budget)) {
            let (memory, used) = (value.memory(), value.bytes().len());
            match files.0.iter_mut().find(|(known, _)| *known == memory) {
                Some((_, sum)) => *sum += used,
                None => files.0.push((memory, used)),
            }
        }
        files
    }

    fn is_worth_keeping(&self, value: &KeptValue) -> bool {
        let (memory, size) = (value.memory(), value.memory().1);
        let used = self.0.iter().find(|(known, _)| *known == memory).map_or(0, |(_, used)| *used);
        used >= size - size / LEAST_UNUSED
    }
}

/// Of a file's memory at most one part of so many is kept although no step reads it.
const LEAST_UNUSED: usize = 8;

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
