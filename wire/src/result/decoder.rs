//! Results of one burst, each decoded over the one before.

use std::sync::atomic::{AtomicU64, Ordering};

use burst_hal::{ErrorStatus, ExecutionResult};

use super::{decode_result, read_end, success};
use crate::datum::PacketHead;
use crate::differences::{Before, place_of};
use crate::{Features, ResultExtras, WireError};

/// Says of which packet shapes are. Never zero.
fn next_shapes() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    // Relaxed: a number that nobody else has, and nothing besides.
    LAST.fetch_add(1, Ordering::Relaxed) + 1
}

/// A result and whose shapes it has: storage that a [`ResultDecoder`] can use again.
#[derive(Debug)]
pub struct DecodedResult {
    result: ExecutionResult,
    /// As [`ResultDecoder::shapes`]; zero where they may be anybody's.
    shapes: u64,
}

impl Default for DecodedResult {
    fn default() -> Self {
        ExecutionResult::of(ErrorStatus::GeneralFailure).into()
    }
}

impl From<ExecutionResult> for DecodedResult {
    fn from(result: ExecutionResult) -> Self {
        DecodedResult { result, shapes: 0 }
    }
}

impl DecodedResult {
    /// The result.
    #[must_use]
    #[inline]
    pub fn get(&self) -> &ExecutionResult {
        &self.result
    }

    /// Takes the result, and keeps another one's storage.
    pub fn swap(&mut self, other: &mut ExecutionResult) {
        std::mem::swap(&mut self.result, other);
        self.shapes = 0;
    }
}

/// Decodes the results of one burst: as [`decode_result`], and where [`DIFFERENCES`](Features::DIFFERENCES) was negotiated
/// also those that say where they differ from the one before.
#[derive(Debug)]
pub struct ResultDecoder {
    features: Features,
    /// The packet before, where the next one may come as differences.
    before: Before,
    /// A number for the shapes that it says; zero where it says none, or is not a success.
    shapes: u64,
    /// Where its shapes end.
    end: usize,
}

impl ResultDecoder {
    /// For a burst with these additions to HAL 1.2.
    #[must_use]
    pub fn new(features: Features) -> Self {
        ResultDecoder { features, before: Before::default(), shapes: 0, end: 0 }
    }

    /// Reads a packet into `out`. Of what `outputs` and `measured` are see [`decode_result`].
    ///
    /// # Errors
    /// As [`decode_result`].
    #[inline]
    pub fn decode(
        &mut self,
        packet: &[u8],
        outputs: usize,
        measured: bool,
        out: &mut DecodedResult,
    ) -> Result<ResultExtras, WireError> {
        let of_packet = std::mem::take(&mut out.shapes);
        if !self.features.contains(Features::DIFFERENCES) {
            return decode_result(packet, self.features, outputs, measured, &mut out.result);
        }
        if !PacketHead::RESULT.begins_differences(packet) {
            self.before.put(packet);
            self.shapes = 0;
            return self.decode_whole(packet, outputs, measured, out);
        }
        let differences = self.before.change(packet, PacketHead::RESULT);
        let differences =
            differences.inspect_err(|_| out.result.reset(ErrorStatus::GeneralFailure))?;
        if differences.first().is_some_and(|first| place_of(first) < self.end) {
            self.shapes = 0;
        }
        if let Some(extras) = self.change(of_packet, outputs, measured, &mut out.result) {
            out.shapes = of_packet;
            return Ok(extras);
        }
        let before = std::mem::take(&mut self.before);
        let decoded = self.decode_whole(before.datums().as_flattened(), outputs, measured, out);
        self.before = before;
        decoded
    }

    /// Reads what follows after the shapes, where `result` has those of the packet, which is a success.
    #[inline(always)]
    fn change(
        &self,
        of_packet: u64,
        outputs: usize,
        measured: bool,
        result: &mut ExecutionResult,
    ) -> Option<ResultExtras> {
        let has_shapes = of_packet != 0 && of_packet == self.shapes;
        if !has_shapes || result.output_shapes.len() != outputs {
            return None;
        }
        let datums = self.before.datums();
        let (timing, extras) = read_end(datums.len(), datums.get(self.end..)?, self.features)?;
        Some(success(result, timing, extras, measured))
    }

    /// Reads a packet that is there as a whole.
    #[inline(never)]
    fn decode_whole(
        &mut self,
        packet: &[u8],
        outputs: usize,
        measured: bool,
        out: &mut DecodedResult,
    ) -> Result<ResultExtras, WireError> {
        let result = &mut out.result;
        let extras = decode_result(packet, self.features, outputs, measured, result)?;
        if result.status == ErrorStatus::None {
            if self.shapes == 0 {
                self.shapes = next_shapes();
            }
            let shapes = result.output_shapes.iter();
            self.end = 1 + shapes.map(|shape| 1 + shape.dimensions.len()).sum::<usize>();
            out.shapes = self.shapes;
        }
        Ok(extras)
    }
}
