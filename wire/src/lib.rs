//! Bytes on the boundary between two processes.
//!
//! Four things cross it, and each has its file: the datums of a burst's two queues
//! ([`RequestPacket`], [`decode_request`], [`ResultPacket`], [`decode_result`]), byte for byte
//! those of HAL 1.2; the messages of the control socket ([`control`]); the framing of that
//! socket with its descriptors ([`socket`]); and spans, where a client lends memory for them ([`trace`]).
//!
//! Everything here is a function from bytes to values or back; the encoders and decoders of a burst ([`RequestEncoder`]
//! and its like) keep the packet before, too. No thread, no mapping, no clock.
//! Every byte is written down in `docs/PROTOCOL.md`.
//!
//! A request as datums, and back:
//!
//! ```
//! use burst_hal::{DataLocation, RequestArgument};
//! use burst_wire::{DATUM_BYTES, Features, RequestExtras, RequestPacket, SlotRequest};
//!
//! // One input at the beginning of the memory in slot 7, one output behind it; 16 bytes each.
//! let argument = |offset| RequestArgument {
//!     location: DataLocation { pool_index: 0, offset, length: 16 },
//!     ..RequestArgument::default()
//! };
//! let (inputs, outputs) = ([argument(0)], [argument(16)]);
//! let packet = RequestPacket {
//!     inputs: &inputs,
//!     outputs: &outputs,
//!     slots: &[7],
//!     measure_timing: false,
//!     extras: RequestExtras::default(),
//! };
//! let mut bytes = Vec::new();
//! packet.encode_into(&mut bytes)?;
//! // Packet information, input, output, slot, whether to measure.
//! assert_eq!(bytes.len(), 5 * DATUM_BYTES);
//!
//! let mut decoded = SlotRequest::default();
//! burst_wire::decode_request(&bytes, Features::NONE, &mut decoded)?;
//! assert_eq!((decoded.inputs.as_slice(), decoded.slots.as_slice()), (&inputs[..], &[7][..]));
//!
//! // A packet that is cut short is refused, whatever it says of its length.
//! let cut = &bytes[..4 * DATUM_BYTES];
//! assert!(burst_wire::decode_request(cut, Features::NONE, &mut decoded).is_err());
//! # Ok::<(), burst_wire::WireError>(())
//! ```
#![forbid(unsafe_code)]

pub mod control;
mod cursor;
mod datum;
mod differences;
mod error;
mod extras;
mod frame;
mod request;
mod result;
pub mod socket;
pub mod trace;
mod versions;

pub use datum::{
    DATUM_BYTES, DATUM_QUANTUM, DatumBytes, InformationDatum, OperandDatum, RequestDatum,
    ResultDatum,
};
pub use error::WireError;
pub use extras::{Features, RequestExtras, ResultExtras};
pub use frame::{PACKET_MIN, PIPELINE_DEPTH_MAX, PacketKind, packet_datums};
pub use request::{
    RequestDecoder, RequestEncoder, RequestPacket, SlotRequest, decode_request, longest_packet,
};
pub use result::{
    DecodedResult, ResultDecoder, ResultEncoder, ResultPacket, check_shapes, decode_result,
};
