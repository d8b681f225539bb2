//! Requests of one burst, each decoded over the one before.

use burst_hal::{Request, RequestArgument, RequestPool};

use super::{INPUT_KINDS, Kinds, OUTPUT_KINDS, Storage, decode, extras, measure_timing};
use crate::cursor::Cursor;
use crate::datum::{self, DatumBytes, OperandDatum, PacketHead, request_kind};
use crate::differences::{Before, place_of};
use crate::{Features, RequestExtras, WireError};

/// Decodes the requests of one burst: as [`decode_request`](crate::decode_request), and where
/// [`DIFFERENCES`](Features::DIFFERENCES) was negotiated also those that say where they differ from the one before.
///
/// The request is kept here, as the next one may differ from it in little.
#[derive(Debug)]
pub struct RequestDecoder {
    features: Features,
    /// The packet before, where the next one may come as differences.
    before: Before,
    /// Whether the request is what that packet says.
    is_decoded: bool,
    request: Request,
    slots: Vec<i32>,
    measure_timing: bool,
    extras: RequestExtras,
}

impl RequestDecoder {
    /// For a burst with these additions to HAL 1.2.
    #[must_use]
    pub fn new(features: Features) -> Self {
        RequestDecoder {
            features,
            before: Before::default(),
            is_decoded: false,
            request: Request::default(),
            slots: Vec::new(),
            measure_timing: false,
            extras: RequestExtras::default(),
        }
    }

    /// The request; its pools are what the caller [put](RequestDecoder::slots_and_pools) there.
    #[must_use]
    #[inline]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// One per pool that the arguments refer to.
    #[must_use]
    #[inline]
    pub fn slots(&self) -> &[i32] {
        &self.slots
    }

    /// The slots, and where the memories go that lie there.
    #[inline]
    pub fn slots_and_pools(&mut self) -> (&[i32], &mut Vec<RequestPool>) {
        (&self.slots, &mut self.request.pools)
    }

    /// Whether to measure how long it takes.
    #[must_use]
    #[inline]
    pub fn measure_timing(&self) -> bool {
        self.measure_timing
    }

    /// What goes beyond HAL 1.2; of a malformed packet what stands before the place where it is wrong.
    #[must_use]
    #[inline]
    pub fn extras(&self) -> RequestExtras {
        self.extras
    }

    /// Bytes that it keeps on the heap for the next request, but for those of its pools.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        let of_arguments = |arguments: &Vec<RequestArgument>| {
            let spilled = arguments.iter().filter(|argument| argument.dimensions.spilled());
            arguments.capacity() * size_of::<RequestArgument>()
                + spilled.map(|one| one.dimensions.capacity() * size_of::<u32>()).sum::<usize>()
        };
        let Request { inputs, outputs, .. } = &self.request;
        self.before.kept_bytes()
            + [inputs, outputs].map(of_arguments).iter().sum::<usize>()
            + self.slots.capacity() * size_of::<i32>()
    }

    /// Reads a packet. After an error the request holds no meaning.
    ///
    /// # Errors
    /// As [`decode_request`](crate::decode_request).
    #[inline]
    pub fn decode(&mut self, packet: &[u8]) -> Result<(), WireError> {
        if !self.features.contains(Features::DIFFERENCES) {
            return self.decode_whole(packet);
        }
        if !PacketHead::REQUEST.begins_differences(packet) {
            self.before.put(packet);
            return self.decode_whole(packet);
        }
        let differences = self.before.change(packet, PacketHead::REQUEST);
        let is_decoded = std::mem::take(&mut self.is_decoded);
        let differences = differences.inspect_err(|_| self.extras = RequestExtras::default())?;
        if is_decoded && self.change(differences).is_some() {
            self.is_decoded = true;
            return Ok(());
        }
        let before = std::mem::take(&mut self.before);
        let decoded = self.decode_whole(before.datums().as_flattened());
        self.before = before;
        decoded
    }

    fn decode_whole(&mut self, packet: &[u8]) -> Result<(), WireError> {
        self.extras = RequestExtras::default(); // a malformed packet may set none
        let decoded = decode(packet, self.features, &mut self.storage());
        self.is_decoded = decoded.is_ok();
        decoded
    }

    fn storage(&mut self) -> Storage<'_> {
        let RequestDecoder { request, slots, measure_timing, extras, .. } = self;
        let Request { inputs, outputs, .. } = request;
        Storage { inputs, outputs, slots, measure_timing, extras }
    }

    /// Changes the request by these differences, in the order of their places. `None` where there is more to it, or something is
    /// wrong: the whole packet has to be decoded then.
    #[inline(always)]
    fn change(&mut self, mut differences: &[DatumBytes]) -> Option<()> {
        let RequestDecoder { request, slots, .. } = self;
        let pools = slots.len();
        let mut at = 1; // behind the packet information
        for argument in &mut request.inputs {
            if differences.is_empty() {
                return Some(());
            }
            change_argument(&mut differences, &mut at, argument, INPUT_KINDS, pools)?;
        }
        for argument in &mut request.outputs {
            if differences.is_empty() {
                return Some(());
            }
            change_argument(&mut differences, &mut at, argument, OUTPUT_KINDS, pools)?;
        }
        while let Some((difference, rest)) = differences.split_first() {
            let Some(slot) = slots.get_mut(place_of(difference) - at) else { break };
            *slot = datum::i32_at(difference, 4);
            if difference[0] != request_kind::POOL_IDENTIFIER || *slot < 0 {
                return None;
            }
            differences = rest;
        }
        if differences.is_empty() { Some(()) } else { self.change_end(at + pools) }
    }

    /// Reads what follows after the slots again: it is short.
    #[inline(always)]
    fn change_end(&mut self, at: usize) -> Option<()> {
        let datums = self.before.datums();
        let mut cursor = Cursor::over(datums.len(), datums.get(at..)?);
        self.measure_timing = measure_timing(&mut cursor).ok()?;
        self.extras = extras(&mut cursor, self.features);
        cursor.finish().ok()
    }
}

/// Takes the differences of an argument, whose datums begin at `at`, off the front of `differences`.
#[inline(always)]
fn change_argument(
    differences: &mut &[DatumBytes],
    at: &mut usize,
    argument: &mut RequestArgument,
    [information, dimension]: Kinds,
    pools: usize,
) -> Option<()> {
    let rank = argument.dimensions.len();
    let (first, end) = (*at, *at + 1 + rank);
    while let Some((difference, rest)) = differences.split_first() {
        let place = place_of(difference);
        if place >= end {
            break;
        }
        if place == first {
            let said = OperandDatum::of_value(difference);
            let is_value = (difference[0] ^ information) | difference[4] == 0;
            let has_form = said.number_of_dimensions as usize == rank && !argument.has_no_value;
            if !is_value || !has_form || said.location.pool_index as usize >= pools {
                return None;
            }
            argument.location = said.location;
        } else {
            if difference[0] != dimension {
                return None;
            }
            argument.dimensions[place - first - 1] = datum::u32_at(difference, 4);
        }
        *differences = rest;
    }
    *at = end;
    Some(())
}
