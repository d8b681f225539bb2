//! Arguments as the application sets them, checked against the model.

use std::sync::Arc;

use burst_hal::validate::{Direction, combine_dimensions, validate_operand_type};
use burst_hal::{Dimensions, HalVersion, OperandType, Pool};

use crate::compilation::Compilation;
use crate::compiled::Port;
use crate::error::{Error, Result};
use crate::memory::{Memory, Role, RoledMemory, Store};
use crate::model::OperandTypeDesc;

/// Where the value of an input or output lies.
#[derive(Debug, Clone)]
pub enum Argument {
    /// Nowhere: it is left out.
    Omitted,
    /// In memory of the caller, of exactly the value's length.
    Host(Pool),
    /// In a part of a memory. Offset and length are 0 for all of a memory that was made for roles.
    Memory {
        /// Which memory.
        memory: Arc<Memory>,
        /// First byte.
        offset: usize,
        /// How many bytes.
        length: usize,
    },
}

/// An argument that fits the model.
#[derive(Debug, Clone)]
pub(super) struct Bound {
    pub(super) argument: Argument,
    /// As far as the model and the application know them.
    pub(super) dimensions: Dimensions,
}

/// Which argument is set.
pub(super) struct Target<'a> {
    pub(super) compilation: &'a Compilation,
    pub(super) direction: Direction,
    pub(super) position: usize,
    pub(super) port: &'a Port,
    /// Whether it may be longer than its value.
    pub(super) may_be_longer: bool,
}

impl Target<'_> {
    /// Checks an argument.
    ///
    /// # Errors
    /// BAD_DATA for whatever does not fit.
    pub(super) fn bind(&self, ty: Option<&OperandTypeDesc>, argument: Argument) -> Result<Bound> {
        let dimensions = self.dimensions(ty)?;
        let argument = match argument {
            Argument::Omitted => {
                return Ok(Bound { argument, dimensions: self.port.dimensions.clone() });
            }
            Argument::Host(pool) => {
                self.check_known(&dimensions)?;
                self.check_length(&dimensions, pool.len())?;
                Argument::Host(pool)
            }
            Argument::Memory { memory, offset, length } => match memory.roled() {
                Some(roled) => {
                    self.check_role(roled, memory.size(), (offset, length))?;
                    let length = memory.size();
                    if matches!(roled.store(), Store::Shared(_)) {
                        self.check_length(&dimensions, length as u64)?;
                    }
                    Argument::Memory { memory, offset: 0, length }
                }
                None => {
                    if self.direction == Direction::Output {
                        memory.check_writable()?;
                    }
                    self.check_known(&dimensions)?;
                    self.check_range(memory.size(), (offset, length))?;
                    self.check_length(&dimensions, length as u64)?;
                    Argument::Memory { memory, offset, length }
                }
            },
        };
        Ok(Bound { argument, dimensions })
    }

    /// What the model and the application together know of the value.
    fn dimensions(&self, ty: Option<&OperandTypeDesc>) -> Result<Dimensions> {
        let known = &self.port.dimensions;
        let Some(ty) = ty else { return Ok(known.clone()) };
        let operand = ty.operand();
        validate_operand_type(&operand, HalVersion::LATEST).map_err(Error::bad_data)?;
        if operand.ty != self.port.ty {
            let (expected, found) = (self.port.ty, operand.ty);
            return Err(Error::bad_data(format!("{found}, where the model has {expected}")));
        }
        if !known.is_empty() && known.len() != operand.dimensions.len() {
            let (expected, found) = (known.len(), operand.dimensions.len());
            return Err(Error::bad_data(format!(
                "{found} dimensions, where the model has {expected}"
            )));
        }
        combine_dimensions(known, &operand.dimensions).map_err(Error::bad_data)
    }

    /// An input in memory without dimensions of its own needs all of them.
    fn check_known(&self, dimensions: &Dimensions) -> Result<()> {
        let is_open =
            (self.port.ty.is_tensor() && dimensions.is_empty()) || dimensions.contains(&0);
        match self.direction == Direction::Input && is_open {
            true => Err(Error::bad_data(format!("an input of dimensions {dimensions:?}"))),
            false => Ok(()),
        }
    }

    fn check_length(&self, dimensions: &Dimensions, found: u64) -> Result<()> {
        if found == 0 || found > u64::from(u32::MAX) {
            return Err(Error::bad_data(format!("an argument of {found} bytes")));
        }
        let Some(expected) = self.port.bytes(dimensions) else { return Ok(()) };
        let fits = found == expected || (self.may_be_longer && found > expected);
        match fits || self.port.ty == OperandType::Oem {
            true => Ok(()),
            false => Err(Error::bad_data(format!("{found} bytes for a value of {expected}"))),
        }
    }

    fn check_range(&self, size: usize, (offset, length): (usize, usize)) -> Result<()> {
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= size);
        match is_inside {
            true => Ok(()),
            false => {
                let outside = format!("{length} bytes from {offset} on, of a memory of {size}");
                Err(Error::bad_data(outside))
            }
        }
    }

    fn check_role(
        &self,
        roled: &RoledMemory,
        size: usize,
        (offset, length): (usize, usize),
    ) -> Result<()> {
        let position = u32::try_from(self.position).unwrap_or(u32::MAX);
        let (compilation, direction) = (self.compilation.number(), self.direction);
        if !roled.has_role(Role { compilation, direction, position }) {
            return Err(Error::bad_data(format!(
                "the memory was not made for {direction} {position}"
            )));
        }
        let is_whole = offset == 0 && (length == 0 || length == size);
        match is_whole {
            true => Ok(()),
            false => Err(Error::bad_data("a part of a memory that was made for roles")),
        }
    }
}

impl Bound {
    /// Dimensions of the value when the execution starts. A memory that was made for roles remembers those of
    /// what was written into it.
    ///
    /// # Errors
    /// OP_FAILED for an input in a memory without a value, or with another one than the model takes.
    pub(super) fn input_dimensions(&self) -> Result<Dimensions> {
        let Argument::Memory { memory, .. } = &self.argument else {
            return Ok(self.dimensions.clone());
        };
        let Some(roled) = memory.roled() else { return Ok(self.dimensions.clone()) };
        let value = roled.value_dimensions()?;
        combine_dimensions(&self.dimensions, &value).map_err(Error::op_failed)
    }

    /// The memory that was made for roles, where it lies in one.
    pub(super) fn roled(&self) -> Option<&RoledMemory> {
        match &self.argument {
            Argument::Memory { memory, .. } => memory.roled(),
            Argument::Omitted | Argument::Host(_) => None,
        }
    }
}
