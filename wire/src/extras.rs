//! What two ends of ours can say beyond HAL 1.2, when both agreed to.

use std::fmt;
use std::time::Duration;

use burst_hal::TimePoint;

/// Additions to the HAL's packets, as a set of bits.
///
/// Each end says in its greeting which it knows; a burst uses those that both know and its
/// client asks for. A foreign client asks for none and sees plain HAL 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Features(u64);

impl Features {
    /// None: plain HAL 1.2.
    pub const NONE: Features = Features(0);
    /// A result may end with a datum of its times in nanoseconds.
    pub const TIMING_NANOS: Features = Features(1);
    /// A request may end with datums of its deadline and loop time-out.
    pub const DEADLINES: Features = Features(1 << 1);
    /// Results may have the statuses 5 to 8 of HAL 1.3; otherwise those are GENERAL_FAILURE.
    pub const STATUS_1_3: Features = Features(1 << 2);
    /// Packets are framed by the length they say, so that several requests may be under way; each
    /// carries a number that its result repeats. Results keep the order of their requests.
    pub const PIPELINING: Features = Features(1 << 3);
    /// Buffers of the driver may be put into slots.
    pub const TOKENS: Features = Features(1 << 4);
    /// A packet may say no more than where it differs from the one before in its queue.
    pub const DIFFERENCES: Features = Features(1 << 5);
    /// Everything this version knows.
    pub const ALL: Features = Features(
        Self::TIMING_NANOS.0
            | Self::DEADLINES.0
            | Self::STATUS_1_3.0
            | Self::PIPELINING.0
            | Self::TOKENS.0
            | Self::DIFFERENCES.0,
    );

    /// Their names, in the order of their bits.
    const NAMES: [&str; 6] =
        ["TIMING_NANOS", "DEADLINES", "STATUS_1_3", "PIPELINING", "TOKENS", "DIFFERENCES"];

    /// The set with these bits; unknown ones are kept, so that an intersection drops them.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Features(bits)
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Whether all of `other` are in this set.
    #[must_use]
    pub const fn contains(self, other: Features) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is in both sets.
    #[must_use]
    pub const fn intersection(self, other: Features) -> Features {
        Features(self.0 & other.0)
    }

    /// What is in this set and not in `other`.
    #[must_use]
    pub const fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    /// What is in either set.
    #[must_use]
    pub const fn union(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }
}

/// By name; those that this version does not know by the number of their bit.
impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for bit in (0..u64::BITS).filter(|bit| self.0 >> bit & 1 == 1) {
            let known = Self::NAMES.get(bit as usize);
            match known {
                Some(name) => write!(f, "{separator}{name}")?,
                None => write!(f, "{separator}bit {bit}")?,
            }
            separator = ", ";
        }
        if self.0 == 0 { f.write_str("none") } else { Ok(()) }
    }
}

/// What a request says beyond HAL 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestExtras {
    /// When its result is no longer wanted.
    pub deadline: Option<TimePoint>,
    /// Longest time one loop may take.
    pub loop_timeout: Option<Duration>,
    /// The request's number.
    pub id: Option<u64>,
}

/// What a result says beyond HAL 1.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResultExtras {
    /// Nanoseconds in the driver, from the request's arrival to just before the answer.
    pub in_driver_ns: Option<u64>,
    /// Nanoseconds in the hardware, where known.
    pub on_device_ns: Option<u64>,
    /// The number of the request that it belongs to, where that could be read.
    pub id: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_named_and_unknown_ones_numbered() {
        assert_eq!(Features::NONE.to_string(), "none");
        let all = Features::ALL.to_string();
        assert_eq!(all, "TIMING_NANOS, DEADLINES, STATUS_1_3, PIPELINING, TOKENS, DIFFERENCES");
        let mixed = Features::from_bits(1 << 40 | 1 << 1 | 1 << 63);
        assert_eq!(mixed.to_string(), "DEADLINES, bit 40, bit 63");
    }
}
