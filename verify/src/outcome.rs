//! How a suite of a test ended.

/// What a suite did, or why it did not pass.
pub type Outcome = Result<Done, Miss>;

/// What a suite of a test did over one route.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Done {
    /// Executions; of models that were refused, or prepared, how many.
    pub count: u64,
    /// Rules by which something was left out, once each time.
    pub left_out: Vec<LeftOut>,
}

/// A rule of the original suites by which a case is not executed, or not compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LeftOut {
    /// Output 0 of at most one byte.
    NothingToShorten,
    /// An output without elements, over fences.
    ZeroSizedFenced,
    /// An argument whose size the model leaves open, in a buffer.
    BufferOfOpenSize,
    /// An argument in a buffer that the device does not make.
    BufferRefused,
    /// A case of buffers in which no argument has one.
    NoBuffers,
    /// A broken model in which only the number of an operand's readers is wrong, described by calls.
    ReadersAreCounted,
    /// A broken model in which only the order of operations is wrong, described by calls.
    OrderIsSorted,
    /// A broken model in which only the lifetime of a value contradicts its graph's lists, described by calls.
    LifetimesFollowLists,
    /// A model that cannot be divided: a value between its operations is of unknown size.
    OpenSizeBetweenDevices,
    /// A deadline where no device is named.
    DeadlinesOfAnyDevice,
    /// Times where no device is named.
    TimesOfAnyDevice,
}

impl LeftOut {
    /// Its name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            LeftOut::NothingToShorten => "NOTHING_TO_SHORTEN",
            LeftOut::ZeroSizedFenced => "ZERO_SIZED_FENCED",
            LeftOut::BufferOfOpenSize => "BUFFER_OF_OPEN_SIZE",
            LeftOut::BufferRefused => "BUFFER_REFUSED",
            LeftOut::NoBuffers => "NO_BUFFERS",
            LeftOut::ReadersAreCounted => "READERS_ARE_COUNTED",
            LeftOut::OrderIsSorted => "ORDER_IS_SORTED",
            LeftOut::LifetimesFollowLists => "LIFETIMES_FOLLOW_LISTS",
            LeftOut::OpenSizeBetweenDevices => "OPEN_SIZE_BETWEEN_DEVICES",
            LeftOut::DeadlinesOfAnyDevice => "DEADLINES_OF_ANY_DEVICE",
            LeftOut::TimesOfAnyDevice => "TIMES_OF_ANY_DEVICE",
        }
    }

    /// What it says.
    #[must_use]
    pub fn why(self) -> &'static str {
        match self {
            LeftOut::NothingToShorten => {
                "executions with an output that is too short, where output 0 has at most one byte"
            }
            LeftOut::ZeroSizedFenced => {
                "values of fenced executions with an output without elements: refused instead"
            }
            LeftOut::BufferOfOpenSize => {
                "buffers for arguments whose size the model leaves open: plain memory instead"
            }
            LeftOut::BufferRefused => {
                "buffers that the device refuses with GENERAL_FAILURE: plain memory instead"
            }
            LeftOut::NoBuffers => "executions on buffers where no argument has one",
            LeftOut::ReadersAreCounted => {
                "models with a wrong number of readers: no call says how often an operand is read"
            }
            LeftOut::OrderIsSorted => {
                "models with operations in a wrong order: calls add them in any order"
            }
            LeftOut::LifetimesFollowLists => {
                "models with a lifetime that the lists of inputs and outputs deny: no call says it"
            }
            LeftOut::OpenSizeBetweenDevices => {
                "models that cannot be divided, refused: a value of unknown size would go from one \
                 device to another, and the reference device was not to run them whole"
            }
            LeftOut::DeadlinesOfAnyDevice => {
                "preparations and executions with a deadline: there are none unless one device is named"
            }
            LeftOut::TimesOfAnyDevice => {
                "times: none are measured unless one device is named; executed without"
            }
        }
    }
}

impl Done {
    /// So many, and nothing was left out.
    pub(crate) fn of(count: u64) -> Self {
        Done { count, left_out: Vec::new() }
    }

    /// Both together.
    pub(crate) fn and(mut self, other: Done) -> Self {
        self.count += other.count;
        self.left_out.extend(other.left_out);
        self
    }
}

/// Why a suite of a test did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// The device said beforehand that it does not run this model: neither a pass nor a failure.
    Unsupported(String),
    /// The device may refuse this model by a rule.
    LeftOut(LeftOut),
    /// What was wrong, in words: operand, index, got, expected, tolerance.
    Wrong(String),
}

impl Miss {
    /// The same with the circumstances in front.
    pub(crate) fn within(self, circumstances: &str) -> Self {
        match self {
            Miss::Unsupported(what) => Miss::Unsupported(format!("{circumstances}: {what}")),
            Miss::LeftOut(rule) => Miss::LeftOut(rule),
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
            Miss::LeftOut(rule) => write!(f, "left out: {}", rule.why()),
            Miss::Wrong(what) => f.write_str(what),
        }
    }
}
