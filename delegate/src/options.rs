//! What the application asks for, by key and value.

use std::path::PathBuf;

/// Every key, for the message about one that there is not.
const KEYS: &str = "device, socket, threads, preference, priority, cache, explain";
/// The framework's codes of preferences (NNAPI's `PREFER_*`).
const PREFERENCES: &[(&str, i32)] =
    &[("low_power", 0), ("fast_single_answer", 1), ("sustained_speed", 2)];
/// The framework's codes of priorities (NNAPI's `PRIORITY_*`).
const PRIORITIES: &[(&str, i32)] = &[("low", 90), ("medium", 100), ("high", 110)];
/// Most options that are read: there are far fewer, and each only once.
pub(crate) const OPTIONS_MAX: usize = 64;

/// What the application asks for. What it does not say is left to the framework.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// The one device that may run nodes.
    pub(crate) device: Option<String>,
    /// Where the service listens whose devices may.
    pub(crate) socket: Option<PathBuf>,
    /// The CPU driver of this process, with so many threads.
    pub(crate) threads: Option<usize>,
    pub(crate) preference: Option<i32>,
    pub(crate) priority: Option<i32>,
    /// The folder where compilations are kept.
    pub(crate) cache: Option<PathBuf>,
    /// The file that says what became of each node.
    pub(crate) explain: Option<PathBuf>,
}

/// Why options make no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OptionsError {
    #[error("there is no option {key:?}; there are {KEYS}")]
    Unknown { key: String },
    #[error("option {key} is given twice")]
    Twice { key: String },
    #[error("option {key} is {value:?}, where {wanted} is wanted")]
    Value { key: &'static str, value: String, wanted: String },
    #[error("options {first} and {second} do not go together: {reason}")]
    Together { first: &'static str, second: &'static str, reason: &'static str },
    #[error("{count} options, more than the limit of {OPTIONS_MAX}")]
    TooMany { count: usize },
    #[error("option {index} has no key, no value, or is no UTF-8 text")]
    NoText { index: usize },
}

impl Options {
    /// Options from keys and values.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub(crate) fn parse(pairs: &[(String, String)]) -> Result<Self, OptionsError> {
        let mut options = Options::default();
        for (at, (key, value)) in pairs.iter().enumerate() {
            if pairs[..at].iter().any(|(earlier, _)| earlier == key) {
                return Err(OptionsError::Twice { key: key.clone() });
            }
            options.set(key, value)?;
        }
        options.check()?;
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), OptionsError> {
        match key {
            "device" => self.device = Some(text("device", value, "the name of a device")?),
            "socket" => self.socket = Some(text("socket", value, "the path of a socket")?.into()),
            "threads" => self.threads = Some(threads(value)?),
            "preference" => self.preference = Some(one_of("preference", value, PREFERENCES)?),
            "priority" => self.priority = Some(one_of("priority", value, PRIORITIES)?),
            "cache" => self.cache = Some(text("cache", value, "the path of a folder")?.into()),
            "explain" => self.explain = Some(text("explain", value, "the path of a file")?.into()),
            key => return Err(OptionsError::Unknown { key: key.to_owned() }),
        }
        Ok(())
    }

    fn check(&self) -> Result<(), OptionsError> {
        let together =
            |first, second, reason| Err(OptionsError::Together { first, second, reason });
        if self.threads.is_some() && self.socket.is_some() {
            return together("threads", "socket", "a service has threads of its own");
        }
        if self.threads.is_some() && self.device.as_deref().is_some_and(|name| name != "cpu") {
            return together("threads", "device", "threads are those of the device cpu here");
        }
        Ok(())
    }
}

fn text(key: &'static str, value: &str, wanted: &str) -> Result<String, OptionsError> {
    match value {
        "" => Err(OptionsError::Value { key, value: String::new(), wanted: wanted.to_owned() }),
        value => Ok(value.to_owned()),
    }
}

fn threads(value: &str) -> Result<usize, OptionsError> {
    let most = burst_driver::MAX_THREADS;
    value.parse().ok().filter(|count| (1..=most).contains(count)).ok_or_else(|| {
        let wanted = format!("a number from 1 to {most}");
        OptionsError::Value { key: "threads", value: value.to_owned(), wanted }
    })
}

fn one_of(key: &'static str, value: &str, known: &[(&str, i32)]) -> Result<i32, OptionsError> {
    let found = known.iter().find(|(name, _)| *name == value).map(|(_, code)| *code);
    found.ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        OptionsError::Value { key, value: value.to_owned(), wanted: names.join(" or ") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Options, OptionsError> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Options::parse(&pairs.iter().map(owned).collect::<Vec<_>>())
    }

    #[test]
    fn every_option_is_read() {
        let options = parse(&[
            ("device", "cpu"),
            ("threads", "2"),
            ("preference", "sustained_speed"),
            ("priority", "high"),
            ("cache", "/kept"),
            ("explain", "/why"),
        ]);
        let want = Options {
            device: Some("cpu".into()),
            socket: None,
            threads: Some(2),
            preference: Some(2),
            priority: Some(110),
            cache: Some("/kept".into()),
            explain: Some("/why".into()),
        };
        assert_eq!(options, Ok(want));
        let socket = parse(&[("socket", "/run/a.sock"), ("device", "gpu")]).unwrap();
        assert_eq!(socket.socket, Some("/run/a.sock".into()));
        assert_eq!(parse(&[]), Ok(Options::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (pairs, want) in [
            (&[("nonsense", "1")][..], "there is no option \"nonsense\"; there are device,"),
            (&[("device", "")], "option device is \"\", where the name of a device is wanted"),
            (&[("threads", "0")], "option threads is \"0\", where a number from 1 to"),
            (&[("threads", "many")], "option threads is \"many\""),
            (&[("preference", "fast")], "option preference is \"fast\", where low_power or"),
            (&[("priority", "1")], "option priority is \"1\", where low or medium or high"),
            (&[("cache", "/a"), ("cache", "/b")], "option cache is given twice"),
            (&[("threads", "1"), ("socket", "/a")], "options threads and socket do not go"),
            (&[("threads", "1"), ("device", "gpu")], "options threads and device do not go"),
        ] {
            let said = parse(pairs).unwrap_err().to_string();
            assert!(said.starts_with(want), "{pairs:?}: {said}");
        }
    }
}
