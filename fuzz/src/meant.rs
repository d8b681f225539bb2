//! Which packet is meant, where one may say no more than where it differs from the one before: an
//! independent look at what came.

use burst_wire::{DATUM_BYTES, DatumBytes, Features, PacketKind, WireError};

/// The packet that both ends of a queue have.
pub(crate) struct Meant {
    /// First byte of a packet by differences, and where it says its length.
    as_before: u8,
    length_at: usize,
    is_negotiated: bool,
    before: Vec<DatumBytes>,
}

impl Meant {
    /// Of a queue of this kind.
    pub(crate) fn new(kind: PacketKind, features: Features) -> Self {
        let (as_before, length_at) = match kind {
            PacketKind::Request => (0x43, 4),
            PacketKind::Result => (0x42, 8),
        };
        let is_negotiated = features.contains(Features::DIFFERENCES);
        Meant { as_before, length_at, is_negotiated, before: Vec::new() }
    }

    /// What comes next as a whole, or why it is nothing.
    pub(crate) fn take(&mut self, packet: &[u8]) -> Result<Vec<u8>, WireError> {
        let (datums, ragged) = packet.as_chunks::<DATUM_BYTES>();
        if !self.is_negotiated || packet.first() != Some(&self.as_before) {
            self.before = datums.to_vec();
            return Ok(packet.to_vec());
        }
        let before = std::mem::take(&mut self.before);
        if datums.is_empty() || !ragged.is_empty() {
            return Err(WireError::Ragged { bytes: packet.len() });
        }
        self.before = self.changed(before, datums)?;
        Ok(self.before.concat())
    }

    fn changed(
        &self,
        mut meant: Vec<DatumBytes>,
        datums: &[DatumBytes],
    ) -> Result<Vec<DatumBytes>, WireError> {
        let said = u32::from_ne_bytes(datums[0][self.length_at..][..4].try_into().unwrap());
        if said as usize != datums.len() {
            return Err(WireError::PacketSize { said, received: datums.len() });
        }
        if meant.is_empty() {
            return Err(WireError::NothingBefore);
        }
        let mut after = 0;
        for difference in &datums[1..] {
            let place = usize::from(u16::from_ne_bytes([difference[2], difference[3]]));
            if place <= after || place >= meant.len() {
                return Err(WireError::Place { place, after });
            }
            meant[place] = *difference;
            meant[place][2..4].fill(0);
            after = place;
        }
        Ok(meant)
    }
}
