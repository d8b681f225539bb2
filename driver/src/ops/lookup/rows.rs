//! Copying of rows: slices of a table along its first dimension.

use burst_hal::Dimensions;

use crate::OpError;
use crate::tensor::TensorRef;

/// Checks the shape of a list of keys or positions; gives its length.
pub(super) fn list_length(dims: &[u32]) -> Result<u32, OpError> {
    match *dims {
        [length] if length > 0 => Ok(length),
        _ => Err(OpError::shape("a list of lookups", dims, &[1])),
    }
}

/// The shape of `count` rows of a table.
pub(super) fn rows_of(table: &[u32], count: u32) -> Result<Dimensions, OpError> {
    let (_, row) = table.split_first().ok_or(OpError::shape("a table", table, &[]))?;
    if table.contains(&0) {
        return Err(OpError::shape("a table without elements", table, &[]));
    }
    Ok(std::iter::once(count).chain(row.iter().copied()).collect())
}

/// A table as bytes.
pub(super) struct Table<'a> {
    bytes: &'a [u8],
    row_bytes: usize,
}

impl<'a> Table<'a> {
    pub(super) fn new(tensor: &TensorRef<'a>) -> Result<Self, OpError> {
        let bytes = tensor.bytes.ok_or(OpError::Omitted { index: usize::MAX })?;
        let rows = tensor.dims.first().copied().unwrap_or(0) as usize;
        let row_bytes = bytes.len().checked_div(rows).filter(|bytes| *bytes > 0);
        let row_bytes = row_bytes.ok_or(OpError::shape("a table", tensor.dims, &[]))?;
        Ok(Table { bytes, row_bytes })
    }

    /// Bytes of one row.
    pub(super) fn row_bytes(&self) -> usize {
        self.row_bytes
    }

    /// Row `index`, where there is one.
    pub(super) fn row(&self, index: usize) -> Option<&'a [u8]> {
        self.bytes.chunks_exact(self.row_bytes).nth(index)
    }
}
