//! The two datum types of a burst, byte for byte those of HAL 1.2.
//!
//! Both are tagged unions of 24 bytes in native byte order; every byte that carries no data is
//! sent as zero and ignored on receipt.
//!
//! ```text
//! request  0        1..4   4..24
//!          kind u8  zero   payload (u32 and i32 fields)
//! result   0        1..8   8..24
//!          kind u8  zero   payload (u64, u32 and i32 fields)
//! ```
//! Source: NNAPI 1.2 `types.hal`, `FmqRequestDatum` and `FmqResultDatum`.

use burst_hal::DataLocation;

use crate::WireError;

/// Length of a datum of either type.
pub const DATUM_BYTES: usize = 24;

/// The same as a queue's descriptor has it.
pub const DATUM_QUANTUM: u32 = 24;

/// One datum as it lies in a queue.
pub type DatumBytes = [u8; DATUM_BYTES];

/// Discriminators of request datums. 0 to 6 are the HAL's; those from 0x40 on are ours and are
/// sent only where both ends negotiated them.
pub(crate) mod request_kind {
    pub(crate) const PACKET_INFORMATION: u8 = 0;
    pub(crate) const INPUT_OPERAND_INFORMATION: u8 = 1;
    pub(crate) const INPUT_OPERAND_DIMENSION_VALUE: u8 = 2;
    pub(crate) const OUTPUT_OPERAND_INFORMATION: u8 = 3;
    pub(crate) const OUTPUT_OPERAND_DIMENSION_VALUE: u8 = 4;
    pub(crate) const POOL_IDENTIFIER: u8 = 5;
    pub(crate) const MEASURE_TIMING: u8 = 6;
    pub(crate) const DEADLINE: u8 = 0x40;
    pub(crate) const LOOP_TIMEOUT: u8 = 0x41;
    pub(crate) const REQUEST_ID: u8 = 0x42;
    pub(crate) const AS_BEFORE: u8 = 0x43;
}

/// Discriminators of result datums; see [`request_kind`].
pub(crate) mod result_kind {
    pub(crate) const PACKET_INFORMATION: u8 = 0;
    pub(crate) const OPERAND_INFORMATION: u8 = 1;
    pub(crate) const OPERAND_DIMENSION_VALUE: u8 = 2;
    pub(crate) const EXECUTION_TIMING: u8 = 3;
    pub(crate) const TIMING_NANOS: u8 = 0x40;
    pub(crate) const REQUEST_ID: u8 = 0x41;
    pub(crate) const AS_BEFORE: u8 = 0x42;
}

/// How the first datum of a packet is read: what can stand there, and where it says how many datums the packet has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PacketHead {
    /// Of a packet that comes as a whole.
    pub(crate) information: u8,
    /// Of one that comes as [differences](crate::differences).
    pub(crate) as_before: u8,
    pub(crate) length_at: usize,
}

impl PacketHead {
    pub(crate) const REQUEST: PacketHead = PacketHead {
        information: request_kind::PACKET_INFORMATION,
        as_before: request_kind::AS_BEFORE,
        length_at: 4,
    };
    pub(crate) const RESULT: PacketHead = PacketHead {
        information: result_kind::PACKET_INFORMATION,
        as_before: result_kind::AS_BEFORE,
        length_at: 8,
    };

    /// Whether a packet comes as differences.
    #[inline(always)]
    pub(crate) fn begins_differences(self, packet: &[u8]) -> bool {
        packet.first() == Some(&self.as_before)
    }

    /// The first datum of differences.
    #[inline(always)]
    pub(crate) fn as_before(self, datums: u32) -> DatumWords {
        words(self.as_before, self.length_at, [datums])
    }
}

/// How many records a request packet has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InformationDatum {
    /// Datums in the packet, this one included.
    pub packet_size: u32,
    /// Input records.
    pub number_of_input_operands: u32,
    /// Output records.
    pub number_of_output_operands: u32,
    /// Slots.
    pub number_of_pools: u32,
}

/// One input or output of a request; its dimension values follow in datums of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OperandDatum {
    /// An omitted argument.
    pub has_no_value: bool,
    /// Where it lies; the pool is an index into the packet's list of slots.
    pub location: DataLocation,
    /// How many dimension values follow.
    pub number_of_dimensions: u32,
}

/// One datum of a request packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestDatum {
    /// Begins every packet.
    PacketInformation(InformationDatum),
    /// An input.
    InputOperandInformation(OperandDatum),
    /// One dimension of the input before it.
    InputOperandDimensionValue(u32),
    /// An output.
    OutputOperandInformation(OperandDatum),
    /// One dimension of the output before it.
    OutputOperandDimensionValue(u32),
    /// The slot of a memory.
    PoolIdentifier(i32),
    /// Whether to measure: 0 or 1.
    MeasureTiming(i32),
    /// When the result is no longer wanted, on the steady clock (negotiated).
    DeadlineNanos(u64),
    /// Longest time one loop may take (negotiated).
    LoopTimeoutNanos(u64),
    /// The request's number (negotiated).
    RequestId(u64),
}

/// One datum of a result packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultDatum {
    /// Begins every packet.
    PacketInformation {
        /// Datums in the packet, this one included.
        packet_size: u32,
        /// Code of the status.
        error_status: i32,
        /// Output records.
        number_of_operands: u32,
    },
    /// An output.
    OperandInformation {
        /// Whether its memory was large enough.
        is_sufficient: bool,
        /// How many dimension values follow.
        number_of_dimensions: u32,
    },
    /// One dimension of the output before it.
    OperandDimensionValue(u32),
    /// How long it took, in microseconds; `u64::MAX` where not known.
    ExecutionTiming {
        /// In the hardware.
        time_on_device_us: u64,
        /// In the driver.
        time_in_driver_us: u64,
    },
    /// How long it took, in nanoseconds (negotiated).
    TimingNanos {
        /// In the hardware.
        on_device_ns: u64,
        /// In the driver.
        in_driver_ns: u64,
    },
    /// The number of the request that it belongs to (negotiated).
    RequestId(u64),
}

#[inline]
pub(crate) fn u32_at(bytes: &DatumBytes, at: usize) -> u32 {
    u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
pub(crate) fn i32_at(bytes: &DatumBytes, at: usize) -> i32 {
    i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[inline]
pub(crate) fn u64_at(bytes: &DatumBytes, at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(eight)
}

/// A `bool` as C++ stores it; a peer can write any byte.
#[inline]
pub(crate) fn bool_at(
    bytes: &DatumBytes,
    at: usize,
    what: &'static str,
) -> Result<bool, WireError> {
    match bytes[at] {
        0 => Ok(false),
        1 => Ok(true),
        other => Err(WireError::Value { what, value: i64::from(other) }),
    }
}

/// A datum as the words that it is stored by: a datum that is stored byte by byte and soon read whole stalls the reader.
pub(crate) type DatumWords = [u64; DATUM_BYTES / size_of::<u64>()];

/// A datum of zeros but for its kind and these 32-bit words from `at` on.
#[inline(always)]
fn words<const N: usize>(kind: u8, at: usize, words: [u32; N]) -> DatumWords {
    let mut all = [0_u32; DATUM_WORDS];
    all[at / size_of::<u32>()..][..N].copy_from_slice(&words);
    tagged(kind, 0, all)
}

/// A datum of zeros but for its kind and these 64-bit words from 8 on.
#[inline(always)]
fn long_words<const N: usize>(kind: u8, words: [u64; N]) -> DatumWords {
    let mut datum = [u64::from_ne_bytes([kind, 0, 0, 0, 0, 0, 0, 0]), 0, 0];
    datum[1..][..N].copy_from_slice(&words);
    datum
}

/// 32-bit words of a datum.
const DATUM_WORDS: usize = DATUM_BYTES / size_of::<u32>();

/// Puts the kind into the first byte, and `flag` into the fifth; both are zero in `words`.
#[inline(always)]
fn tagged(kind: u8, flag: u8, words: [u32; DATUM_WORDS]) -> DatumWords {
    let pair = |at: usize| {
        let (first, second) = (u64::from(words[at]), u64::from(words[at + 1]));
        if cfg!(target_endian = "little") { second << 32 | first } else { first << 32 | second }
    };
    let tags = u64::from_ne_bytes([kind, 0, 0, 0, flag, 0, 0, 0]);
    [pair(0) | tags, pair(2), pair(4)]
}

/// Stores a datum.
#[inline(always)]
pub(crate) fn store(slot: &mut DatumBytes, [first, second, third]: DatumWords) {
    slot[..8].copy_from_slice(&first.to_ne_bytes());
    slot[8..16].copy_from_slice(&second.to_ne_bytes());
    slot[16..].copy_from_slice(&third.to_ne_bytes());
}

/// Whether one of these datums, whose values stand at `at`, says another value.
#[inline(always)]
pub(crate) fn differ<T: Copy>(
    datums: &[DatumBytes],
    at: usize,
    values: &[T],
    word: impl Fn(T) -> u32,
) -> bool {
    let differ = |datum, value: &T| u32_at(datum, at) != word(*value);
    // Tensors of rank 4 and 2 are what there is most of, and a loop costs more than what it does here.
    match (datums, values) {
        ([a, b, c, d], [w, x, y, z]) => {
            differ(a, w) || differ(b, x) || differ(c, y) || differ(d, z)
        }
        ([a, b], [w, x]) => differ(a, w) || differ(b, x),
        (datums, values) => datums.iter().zip(values).any(|(datum, value)| differ(datum, value)),
    }
}

/// The words of a datum.
#[inline(always)]
pub(crate) fn words_of(datum: &DatumBytes) -> DatumWords {
    [u64_at(datum, 0), u64_at(datum, 8), u64_at(datum, 16)]
}

#[inline(always)]
fn bytes(words: DatumWords) -> DatumBytes {
    let mut bytes = [0; DATUM_BYTES];
    store(&mut bytes, words);
    bytes
}

impl InformationDatum {
    #[inline(always)]
    pub(crate) fn decode(bytes: &DatumBytes) -> Self {
        InformationDatum {
            packet_size: u32_at(bytes, 4),
            number_of_input_operands: u32_at(bytes, 8),
            number_of_output_operands: u32_at(bytes, 12),
            number_of_pools: u32_at(bytes, 16),
        }
    }
}

impl OperandDatum {
    #[inline(always)]
    fn words(self, kind: u8) -> DatumWords {
        let DataLocation { pool_index, offset, length } = self.location;
        let words = [0, 0, pool_index, offset, length, self.number_of_dimensions];
        tagged(kind, u8::from(self.has_no_value), words)
    }

    #[inline]
    pub(crate) fn decode(bytes: &DatumBytes) -> Result<Self, WireError> {
        let has_no_value = bool_at(bytes, 4, "hasNoValue")?;
        Ok(OperandDatum { has_no_value, ..OperandDatum::of_value(bytes) })
    }

    /// What an argument that is not left out says.
    #[inline(always)]
    pub(crate) fn of_value(bytes: &DatumBytes) -> Self {
        OperandDatum {
            has_no_value: false,
            location: DataLocation {
                pool_index: u32_at(bytes, 8),
                offset: u32_at(bytes, 12),
                length: u32_at(bytes, 16),
            },
            number_of_dimensions: u32_at(bytes, 20),
        }
    }
}

impl RequestDatum {
    /// The datum as it lies in a queue.
    #[inline(always)]
    #[must_use]
    pub fn encode(self) -> DatumBytes {
        bytes(self.words())
    }

    #[inline(always)]
    pub(crate) fn words(self) -> DatumWords {
        use request_kind as kind;
        match self {
            RequestDatum::PacketInformation(info) => words(
                kind::PACKET_INFORMATION,
                4,
                [
                    info.packet_size,
                    info.number_of_input_operands,
                    info.number_of_output_operands,
                    info.number_of_pools,
                ],
            ),
            RequestDatum::InputOperandInformation(operand) => {
                operand.words(kind::INPUT_OPERAND_INFORMATION)
            }
            RequestDatum::InputOperandDimensionValue(value) => {
                words(kind::INPUT_OPERAND_DIMENSION_VALUE, 4, [value])
            }
            RequestDatum::OutputOperandInformation(operand) => {
                operand.words(kind::OUTPUT_OPERAND_INFORMATION)
            }
            RequestDatum::OutputOperandDimensionValue(value) => {
                words(kind::OUTPUT_OPERAND_DIMENSION_VALUE, 4, [value])
            }
            RequestDatum::PoolIdentifier(slot) => {
                words(kind::POOL_IDENTIFIER, 4, [slot.cast_unsigned()])
            }
            RequestDatum::MeasureTiming(measure) => {
                words(kind::MEASURE_TIMING, 4, [measure.cast_unsigned()])
            }
            RequestDatum::DeadlineNanos(nanos) => long_words(kind::DEADLINE, [nanos]),
            RequestDatum::LoopTimeoutNanos(nanos) => long_words(kind::LOOP_TIMEOUT, [nanos]),
            RequestDatum::RequestId(id) => long_words(kind::REQUEST_ID, [id]),
        }
    }
}

impl ResultDatum {
    /// The datum as it lies in a queue.
    #[inline(always)]
    #[must_use]
    pub fn encode(self) -> DatumBytes {
        bytes(self.words())
    }

    #[inline(always)]
    pub(crate) fn words(self) -> DatumWords {
        use result_kind as kind;
        match self {
            ResultDatum::PacketInformation { packet_size, error_status, number_of_operands } => {
                words(
                    kind::PACKET_INFORMATION,
                    8,
                    [packet_size, error_status.cast_unsigned(), number_of_operands],
                )
            }
            ResultDatum::OperandInformation { is_sufficient, number_of_dimensions } => words(
                kind::OPERAND_INFORMATION,
                8,
                // The bool's byte is the first of its word in either byte order.
                [u32::from_ne_bytes([u8::from(is_sufficient), 0, 0, 0]), number_of_dimensions],
            ),
            ResultDatum::OperandDimensionValue(value) => {
                words(kind::OPERAND_DIMENSION_VALUE, 8, [value])
            }
            ResultDatum::ExecutionTiming { time_on_device_us, time_in_driver_us } => {
                long_words(kind::EXECUTION_TIMING, [time_on_device_us, time_in_driver_us])
            }
            ResultDatum::TimingNanos { on_device_ns, in_driver_ns } => {
                long_words(kind::TIMING_NANOS, [on_device_ns, in_driver_ns])
            }
            ResultDatum::RequestId(id) => long_words(kind::REQUEST_ID, [id]),
        }
    }
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    /// Offsets of the fields as the compiled original has them.
    #[test]
    fn request_datums_are_those_of_hal_1_2() {
        let information = InformationDatum {
            packet_size: 0x0403_0201,
            number_of_input_operands: 5,
            number_of_output_operands: 6,
            number_of_pools: 7,
        };
        assert_eq!(
            RequestDatum::PacketInformation(information).encode(),
            [0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0]
        );
        let operand = OperandDatum {
            has_no_value: true,
            location: DataLocation { pool_index: 2, offset: 3, length: 4 },
            number_of_dimensions: 5,
        };
        let bytes = [1, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0];
        assert_eq!(RequestDatum::InputOperandInformation(operand).encode(), bytes);
        let mut output = bytes;
        output[0] = 3;
        assert_eq!(RequestDatum::OutputOperandInformation(operand).encode(), output);
        for (datum, kind, word) in [
            (RequestDatum::InputOperandDimensionValue(9), 2, 9),
            (RequestDatum::OutputOperandDimensionValue(9), 4, 9),
            (RequestDatum::PoolIdentifier(-2), 5, -2),
            (RequestDatum::MeasureTiming(1), 6, 1),
        ] {
            let mut want = [0; DATUM_BYTES];
            want[0] = kind;
            want[4..8].copy_from_slice(&i32::to_le_bytes(word));
            assert_eq!(datum.encode(), want, "{datum:?}");
        }
    }

    #[test]
    fn result_datums_are_those_of_hal_1_2() {
        assert_eq!(
            ResultDatum::PacketInformation {
                packet_size: 2,
                error_status: 4,
                number_of_operands: 3
            }
            .encode(),
            [0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            ResultDatum::OperandInformation { is_sufficient: true, number_of_dimensions: 3 }
                .encode(),
            [1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            ResultDatum::OperandDimensionValue(7).encode(),
            [2, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        );
        assert_eq!(
            ResultDatum::ExecutionTiming { time_on_device_us: 1, time_in_driver_us: u64::MAX }
                .encode(),
            [
                3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255,
                255
            ]
        );
    }
}
