//! Tags of log lines: what NNAPI lets its verbose log be narrowed to, as targets of `tracing`.
//!
//! Each tag is a target; whoever logs something that belongs to it names the target, and whoever listens
//! switches targets on. What is not listened to costs a load.
//!
//! | tag | target | what is logged |
//! |---|---|---|
//! | `model` | [`MODEL`] | models that come in, as graphs ([`log_graph`](crate::log_graph)) |
//! | `compilation` | [`COMPILATION`] | what preparing made of a model |
//! | `execution` | [`EXECUTION`] | executions: begun, ended, with which status |
//! | `cpuexe` | [`CPU_EXECUTION`] | each operation that the CPU computes |
//! | `manager` | [`MANAGER`] | devices: which there are, which is chosen |
//! | `driver` | [`DRIVER`] | calls of a driver and their answers; what an older one is not told |
//! | `memory` | [`MEMORY`] | memory: made, mapped, let go of |
//!
//! ```
//! use burst_hal::log_tags::{self, LogTag, LogTags};
//!
//! // As `debug.nn.vlog` is written: separated by spaces, commas or colons.
//! let (tags, unknown) = LogTags::parse("model,cpuexe:driver colour");
//! assert!(tags.contains(LogTag::Driver) && !tags.contains(LogTag::Memory));
//! assert_eq!(unknown, ["colour"]);
//! assert_eq!(LogTags::parse("1"), (LogTags::ALL, vec![]));
//!
//! // What a driver's author writes:
//! tracing::debug!(target: log_tags::DRIVER, operations = 3, "prepare_model");
//! ```
//!
//! Source: NNAPI's `Utils.h`, `VLOG`, and its property `debug.nn.vlog`.

use std::fmt;

/// Target of [`LogTag::Model`].
pub const MODEL: &str = "nn::model";
/// Target of [`LogTag::Compilation`].
pub const COMPILATION: &str = "nn::compilation";
/// Target of [`LogTag::Execution`].
pub const EXECUTION: &str = "nn::execution";
/// Target of [`LogTag::CpuExecution`].
pub const CPU_EXECUTION: &str = "nn::cpuexe";
/// Target of [`LogTag::Manager`].
pub const MANAGER: &str = "nn::manager";
/// Target of [`LogTag::Driver`].
pub const DRIVER: &str = "nn::driver";
/// Target of [`LogTag::Memory`].
pub const MEMORY: &str = "nn::memory";

/// One tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LogTag {
    /// Models that come in.
    Model,
    /// What preparing made of a model.
    Compilation,
    /// Executions.
    Execution,
    /// Each operation that the CPU computes.
    CpuExecution,
    /// Devices.
    Manager,
    /// Calls of a driver.
    Driver,
    /// Memory.
    Memory,
}

impl LogTag {
    /// Every tag, in NNAPI's order.
    pub const ALL: [LogTag; 7] = [
        LogTag::Model,
        LogTag::Compilation,
        LogTag::Execution,
        LogTag::CpuExecution,
        LogTag::Manager,
        LogTag::Driver,
        LogTag::Memory,
    ];

    /// Its name, as it is written in a list of tags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            LogTag::Model => "model",
            LogTag::Compilation => "compilation",
            LogTag::Execution => "execution",
            LogTag::CpuExecution => "cpuexe",
            LogTag::Manager => "manager",
            LogTag::Driver => "driver",
            LogTag::Memory => "memory",
        }
    }

    /// The target of its log lines.
    #[must_use]
    pub const fn target(self) -> &'static str {
        match self {
            LogTag::Model => MODEL,
            LogTag::Compilation => COMPILATION,
            LogTag::Execution => EXECUTION,
            LogTag::CpuExecution => CPU_EXECUTION,
            LogTag::Manager => MANAGER,
            LogTag::Driver => DRIVER,
            LogTag::Memory => MEMORY,
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of tags.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct LogTags(u8);

impl LogTags {
    /// All of them.
    pub const ALL: LogTags = LogTags((1 << LogTag::ALL.len()) - 1);

    /// The set that a text names, and what in it names no tag. Names are separated by spaces, commas or
    /// colons, in any number; `all` and `1` stand for every tag.
    #[must_use]
    pub fn parse(text: &str) -> (LogTags, Vec<&str>) {
        let mut tags = LogTags::default();
        let mut unknown = Vec::new();
        for word in text.split([' ', ',', ':']).filter(|word| !word.is_empty()) {
            match LogTag::ALL.into_iter().find(|tag| tag.name() == word) {
                Some(tag) => tags.0 |= tag.bit(),
                None if word == "all" || word == "1" => tags = LogTags::ALL,
                None => unknown.push(word),
            }
        }
        (tags, unknown)
    }

    /// Whether a tag is in the set.
    #[must_use]
    pub const fn contains(self, tag: LogTag) -> bool {
        self.0 & tag.bit() != 0
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The tags of the set.
    pub fn iter(self) -> impl Iterator<Item = LogTag> {
        LogTag::ALL.into_iter().filter(move |tag| self.contains(*tag))
    }
}

/// As [`LogTags::parse`] reads it.
impl fmt::Display for LogTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, tag) in self.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{}", tag.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for LogTags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogTags({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_read_as_they_are_written() {
        for tag in LogTag::ALL {
            let (tags, unknown) = LogTags::parse(tag.name());
            assert_eq!((tags.iter().collect::<Vec<_>>(), unknown), (vec![tag], vec![]));
            assert_eq!(tag.target(), format!("nn::{}", tag.name()));
        }
        assert_eq!(LogTags::parse(&LogTags::ALL.to_string()), (LogTags::ALL, vec![]));
        for text in ["1", "all", "model all", "all:model"] {
            assert_eq!(LogTags::parse(text), (LogTags::ALL, vec![]), "{text}");
        }
    }

    #[test]
    fn what_separates_and_what_is_unknown() {
        let (tags, unknown) = LogTags::parse(" :model,,driver Memory;x 2 ");
        assert_eq!(tags.to_string(), "model,driver");
        assert_eq!(unknown, ["Memory;x", "2"], "case counts, and other signs separate nothing");
        assert_eq!(LogTags::parse(" , : "), (LogTags::default(), vec![]));
        assert!(LogTags::parse("").0.is_empty());
    }
}
