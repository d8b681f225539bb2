//! Names of formats.

use std::fmt;

/// A format's code: four letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FourCc(pub u32);

impl FourCc {
    /// Of its four letters.
    #[must_use]
    pub const fn new(letters: [u8; 4]) -> Self {
        FourCc(u32::from_le_bytes(letters))
    }
}

impl fmt::Display for FourCc {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The uppermost bit says that the bytes of a word come in the other order.
        let letters = (self.0 & 0x7FFF_FFFF).to_le_bytes();
        letters.iter().try_for_each(|letter| {
            let shown = if letter.is_ascii_graphic() { char::from(*letter) } else { '?' };
            write!(to, "{shown}")
        })
    }
}
