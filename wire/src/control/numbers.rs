//! The number of each kind of message, call and answer, and the fields that it has on the wire.
//!
//! A number never changes its meaning, and the fields of a kind never change but for new ones at
//! their end.

use bincode::de::{Decode, Decoder};
use bincode::enc::{Encode, Encoder};
use bincode::error::{DecodeError, EncodeError};

use super::messages::{
    Answer, Call, ClientMessage, Refusal, RefusalCause, Reply, ServerMessage, WaitStyle,
};
use super::record::{Record, decode_fields, encode_kind};
use super::requests::{PoolSource, SynchronousRequest};

/// The kind of message that is a call.
pub(super) const CALL: u32 = 0;

/// What a service refuses and what it answers stand side by side.
struct Outcome(Result<Answer, Refusal>);

impl Encode for ClientMessage {
    fn encode<E: Encoder>(&self, to: &mut E) -> Result<(), EncodeError> {
        match self {
            ClientMessage::Call { id, call } => encode_kind(CALL, (id, call), to),
            ClientMessage::Memories { id, status, lengths } => {
                encode_kind(1, (id, status, lengths), to)
            }
            ClientMessage::Unknown { kind } => encode_kind(*kind, (), to),
        }
    }
}

impl<C> Decode<C> for ClientMessage {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<Self, DecodeError> {
        Ok(match u32::decode(from)? {
            CALL => {
                let (id, call) = decode_fields(from)?;
                ClientMessage::Call { id, call }
            }
            1 => {
                let (id, status, lengths) = decode_fields(from)?;
                ClientMessage::Memories { id, status, lengths }
            }
            kind => {
                decode_fields::<(), _>(from)?;
                ClientMessage::Unknown { kind }
            }
        })
    }
}

impl Encode for Call {
    fn encode<E: Encoder>(&self, to: &mut E) -> Result<(), EncodeError> {
        let number = self.number();
        match self {
            Call::ListDevices | Call::EndTrace | Call::Unknown { .. } => {
                encode_kind(number, (), to)
            }
            Call::DeviceInfo { device } | Call::DeviceStatus { device } => {
                encode_kind(number, device, to)
            }
            Call::SupportedOperations { device, model } => encode_kind(number, (device, model), to),
            Call::Prepare { device, model, options } => {
                encode_kind(number, (device, model, Record(options)), to)
            }
            Call::ReleaseModel { model } => encode_kind(number, model, to),
            Call::ShareMemory { memory, length } | Call::AllocateMemory { memory, length } => {
                encode_kind(number, (memory, length), to)
            }
            Call::ForgetMemory { memory } => encode_kind(number, memory, to),
            Call::Execute(request) => encode_kind(number, request, to),
            Call::ConfigureBurst { model, request_queue, result_queue, features, wait, depth } => {
                let options = Record((features, wait, depth));
                encode_kind(number, (model, request_queue, result_queue, options), to)
            }
            Call::PushMemory { burst, slot, source } => {
                encode_kind(number, (burst, slot, source), to)
            }
            Call::FreeMemory { burst, slot } => encode_kind(number, (burst, slot), to),
            Call::CloseBurst { burst } => encode_kind(number, burst, to),
            Call::ExecuteAsynchronously { execution, request } => {
                encode_kind(number, (execution, request), to)
            }
            Call::ExecuteFenced(request) => encode_kind(number, request, to),
            Call::CancelExecution { execution }
            | Call::ExecutionInfo { execution }
            | Call::ReleaseExecution { execution } => encode_kind(number, execution, to),
            Call::PrepareCaching { device, model, options, cache } => {
                encode_kind(number, (device, model, Record(options), cache), to)
            }
            Call::PrepareFromCache { device, cache, deadline } => {
                encode_kind(number, (device, cache, deadline), to)
            }
            Call::AllocateBuffer { device, request } => encode_kind(number, (device, request), to),
            Call::CopyFromBuffer { token, to: pool } => encode_kind(number, (token, pool), to),
            Call::CopyToBuffer { token, from, dimensions } => {
                encode_kind(number, (token, from, dimensions), to)
            }
            Call::ReleaseBuffer { token } => encode_kind(number, token, to),
            Call::BeginTrace { length } => encode_kind(number, length, to),
        }
    }
}

impl Call {
    /// Its number on the wire.
    #[must_use]
    pub fn number(&self) -> u32 {
        match self {
            Call::ListDevices => 0,
            Call::DeviceInfo { .. } => 1,
            Call::DeviceStatus { .. } => 2,
            Call::SupportedOperations { .. } => 3,
            Call::Prepare { .. } => 4,
            Call::ReleaseModel { .. } => 5,
            Call::ShareMemory { .. } => 6,
            Call::AllocateMemory { .. } => 7,
            Call::ForgetMemory { .. } => 8,
            Call::Execute(_) => 9,
            Call::ConfigureBurst { .. } => 10,
            Call::PushMemory { .. } => 11,
            Call::FreeMemory { .. } => 12,
            Call::CloseBurst { .. } => 13,
            Call::ExecuteAsynchronously { .. } => 14,
            Call::ExecuteFenced(_) => 15,
            Call::CancelExecution { .. } => 16,
            Call::ExecutionInfo { .. } => 17,
            Call::ReleaseExecution { .. } => 18,
            Call::PrepareCaching { .. } => 19,
            Call::PrepareFromCache { .. } => 20,
            Call::AllocateBuffer { .. } => 21,
            Call::CopyFromBuffer { .. } => 22,
            Call::CopyToBuffer { .. } => 23,
            Call::ReleaseBuffer { .. } => 24,
            Call::BeginTrace { .. } => 25,
            Call::EndTrace => 26,
            Call::Unknown { number } => *number,
        }
    }
}

impl<C> Decode<C> for Call {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<Self, DecodeError> {
        Ok(match u32::decode(from)? {
            0 => {
                decode_fields::<(), _>(from)?;
                Call::ListDevices
            }
            1 => Call::DeviceInfo { device: decode_fields(from)? },
            2 => Call::DeviceStatus { device: decode_fields(from)? },
            3 => {
                let (device, model) = decode_fields(from)?;
                Call::SupportedOperations { device, model }
            }
            4 => {
                let (device, model, Record(options)) = decode_fields(from)?;
                Call::Prepare { device, model, options }
            }
            5 => Call::ReleaseModel { model: decode_fields(from)? },
            6 => {
                let (memory, length) = decode_fields(from)?;
                Call::ShareMemory { memory, length }
            }
            7 => {
                let (memory, length) = decode_fields(from)?;
                Call::AllocateMemory { memory, length }
            }
            8 => Call::ForgetMemory { memory: decode_fields(from)? },
            9 => Call::Execute(decode_fields(from)?),
            10 => {
                let (model, request_queue, result_queue, options) = decode_fields(from)?;
                let Record((features, wait, depth)) = options;
                Call::ConfigureBurst { model, request_queue, result_queue, features, wait, depth }
            }
            11 => {
                let (burst, slot, source) = decode_fields(from)?;
                Call::PushMemory { burst, slot, source }
            }
            12 => {
                let (burst, slot) = decode_fields(from)?;
                Call::FreeMemory { burst, slot }
            }
            13 => Call::CloseBurst { burst: decode_fields(from)? },
            14 => {
                let (execution, request) = decode_fields(from)?;
                Call::ExecuteAsynchronously { execution, request }
            }
            15 => Call::ExecuteFenced(decode_fields(from)?),
            16 => Call::CancelExecution { execution: decode_fields(from)? },
            17 => Call::ExecutionInfo { execution: decode_fields(from)? },
            18 => Call::ReleaseExecution { execution: decode_fields(from)? },
            19 => {
                let (device, model, Record(options), cache) = decode_fields(from)?;
                Call::PrepareCaching { device, model, options, cache }
            }
            20 => {
                let (device, cache, deadline) = decode_fields(from)?;
                Call::PrepareFromCache { device, cache, deadline }
            }
            21 => {
                let (device, request) = decode_fields(from)?;
                Call::AllocateBuffer { device, request }
            }
            22 => {
                let (token, to) = decode_fields(from)?;
                Call::CopyFromBuffer { token, to }
            }
            23 => {
                let (token, from, dimensions) = decode_fields(from)?;
                Call::CopyToBuffer { token, from, dimensions }
            }
            24 => Call::ReleaseBuffer { token: decode_fields(from)? },
            25 => Call::BeginTrace { length: decode_fields(from)? },
            26 => {
                decode_fields::<(), _>(from)?;
                Call::EndTrace
            }
            number => {
                decode_fields::<(), _>(from)?;
                Call::Unknown { number }
            }
        })
    }
}

impl Encode for SynchronousRequest {
    fn encode<E: Encoder>(&self, to: &mut E) -> Result<(), EncodeError> {
        let SynchronousRequest { model, inputs, outputs, pools, .. } = self;
        let options = Record((self.measure_timing, self.deadline, self.loop_timeout));
        (model, inputs, outputs, pools, options).encode(to)
    }
}

impl<C> Decode<C> for SynchronousRequest {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<Self, DecodeError> {
        let (model, inputs, outputs, pools, options) = Decode::decode(from)?;
        let Record((measure_timing, deadline, loop_timeout)) = options;
        Ok(SynchronousRequest {
            model,
            inputs,
            outputs,
            pools,
            measure_timing,
            deadline,
            loop_timeout,
        })
    }
}

impl Encode for PoolSource {
    fn encode<E: Encoder>(&self, to: &mut E) -> Result<(), EncodeError> {
        match self {
            PoolSource::Shared { memory } => encode_kind(0, memory, to),
            PoolSource::Descriptor { length } => encode_kind(1, length, to),
            PoolSource::Token { token } => encode_kind(2, token, to),
            PoolSource::Unknown { kind } => encode_kind(*kind, (), to),
        }
    }
}

impl<C> Decode<C> for PoolSource {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<Self, DecodeError> {
        Ok(match u32::decode(from)? {
            0 => PoolSource::Shared { memory: decode_fields(from)? },
            1 => PoolSource::Descriptor { length: decode_fields(from)? },
            2 => PoolSource::Token { token: decode_fields(from)? },
            kind => {
                decode_fields::<(), _>(from)?;
                PoolSource::Unknown { kind }
            }
        })
    }
}

impl Encode for WaitStyle {
    fn encode<E: Encoder>(&self, to: &mut E) -> Result<(), EncodeError> {
        let number: u32 = match self {
            WaitStyle::Service => 0,
            WaitStyle::Spin => 1,
            WaitStyle::Adaptive => 2,
            WaitStyle::Sleep => 3,
            WaitStyle::Other(number) => *number,
        };
        number.encode(to)
    }
}

impl<C> Decode<C> for WaitStyle {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<Self, DecodeError> {
        Ok(match u32::decode(from)? {
            0 => WaitStyle::Service,
            1 => WaitStyle::Spin,
            2 => WaitStyle::Adaptive,
            3 => WaitStyle::Sleep,
            number => WaitStyle::Other(number),
        })
    }
}

impl Encode for ServerMessage {
    fn encode<E: Encoder>(&self, to: &mut E) -> Result<(), EncodeError> {
        match self {
            ServerMessage::Reply(Reply { id, outcome: Ok(answer) }) => {
                encode_kind(0, (id, 0_u32, Record(answer)), to)
            }
            ServerMessage::Reply(Reply { id, outcome: Err(refusal) }) => {
                encode_kind(0, (id, 1_u32, Record(refusal)), to)
            }
            ServerMessage::GetMemories { id, burst, slots } => {
                encode_kind(1, (id, burst, slots), to)
            }
            ServerMessage::BurstEnded { burst, detail } => encode_kind(2, (burst, detail), to),
            ServerMessage::Executed { execution, executed } => {
                encode_kind(3, (execution, Record(executed)), to)
            }
            ServerMessage::Stopping => encode_kind(4, (), to),
            ServerMessage::Unknown { kind } => encode_kind(*kind, (), to),
        }
    }
}

impl<C> Decode<C> for ServerMessage {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<Self, DecodeError> {
        Ok(match u32::decode(from)? {
            0 => {
                let (id, Outcome(outcome)) = decode_fields(from)?;
                ServerMessage::Reply(Reply { id, outcome })
            }
            1 => {
                let (id, burst, slots) = decode_fields(from)?;
                ServerMessage::GetMemories { id, burst, slots }
            }
            2 => {
                let (burst, detail) = decode_fields(from)?;
                ServerMessage::BurstEnded { burst, detail }
            }
            3 => {
                let (execution, Record(executed)) = decode_fields(from)?;
                ServerMessage::Executed { execution, executed }
            }
            4 => {
                decode_fields::<(), _>(from)?;
                ServerMessage::Stopping
            }
            kind => {
                decode_fields::<(), _>(from)?;
                ServerMessage::Unknown { kind }
            }
        })
    }
}

impl<C> Decode<C> for Outcome {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<Self, DecodeError> {
        match u32::decode(from)? {
            0 => decode_fields(from).map(|answer| Outcome(Ok(answer))),
            1 => decode_fields(from).map(|refusal| Outcome(Err(refusal))),
            _ => Err(DecodeError::Other("a reply is neither an answer nor a refusal")),
        }
    }
}

impl Encode for RefusalCause {
    fn encode<E: Encoder>(&self, to: &mut E) -> Result<(), EncodeError> {
        let number: u32 = match self {
            RefusalCause::Stated => 0,
            RefusalCause::UnknownCall => 1,
            RefusalCause::TooLong => 2,
            RefusalCause::Other(number) => *number,
        };
        number.encode(to)
    }
}

impl<C> Decode<C> for RefusalCause {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<Self, DecodeError> {
        Ok(match u32::decode(from)? {
            0 => RefusalCause::Stated,
            1 => RefusalCause::UnknownCall,
            2 => RefusalCause::TooLong,
            number => RefusalCause::Other(number),
        })
    }
}

impl Encode for Answer {
    fn encode<E: Encoder>(&self, to: &mut E) -> Result<(), EncodeError> {
        match self {
            Answer::Done => encode_kind(0, (), to),
            Answer::Devices(names) => encode_kind(1, names, to),
            Answer::Device(info) => encode_kind(2, info, to),
            Answer::DeviceStatus(code) => encode_kind(3, code, to),
            Answer::Supported(supported) => encode_kind(4, supported, to),
            Answer::Prepared { model } => encode_kind(5, model, to),
            Answer::Burst { burst } => encode_kind(6, burst, to),
            Answer::Executed(executed) => encode_kind(7, executed, to),
            Answer::Fenced { execution } => encode_kind(8, execution, to),
            Answer::ExecutionInfo(info) => encode_kind(9, info, to),
            Answer::Restored { model, inputs, outputs, longest_packet, prepared } => {
                encode_kind(10, (model, inputs, outputs, longest_packet, prepared), to)
            }
            Answer::Buffer { token } => encode_kind(11, token, to),
            Answer::Unknown { kind } => encode_kind(*kind, (), to),
        }
    }
}

impl<C> Decode<C> for Answer {
    fn decode<D: Decoder<Context = C>>(from: &mut D) -> Result<Self, DecodeError> {
        Ok(match u32::decode(from)? {
            0 => {
                decode_fields::<(), _>(from)?;
                Answer::Done
            }
            1 => Answer::Devices(decode_fields(from)?),
            2 => Answer::Device(decode_fields(from)?),
            3 => Answer::DeviceStatus(decode_fields(from)?),
            4 => Answer::Supported(decode_fields(from)?),
            5 => Answer::Prepared { model: decode_fields(from)? },
            6 => Answer::Burst { burst: decode_fields(from)? },
            7 => Answer::Executed(decode_fields(from)?),
            8 => Answer::Fenced { execution: decode_fields(from)? },
            9 => Answer::ExecutionInfo(decode_fields(from)?),
            10 => {
                let (model, inputs, outputs, longest_packet, prepared) = decode_fields(from)?;
                Answer::Restored { model, inputs, outputs, longest_packet, prepared }
            }
            11 => Answer::Buffer { token: decode_fields(from)? },
            kind => {
                decode_fields::<(), _>(from)?;
                Answer::Unknown { kind }
            }
        })
    }
}

// Elements of lists, and fields of structures that are derived.
bincode::impl_borrow_decode!(PoolSource);
bincode::impl_borrow_decode!(SynchronousRequest);
bincode::impl_borrow_decode!(RefusalCause);
