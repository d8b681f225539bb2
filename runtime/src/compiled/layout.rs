//! Where values between steps lie: each has a place of its own in one pool, fixed when the model is compiled.

use burst_hal::{Dimensions, ExtensionOperandType, Operand, OperandType};

use crate::error::{Error, Result};

/// Values start at a multiple of this: a cache line, so that two steps never write the same one.
const ALIGNMENT: u64 = 64;

/// A range of the pool for values between steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) offset: u32,
    pub(crate) length: u32,
}

/// Places handed out so far.
pub(crate) struct Layout<'a> {
    extension_types: &'a [(OperandType, ExtensionOperandType)],
    end: u64,
    constants: Vec<(u32, Vec<u8>)>,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(extension_types: &'a [(OperandType, ExtensionOperandType)]) -> Self {
        Layout { extension_types, end: 0, constants: Vec::new() }
    }

    /// A place for so many bytes.
    ///
    /// # Errors
    /// OP_FAILED for more than an offset of the HAL can say.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<Slot> {
        let offset = self.end.next_multiple_of(ALIGNMENT);
        let end = offset.checked_add(bytes).filter(|end| *end <= u64::from(u32::MAX));
        let too_many = || Error::op_failed("values between steps take more than 4 GiB");
        self.end = end.ok_or_else(too_many)?;
        let [offset, length] =
            [offset, bytes].map(|value| u32::try_from(value).unwrap_or(u32::MAX));
        Ok(Slot { offset, length })
    }

    /// A place for a value of this operand.
    ///
    /// # Errors
    /// OP_FAILED where its size is not known, which the partitioner excludes.
    pub(crate) fn take_operand(&mut self, operand: &Operand) -> Result<Slot> {
        let bytes = known_bytes(operand.ty, &operand.dimensions, self.element_bytes(operand.ty));
        self.take(bytes.ok_or_else(|| Error::op_failed("a value of unknown size between steps"))?)
    }

    /// A place with these bytes in it.
    ///
    /// # Errors
    /// As [`Layout::take`].
    pub(crate) fn take_constant(&mut self, bytes: Vec<u8>) -> Result<Slot> {
        let slot = self.take(bytes.len() as u64)?;
        self.constants.push((slot.offset, bytes));
        Ok(slot)
    }

    pub(crate) fn element_bytes(&self, ty: OperandType) -> Option<u64> {
        element_bytes(ty, self.extension_types)
    }

    /// How many bytes were handed out, and what lies in them from the beginning.
    pub(crate) fn into_parts(self) -> (u64, Vec<(u32, Vec<u8>)>) {
        (self.end, self.constants)
    }
}

/// Bytes of one element; `None` where nobody knows.
pub(crate) fn element_bytes(
    ty: OperandType,
    extension_types: &[(OperandType, ExtensionOperandType)],
) -> Option<u64> {
    let described = extension_types.iter().find(|(known, _)| *known == ty);
    match described {
        Some((_, extension)) => Some(extension.byte_size.into()),
        None if ty.is_oem() => None,
        None => ty.element_bytes().map(|bytes| bytes as u64),
    }
}

/// Bytes of a value of these dimensions; `None` where a size is not known.
pub(super) fn known_bytes(
    ty: OperandType,
    dimensions: &Dimensions,
    element_bytes: Option<u64>,
) -> Option<u64> {
    if (ty.is_tensor() && dimensions.is_empty()) || dimensions.contains(&0) {
        return None;
    }
    let sizes = dimensions.iter().map(|size| u64::from(*size));
    sizes.fold(element_bytes, |bytes, size| bytes?.checked_mul(size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_place_of_its_own_below_4_gib() {
        let mut layout = Layout::new(&[]);
        let first = layout.take(3).unwrap();
        let second = layout.take_constant(vec![7; 5]).unwrap();
        assert_eq!((first.offset, first.length), (0, 3));
        assert_eq!((second.offset, second.length), (64, 5));
        assert!(layout.take(u64::from(u32::MAX)).is_err());
        assert!(layout.take(u64::MAX).is_err());
        assert_eq!(layout.into_parts(), (69, vec![(64, vec![7; 5])]));
    }

    #[test]
    fn the_size_of_a_value_is_known_or_not() {
        let bytes =
            |ty, dimensions: &[u32]| known_bytes(ty, &dimensions.into(), element_bytes(ty, &[]));
        assert_eq!(bytes(OperandType::TensorFloat32, &[2, 3]), Some(24));
        assert_eq!(bytes(OperandType::Float32, &[]), Some(4));
        assert_eq!(bytes(OperandType::TensorFloat32, &[]), None);
        assert_eq!(bytes(OperandType::TensorFloat32, &[2, 0]), None);
        assert_eq!(bytes(OperandType::Oem, &[]), None);
    }
}
