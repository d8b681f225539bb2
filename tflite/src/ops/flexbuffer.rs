//! The options of custom operators: a map of names to numbers in the FlexBuffers format.
//!
//! Values are found from the end: the last byte is the width of the root, the one before it its
//! type. A map is a list of values with two more numbers before its length (where its keys are, how
//! wide their offsets) and one type byte per value behind.

use crate::error::Refusal;

/// Type codes of the format, without the two low bits, which are the width.
const INT: u8 = 1;
const UINT: u8 = 2;
const FLOAT: u8 = 3;
const INDIRECT_INT: u8 = 6;
const INDIRECT_UINT: u8 = 7;
const INDIRECT_FLOAT: u8 = 8;
const MAP: u8 = 9;
const BOOL: u8 = 26;

/// The maps that we read have a dozen entries; a thousand would be another format.
const MAX_ENTRIES: u64 = 1024;

/// A map at the root of a FlexBuffer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Map<'a> {
    bytes: &'a [u8],
    /// First value.
    values: usize,
    /// Bytes of each value.
    width: usize,
    /// First key offset.
    keys: usize,
    /// Bytes of each key offset.
    key_width: usize,
    count: usize,
}

impl<'a> Map<'a> {
    /// Reads the root, which must be a map.
    pub(super) fn root(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let wrong = Refusal::CustomOptions { problem: "they are no map of names to values" };
        Self::read(bytes).ok_or(wrong)
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let [before @ .., ty, root_width] = bytes else { return None };
        let root_width = usize::from(*root_width);
        if ty >> 2 != MAP {
            return None;
        }
        let width = 1_usize << (ty & 3);
        let root = before.len().checked_sub(root_width)?;
        let values = back(bytes, root, root_width)?;
        let count = uint(bytes, values.checked_sub(width)?, width)?;
        if count > MAX_ENTRIES {
            return None;
        }
        let key_width = uint(bytes, values.checked_sub(width.checked_mul(2)?)?, width)?;
        let keys = back(bytes, values.checked_sub(width.checked_mul(3)?)?, width)?;
        Some(Map {
            bytes,
            values,
            width,
            keys,
            key_width: usize::try_from(key_width).ok()?,
            count: usize::try_from(count).ok()?,
        })
    }

    /// The number with this name. Integers, truth values and floats all fit a double here: what
    /// these maps hold is small.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        let at = (0..self.count).find(|&at| self.key(at) == Some(name.as_bytes()))?;
        let types = self.values.checked_add(self.count.checked_mul(self.width)?)?;
        let ty = *self.bytes.get(types.checked_add(at)?)?;
        let value = self.values.checked_add(at.checked_mul(self.width)?)?;
        match ty >> 2 {
            inline @ (INT | UINT | FLOAT | BOOL) => number(self.bytes, inline, value, self.width),
            indirect @ (INDIRECT_INT | INDIRECT_UINT | INDIRECT_FLOAT) => {
                let value = back(self.bytes, value, self.width)?;
                number(self.bytes, indirect - INDIRECT_INT + INT, value, 1 << (ty & 3))
            }
            _ => None,
        }
    }

    fn key(&self, at: usize) -> Option<&'a [u8]> {
        let offset = self.keys.checked_add(at.checked_mul(self.key_width)?)?;
        let rest = self.bytes.get(back(self.bytes, offset, self.key_width)?..)?;
        rest.get(..rest.iter().position(|&byte| byte == 0)?)
    }
}

/// Where the offset at this position leads: offsets count backwards from where they stand.
fn back(bytes: &[u8], at: usize, width: usize) -> Option<usize> {
    at.checked_sub(usize::try_from(uint(bytes, at, width)?).ok()?)
}

fn uint(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let bytes = bytes.get(at..)?;
    Some(match width {
        1 => u64::from(*bytes.first()?),
        2 => u64::from(u16::from_le_bytes(*bytes.first_chunk()?)),
        4 => u64::from(u32::from_le_bytes(*bytes.first_chunk()?)),
        8 => u64::from_le_bytes(*bytes.first_chunk()?),
        _ => return None,
    })
}

#[expect(clippy::cast_precision_loss, reason = "values in these maps are small")]
fn number(bytes: &[u8], ty: u8, at: usize, width: usize) -> Option<f64> {
    let raw = uint(bytes, at, width)?;
    match (ty, width) {
        (INT, _) => {
            // Shift the sign bit up and back down to extend it.
            let unused = 64 - 8 * u32::try_from(width).ok()?;
            Some((raw.cast_signed() << unused >> unused) as f64)
        }
        (FLOAT, 2) => Some(half::f16::from_bits(u16::try_from(raw).ok()?).into()),
        (FLOAT, 4) => Some(f32::from_bits(u32::try_from(raw).ok()?).into()),
        (FLOAT, 8) => Some(f64::from_bits(raw)),
        (FLOAT, _) => None,
        _ => Some(raw as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `{"a": 5, "b": -2, "c": 1.5}`, by hand: keys, key offsets, then the map.
    fn sample() -> Vec<u8> {
        let mut bytes = b"a\0b\0c\0".to_vec();
        bytes.push(3); // number of keys, at 6
        bytes.extend([7, 6, 5]); // offsets of the keys, at 7, 8, 9
        bytes.extend([0, 0]); // to a multiple of 4
        bytes.extend(5_u32.to_le_bytes()); // 12: keys start 5 bytes back, at 7
        bytes.extend(1_u32.to_le_bytes()); // 16: key offsets have one byte
        bytes.extend(3_u32.to_le_bytes()); // 20: three values
        bytes.extend(5_u32.to_le_bytes()); // 24
        bytes.extend((-2_i32).to_le_bytes());
        bytes.extend(1.5_f32.to_le_bytes());
        bytes.extend([INT << 2 | 2, INT << 2 | 2, FLOAT << 2 | 2]); // 36
        bytes.extend([15, MAP << 2 | 2, 1]); // the root: 15 bytes back from 39 is 24
        bytes
    }

    #[test]
    fn numbers_are_found_by_name() {
        let bytes = sample();
        let map = Map::root(&bytes).unwrap();
        assert_eq!(map.number("a"), Some(5.0));
        assert_eq!(map.number("b"), Some(-2.0));
        assert_eq!(map.number("c"), Some(1.5));
        assert_eq!(map.number("d"), None);
    }

    #[test]
    fn no_bytes_make_it_panic() {
        let good = sample();
        for length in 0..good.len() {
            let _ = Map::root(&good[..length]).map(|map| map.number("c"));
        }
        for at in 0..good.len() {
            for value in 0..=255 {
                let mut bad = good.clone();
                bad[at] = value;
                let _ = Map::root(&bad).map(|map| map.number("c"));
            }
        }
    }
}
