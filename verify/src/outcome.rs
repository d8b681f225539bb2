//! How a suite of a test ended.

/// How many executions a suite made, or why it did not pass.
pub type Outcome = Result<u64, Miss>;

/// Why a suite of a test did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// The device said beforehand that it does not run this model: neither a pass nor a failure.
    Unsupported(String),
    /// What was wrong, in words: operand, index, got, expected, tolerance.
    Wrong(String),
}

impl Miss {
    /// The same with the circumstances in front.
    pub(crate) fn within(self, circumstances: &str) -> Self {
        match self {
            Miss::Unsupported(what) => Miss::Unsupported(format!("{circumstances}: {what}")),
            Miss::Wrong(what) => Miss::Wrong(format!("{circumstances}: {what}")),
        }
    }
}

impl From<String> for Miss {
    fn from(what: String) -> Self {
        Miss::Wrong(what)
    }
}

impl From<crate::VectorError> for Miss {
    fn from(error: crate::VectorError) -> Self {
        Miss::Wrong(error.to_string())
    }
}

impl std::fmt::Display for Miss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Miss::Unsupported(what) => write!(f, "not supported: {what}"),
            Miss::Wrong(what) => f.write_str(what),
        }
    }
}
